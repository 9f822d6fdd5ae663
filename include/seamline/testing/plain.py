"""The dull engine: rows in lists, states of plain Python, decisions of the pure core.

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

from seamline.lake.engine import states
from seamline.lake.publish.lookup_restating import decide_restatement
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookup_tables import Lookups
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.evolution import is_compatible_version, require_order
from seamline.model.compile.lookup_join import in_force
from seamline.model.errors import CertificateFailed
from seamline.model.protocol.certificate_checks import Check, Evidence, only_open, validate_evidence
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Generation, Manifest, Statement, fold_statements
from seamline.model.protocol.restatement import Restatement, list_interval_restatements
from seamline.model.protocol.seam import NOTHING, Side
from seamline.model.time.intervals import EPOCH, Interval
from seamline.plan.batch.batch_plan import plan_batch
from seamline.plan.batch.rejudging_plan import (
    Verdict,
    apply_verdicts,
    complete_births,
    drop_foreign_watermarks,
    last_filled_interval,
    list_outdated_epochs,
    plan_raised_floors,
)
from seamline.plan.publish.publication import Candidate, plan_births, plan_publication, select_publishable
from seamline.plan.stream.epoch_numbers import next_number
from seamline.spark.stream.progress import Progress
from seamline.testing.beside import Beside
from seamline.testing.engine import PHASES, cuts_of
from seamline.testing.input import input_of
from seamline.testing.judging import (
    Read,
    count_names,
    find_latest_event_times,
    reprocess_interval_rows,
    validate_raw_records,
)
from seamline.testing.oracle import (
    Row,
    filter_counted_rows,
    meets_expected_bounds,
    present_oracle_rows,
    to_nearest_double,
)
from seamline.testing.repeats import Seen, mark_repeated_rows


@dataclass
class Plain:
    """Both layers as lists."""

    pipeline: CompiledPipeline
    epochs: list[Epoch] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    manifest: Manifest = field(default_factory=lambda: fold_statements([], 0))
    read: list[Read] = field(default_factory=list)
    judged: dict[int, Read] = field(default_factory=dict)
    restated: list[Restatement] = field(default_factory=list)
    taken: int = NOTHING
    seen: Seen = field(default_factory=dict)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.con = states.open_duckdb()
        self.beside = Beside(self.con)
        folder = Path(tempfile.mkdtemp(prefix="seamline-"))
        finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.layout = Layout(folder, self.pipeline.name)
        self.redefine(self.pipeline)

    def say(self, *statements: Statement) -> None:
        """Write statements as one commit of the manifest."""
        seq = len(self.statements)
        self.statements += [replace(each, seq=seq) for each in statements]
        self.manifest = fold_statements(self.statements, len(self.statements))

    @property
    def unique(self) -> bool:
        """Return whether records have an event id."""
        return bool(self.pipeline.definition.source.event_id)

    def commit(self, epoch: Epoch, raw: pa.Table, *, dies_after: str = "") -> Epoch | None:
        number = self.taken = next_number([self.taken])
        if dies_after and PHASES.index(dies_after) < PHASES.index("master"):
            return None
        versions = self.lookups.current()
        paths = self.lookups.paths(versions)
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
        policy = self.pipeline.definition.source.watermark
        before = self.progress or Progress.resumed([], {}, epoch.committed_at, self.pipeline.timed)
        vector = {part.lane: part.start for part in epoch.ranges} | dict(before.vector)
        before = before.meet(vector, epoch.committed_at)
        after = before.read(epoch.ranges, times, epoch.committed_at)
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
        )
        self.progress = after.held(whole)
        self.epochs.append(whole)
        self.refused += refused.to_pylist()
        self.read.append(Read(whole, self.pipeline, raw, marks, accepted, refused))
        for view in self.pipeline.views:
            self.rows[view.name] += input_of(self.con, self.pipeline, view, accepted)
        return whole

    @property
    def mark(self) -> datetime | None:
        """The watermark when the next epoch begins."""
        return self.progress.mark if self.progress else None

    def lateness(self, accepted: pa.Table) -> tuple[dict[str, int], dict[str, int]]:
        """Count late rows and very late ones per interval, by the watermark before the epoch."""
        mark = self.mark
        if mark is None:
            return {}, {}
        moments = accepted["_event_time"].to_pylist()
        past = mark - self.pipeline.very_late
        late = [self.interval_of(at) for at in moments if past <= at < mark]
        return count_names(late), count_names(self.interval_of(at) for at in moments if at < past)

    def interval_of(self, moment: datetime) -> str:
        """Return the id of the interval that holds an instant."""
        return self.pipeline.grid.of(moment).id

    def restart(self) -> None:
        """Nothing is lost: lists are what is held; only the look-ups are read again."""
        before = in_force(self.epochs, self.pipeline.record_version)
        self.lookups = Lookups(self.pipeline.record.lookups, self.layout, before, every=0)

    def redefine(self, pipeline: CompiledPipeline) -> None:
        require_order(pipeline.record_version, self.epochs)
        before, self.pipeline = self.pipeline.record_version, pipeline
        if (known := self.progress) is not None:
            anew = Progress.resumed(self.epochs, known.vector, EPOCH, pipeline.timed)
            self.progress = replace(anew, last_seen=known.last_seen, last_edge_at=known.last_edge_at)
        last = self.epochs[-1].number if self.epochs else NOTHING
        day = last_filled_interval(self.epochs, pipeline.record_version, pipeline.grid, below=last + 1)
        definitions = {view.id: "" for view in pipeline.views}
        self.say(*plan_births(self.manifest, definitions, held=last, now=EPOCH, filled=day))
        held = {name: rows for name, rows in self.rows.items() if pipeline.record_version == before}
        self.judged = {} if pipeline.record_version != before else self.judged
        for view in pipeline.views:
            self.rows[view.name] = held.get(view.name) or self.every(view)
        self.restart()

    @property
    def current(self) -> list[Read]:
        """What the record version has judged: epochs of its own, and those judged again."""
        found = [self.judged.get(each.epoch.number, each) for each in self.read]
        return [
            each
            for each in found
            if is_compatible_version(each.pipeline.record_version, self.pipeline.record_version)
        ]

    def every(self, view: CompiledView) -> list[Row]:
        """Return a view's input of all epochs."""
        return [
            row for each in self.current for row in input_of(self.con, self.pipeline, view, each.accepted)
        ]

    def judge_again(self) -> dict[int, Verdict]:
        """Judge what another record version judged, with the look-ups as they are."""
        version, known = self.pipeline.record_version, len(self.restated)
        paths = self.lookups.paths(versions := self.lookups.current())
        waiting = {each.number for each in list_outdated_epochs(self.epochs, version, self.judged)}
        for each in [read for read in self.read if read.epoch.number in waiting]:
            number, at = each.epoch.number, each.epoch.committed_at
            accepted, refused = validate_raw_records(self.con, self.pipeline, each.raw, number, at, paths)
            epoch = replace(each.epoch, lookups=versions)
            self.judged[number] = Read(epoch, self.pipeline, each.raw, None, accepted, refused, known)
        verdicts = {
            number: Verdict(
                number,
                "",
                count_names(map(self.interval_of, each.accepted["_event_time"].to_pylist())),
                count_names(each.refused["_reason"].to_pylist()),
                each.epoch.lookups,
                each.known,
            )
            for number, each in self.judged.items()
        }
        if waiting:
            views = [view.id for view in self.pipeline.views]
            log, grid = list(apply_verdicts(self.epochs, version, verdicts)), self.pipeline.grid
            self.say(*complete_births(self.manifest, views, log, version, grid, now=EPOCH))
            self.say(*plan_raised_floors(self.manifest, views, verdicts, now=EPOCH))
            for view in self.pipeline.views:
                self.rows[view.name] = self.every(view)
        return verdicts

    def build(self, asked: Interval | None, run: str) -> list[str]:
        views = [view.id for view in self.pipeline.views]
        verdicts = self.judge_again()
        plan = plan_batch(
            list(
                apply_verdicts(
                    drop_foreign_watermarks(self.epochs, self.pipeline.timed),
                    self.pipeline.record_version,
                    verdicts,
                )
            ),
            self.manifest,
            self.pipeline.grid,
            views,
            asked=asked,
            dirty=asked is None,
            restated=self.restated,
            most=self.pipeline.definition.batch.max_dirty,
            provisional=self.pipeline.definition.batch.provisional,
        )
        offered, wrong = [], []
        published = self.manifest.published
        for view in self.pipeline.views:
            for build in plan.builds:
                checks = self.checks(view, build.interval, plan.cut, plan.watermark)
                red = [f"{check.name}: {check.found}" for check in checks if not check.passed]
                open_ = self.pipeline.definition.batch.provisional and only_open(checks)
                wrong += [] if open_ else [f"{view.name} {build.interval.id}: {each}" for each in red]
                known = len(self.restated)
                made = Generation(run, view.id, build.interval, plan.cut, 0, run, restated=known)
                current = published.get((view.id, build.interval.id))
                expected = current.generation if current else ""
                offered.append(Candidate(made, not red, expected, plan.planned, open_))
        green = select_publishable(self.manifest, offered).green
        self.say(
            *plan_publication(
                self.manifest, green, now=self.epochs[-1].committed_at if self.epochs else EPOCH
            )
        )
        if wrong:
            raise CertificateFailed("\n".join(wrong), hint="the intervals that are red were held back.")
        return sorted({each.generation.interval.id for each in green})

    def restate(self, lookup: str, span: Interval, reason: str) -> Restatement:
        now = self.epochs[-1].committed_at if self.epochs else EPOCH
        pipeline, layout = self.pipeline, self.layout
        made = decide_restatement(
            pipeline, layout, self.epochs, lookup, span, actor="scenario", reason=reason, now=now
        )
        self.restated.append(made)
        return made

    def built(self, view: CompiledView, interval: Interval, cut: int, known: int) -> list[Row]:
        """Return a view's input of one interval up to a cut, as the first so many restatements have it."""
        decisions = self.restated[:known]
        mine = [row for row in self.rows[view.name] if row.interval == interval.id and row.epoch <= cut]
        if not list_interval_restatements(decisions, interval):
            return mine
        return [
            row
            for read in self.current
            if read.epoch.number <= cut
            for row in input_of(
                self.con,
                self.pipeline,
                view,
                reprocess_interval_rows(self.con, read, self.layout, interval, decisions),
            )
        ]

    def checks(
        self, view: CompiledView, interval: Interval, cut: int, watermark: datetime | None
    ) -> tuple[Check, ...]:
        """Judge a build as its certificate does."""
        mine = self.built(view, interval, cut, len(self.restated))
        rows = filter_counted_rows(view, mine, {interval.id: cut}, cut, Side.BATCH, unique=self.unique)
        expected = [
            f"{expect.column} of {row}"
            for expect in view.expect
            for row in present_oracle_rows(self.con, view, rows, {interval.id: cut})
            if not meets_expected_bounds(
                to_nearest_double(view, row, expect.column),
                expect.at_least,
                expect.at_most,
                not_null=expect.not_null,
            )
        ]
        left_out = len(mine) - len(rows)
        evidence = Evidence(
            interval=interval,
            cut=cut,
            cut_is_edge=True,
            watermark=watermark,
            contiguous=True,
            holes=0,
            ledger_rows=len(mine),
            rows_read=len(mine),
            duplicates=left_out,
            not_selected=0,
            state_rows=len(rows),
            expectations=tuple(expected),
            expectations_checked=len(view.expect),
        )
        return validate_evidence(evidence)

    def ledger(self) -> Sequence[Epoch]:
        return self.epochs

    def cuts(self) -> dict[tuple[str, str], int]:
        return cuts_of(self.pipeline, self.manifest)

    def quarantine(self) -> list[dict[str, Any]]:
        return self.refused

    def answer(self, view: str, side: Side) -> list[dict[str, Any]]:
        found = self.pipeline.view(view)
        assert found is not None
        cuts = {interval: cut for (name, interval), cut in self.cuts().items() if name == view}
        until = self.epochs[-1].number if self.epochs else NOTHING
        answered = [row for row in self.input(found, side) if self.answers(found, row, side)]
        kept = filter_counted_rows(found, answered, cuts, until, side, unique=self.unique)
        rows = present_oracle_rows(self.con, found, kept, cuts, side)
        self.beside.decorate(found, rows)
        return rows

    def input(self, view: CompiledView, side: Side) -> list[Row]:
        """Return a view's input; up to its cut a published interval has it as the build knew it."""
        published = self.manifest.published
        mine = {interval: each for (id, interval), each in published.items() if id == view.id}
        if side is Side.SPEED or not any(each.restated for each in mine.values()):
            return self.rows[view.name]
        above = [
            row
            for row in self.rows[view.name]
            if row.interval not in mine or row.epoch > mine[row.interval].epoch
        ]
        return above + [
            row
            for id, each in mine.items()
            for row in self.built(view, self.pipeline.grid.named(id), each.epoch, each.restated)
        ]

    def answers(self, view: CompiledView, row: Row, side: Side) -> bool:
        """Return whether a row's interval is answered: where it had rows before the view was born, it must be built."""
        if side is Side.SPEED:
            return row.epoch > self.manifest.floor(view.id, row.interval)
        return not self.manifest.building(view.id, row.interval)
