"""The rows of the log that a join reads, from the master's files and those validated again, by DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb

from seamline.lake.engine.accepted_rows import record_version_sql
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.joined_index import Rows, side_schema
from seamline.lake.log.log_files import files_of
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.reprocessed import REASON, Reprocessed, rows_schema
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.derived_rows import side_rows_sql
from seamline.model.time.intervals import EPOCH, Interval

Times = tuple[int | None, int | None]
"""The first event time, and that before which all are, in microseconds from 1970; None for no bound."""
EVER = datetime.max.replace(tzinfo=UTC)
ALWAYS = datetime.min.replace(tzinfo=UTC)


def list_log_files(
    pipeline: CompiledPipeline, layout: Layout, times: Times, until: int
) -> tuple[list[str], list[str]]:
    """List the master's files, and those validated again, that may have rows of some times up to an epoch."""
    span = Interval(to_instant(times[0], ALWAYS), to_instant(times[1], EVER))
    found = [
        read_cached_table(layout.table("master"), "files", Files.of),
        Reprocessed(pipeline, layout).files(),
    ]
    own, again = (files_of(each, span, until) if each else [] for each in found)
    return own, again


def to_instant(micros: int | None, otherwise: datetime) -> datetime:
    """Return the instant of some microseconds from 1970; ``otherwise`` without any, or where Python knows none."""
    if micros is None:
        return otherwise
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return ALWAYS if micros < 0 else EVER


def log_rows_sql(pipeline: CompiledPipeline, layout: Layout, times: Times, until: int) -> str:
    """Write the rows of some event times up to an epoch as the record version has them; ``blank`` has all columns."""
    own, again = list_log_files(pipeline, layout, times, until)
    parts = ["SELECT * FROM blank"]
    if own:
        fitting = record_version_sql(pipeline.record_version)
        parts.append(f"SELECT * FROM {read_parquet_sql(own, uneven=True)} WHERE {fitting}")
    if again:
        parts.append(f"SELECT * FROM {read_parquet_sql(again, uneven=True)} WHERE {REASON} IS NULL")
    micros = "epoch_us(_event_time)"
    bounds = [f"{micros} >= {times[0]}"] if times[0] is not None else []
    bounds += [f"{micros} < {times[1]}"] if times[1] is not None else []
    where = " AND ".join([f"_epoch <= {until}", *bounds])
    return f"(SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) WHERE {where})"


def read_joined_rows(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    join: CompiledJoin,
    layout: Layout,
    times: Times,
    until: int,
) -> Rows:
    """Read the rows of both sides of some event times up to an epoch."""
    con.register("blank", rows_schema(pipeline).empty_table())
    rows = log_rows_sql(pipeline, layout, times, until)
    try:
        left, right = (
            con.sql(side_rows_sql(join, side, rows, DUCKDB)).to_arrow_table().cast(side_schema(side))
            for side in join.sides
        )
    finally:
        con.unregister("blank")
    return left, right
