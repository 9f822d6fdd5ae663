"""What epochs add to, and withdraw from, what folds emit: the tails of keys are kept by a process of their own.

Tails stand at E, or are made again from a snapshot and the rows that are not in it, of the spans that are not over. A
view whose rows cannot be folded is behind, and is caught up from the master (rules 6 and 25).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from seamline.kernel.epoch_kernel import isolate_view_failure
from seamline.kernel.joined_rows import list_derived, list_processes, name_side
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.joined_index import side_schema
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.past_rows import Earliest, PastReader, PastRows
from seamline.lake.joins.snapshot_files import SnapshotFiles
from seamline.lake.joins.span_rows import micros_of_mark, read_rows_by_key
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.errors import NotRestatable
from seamline.model.functions.folding import FunctionUnusable
from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.derived.fold_process import FoldProcess, count_processes
from seamline.spark.stream.derived.fold_worker import OF_FUNCTIONS, Change
from seamline.spark.stream.derived.restated_log import RestatedLog
from seamline.spark.stream.derived.saved_tails import SavedTails
from seamline.spark.stream.derived.worker_process import start_workers
from seamline.spark.stream.epoch_writer import Writer

log = logging.getLogger("seamline.stream")


@dataclass
class KeptTails:
    """The tails of one process."""

    tails: FoldProcess
    """Of each key, in the processes that share them."""
    epoch: int
    """The last epoch that they have taken in."""
    restated: int
    """How many restatements their rows are made with."""
    mark: float
    """The watermark that they have come to."""
    pending: int | None = None
    """The number of the epoch that they have taken in, and which is being committed."""


class FoldedRows:
    """The tails of a pipeline's processes."""

    def __init__(self, writer: Writer, source: RestatedLog) -> None:
        self.writer, self.source, self.pipeline = writer, source, writer.pipeline
        self.processes = list_processes(self.pipeline.views)
        self.kept: dict[str, KeptTails] = {}
        self.saved = SavedTails(writer, list_derived(self.pipeline.views))
        self.memory = self.pipeline.definition.stream.worker_memory
        self.count = count_processes(self.pipeline.definition.stream.fold_processes)
        start_workers([each for each in self.processes.values() for _ in range(self.count)], self.memory)

    def derive(
        self, epoch: Epoch, result: KernelResult, views: Collection[str], mark: datetime | None
    ) -> None:
        """Add the states of what an epoch adds and withdraws, or why one of ``views`` has none, to its result.

        The epoch's watermark is one that it records; ``mark`` is that of E.
        """
        for id, process in self.processes.items():
            mine = [view for view in self.pipeline.views if view.process and view.process.id == id]
            wanted = [view for view in mine if view.id in views and view.id not in result.failed]
            if not wanted:
                self.drop(id)
                continue
            why = "" if self.stands(id) else self.source.find_doubt()
            if not why:
                try:
                    self.fold(process, wanted, epoch, result, mark)
                except NotRestatable as error:
                    why = error.message
                except FunctionUnusable as error:
                    why = str(error)
                except (duckdb.Error, pa.ArrowException, *OF_FUNCTIONS) as error:
                    why = f"{type(error).__name__}: {error}"
            if why:
                self.drop(id)
                result.failed |= dict.fromkeys((view.id for view in wanted), why)

    def fold(
        self,
        process: CompiledProcess,
        wanted: Iterable[CompiledView],
        epoch: Epoch,
        result: KernelResult,
        mark: datetime | None,
    ) -> None:
        """Add the states of the views of one process."""
        kept = self.open(process, mark)
        kept.pending, before = epoch.number, kept.mark

        def read_past(late: Earliest) -> list[PastRows]:
            return self.reader(process, kept.epoch).read(late, before)

        rows, sides = gather_given_rows(process, result), sorted({view.side for view in wanted})
        kept.mark = micros_of_mark(epoch.watermark)
        changes = kept.tails.take(rows, read_past, kept.mark, sides)
        for view in wanted:
            with isolate_view_failure(view, result):
                made = list(compute_change_states(view, changes[view.side]))
                found = states.drop_zeros(view, states.combine_states(view, made)) if made else None
                result.states[view.id] = [found] if found is not None else []

    def open(self, process: CompiledProcess, mark: datetime | None) -> KeptTails:
        """Return the tails of a process, made from the master where there are none that stand at E."""
        if self.stands(process.id):
            return self.kept[process.id]
        began, held, micros = time.monotonic(), self.writer.master.epoch, micros_of_mark(mark)
        self.drop(process.id)
        tails = FoldProcess(process, self.memory, self.count)
        try:
            file = self.saved.open(process, tails, micros)
            keys = self.restore(process, tails, mark, file, held)
        except BaseException:
            tails.close()
            raise
        self.kept[process.id] = kept = KeptTails(tails, held, self.writer.restated, micros)
        if keys:
            took, since = time.monotonic() - began, f", from those at epoch {file.epoch}" if file else ""
            log.info("%s keys of %s are folded again after %.1f s%s", keys, process.name, took, since)
        return kept

    def restore(
        self,
        process: CompiledProcess,
        tails: FoldProcess,
        mark: datetime | None,
        file: SnapshotFiles | None,
        held: int,
    ) -> int:
        """Make tails of the rows of the spans that are not over, but for those that a file has; return how many."""
        reader = self.reader(process, held)
        late: Earliest = {}
        again: list[PastRows] = []
        first = None if mark is None else to_unix_micros(mark) // process.size * process.size
        if file and first is not None and first < file.mark:
            if late := reader.find_doubted(file, first):
                again = reader.read(late, micros_of_mark(mark))
            first = file.mark
        given = process, self.pipeline, self.writer.layout, (first, None), held, self.source.find_judge()
        with closing(read_rows_by_key(*given, late)) as rows:
            return tails.restore(rows, again)

    def reader(self, process: CompiledProcess, until: int) -> PastReader:
        """Return what reads the past of a process's keys, up to an epoch."""
        return PastReader(
            process, self.pipeline, self.writer.layout, self.saved.files, until, self.source.find_judge()
        )

    def open_all(self, views: Collection[str], mark: datetime | None) -> None:
        """Make the tails that views need and that do not stand at E; what fails is said where an epoch is folded."""
        for id in {view.process.id for view in self.pipeline.views if view.process and view.id in views}:
            if not self.stands(id) and not self.source.find_doubt():
                with suppress(
                    NotRestatable, FunctionUnusable, duckdb.Error, pa.ArrowException, *OF_FUNCTIONS
                ):
                    self.open(self.processes[id], mark)

    def stands(self, id: str) -> bool:
        """Return whether the tails of a process stand at E."""
        kept = self.kept.get(id)
        return kept is not None and kept.epoch == self.writer.master.epoch and kept.pending is None

    def commit(self, epoch: Epoch) -> None:
        """Take note that an epoch is committed; tails that have not taken it in, or that it restates, are dropped."""
        for id, kept in list(self.kept.items()):
            if kept.pending != epoch.number or kept.epoch != epoch.before or kept.restated != epoch.restated:
                self.drop(id)
                continue
            kept.epoch, kept.pending = epoch.number, None
            try:
                self.saved.save(self.processes[id], kept.tails, epoch)
            except FunctionUnusable as error:
                log.warning("The tails of %s must be made again: %s", self.processes[id].name, error)
                self.drop(id)

    def drop(self, id: str) -> None:
        """Forget the tails of one process."""
        if kept := self.kept.pop(id, None):
            kept.tails.close()

    def forget(self) -> None:
        """Forget all: an epoch has failed, and nobody knows whether it is committed."""
        for id in [*self.kept]:
            self.drop(id)


def gather_given_rows(process: CompiledProcess, result: KernelResult) -> pa.Table:
    """Return the rows of a process that tasks report."""
    schema = side_schema(process.sides[0])
    found = [
        each
        for number in range(len(process.sides))
        for each in result.joined.get(name_side(process, number), [])
    ]
    return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in found)])


def compute_change_states(view: CompiledView, change: Change) -> Iterable[pa.Table]:
    """Compute the states of what was added, and those that take away what was withdrawn."""
    for table, sign in ((change.added, 1), (change.withdrawn, -1)):
        if not table.num_rows:
            continue
        with register_tables(emitted=table) as con:
            made = states.compute_row_states(con, view, "emitted")
        yield made if sign > 0 else states.negate_states(view, made)
