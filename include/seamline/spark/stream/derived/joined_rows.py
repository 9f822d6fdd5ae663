"""What epochs add to joined rows, found by the driver, which keeps an index of each join's rows.

An index stands at E, or is brought there from the master: from the epoch of its stamp on where its file is of the same
log, else from its horizon on. A view whose derived rows cannot be found is behind, and is caught up from the master
(rule 6).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from seamline.kernel.epoch_kernel import isolate_view_failure
from seamline.kernel.joined_rows import list_joins, name_side
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.lake.engine.joined_index import JoinedIndex, TooManyPairs, no_rows
from seamline.lake.engine.latest_changes import ADDED, WITHDRAWN, change_latest
from seamline.lake.engine.near_rows import Rows, reach_of
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.index_files import IndexFiles
from seamline.lake.joins.joined_rows import fill_index, find_newest_start, read_older_rows
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.spark.stream.derived.kept_indexes import Kept, KeptIndexes
from seamline.spark.stream.derived.restated_log import RestatedLog
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.tasks.arrow_states import list_read_columns

log = logging.getLogger("seamline.stream")
PRUNED_EVERY = 64
"""Epochs after which rows below the horizon are forgotten."""


class JoinedRows(KeptIndexes[CompiledJoin, JoinedIndex]):
    """The indexes of a pipeline's joins, below ``folder``."""

    refusals = (TooManyPairs,)

    def __init__(self, writer: Writer, folder: Path, source: RestatedLog) -> None:
        super().__init__(writer, source, list_joins(writer.pipeline.views))
        self.joins = self.made
        self.files = IndexFiles(writer, folder, self.joins, JoinedIndex)

    def gather(self, made: CompiledJoin, result: KernelResult) -> Rows:
        return gather_rows(made, result)

    def derive_states(
        self,
        made: CompiledJoin,
        kept: Kept[JoinedIndex],
        rows: Rows,
        wanted: Collection[CompiledView],
        result: KernelResult,
    ) -> None:
        given = self.pipeline, self.writer.layout, rows, kept.horizon, kept.epoch, self.source.find_judge()
        older = read_older_rows(kept.index, *given)
        compute = compute_joined_states(kept.index, rows, older, wanted)
        for view in wanted:
            with isolate_view_failure(view, result):
                result.states[view.id] = compute(view)

    def open(self, join: CompiledJoin, mark: datetime | None) -> Kept[JoinedIndex]:
        if standing := self.find_standing(join.id):
            return standing
        began, held = time.monotonic(), self.writer.master.epoch
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

    def take_in(self, join: CompiledJoin, kept: Kept[JoinedIndex], rows: Rows, epoch: Epoch) -> None:
        """Take rows in, and from time to time let go of those far behind the watermark."""
        kept.index.take(rows, kept.horizon, self.files.stamps.stamp(epoch, kept.horizon).to_json())
        kept.age += 1
        self.writer.indexed[join.name] = kept.index.count_rows()
        if kept.age >= PRUNED_EVERY:
            kept.age, horizon = 0, find_horizon(join, epoch.watermark, self.writer.layout)
            if horizon is not None and (kept.horizon is None or horizon > kept.horizon):
                kept.index.forget_before(horizon, self.files.stamps.stamp(epoch, horizon).to_json())
                kept.horizon = horizon


def find_horizon(join: CompiledJoin, mark: datetime | None, layout: Layout) -> int | None:
    """Return the event time below which an index keeps no rows: twice the reach behind the watermark.

    While there is none, behind what was read last: any horizon is right, and one that is nearer costs reads of files.
    """
    now = find_newest_start(layout) if mark is None else to_unix_micros(mark)
    return None if now is None else now - 2 * reach_of(join) - join.kept


def compute_joined_states(
    index: JoinedIndex, new: Rows, older: Rows, views: Collection[CompiledView]
) -> Callable[[CompiledView], list[pa.Table]]:
    """Find what an epoch adds to an index's join; return what computes the states of one of the views."""
    columns = list_read_columns(views)
    if not index.join.latest:
        relation = index.derive(new, older, columns)
        return lambda view: [states.compute_row_states(index.con, view, relation)]
    change_latest(index, new, older, columns)

    def subtract(view: CompiledView) -> list[pa.Table]:
        added, gone = (states.compute_row_states(index.con, view, each) for each in (ADDED, WITHDRAWN))
        found = states.combine_states(view, [added, states.negate_states(view, gone)])
        return [states.drop_zeros(view, found)]

    return subtract


def gather_rows(join: CompiledJoin, result: KernelResult) -> Rows:
    """Return the rows of both sides that tasks report."""
    left, right = (
        pa.concat_tables([blank, *(each.cast(blank.schema) for each in result.joined.get(name, []))])
        for name, blank in zip((name_side(join, 0), name_side(join, 1)), no_rows(join), strict=True)
    )
    return left, right
