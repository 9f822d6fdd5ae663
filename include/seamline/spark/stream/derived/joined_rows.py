"""What epochs add to joined rows, found by the driver, which keeps an index of each join's rows.

An index stands at E, or is brought there from the master: from the epoch of its stamp on where its file is of the same
log, else from its horizon on. A view whose derived rows cannot be found is behind, and is caught up from the master
(rule 6).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from seamline.kernel.epoch_kernel import isolate_view_failure
from seamline.kernel.joined_rows import list_joins, name_side
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.lake.engine.joined_index import JoinedIndex, TooManyPairs, no_rows
from seamline.lake.engine.near_rows import Rows, reach_of
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.index_files import IndexFiles
from seamline.lake.joins.joined_rows import fill_index, find_newest_start, read_older_rows
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import NotRestatable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.spark.stream.derived.restated_log import RestatedLog
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.tasks.arrow_states import list_read_columns

log = logging.getLogger("seamline.stream")
PRUNED_EVERY = 64
"""Epochs after which rows below the horizon are forgotten."""


@dataclass
class Kept:
    """One join's index."""

    index: JoinedIndex
    """The rows."""
    epoch: int
    """The last epoch that it has taken in."""
    horizon: int | None
    """The event time, in microseconds, from which on it has all rows; None for all."""
    restated: int
    """How many restatements its rows are made with."""
    pending: tuple[int, Rows] | None = None
    """The number of the epoch that is being committed, and its rows."""
    age: int = 0
    """Epochs since rows were forgotten."""


