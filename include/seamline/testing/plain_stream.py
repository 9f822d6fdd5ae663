"""The speed layer of the dull engine: epochs and every view's input, as lists.

Only what a record means is not its own: that is the kernel's, which has no second meaning anywhere.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import finalize

import pyarrow as pa

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.evolution import is_compatible_version, require_order
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.compile.record_rules import SOURCE
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest, Statement, fold_statements
from seamline.model.protocol.restated_views import count_named_restatements
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import EPOCH
from seamline.model.time.reached_intervals import find_spanning_views
from seamline.plan.batch.reprocessing_plan import (
    drop_foreign_watermarks,
    last_filled_interval,
    list_later_intervals,
)
from seamline.plan.publish.publication import plan_births
from seamline.plan.stream.epoch_numbers import next_number
from seamline.plan.stream.lane_policy import build_watermark_policy
from seamline.spark.stream.progress import Progress
from seamline.testing.beside import Beside
from seamline.testing.engine import PHASES
from seamline.testing.input import input_of
from seamline.testing.oracle import (
    Row,
)
from seamline.testing.plain_views import PlainViews
from seamline.testing.repeats import Seen, mark_repeated_rows, note_rows
from seamline.testing.validation import (
    Read,
    count_names,
    find_latest_event_times,
    make_rule_versions,
    reprocess_interval_rows,
    validate_raw_records,
)


@dataclass
class PlainStream(PlainViews):
    """Epochs, records and the manifest as lists."""

    pipeline: CompiledPipeline
    """The definition that runs."""
    epochs: list[Epoch] = field(default_factory=list)
    """Committed ones, ascending."""
    refused: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the quarantine, in the order in which they came."""
    rows: dict[str, list[Row]] = field(default_factory=dict)
    """Input rows by view name, ascending by epoch."""
    statements: list[Statement] = field(default_factory=list)
    """Of the manifest, in the order of their commits."""
    manifest: Manifest = field(default_factory=lambda: fold_statements([], 0))
    """What the statements add up to."""
    read: list[Read] = field(default_factory=list)
    """One for each committed epoch, ascending."""
    judged: dict[int, Read] = field(default_factory=dict)
    """Epochs that were validated again, by number."""
    restated: list[Restatement] = field(default_factory=list)
    """Restatements in the order in which they were decided."""
    taken: int = NOTHING
    """The highest number that was used, by a dead attempt too; -1 for none."""
    seen: Seen = field(default_factory=dict)
    """Event ids that the stream remembers, to drop duplicates."""
    progress: Progress | None = None
    """None before the first epoch."""

    def __post_init__(self) -> None:
        self.con = open_duckdb()
        self.beside = Beside(self.con)
        folder = Path(tempfile.mkdtemp(prefix="seamline-"))
        finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.layout = Layout(folder, self.pipeline.name)
        self.redefine(self.pipeline)

    def write_statements(self, *statements: Statement) -> None:
        """Write statements as one commit of the manifest."""
        seq = len(self.statements)
        self.statements += [replace(each, seq=seq) for each in statements]
        self.manifest = fold_statements(self.statements, len(self.statements))

    def is_unique(self, view: CompiledView) -> bool:
        """Return whether a build leaves out rows of a view that repeat an event id: joined rows have none."""
        return bool(self.pipeline.event_id) and not view.derived

    def commit(self, epoch: Epoch, raw: pa.Table, *, dies_after: str = "") -> Epoch | None:
        number = self.taken = next_number([self.taken])
        if dies_after and PHASES.index(dies_after) < PHASES.index("master"):
            return None
        rules = self.make_rules([*self.read_epochs(), (number, raw)])
        versions = {**self.lookups.current_versions(), **rules}
        paths = self.lookups.version_paths(versions)
        accepted, refused = validate_raw_records(
            self.con, self.pipeline, raw, number, epoch.committed_at, paths
        )
        marks = (
            mark_repeated_rows(self.pipeline, accepted, self.seen, self.mark)
            if self.pipeline.record.dedup
            else None
        )
        if marks is not None:
            accepted, refused = validate_raw_records(
                self.con, self.pipeline, raw, number, epoch.committed_at, paths, marks
            )
        late, very_late = self.lateness(accepted)
        times = find_latest_event_times(accepted)
        topic_ids = {topic: f"id of {topic}" for topic in self.pipeline.definition.topics}
        policy = build_watermark_policy(self.pipeline.definition, topic_ids)
        before = self.progress or Progress.resume([], {}, epoch.committed_at, self.pipeline.timed)
        vector = {part.lane: part.start for part in epoch.ranges} | dict(before.vector)
        before = before.add_lanes(vector, epoch.committed_at)
        after = before.advance(epoch.ranges, times, epoch.committed_at)
        whole = replace(
            epoch,
            number=number,
            accepted=count_names(map(self.interval_of, accepted["_event_time"].to_pylist())),
            refused=count_names(refused["_reason"].to_pylist()),
            late=late,
            very_late=very_late,
            max_event_time=times,
            lookups=versions if raw.num_rows else {},
            watermark=after.watermark(policy, after.vector, epoch.committed_at),
            frontiers={view.id: number for view in self.pipeline.views},
            restated=self.epochs[-1].restated if self.epochs else 0,
        )
        self.progress = after.commit(whole)
        self.epochs.append(whole)
        self.refused += refused.to_pylist()
        self.read.append(Read(whole, self.pipeline, raw, marks, accepted, refused))
        for view in self.pipeline.views:
            if view.derived:
                self.rows[view.name] = self.all_rows(view)
            else:
                self.rows[view.name] += input_of(self.con, self.pipeline, view, accepted)
        return whole

    def read_epochs(self, until: int | None = None) -> list[tuple[int, pa.Table]]:
        """Return the numbers of epochs with their raw records, up to one or all of them."""
        return [
            (each.epoch.number, each.raw) for each in self.read if until is None or each.epoch.number <= until
        ]

    def make_rules(self, epochs: Sequence[tuple[int, pa.Table]]) -> dict[str, str]:
        """Make the tables of rules of some epochs from the beginning: nothing is remembered of them."""
        return make_rule_versions(self.con, self.pipeline, epochs, self.layout)

    def count_named(self, number: int) -> int:
        """Count the decisions that joined rows of an epoch are made with."""
        return count_named_restatements(self.epochs, number)

    def list_meant(self, read: Read, decisions: Sequence[Restatement]) -> list[Restatement]:
        """List the decisions that an epoch's rows follow: before it was validated again, those about a topic's rules.

        A version is then the one that the first epoch to name it has met anew.
        """
        topics = {join.name for join in self.pipeline.lookups if join.of}
        before = [each for each in decisions[: read.known] if each.lookup in topics]
        return [*map(self.rename_version, before), *decisions[read.known :]]

    def rename_version(self, decision: Restatement) -> Restatement:
        """Return a decision by the version that the definition of today makes."""
        again = self.judged.get(decision.used)
        return replace(decision, version=again.epoch.lookups[decision.lookup]) if again else decision

    def restate_rows(self, read: Read, decisions: Sequence[Restatement]) -> pa.Table:
        """Return an epoch's accepted rows as decisions have them."""
        if not decisions:
            return read.accepted
        grid = self.pipeline.grid
        return pa.concat_tables(
            [read.accepted.slice(0, 0)]
            + [
                reprocess_interval_rows(
                    self.con, read, self.layout, grid.named(id), self.list_meant(read, decisions)
                )
                for id in sorted({*map(self.interval_of, read.accepted["_event_time"].to_pylist())})
            ]
        )

    def name_restatements(self, at: datetime) -> None:
        """Commit an epoch that names the decisions that joined rows are made with from then on."""
        number = self.taken = next_number([self.taken])
        last = self.epochs[-1]
        self.epochs.append(
            Epoch(
                number=number,
                token=last.token,
                committed_at=at,
                record_version=self.pipeline.record_version,
                edge=True,
                watermark=last.watermark,
                frontiers=last.frontiers,
                clock=last.clock,
                before=last.number,
                restated=len(self.restated),
            )
        )
        for view in self.pipeline.views:
            if view.derived:
                self.rows[view.name] = self.all_rows(view)

    @property
    def mark(self) -> datetime | None:
        """The watermark when the next epoch begins."""
        return self.progress.mark if self.progress else None

    def lateness(self, accepted: pa.Table) -> tuple[dict[str, int], dict[str, int]]:
        """Count late rows and very late ones per interval, by the watermark before the epoch."""
        mark = self.mark
        if mark is None:
            return {}, {}
        late, very_late = list[str](), list[str]()
        past = {each.source.name: mark - each.very_late for each in self.pipeline.by_source}
        for row in accepted.to_pylist():
            if (at := row["_event_time"]) < mark:
                (very_late if at < past[row.get(SOURCE, "")] else late).append(self.interval_of(at))
        return count_names(late), count_names(very_late)

    def interval_of(self, moment: datetime) -> str:
        """Return the id of the interval that contains an instant."""
        return self.pipeline.grid.of(moment).id

    def remember(self, before: int | None = None) -> Seen:
        """Return the event ids of rows that count, of all epochs or of those before one."""
        found: Seen = {}
        for each in self.current:
            if before is None or each.epoch.number < before:
                note_rows(self.pipeline, each.accepted, found)
        return found

    @property
    def spanning(self) -> dict[str, CompiledView]:
        """By id, the views of folds whose spans are longer than an interval."""
        return find_spanning_views(self.pipeline.grid, self.pipeline.views)

    def restart(self) -> None:
        """Nothing is lost: lists are what is committed; only the look-ups are read again."""
        before = in_force(self.epochs, self.pipeline.record_version)
        self.seen = self.remember() if self.pipeline.record.dedup else {}
        self.lookups = Lookups(self.pipeline.lookups, self.layout, before, every=0)

    def redefine(self, pipeline: CompiledPipeline) -> None:
        require_order(pipeline.record_version, self.epochs)
        before, self.pipeline = self.pipeline.record_version, pipeline
        if (known := self.progress) is not None:
            anew = Progress.resume(self.epochs, known.vector, EPOCH, pipeline.timed)
            self.progress = replace(anew, last_seen=known.last_seen, last_edge_at=known.last_edge_at)
        last = self.epochs[-1].number if self.epochs else NOTHING
        day = last_filled_interval(self.epochs, pipeline.record_version, pipeline.grid, below=last + 1)
        definitions = {view.id: "" for view in pipeline.views}
        timed = drop_foreign_watermarks(self.epochs, pipeline.timed)
        later = list_later_intervals(timed, day, pipeline.grid, self.spanning, below=last + 1)
        self.write_statements(
            *plan_births(self.manifest, definitions, held=last, now=EPOCH, filled=day, later=later)
        )
        held = {name: rows for name, rows in self.rows.items() if pipeline.record_version == before}
        self.judged = {} if pipeline.record_version != before else self.judged
        for view in pipeline.views:
            self.rows[view.name] = held.get(view.name) or self.all_rows(view)
        self.restart()

    @property
    def current(self) -> list[Read]:
        """What the record version has validated: epochs of its own, and those validated again."""
        found = [self.judged.get(each.epoch.number, each) for each in self.read]
        return [
            each
            for each in found
            if is_compatible_version(each.pipeline.record_version, self.pipeline.record_version)
        ]
