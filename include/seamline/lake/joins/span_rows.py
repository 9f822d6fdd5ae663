"""The rows of the log that a process is given: all of open spans, or those of some keys in their spans."""

from __future__ import annotations

from collections.abc import Collection, Generator
from datetime import datetime

import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import open_beside, open_duckdb
from seamline.lake.engine.duckdb_scans import span_start_sql
from seamline.lake.engine.joined_index import side_schema
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.event_times import Times
from seamline.lake.joins.joined_rows import logged_rows
from seamline.lake.joins.restated_rows import Judge
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.derived_rows import given_rows_sql
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import ALWAYS
from seamline.model.functions.tails import KeySpan
from seamline.model.protocol.seam import NOTHING

SPAN = "_span"
BATCH = 50_000
"""Rows of a key and others that pass memory at once."""
EVER: Times = (None, None)


def micros_of_mark(mark: datetime | None) -> float:
    """Return a watermark in microseconds from 1970; without any, what is before all."""
    return ALWAYS if mark is None else to_unix_micros(mark)


def find_mark(pipeline: CompiledPipeline, layout: Layout, number: int) -> datetime | None:
    """Return the newest watermark that the log records up to an epoch, by the pipeline's clock; None without any."""
    log = read_condensed_log(layout, until=number)
    marks = (pipeline.timed.watermark_at(epoch) for epoch in reversed(log))
    return next((mark for mark in marks if mark), None)


def read_span_rows(
    process: CompiledProcess,
    pipeline: CompiledPipeline,
    layout: Layout,
    times: Times,
    until: int,
    judge: Judge | None = None,
    above: int = NOTHING,
) -> pa.Table:
    """Read a process's rows of some event times up to an epoch, above another one."""
    with (
        open_duckdb() as con,
        logged_rows(con, process, pipeline, layout, [times], until, judge, above) as rows,
    ):
        return con.sql(given_rows_sql(process, rows, DUCKDB)).to_arrow_table()


def read_rows_by_key(
    process: CompiledProcess,
    pipeline: CompiledPipeline,
    layout: Layout,
    times: Times,
    until: int,
    judge: Judge | None,
    without: Collection[KeySpan],
) -> Generator[pa.RecordBatch]:
    """Read a process's rows of some event times up to an epoch, those of a key together; some keys are left out.

    They pass memory batch by batch, however many they are.
    """
    names = [quote_identifier(field.name) for field in process.keys]
    with (
        open_beside(None) as con,
        logged_rows(con, process, pipeline, layout, [times], until, judge) as rows,
    ):
        con.register("sought", make_sought_table(process, without))
        order = ", ".join([span_sql(process), *(f"r.{name}" for name in names)])
        mine = f"SELECT r.* FROM ({given_rows_sql(process, rows, DUCKDB)}) r"
        yield from con.sql(
            f"{mine} ANTI JOIN sought s ON {same_key_sql(process)} ORDER BY {order}"
        ).to_arrow_reader(BATCH)


def read_rows_of_keys(
    process: CompiledProcess,
    pipeline: CompiledPipeline,
    layout: Layout,
    keys: Collection[KeySpan],
    until: int,
    judge: Judge | None = None,
    *,
    times: Times = EVER,
    above: int = NOTHING,
) -> pa.Table:
    """Read the rows of keys in spans up to an epoch: all, or those of some event times and above another epoch."""
    spans = [clip_times((span, span + process.size), times) for span in sorted({key.span for key in keys})]
    meant = [(first, end) for first, end in spans if first < end]
    if not meant:
        return side_schema(process.sides[0]).empty_table()
    with (
        open_duckdb() as con,
        logged_rows(con, process, pipeline, layout, meant, until, judge, above) as rows,
    ):
        con.register("sought", make_sought_table(process, keys))
        mine = given_rows_sql(process, rows, DUCKDB)
        return con.sql(
            f"SELECT r.* FROM ({mine}) r SEMI JOIN sought s ON {same_key_sql(process)}"
        ).to_arrow_table()


def clip_times(span: tuple[int, int], times: Times) -> tuple[int, int]:
    """Return the part of a span that is within some times."""
    first, end = times
    return span[0] if first is None else max(span[0], first), span[1] if end is None else min(span[1], end)


def make_sought_table(process: CompiledProcess, keys: Collection[KeySpan]) -> pa.Table:
    """Make a table of keys and their spans."""
    columns = zip(*(key.key for key in keys), strict=True) if keys else ([],) * len(process.keys)
    return pa.table(
        {SPAN: pa.array([key.span for key in keys], pa.int64())}
        | {
            field.name: pa.array(values, arrow_type(field.type.spark))
            for field, values in zip(process.keys, columns, strict=True)
        }
    )


def same_key_sql(process: CompiledProcess) -> str:
    """Write the condition that a row ``r`` is of a key and span ``s``."""
    names = (quote_identifier(field.name) for field in process.keys)
    same = [f"s.{name} IS NOT DISTINCT FROM r.{name}" for name in names]
    return " AND ".join([*same, f"s.{SPAN} = {span_sql(process)}"])


def span_sql(process: CompiledProcess) -> str:
    """Write where the span of a row ``r`` begins."""
    return span_start_sql("epoch_us(r._event_time)", process.size)