class JoinedRows:
    """The indexes of a pipeline's joins, below ``folder``."""

    def __init__(self, writer: Writer, folder: Path, source: RestatedLog) -> None:
        self.writer, self.source = writer, source
        self.pipeline: CompiledPipeline = writer.pipeline
        self.joins = list_joins(self.pipeline.views)
        self.kept: dict[str, Kept] = {}
        self.failed: set[str] = set()
        """Joins whose rows could not be read the last time, by their ids."""
        self.files = IndexFiles(writer, folder, self.joins)

    def derive(
        self, number: int, result: KernelResult, views: Collection[str], mark: datetime | None
    ) -> None:
        """Add the states of what an epoch adds to joined rows, or why one of ``views`` has none, to its result."""
        doubt = self.source.find_doubt() if self.joins and not self.stands() else ""
        for id, join in self.joins.items():
            mine = [view for view in self.pipeline.views if view.join and view.join.id == id]
            why = doubt
            if not why:
                try:
                    self.derive_of_join(join, mine, (number, gather_rows(join, result)), result, views, mark)
                except TooManyPairs as error:
                    why = str(error)
                except NotRestatable as error:
                    why = error.message
                    self.drop(id)
                except (duckdb.Error, pa.ArrowException) as error:
                    why = f"{type(error).__name__}: {error}"
                    self.drop(id)
                    self.doubt_file(join)
            if why:
                result.failed |= dict.fromkeys((view.id for view in mine if view.id in views), why)

    def derive_of_join(
        self,
        join: CompiledJoin,
        mine: Iterable[CompiledView],
        new: tuple[int, Rows],
        result: KernelResult,
        views: Collection[str],
        mark: datetime | None,
    ) -> None:
        """Add the states of the views of one join; ``new`` are the rows of an epoch, and its number."""
        wanted = [view for view in mine if view.id in views]
        kept = self.open(join, mark) if wanted else self.kept.get(join.id)
        if kept is None:
            return
        # They are taken in whatever becomes of their pairs.
        kept.pending = new
        if not wanted:
            return
        older = read_older_rows(
            kept.index,
            self.pipeline,
            self.writer.layout,
            new[1],
            kept.horizon,
            kept.epoch,
            self.source.find_judge(),
        )
        relation = kept.index.derive(new[1], older, list_read_columns(wanted))
        self.failed.discard(join.id)
        for view in wanted:
            with isolate_view_failure(view, result):
                result.states[view.id] = [states.compute_row_states(kept.index.con, view, relation)]

    def stands(self) -> bool:
        """Return whether all indexes that there are stand at E."""
        return bool(self.kept) and all(each.epoch == self.writer.master.epoch for each in self.kept.values())

    def open(self, join: CompiledJoin, mark: datetime | None) -> Kept:
        """Return a join's index, made from the master where there is none that stands at E."""
        kept, held = self.kept.get(join.id), self.writer.master.epoch
        if kept and kept.epoch == held and kept.pending is None:
            return kept
        self.drop(join.id)
        began = time.monotonic()
        newest = self.files.stamps.find_row(held)
        index, known = self.files.open(join)
        above = known.epoch if known else NOTHING
        try:
            horizon = known.horizon if known else find_horizon(join, mark, self.writer.layout)
            stamp = replace(self.files.stamps.stamp(newest, horizon), restated=self.writer.restated)
            fill_index(index, self.pipeline, self.writer.layout, stamp, self.source.find_judge(), above)
        except BaseException:
            index.close()
            raise
        self.kept[join.id] = kept = Kept(index, held, horizon, self.writer.restated)
        count = self.writer.indexed[join.name] = index.count_rows()
        if count:
            took, since = time.monotonic() - began, f"; those up to epoch {above} were kept" if known else ""
            log.info("%s rows of %s are known again after %.1f s%s", count, join.name, took, since)
        return kept

    def commit(self, epoch: Epoch) -> None:
        """Take in the rows of the epoch that is committed now; forget those that later ones will hardly reach.

        An index that did not stand before it, or has seen the rows of another attempt, is made again, as is one whose
        rows the epoch restates.
        """
        for id, kept in list(self.kept.items()):
            number, rows = kept.pending or (epoch.number, None)
            if epoch.restated != kept.restated:
                self.drop(id)
                continue
            if kept.epoch != epoch.before or number != epoch.number or (rows is None and epoch.accepted):
                self.drop(id)
                continue
            kept.epoch, kept.pending = epoch.number, None
            if rows is None:
                continue
            try:
                self.take_in(self.joins[id], kept, rows, epoch)
            except duckdb.Error as error:
                log.warning("The rows of %s must be read again: %s", self.joins[id].name, error)
                self.drop(id)

    def take_in(self, join: CompiledJoin, kept: Kept, rows: Rows, epoch: Epoch) -> None:
        """Take rows into an index, and from time to time let go of those far behind the watermark."""
        kept.index.take(rows, kept.horizon, self.files.stamps.stamp(epoch, kept.horizon).to_json())
        kept.age += 1
        self.writer.indexed[join.name] = kept.index.count_rows()
        if kept.age >= PRUNED_EVERY:
            kept.age, horizon = 0, find_horizon(join, epoch.watermark, self.writer.layout)
            if horizon is not None and (kept.horizon is None or horizon > kept.horizon):
                kept.index.forget_before(horizon, self.files.stamps.stamp(epoch, horizon).to_json())
                kept.horizon = horizon

    def drop(self, id: str) -> None:
        """Forget one join's index."""
        if kept := self.kept.pop(id, None):
            kept.index.close()

    def doubt_file(self, join: CompiledJoin) -> None:
        """Delete the file of an index that has failed twice in a row: its stamp fits, whatever its rows are."""
        if join.id in self.failed:
            self.files.delete(join)
        self.failed ^= {join.id}

    def forget(self) -> None:
        """Forget all: an epoch has failed, and nobody knows whether it is committed."""
        for id in list(self.kept):
            self.drop(id)


def find_horizon(join: CompiledJoin, mark: datetime | None, layout: Layout) -> int | None:
    """Return the event time below which an index keeps no rows: twice the reach behind the watermark.

    While there is none, behind what was read last: any horizon is right, and one that is nearer costs reads of files.
    """
    now = find_newest_start(layout) if mark is None else to_unix_micros(mark)
    return None if now is None else now - 2 * reach_of(join) - join.kept


def gather_rows(join: CompiledJoin, result: KernelResult) -> Rows:
    """Return the rows of both sides that tasks report."""
    left, right = (
        pa.concat_tables([blank, *(each.cast(blank.schema) for each in result.joined.get(name, []))])
        for name, blank in zip((name_side(join, 0), name_side(join, 1)), no_rows(join), strict=True)
    )
    return left, right
