"""The rows about which another system is to be asked, read of the log."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.joins.event_times import Times, within_sql
from seamline.lake.joins.joined_rows import list_log_files, logged_rows
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.reprocessed import Reprocessed, rows_schema
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.derived_rows import side_rows_sql
from seamline.model.compile.record_rules import SOURCE

EVER: Sequence[Times] = ((None, None),)
BLOCK = 20_000
"""Rows of the log that are looked at together, if no file has more."""


def find_block_end(pipeline: CompiledPipeline, layout: Layout, above: int, until: int) -> int:
    """Find the epoch up to which the log has about ``BLOCK`` rows above another; ``until`` at most.

    Of a file of several epochs each is taken to have as many rows.
    """
    found = [
        read_cached_table(layout.table("master"), "files", Files.of),
        Reprocessed(pipeline, layout).files(),
    ]
    spans: list[tuple[int, int, int]] = []
    for files in filter(None, found):
        newer = files.keep(pc.greater(files.high("_epoch").cast("int64"), above))
        bounds = (newer.low("_epoch"), newer.high("_epoch"), newer.actions["num_records"])
        for low, high, count in zip(*(each.to_pylist() for each in bounds), strict=True):
            first = above + 1 if low is None else max(low, above + 1)
            spans.append((first, until if high is None else min(high, until), count or 0))
    room = BLOCK
    for first, last, count in sorted(span for span in spans if span[0] <= span[1]):
        if count >= room:
            return min(first + (last - first) * room // count, until)
        room -= count
    return until


def read_asked_rows(
    con: duckdb.DuckDBPyConnection,
    ask: CompiledAsk,
    pipeline: CompiledPipeline,
    layout: Layout,
    *,
    above: int,
    until: int,
    times: Sequence[Times] = EVER,
) -> pa.Table:
    """Read the rows of epochs ``(above, until]`` that are to have an answer: their places, and what a request has."""
    left = ask.join.left
    columns = ", ".join(["_topic_id", "_partition", "_offset", "_epoch", "_event_time", *write_requests(ask)])
    with logged_rows(con, ask.join, pipeline, layout, times, until, None, above) as rows:
        found = f"SELECT {columns} FROM ({side_rows_sql(ask.join, left, rows, DUCKDB)}) ORDER BY _epoch"
        return con.sql(found).to_arrow_table()


def read_answered_places(
    con: duckdb.DuckDBPyConnection,
    ask: CompiledAsk,
    pipeline: CompiledPipeline,
    layout: Layout,
    *,
    above: int,
    until: int,
    times: Sequence[Times] = EVER,
) -> pa.Table:
    """Read of which rows the log has an answer, or says why there is none: ``topic_id``, ``partition``, ``offset``.

    ``answered`` says which of both. A row may have several that say why. Records of another record version count, too,
    whether they were validated again or not: nobody asks about their rows.
    """
    named = ask.definition.named
    columns = [f"{named(each)} AS {each}" for each in ("topic_id", "partition", "offset")]
    columns += [f"{named('error')} IS NULL AS answered"]
    chosen = f"{SOURCE} = '{ask.join.right.source}' AND {named('version')} = '{ask.definition.version}'"
    own, again = list_log_files(pipeline, layout, times, until, above)
    bounds = f"_epoch > {above} AND _epoch <= {until} AND ({' OR '.join(map(within_sql, times))})"
    parts = [
        "SELECT * FROM blank",
        *(f"SELECT * FROM {read_parquet_sql(each, uneven=True)}" for each in (own, again) if each),
    ]
    con.register("blank", rows_schema(pipeline).empty_table())
    try:
        rows = f"SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) WHERE {bounds}"
        return con.sql(f"SELECT {', '.join(columns)} FROM ({rows}) WHERE {chosen}").to_arrow_table()
    finally:
        con.unregister("blank")


def write_requests(ask: CompiledAsk) -> list[str]:
    """Write what a request has, as columns that are numbered."""
    return [f"{made.duckdb} AS _request{at}" for at, (_, made) in enumerate(ask.request)]


def find_time_bounds(rows: pa.Table) -> Sequence[Times]:
    """Return the span of the event times of rows, in microseconds from 1970, its end not in it; none without rows."""
    if not rows.num_rows:
        return ()
    found = pc.min_max(rows["_event_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
    return ((found["min"].as_py(), found["max"].as_py() + 1),)
