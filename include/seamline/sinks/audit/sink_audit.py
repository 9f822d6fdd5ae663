"""The audit of a sink: what its target holds against what is served at the target's position."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.read.sinks.row_comparison import RowComparison, open_comparison
from seamline.lake.read.sinks.served_changes import UNCOMPARED, Comparison, RowChanges, iterate_changes
from seamline.lake.read.sinks.shown_rows import ShownRows, StartRange
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.served_versions import ServedVersion, ServedVersions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.errors import ReadUnstable
from seamline.model.protocol.sinks.marks import Mark, split_marks
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.time.intervals import parse_duration
from seamline.sinks.audit.opened_target import OpenedTarget, Opening, open_to_read, read_shown_versions
from seamline.sinks.readable_target import PartedReading, Reading
from seamline.sinks.targets import open_target

MISSING, EXTRA, DIFFERENT, DAMAGED = "missing", "extra", "different", "damaged"
EXAMPLES = 20
"""Findings of each kind that are told; all are counted."""
WALKED = 2_000
"""Versions through which a target may go while it is read."""
UNTOLD = object()
EVERYTHING = StartRange()


@dataclass(frozen=True)
class RowFinding:
    """One row, or one file, that is not as it should be."""

    kind: str
    """MISSING: served and not there; EXTRA: there and not served; DIFFERENT: another one is served; DAMAGED: a
    file is not as it was written."""
    place: str
    """What tells it from others, as the target has it; the name of a file."""
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Of a different row each column that differs: what the target has, and what is served."""
    note: str = ""
    """What is wrong with a file."""


@dataclass(frozen=True)
class SinkAudit:
    """What a target holds against what is served."""

    pipeline: str
    """The pipeline's name."""
    sink: str
    """The sink's name."""
    target: str
    """Where it writes to."""
    at: datetime
    """When it was read, UTC."""
    span: StartRange = EVERYTHING
    """The windows that were compared."""
    position: SinkPosition | None = None
    """Where the target stood; None if nothing was sent yet."""
    held: int = 0
    """Rows that it holds."""
    wanted: int = 0
    """Rows that it should hold as they are served."""
    unsent: int = 0
    """Rows that are served and not sent now, as ``when=`` says: the target may have an earlier one, or none."""
    moved: int = 0
    """Rows that changed while the target was read: they were not compared."""
    found: Mapping[str, int] = field(default_factory=dict)
    """How many rows, or files, are not as they should be, by kind."""
    examples: tuple[RowFinding, ...] = ()
    """Some of them."""

    @property
    def passed(self) -> bool:
        """True if nothing is wrong."""
        return not any(self.found.values())


def audit_sink(
    pipeline: CompiledPipeline,
    layout: Layout,
    sink: Sink,
    *,
    clock: Callable[[], datetime],
    span: StartRange = EVERYTHING,
    opening: Opening = open_target,
) -> SinkAudit:
    """Read all that a target holds of some windows, and compare it with what is served at its position.

    The sink goes on meanwhile. ReadUnstable where it has been written anew, or goes to another version of the view.
    """
    view = pipeline.view(sink.view)
    assert view is not None
    made = SinkAudit(pipeline.name, sink.id, sink.name_target(pipeline.name), clock(), span)
    versions = ServedVersions(layout.serving(view))
    if versions.find_newest() < 0:
        return made
    with (
        open_to_read(pipeline, layout, sink, versions, opening) as opened,
        open_comparison(span) as comparison,
    ):
        before = opened.position
        if before is None:
            return made
        for rows in opened.reading.read_rows(span):
            comparison.add_held(rows)
        after = require_same_rows(sink, before, opened.reading.find_position())
        versions.find_newest()
        # What has expired by now may have been there, or not, when its place was read.
        add_shown(comparison, opened, sink, versions, after, clock())
        for changes in iterate_moves(versions, opened, sink, before, after):
            comparison.add_moved(opened.target.spell_places(changes.upserts))
            comparison.add_moved(opened.target.spell_places(changes.deletions))
        found, examples = judge(comparison, list_damage(opened.reading))
        held, wanted, unsent, moved = comparison.count()
    return replace(
        made,
        position=after,
        held=held,
        wanted=wanted,
        unsent=unsent,
        moved=moved,
        found=found,
        examples=examples,
    )


def require_same_rows(sink: Sink, before: SinkPosition, after: SinkPosition | None) -> SinkPosition:
    """Return the later position of a target; ReadUnstable where its rows cannot be compared with one version's."""
    marks = [Mark.parse(each) for at in (before, after) if at for each in split_marks(at.fingerprint) if each]
    if after is None or after.version < before.version or len({(each.view, each.form) for each in marks}) > 1:
        raise ReadUnstable(
            f"Sink {sink.id} was written anew while its target was read, or shows parts of two versions of its view.",
            hint="audit it again when `seamline sinks list` says that it shows the newest version.",
        )
    return after


