"""A task that builds joined rows: those of a slice of time, joined by DuckDB with the rows near them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow.compute as pc

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.lake.engine import states
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_scans import span_start_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.event_times import within_sql
from seamline.lake.joins.joined_rows import file_rows_sql
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.table_cache import Files
from seamline.lake.store.locations import Location
from seamline.lake.tables.reprocessed import rows_schema
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.time.intervals import Interval
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.join_slices import Slice, TimedFile, reach_of
from seamline.plan.batch.work_shares import Counts
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.build.partial_states import COUNTS, encode_counts, left_out_sql, name_cell, report_states
from seamline.spark.build.share_rows import limit_duckdb_memory
from seamline.spark.tasks.arrow_states import list_read_columns
from seamline.spark.tasks.spread import Row

DERIVED = "derived_of_slice"


@dataclass(frozen=True)
class JoinedSlices:
    """Computes the partial states of slices in a Spark task."""

    pipeline: CompiledPipeline
    """With the views of the join that are built."""
    join: CompiledJoin
    """The join."""
    slices: tuple[Slice, ...]
    """By task number."""
    cut: int
    """The last epoch, inclusive."""
    folders: Mapping[str, Location]
    """The folder of each generation, where states are spilled, by version id."""
    most: int
    """Bytes of states of one view that are reported directly; more are spilled."""

    def __call__(self, number: int) -> Iterator[Row]:
        """Report the states of one slice, and what was read and made, by interval.

        ``exploded`` has the number of rows that were made for a view.
        """
        con, slice = open_worker_duckdb(), self.slices[number]
        limit_duckdb_memory(con, self.pipeline.definition.stream.worker_memory)
        con.register("blank", rows_schema(self.pipeline).empty_table())
        try:
            counted = self.count_by_cell(con, self.rows_sql(slice, slice.span))
            yield COUNTS, encoded({cell: Counts(rows, 0, {}, {}) for cell, rows in counted.items()})
            if slice.built:
                yield from self.build(con, slice)
        finally:
            con.execute(f"DROP TABLE IF EXISTS {DERIVED}")
            con.unregister("blank")

    def build(self, con: duckdb.DuckDBPyConnection, slice: Slice) -> Iterator[Row]:
        """Join the rows of a slice, and report the states of each view."""
        view, *_ = self.pipeline.views
        rows = self.rows_sql(slice, reach_of(slice.span, view))
        derived = derived_rows_sql(self.join, rows, DUCKDB, only=(within_sql(times_of(slice.span)), "true"))
        columns = ", ".join(map(quote_identifier, list_read_columns(self.pipeline.views)))
        con.execute(f"CREATE OR REPLACE TEMP TABLE {DERIVED} AS SELECT {columns} FROM ({derived})")
        made = self.count_by_cell(con, DERIVED)
        for view in self.pipeline.views:
            left = self.count_by_cell(con, f"(SELECT * FROM {DERIVED} WHERE {left_out_sql(view)})")
            found = {
                cell: Counts(0, 0, {view.id: left.get(cell, 0)}, {view.id: rows})
                for cell, rows in made.items()
            }
            yield COUNTS, encoded(found)
            found_states = states.compute_row_states(con, view, DERIVED)
            hit_failpoint("partials")
            yield report_states(found_states, view, self.most, self.folders)

    def rows_sql(self, slice: Slice, span: Interval) -> str:
        """Write the rows of some event times up to the cut, of a slice's files."""
        own, again = ([each.path for each in slice.files if each.again is kind] for kind in (False, True))
        return file_rows_sql(self.pipeline, own, again, [times_of(span)], self.cut)

    def count_by_cell(self, con: duckdb.DuckDBPyConnection, rows: str) -> dict[int, int]:
        """Count rows by the start of their interval, in microseconds since 1970."""
        cell = span_start_sql("epoch_us(_event_time)", self.pipeline.grid.length // MICROSECOND)
        return dict(con.execute(f"SELECT {cell} AS cell, count(*) FROM {rows} GROUP BY 1").fetchall())


def encoded(counts: Mapping[int, Counts]) -> bytes:
    """Encode counts by the start of an interval as they are reported."""
    return json.dumps(encode_counts({name_cell(cell): each for cell, each in counts.items()})).encode()


def times_of(span: Interval) -> tuple[int, int]:
    """Return the event times of a span, in microseconds since 1970."""
    return to_unix_micros(span.start), to_unix_micros(span.end)


def list_timed_files(found: Files | None, cut: int, *, again: bool) -> list[TimedFile] | None:
    """List files with rows up to a cut and the bounds of their event times; None if one does not say them.

    Records that were refused may have no event time: a file of such records alone is no part of any build.
    """
    if found is None or not found.actions.num_rows:
        return []
    found = found.keep(pc.less_equal(found.low("_epoch").cast("int64"), cut))
    found = found.keep(pc.less(found.nulls("_event_time").cast("int64"), found.actions["num_records"]))
    low, high = (side("_event_time").cast(INSTANT).to_pylist() for side in (found.low, found.high))
    if None in low or None in high:
        return None
    sizes, rows = (found.actions[name].to_pylist() for name in ("size_bytes", "num_records"))
    return [TimedFile(*each, again) for each in zip(found.paths, sizes, rows, low, high, strict=True)]
