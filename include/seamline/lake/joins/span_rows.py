"""The rows of the log that a process is given: all of open spans, or those of some keys in their spans."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.duckdb_scans import span_start_sql
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

SPAN = "_span"


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
) -> pa.Table:
    """Read a process's rows of some event times up to an epoch."""
    with (
        open_duckdb() as con,
        logged_rows(con, process, pipeline, layout, [times], until, judge) as rows,
    ):
        return con.sql(given_rows_sql(process, rows, DUCKDB)).to_arrow_table()


def read_rows_of_keys(
    process: CompiledProcess,
    pipeline: CompiledPipeline,
    layout: Layout,
    keys: Collection[KeySpan],
    until: int,
    judge: Judge | None = None,
) -> pa.Table:
    """Read all rows of keys in spans up to an epoch."""
    spans = sorted({key.span for key in keys})
    times = [(span, span + process.size) for span in spans]
    columns = zip(*(key.key for key in keys), strict=True)
    sought = {SPAN: pa.array([key.span for key in keys], pa.int64())} | {
        field.name: pa.array(values, arrow_type(field.type.spark))
        for field, values in zip(process.keys, columns, strict=True)
    }
    same = [
        f"s.{name} IS NOT DISTINCT FROM r.{name}"
        for name in (quote_identifier(field.name) for field in process.keys)
    ]
    same += [f"s.{SPAN} = {span_start_sql('epoch_us(r._event_time)', process.size)}"]
    with (
        open_duckdb() as con,
        logged_rows(con, process, pipeline, layout, times, until, judge) as rows,
    ):
        con.register("sought", pa.table(sought))
        mine = given_rows_sql(process, rows, DUCKDB)
        return con.sql(
            f"SELECT r.* FROM ({mine}) r SEMI JOIN sought s ON {' AND '.join(same)}"
        ).to_arrow_table()