def add_shown(
    comparison: RowComparison,
    opened: OpenedTarget,
    sink: Sink,
    versions: ServedVersions,
    position: SinkPosition,
    now: datetime,
) -> None:
    """Add what a target shall hold: the rows of a version, and of the way from it so many changes as were sent.

    Redis may have some more of them: it is written by several scripts, the last of which moves the position.
    """
    shown, toward = read_shown_versions(versions, position, sink.id)
    if shown is not None:
        for rows, sent in ShownRows(shown, sink.when, comparison.span).iterate_all():
            add_rows(comparison, opened, rows, pc.and_(sent, find_lasting(sink, rows, now)))
    if toward is None:
        return
    left = position.rows
    for changes in iterate_changes(Comparison(shown, toward, opened.places, sink.when)):
        count = changes.upserts.num_rows + changes.deletions.num_rows
        if left >= count:
            rows = changes.upserts
            add_rows(comparison, opened, rows, find_lasting(sink, rows, now))
            comparison.add_gone(opened.target.spell_places(changes.deletions))
        elif left > 0 or isinstance(sink, RedisSink):
            comparison.add_moved(opened.target.spell_places(changes.upserts))
            comparison.add_moved(opened.target.spell_places(changes.deletions))
        left -= count
        if left <= 0 and not isinstance(sink, RedisSink):
            break


def add_rows(comparison: RowComparison, opened: OpenedTarget, rows: pa.Table, sent: pa.ChunkedArray) -> None:
    """Add rows that a target shall hold."""
    comparison.add_wanted(opened.target.spell_places(rows), opened.target.spell_values(rows), sent)


def find_lasting(sink: Sink, rows: pa.Table, now: datetime) -> pa.ChunkedArray:
    """Return which rows have not expired in their target."""
    if not isinstance(sink, RedisSink) or sink.expire is None:
        return pa.chunked_array([pa.array([True]).take(pa.array([0] * rows.num_rows, pa.int64()))])
    oldest = pa.scalar(now - parse_duration(sink.expire), rows["window_end"].type)
    return pc.fill_null(pc.greater(rows["window_end"], oldest), True)


def iterate_moves(
    versions: ServedVersions, opened: OpenedTarget, sink: Sink, before: SinkPosition, after: SinkPosition
) -> Iterator[RowChanges]:
    """Give what has changed on the way from one position to another; a version between may have been there too."""
    if (before.version, before.toward, before.rows) == (after.version, after.toward, after.rows):
        return
    last = max(after.version, after.toward or 0)
    if last - before.version > WALKED:
        raise ReadUnstable(
            f"The target of sink {sink.id} has gone through {last - before.version} versions while it was read.",
            hint="audit a range: --from and --to.",
        )
    old: ServedVersion | None = versions.read(before.version) if before.version >= 0 else None
    start = before.version if before.version >= 0 else (before.toward or 0) - 1
    for number in range(start + 1, last + 1):
        new = versions.read(number)
        yield from iterate_changes(Comparison(old, new, opened.places, sink.when))
        old = new


def list_damage(reading: Reading) -> list[RowFinding] | None:
    """List the files that are not as they were written; None for a target that has none."""
    if not isinstance(reading, PartedReading):
        return None
    return [RowFinding(DAMAGED, name, note=why) for name, why in sorted(reading.list_damage().items())]


def judge(
    comparison: RowComparison, damage: list[RowFinding] | None
) -> tuple[Mapping[str, int], tuple[RowFinding, ...]]:
    """Count what is wrong, and name some of it; rows that are written otherwise and say the same are the same."""
    counts: Counter[str] = Counter({MISSING: 0, EXTRA: 0, DIFFERENT: 0})
    examples: list[RowFinding] = []
    if damage is not None:
        counts[DAMAGED] = len(damage)
        examples += damage[:EXAMPLES]
    for part in comparison.iterate_differences():
        for row in part.to_pylist():
            found = judge_row(row["place"], row["held"], row["wanted"])
            if found is None:
                continue
            counts[found.kind] += 1
            if counts[found.kind] <= EXAMPLES:
                examples.append(found)
    return dict(counts), tuple(sorted(examples, key=lambda each: (each.kind, each.place)))


def judge_row(place: str, held: str | None, wanted: str | None) -> RowFinding | None:
    """Judge one row; None if it is right."""
    if held is None:
        return RowFinding(MISSING, place)
    if wanted is None:
        return RowFinding(EXTRA, place)
    columns = list_differing_columns(held, wanted)
    return RowFinding(DIFFERENT, place, columns) if columns else None


def list_differing_columns(held: str, wanted: str) -> dict[str, tuple[Any, Any]]:
    """List the columns in which two rows differ: what is held, and what is wanted."""
    ours = json.loads(wanted, parse_float=Decimal)
    try:
        theirs = json.loads(held, parse_float=Decimal)
    except (ValueError, RecursionError):
        theirs = held
    if not isinstance(theirs, dict):
        return {"value": (held, wanted)}
    names = [name for name in {**ours, **theirs} if name not in UNCOMPARED]
    return {
        name: (theirs.get(name), ours.get(name))
        for name in names
        if theirs.get(name, UNTOLD) != ours.get(name, UNTOLD)
    }
