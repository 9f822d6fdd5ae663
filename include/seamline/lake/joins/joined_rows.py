"""The rows of the log that a join reads, from the master's files and those validated again, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow.compute as pc

from seamline.lake.engine.accepted_rows import record_version_sql
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.joined_index import JoinedIndex, no_rows, side_schema
from seamline.lake.engine.near_rows import Rows, find_older_spans, sought_rows_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.event_times import Times, within_sql
from seamline.lake.joins.index_stamp import IndexStamp
from seamline.lake.joins.restated_rows import Judge, restated_rows
from seamline.lake.log.log_files import files_of
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.reprocessed import REASON, Reprocessed, rows_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.derived_rows import side_rows_sql
from seamline.model.compile.processes.compiled_process import Derived
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import EPOCH, Interval

EVER = datetime.max.replace(tzinfo=UTC)
ALWAYS = datetime.min.replace(tzinfo=UTC)


def list_log_files(
    pipeline: CompiledPipeline, layout: Layout, times: Sequence[Times], until: int, above: int = NOTHING
) -> tuple[list[str], list[str]]:
    """List the master's files, and those validated again, that may have rows of some times and epochs."""
    spans = [Interval(to_instant(first, ALWAYS), to_instant(end, EVER)) for first, end in times]
    found = [
        read_cached_table(layout.table("master"), "files", Files.of),
        Reprocessed(pipeline, layout).files(),
    ]
    if above > NOTHING:
        found = [each and each.keep(pc.greater(each.high("_epoch").cast("int64"), above)) for each in found]
    own, again = (
        list(dict.fromkeys(path for span in spans for path in files_of(each, span, until))) if each else []
        for each in found
    )
    return own, again


def find_newest_start(layout: Layout) -> int | None:
    """Return the latest event time at which a file of the master starts, in microseconds; None without files.

    A single row of a far future does not move it.
    """
    files = read_cached_table(layout.table("master"), "files", Files.of)
    latest = (
        pc.max(files.low("_event_time").cast(INSTANT)).as_py() if files and files.actions.num_rows else None
    )
    return None if latest is None else to_unix_micros(latest)


def to_instant(micros: int | None, otherwise: datetime) -> datetime:
    """Return the instant of some microseconds from 1970; ``otherwise`` without any, or where Python knows none."""
    if micros is None:
        return otherwise
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return ALWAYS if micros < 0 else EVER


def log_rows_sql(
    pipeline: CompiledPipeline, layout: Layout, times: Sequence[Times], until: int, above: int = NOTHING
) -> str:
    """Write the rows of some event times up to an epoch as the record version has them; ``blank`` has all columns.

    Only those ``above`` another epoch.
    """
    own, again = list_log_files(pipeline, layout, times, until, above)
    return file_rows_sql(pipeline, own, again, times, until, above)


def file_rows_sql(
    pipeline: CompiledPipeline,
    own: Sequence[str],
    again: Sequence[str],
    times: Sequence[Times],
    until: int,
    above: int = NOTHING,
) -> str:
    """Write the same of some files of the master, and of some whose rows were validated again."""
    parts = ["SELECT * FROM blank"]
    if own:
        fitting = record_version_sql(pipeline.record_version)
        parts.append(f"SELECT * FROM {read_parquet_sql(own, uneven=True)} WHERE {fitting}")
    if again:
        parts.append(f"SELECT * FROM {read_parquet_sql(again, uneven=True)} WHERE {REASON} IS NULL")
    where = f"_epoch > {above} AND _epoch <= {until} AND ({' OR '.join(map(within_sql, times))})"
    return f"(SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) WHERE {where})"


def fill_index(
    index: JoinedIndex,
    pipeline: CompiledPipeline,
    layout: Layout,
    stamp: IndexStamp,
    judge: Judge | None = None,
    above: int = NOTHING,
) -> None:
    """Fill an index with the rows above an epoch that a stamp is about; they pass no memory but its own."""
    times = [(stamp.horizon, None)]
    with (
        index.on_all_cores(),
        logged_rows(index.con, index.join, pipeline, layout, times, stamp.epoch, judge, above) as rows,
        index.stamped(stamp.to_json()),
    ):
        for number, side in enumerate(index.join.sides):
            index.fill(number, side_rows_sql(index.join, side, rows, DUCKDB))


def read_older_rows(
    index: JoinedIndex,
    pipeline: CompiledPipeline,
    layout: Layout,
    new: Rows,
    horizon: int | None,
    until: int,
    judge: Judge | None = None,
) -> Rows:
    """Read the rows below an index's horizon, up to an epoch, that have the keys of late ones among new rows."""
    join, con = index.join, index.con
    spans = find_older_spans(join, new, horizon)
    if not spans or horizon is None:
        return no_rows(join)
    index.register(new_left=new[0], new_right=new[1])
    with logged_rows(con, join, pipeline, layout, spans, until, judge) as rows:
        left, right = (
            con.sql(sought_rows_sql(join, number, side_rows_sql(join, side, rows, DUCKDB), horizon))
            .to_arrow_table()
            .cast(side_schema(side))
            for number, side in enumerate(join.sides)
        )
    return left, right


@contextmanager
def logged_rows(
    con: duckdb.DuckDBPyConnection,
    derived: Derived,
    pipeline: CompiledPipeline,
    layout: Layout,
    times: Sequence[Times],
    until: int,
    judge: Judge | None = None,
    above: int = NOTHING,
) -> Iterator[str]:
    """Write ``log_rows_sql``, of rows that others are derived from, as a judge has them, while the block runs."""
    blank = rows_schema(pipeline).empty_table()
    con.register("blank", blank)
    try:
        logged = log_rows_sql(pipeline, layout, times, until, above)
        with restated_rows(con, derived, blank, logged, times, judge) as rows:
            yield rows
    finally:
        con.unregister("blank")
