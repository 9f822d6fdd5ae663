"""The one writer of a pipeline's epochs: its tables, its numbers, and the order of its commits (rule 1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from seamline.kernel.hot_keys import find_hot_key
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.lake.log.epoch_log import condense_open_log, read_condensed_log
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.maintain.lost_decisions import require_named_restatements
from seamline.lake.maintain.lost_verdicts import delete_lost_verdicts
from seamline.lake.maintain.released_records import release_refused_records
from seamline.lake.maintain.repair import Tables, repair_tables, require_committed_cuts
from seamline.lake.storage.arrow_types import QUARANTINE
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import take_cached_table
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.lake.tables.slices import Slices
from seamline.lake.tables.torn_logs import repair_torn_logs
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.evolution import require_order
from seamline.model.compile.live_versions import live_views, require_grid, stood_still
from seamline.model.compile.stored_definition import to_json
from seamline.model.errors import FenceLost, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest, Statement
from seamline.model.time.reached_intervals import find_spanning_views
from seamline.plan.batch.reprocessing_plan import last_filled_interval, list_later_intervals
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.plan.publish.publication import plan_births
from seamline.plan.stream.hot_keys import KeyShare, list_hot_keys
from seamline.plan.stream.rule_counts import RuleCount
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.stream.commit_threads import CommitThreads
from seamline.spark.stream.epoch_timing import EpochTiming
from seamline.spark.stream.pane_refining import refine_panes
from seamline.spark.stream.trailing_ledger import TrailingLedger

log = logging.getLogger("seamline.stream")


class Writer:
    """Every table of a pipeline that the stream writes, taken over under one token.

    ``pipeline`` is the definition with every version that the manifest calls live among its views. With ``acceptance``
    the master stands for what there is where others say of more; OutOfStep without.
    """

    def __init__(
        self,
        layout: Layout,
        pipeline: CompiledPipeline,
        token: int,
        *,
        jvm: int | None = None,
        acceptance: Acceptance | None = None,
    ) -> None:
        self.layout, self.token, self.jvm = layout, token, jvm
        repair_torn_logs(layout, now=datetime.now(UTC), accepted=acceptance is not None)
        held = read_condensed_log(layout)
        require_named_restatements(layout, held)
        require_order(pipeline.record_version, held)
        require_grid(pipeline, ManifestTable.ensure(layout).read(), held)
        self.master = Master.ensure(layout, pipeline)
        place = layout.table("quarantine")
        self.quarantine = take_cached_table(place) or Table.ensure(place, QUARANTINE)
        self.threads = CommitThreads(layout.warehouse)
        self.rows = TrailingLedger(Ledger.ensure(layout), self.threads)
        self.slices: dict[str, Slices] = {}
        for table in self.tables:
            table.fence(token)
        for table in (self.quarantine, self.master.table):
            table.state_durability(pipeline.definition.stream.durability)
        # A view may go on without slices that land later; a range must not be read again while it may still land.
        for table in self.tables:
            table.insists = True
        if acceptance is None:
            require_committed_cuts(layout, self.ledger, self.master)
        manifest = self.record_births(pipeline)
        self.pipeline = live_views(pipeline, manifest)
        for id, why in stood_still(pipeline, manifest).items():
            log.warning("View %s gets no more slices: %s", id, why)
        for view in self.pipeline.views:
            self.slices[view.id] = Slices.ensure(layout, view)
            self.slices[view.id].table.fence(token)
        for table in self.tables:
            table.settle()
        self.frontiers = {view.id: self.frontier(manifest, view) for view in self.pipeline.views}
        if acceptance:
            release_refused_records(self.master, self.quarantine)
        agreed = repair_tables(
            self.list_followers(manifest),
            self.frontiers,
            layout=layout,
            pipeline=pipeline,
            token=token,
            acceptance=acceptance,
        )
        self.number, self.frontiers = agreed.number, dict(agreed.frontiers)
        delete_lost_verdicts(layout, self.master.epoch)
        self.pipeline = refine_panes(layout, self.pipeline, self.slices, held=self.master.epoch)
        self.stuck: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.hot: Mapping[str, KeyShare] = {}
        self.indexed: dict[str, int] = {}
        self.rules: Mapping[str, RuleCount] = {}
        self.ended: Mapping[str, str] = {}
        self.restated = 0
        self.awaiting: set[str] = set()
        self.sure = True
        self.timing = EpochTiming()

    @property
    def ledger(self) -> Ledger:
        """The ledger with the row of every epoch; raises what the commit of the newest has raised."""
        return self.rows.whole()

    @property
    def tables(self) -> list[Table]:
        """List the tables that carry the token."""
        others = [slices.table for slices in self.slices.values()]
        return [self.master.table, self.quarantine, self.ledger.table, *others]

    def list_followers(self, manifest: Manifest) -> Tables:
        """List all tables that follow the master, also the slices of versions that get no more."""
        slices = {view: each.table for view, each in self.slices.items()}
        for id in manifest.births:
            if id not in slices and Table.exists(self.layout.slices_of(id)):
                slices[id] = Table.open(self.layout.slices_of(id))
        return Tables(self.master, self.quarantine, self.ledger, slices)

    def record_births(self, pipeline: CompiledPipeline) -> Manifest:
        """Record the birth of every view version that the manifest does not know, before its first slice."""
        definitions = dict.fromkeys((view.id for view in pipeline.views), to_json(pipeline.definition))
        manifest = ManifestTable.ensure(self.layout)

        def decision(current: Manifest) -> list[Statement]:
            if definitions.keys() <= {*current.live}:
                return []
            filled, later = self.find_last_intervals(pipeline)
            return plan_births(
                current,
                definitions,
                held=self.master.epoch,
                now=datetime.now(UTC),
                filled=filled,
                later=later,
            )

        manifest.decide(decision, attempts=None)
        return manifest.read()

    def find_last_intervals(self, pipeline: CompiledPipeline) -> tuple[str, Mapping[str, str]]:
        """Find the last interval that has rows, and by view the last in which timers may have fired.

        With what validating again has brought; empty while records wait.
        """
        log, grid, below = read_reprocessed_log(pipeline, self.layout), pipeline.grid, self.master.epoch + 1
        last = last_filled_interval(log, pipeline.record_version, grid, below=below)
        spanning = find_spanning_views(grid, pipeline.views)
        return last, list_later_intervals(log, last, grid, spanning, below=below)

    def find_last_filled(self, pipeline: CompiledPipeline) -> str:
        """Find the last interval that has rows, as the pipeline validates them where that was done; empty for none."""
        log = read_reprocessed_log(pipeline, self.layout)
        return max((each for epoch in log for each in epoch.accepted), default="")

    def frontier(self, manifest: Manifest, view: CompiledView) -> int:
        """Return W(v): what the master says, and never below the epoch before the view's birth."""
        return max(self.master.frontier(view.id), manifest.births[view.id] - 1)

    def repair_ledger(self) -> list[Epoch]:
        """Repair the ledger from the master's commits and return the log condensed.

        A commit may have landed without an answer: the tables are read again.
        """
        self.rows.forget()
        for table in self.tables:
            table.refresh()
        self.frontiers = {view: max(at, self.master.frontier(view)) for view, at in self.frontiers.items()}
        self.ledger.append(self.master.missing(self.ledger.last))
        self.sure = True
        log = condense_open_log(self.ledger, self.master)
        self.restated = log[-1].restated if log else 0
        return log

    def take_number(self) -> int:
        """Take the next number: one attempt, one number."""
        self.number += 1
        return self.number

    @property
    def marks(self) -> dict[str, int | None]:
        """Return the newest number of every table that a commit of the master relies on, by its name or its view."""
        slices = {view: each.table.txn(EPOCH) for view, each in self.slices.items()}
        return {"quarantine": self.quarantine.txn(EPOCH), **slices}

    @property
    def current(self) -> frozenset[str]:
        """List the views that are not behind: they take the next epoch."""
        newest = self.master.epoch
        return frozenset(view for view, frontier in self.frontiers.items() if frontier == newest)

    @property
    def behind(self) -> dict[str, int]:
        """Return the frontiers that are below E."""
        newest = self.master.epoch
        return {view: at for view, at in self.frontiers.items() if at < newest}

    def commit(self, epoch: Epoch, result: KernelResult, views: Iterable[str]) -> Epoch:
        """Commit an epoch by rule 1 and return it with its frontiers; ``views`` are those computed.

        After one that failed the tables must be looked at first (``repair_ledger``): ProtocolError.
        """
        if not self.sure:
            raise ProtocolError(
                f"Epoch {epoch.number} would follow an epoch that may or may not be in the master.",
                hint="this is a defect: the tables are repaired after a failed commit, before the next.",
            )
        self.sure = False
        self.rows.whole()
        commit_refused = self.threads.begin(self.commit_quarantine, epoch.number, result)
        try:
            fine, broken = self.commit_slices(epoch.number, result, views)
        finally:
            self.threads.settle()
        for view, error in broken.items():
            log.error("View %s is behind from epoch %s on: %s", view, epoch.number, error)
            self.errors[view] = error[:500]
        self.end_phase("slices")
        commit_refused()
        self.end_phase("quarantine")
        frontiers = {**self.frontiers, **dict.fromkeys(fine, epoch.number)}
        restated = max(epoch.restated, self.restated)
        told = {
            "frontiers": frontiers,
            "before": self.master.epoch,
            "restated": restated,
            **self.timing.facts(),
        }
        whole = Epoch(**{**vars(epoch), **told})
        write_row = self.threads.begin(self.rows.ledger.write_file, [whole])
        self.master.commit(whole, result.master, self.marks)
        self.frontiers, self.restated = frontiers, restated
        self.hot = list_hot_keys(self.hot, result.hot, whole.rows)
        self.end_phase("master")
        self.rows.follow(whole, write_row())
        self.end_phase("ledger")
        self.sure = True
        self.timing.end(whole)
        return whole

    def commit_quarantine(self, number: int, result: KernelResult) -> None:
        """Commit what was refused, if there is any."""
        if result.quarantine:
            self.quarantine.append(result.quarantine, txns={EPOCH: number})

    def end_phase(self, phase: str) -> None:
        """Note the end of a phase; a failpoint may end the process here."""
        self.timing.mark(phase)
        hit_failpoint(phase, jvm=self.jvm)

    def commit_slices(
        self, number: int, result: KernelResult, views: Iterable[str]
    ) -> tuple[set[str], Mapping[str, str]]:
        """Commit the slices of all views at once; return the views that have them, and the others' errors."""
        broken = dict(result.failed)
        waiting = {
            view: self.threads.submit(self.commit_view, number, self.slices[view], result)
            for view in views
            if view not in broken
        }
        fine = set()
        for view, future in waiting.items():
            try:
                future.result()
                fine.add(view)
            except FenceLost:
                raise
            except Exception as error:  # noqa: BLE001 - a view's trouble is its own (rule 6)
                broken[view] = f"{type(error).__name__}: {error}"
        return fine, broken

    def commit_view(self, number: int, slices: Slices, result: KernelResult) -> None:
        """Commit one view's files, or merge its tasks' states and commit them; nothing where there is neither."""
        tables, made = result.states.get(slices.view.id, []), result.slices.get(slices.view.id, [])
        if any(table.num_rows for table in tables):
            merged = states.combine_if_several(slices.view, tables)
            if hot := find_hot_key(slices.view, merged):
                result.hot[slices.view.id] = hot
            slices.append(merged, from_epoch=number, to_epoch=number)
        elif made:
            slices.append_files(made, to_epoch=number)
