"""From the states that count to the rows people read, with the word on how far each is right."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.row_order import order_rows
from seamline.lake.engine.windowing import END, START, read_numpy_column
from seamline.lake.read.answer_ways import Flags, Ways, format_interval_id
from seamline.lake.read.answers import Answer
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.read.standings import list_met_borders
from seamline.lake.read.window_verdicts import Verdicts, compute_verdicts
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.errors import ProtocolError
from seamline.model.protocol.seam import NOTHING, Phase, Side


def present_windows(
    snapshot: Snapshot,
    found: pa.Table,
    ways: Ways,
    side: Side,
    intervals: Collection[int] | None,
) -> Answer:
    """Present the merged states of windows, and say how far each row is right.

    ``ways`` are those of the intervals that the windows were found from; ``intervals`` those that they start in, None
    for all.
    """
    view, keys = snapshot.view, [key.name for key in snapshot.view.keys]
    found = found.take(order_rows(found, [START, END, *([GROUPING] if view.grouped else []), *keys]))
    verdicts = compute_verdicts(snapshot, ways, found, side)
    shown = verdicts.answered & find_shown_windows(view, found, verdicts.answered, side)
    if not shown.all():
        found, verdicts = found.filter(pa.array(shown)), verdicts.only(shown)
    measures = states.present_states(view, found, keep=keys)
    columns = {
        **({GROUPING: found[GROUPING]} if view.grouped else {}),
        **{name: found[name] for name in keys},
        "window_start": found[START].cast(INSTANT),
        "window_end": found[END].cast(INSTANT),
        **{name: measures[name] for name in measures.column_names if name not in keys},
        "batch_part": pc.subtract(found["rows"], found["_speed"]),
        "speed_part": found["_speed"],
        "epoch": pa.array(verdicts.epochs),
        "certified": pc.and_(pa.array(verdicts.certified), find_untouched_windows(view, found)),
        "complete": pa.array(verdicts.complete),
        "phase": window_phases(verdicts),
    }
    kept = [pc.cast(found[START], INSTANT), *(found[name] for name in ["rows", *part_names(view)])]
    return Answer(
        view=view.qualified,
        version=view.fingerprint,
        side=side,
        table=pa.table(columns),
        states=pa.table(kept, names=["window_start", "rows", *part_names(view)]),
        intervals=ways,
        whole=None if intervals is None else frozenset(map(format_interval_id, intervals)),
        epoch=snapshot.epoch,
        until=snapshot.until,
        manifest_version=snapshot.manifest.version,
        # Of joined rows no build removes any that slices have.
        has_event_id=snapshot.has_event_id and not view.derived,
        dedup_within=snapshot.dedup_within,
        served_at=snapshot.served_at,
        as_of=snapshot.as_of,
        beyond={name: source.name for name, source in view.beyond.items()},
        borders=list_met_borders(snapshot, ways.starts),
    )


def find_shown_windows(view: CompiledView, found: pa.Table, answered: Flags, side: Side) -> Flags:
    """Find the windows of which not all rows were withdrawn; ProtocolError for one that has lost more than it had.

    An interval that waits for a build may have, and a layer's share alone may be negative: that of the speed layer, and
    of a table's changes that of the batch layer too, as intervals are built up to epochs of their own.
    """
    rows = read_numpy_column(found, "rows")
    if not view.netted:
        return np.ones(len(rows), np.bool_)
    whole = side is Side.MERGED or (side is Side.BATCH and view.changelog is None)
    if whole and (rows[answered] < 0).any():
        raise ProtocolError(
            f"{view.qualified} has a window of {rows[answered].min()} rows.",
            hint="this is a defect: more was withdrawn than added; `seamline audit` says which states are wrong.",
        )
    shown: Flags = rows != 0
    return shown


def find_untouched_windows(view: CompiledView, found: pa.Table) -> pa.ChunkedArray:
    """Find the windows that no slice has changed; of rows that may be withdrawn one may withdraw as many as it adds."""
    return pc.equal(found["_newest"], NOTHING) if view.netted else pc.equal(found["_speed"], 0)


def part_names(view: CompiledView) -> list[str]:
    """List the names of the state columns."""
    return [part.name for part in view.parts]


def window_phases(verdicts: Verdicts) -> pa.Array:
    """Say how far each window has come."""
    if not verdicts.complete.any():
        return pa.repeat(pa.scalar(Phase.EARLY.value), len(verdicts.complete))
    closed = pc.if_else(pa.array(verdicts.corrected), Phase.LATE, Phase.COMPLETE)
    return pc.if_else(pa.array(verdicts.complete), closed, Phase.EARLY)
