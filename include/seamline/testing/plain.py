"""The dull engine: rows in lists, states of plain Python, decisions of the pure core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from seamline.lake.publish.lookup_restating import decide_restatement
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import CertificateFailed
from seamline.model.protocol.certificate_checks import Check, Evidence, only_open, validate_evidence
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Generation, How
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.restatement import Restatement, list_interval_restatements
from seamline.model.protocol.seam import NOTHING, Side
from seamline.model.time.intervals import EPOCH, Interval
from seamline.model.time.reached_intervals import widen_by_reach
from seamline.plan.batch.batch_plan import plan_batch
from seamline.plan.batch.interval_arrivals import DerivedArrivals
from seamline.plan.batch.reprocessing_plan import (
    Verdict,
    apply_verdicts,
    complete_births,
    drop_foreign_watermarks,
    find_birth_marks,
    list_outdated_epochs,
    plan_raised_floors,
)
from seamline.plan.batch.restating_plan import list_unbuilt_intervals
from seamline.plan.publish.publication import Candidate, plan_publication, select_publishable
from seamline.testing.engine import cuts_of
from seamline.testing.expected import list_unmet_expectations
from seamline.testing.input import input_of
from seamline.testing.joined import count_unanswered_rows
from seamline.testing.oracle import Row, filter_counted_rows, present_oracle_rows
from seamline.testing.plain_stream import PlainStream
from seamline.testing.repeats import count_joined_copies, mark_repeated_rows
from seamline.testing.validation import Read, count_verdict, reprocess_interval_rows, validate_raw_records


class Plain(PlainStream):
    """Both layers as lists."""

    def reprocess(self) -> None:
        """Validate what another record version validated, with the look-ups as they are."""
        version, known = self.pipeline.record_version, len(self.restated)
        kept = self.lookups.current_versions()
        waiting = {each.number for each in list_outdated_epochs(self.epochs, version, self.judged)}
        for each in [read for read in self.read if read.epoch.number in waiting]:
            number, at = each.epoch.number, each.epoch.committed_at
            versions = {**kept, **self.make_rules(self.read_epochs(number))}
            paths = self.lookups.version_paths(versions)
            accepted, refused = validate_raw_records(self.con, self.pipeline, each.raw, number, at, paths)
            marks = self.mark_copies(accepted, number)
            if marks is not None:
                accepted, refused = validate_raw_records(
                    self.con, self.pipeline, each.raw, number, at, paths, marks
                )
            epoch = replace(each.epoch, lookups=versions)
            self.judged[number] = Read(epoch, self.pipeline, each.raw, marks, accepted, refused, known)
        if waiting:
            views = [view.id for view in self.pipeline.views]
            log, grid, folded = self.list_epochs(), self.pipeline.grid, self.spanning
            marks = find_birth_marks(log, self.manifest.births, folded)
            self.write_statements(
                *complete_births(self.manifest, views, log, version, grid, folded, now=EPOCH)
            )
            self.write_statements(
                *plan_raised_floors(
                    self.manifest, views, self.list_verdicts(), grid, folded, marks, now=EPOCH
                )
            )
            for view in self.pipeline.views:
                self.rows[view.name] = self.all_rows(view)

    def list_verdicts(self) -> dict[int, Verdict]:
        """List what was validated again, by the numbers of the epochs."""
        return {number: count_verdict(number, each, self.interval_of) for number, each in self.judged.items()}

    def list_epochs(self) -> list[Epoch]:
        """List the epochs as the record version validates them, where that was done."""
        timed = drop_foreign_watermarks(self.epochs, self.pipeline.timed)
        return list(apply_verdicts(timed, self.pipeline.record_version, self.list_verdicts()))

    def mark_copies(self, accepted: pa.Table, number: int) -> pa.Table | None:
        """Mark the rows of an epoch that repeat an earlier one; None where rows validated again are not flagged."""
        if not (self.pipeline.record.dedup and self.pipeline.record.sources):
            return None
        return mark_repeated_rows(self.pipeline, accepted, self.remember(number), None)

    def build(self, asked: Interval | None, run: str) -> list[str]:
        views = [view.id for view in self.pipeline.views]
        self.reprocess()
        plan = plan_batch(
            self.list_epochs(),
            self.manifest,
            self.pipeline.grid,
            views,
            asked=asked,
            dirty=asked is None,
            restated=self.decided,
            most=self.pipeline.definition.batch.max_dirty,
            provisional=self.pipeline.definition.batch.provisional,
            ahead=max((view.after for view in self.pipeline.views), default=timedelta(0)),
            derived={view.id: self.derived_arrivals(view) for view in self.pipeline.views if view.derived},
            spanning=self.spanning,
        )
        offered, wrong = [], []
        published = self.manifest.published
        for view in self.pipeline.views:
            for build in plan.builds:
                checks = self.certify(view, build.interval, plan.cut, plan.watermark)
                red = [f"{check.name}: {check.found}" for check in checks if not check.passed]
                open_ = self.pipeline.definition.batch.provisional and only_open(checks)
                wrong += [] if open_ else [f"{view.name} {build.interval.id}: {each}" for each in red]
                known = self.count_known(view)
                made = Generation(run, view.id, build.interval, plan.cut, 0, run, restated=known)
                current = published.get((view.id, build.interval.id))
                expected = current.generation if current else ""
                offered.append(Candidate(made, not red, expected, plan.planned, open_))
        green = select_publishable(self.manifest, offered).green
        self.write_statements(
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
        if any(view.derived and made.lookup in view.derived.lookups for view in self.pipeline.views):
            self.name_restatements(now)
        return made

    @property
    def decided(self) -> Restated:
        """What was decided, as it is for each view."""
        named = self.epochs[-1].restated if self.epochs else 0
        return Restated.of(self.pipeline.grid, self.restated, self.pipeline.views, named)

    def count_known(self, view: CompiledView) -> int:
        """Count the decisions that a build of a view knows."""
        return self.decided.named if view.derived else len(self.restated)

    def build_input(self, view: CompiledView, interval: Interval, cut: int, known: int) -> list[Row]:
        """Build a view's input of one interval up to a cut, as the first so many restatements have it."""
        decisions = self.restated[:known]
        rows = self.derive_rows(view, known) if view.derived and known else self.rows[view.name]
        mine = [row for row in rows if row.interval == interval.id and row.epoch <= cut]
        if view.derived or not list_interval_restatements(decisions, interval):
            return mine
        return [
            row
            for read in self.current
            if read.epoch.number <= cut
            for row in input_of(
                self.con,
                self.pipeline,
                view,
                reprocess_interval_rows(
                    self.con, read, self.layout, interval, self.list_meant(read, decisions)
                ),
            )
        ]

    def certify(
        self, view: CompiledView, interval: Interval, cut: int, watermark: datetime | None
    ) -> tuple[Check, ...]:
        """Check a build as its certificate does."""
        mine = self.build_input(view, interval, cut, self.count_known(view))
        rows = filter_counted_rows(
            view, mine, {interval.id: cut}, cut, Side.BATCH, unique=self.is_unique(view)
        )
        presented = present_oracle_rows(self.con, view, rows, {interval.id: cut})
        wanted = bool(mine) or not self.spanning
        expected = (
            list_unmet_expectations(view, presented, self.count_served(view, interval)) if wanted else ()
        )
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
            expectations_checked=len(expected),
            ahead=view.after,
            joined=view.derived is not None,
            copies=self.count_copies(view, interval, cut),
            copies_allowed=view.derived is not None and view.derived.copies,
            unanswered=self.count_unanswered(view, interval, cut),
        )
        return validate_evidence(evidence)

    def count_copies(self, view: CompiledView, interval: Interval, cut: int) -> int | None:
        """Count the copies of joined rows in an interval's reach up to a cut; None where none can be known."""
        if not view.derived:
            return None
        accepted = [each.accepted for each in self.current if each.epoch.number <= cut]
        reach = widen_by_reach(self.pipeline.grid, interval, view)
        return count_joined_copies(self.pipeline, view.derived, accepted, reach)

    def count_unanswered(self, view: CompiledView, interval: Interval, cut: int) -> int | None:
        """Count the rows of an interval up to a cut that wait for an answer; None where nothing is asked."""
        accepted = [each.accepted for each in self.current if each.epoch.number <= cut]
        return count_unanswered_rows(self.con, view.join, accepted, interval) if view.join else None

    def derived_arrivals(self, view: CompiledView) -> DerivedArrivals:
        """Return which epochs up to the last edge changed the derived rows of which interval."""
        edge = max((each.number for each in self.epochs if each.edge), default=NOTHING)
        counted = (row for row in self.rows[view.name] if row.counts and row.epoch <= edge)
        return DerivedArrivals((row.interval, row.epoch, row.epoch, 1) for row in counted)

    def count_served(self, view: CompiledView, interval: Interval) -> int | None:
        """Count the rows that the batch layer serves of an interval; None before its first generation."""
        served = self.manifest.published.get((view.id, interval.id))
        if served is None or served.how is How.PROVISIONAL:
            return None
        mine = self.build_input(view, interval, served.epoch, served.restated)
        cuts = {interval.id: served.epoch}
        rows = filter_counted_rows(view, mine, cuts, served.epoch, Side.BATCH, unique=self.is_unique(view))
        return len(present_oracle_rows(self.con, view, rows, cuts))

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
        until = self.find_frontier(found)
        answered = [row for row in self.input(found, side) if self.is_answered(found, row, side)]
        kept = filter_counted_rows(found, answered, cuts, until, side, unique=self.is_unique(found))
        rows = present_oracle_rows(self.con, found, kept, cuts, side)
        self.beside.decorate(found, rows)
        return rows

    def find_frontier(self, view: CompiledView) -> int:
        """Return the last epoch that a view has taken: none that names decisions which no build has followed yet."""
        before, published = NOTHING, partial(self.manifest.find_published, view.id)
        for at, epoch in enumerate(self.epochs):
            known = self.epochs[at - 1].restated if at else 0
            if epoch.restated > known and list_unbuilt_intervals(
                view, self.pipeline.grid, self.restated, published, self.list_epochs(), epoch
            ):
                break
            before = epoch.number
        return before

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
            for row in self.build_input(view, self.pipeline.grid.named(id), each.epoch, each.restated)
        ]

    def is_answered(self, view: CompiledView, row: Row, side: Side) -> bool:
        """Return whether a row's interval is answered: where it had rows before the view was born, it must be built."""
        if side is Side.SPEED:
            return row.epoch > self.manifest.floor(view.id, row.interval)
        return not self.manifest.is_building(view.id, row.interval)
