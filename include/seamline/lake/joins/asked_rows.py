"""The rows about which another system is to be asked, read of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
from seamline.model.protocol.seam import NOTHING

ASKED = ("_topic_id", "_partition", "_offset", "_epoch", "_event_time")
"""What is known of a row beside its request."""
SAME_ROW = 'topic_id = _topic_id AND partition = _partition AND "offset" = _offset AND "at" = _event_time'
"""Whether a record of an answer is about a row."""
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
    columns = ", ".join([*ASKED, *write_requests(ask)])
    with logged_rows(con, ask.join, pipeline, layout, times, until, None, above) as rows:
        found = f"SELECT {columns} FROM ({side_rows_sql(ask.join, left, rows, DUCKDB)}) ORDER BY _epoch"
        return con.sql(found).to_arrow_table()


@contextmanager
def recorded_rows(
    con: duckdb.DuckDBPyConnection,
    ask: CompiledAsk,
    pipeline: CompiledPipeline,
    layout: Layout,
    *,
    above: int,
    until: int,
    times: Sequence[Times] = EVER,
) -> Iterator[str]:
    """Write which records of answers the log has in epochs ``(above, until]``, for a connection while the block runs.

    They have ``topic_id``, ``partition``, ``offset`` and ``at`` of the row that was asked about, and ``answered``:
    whether it is an answer, or says why there is none, of which a row may have several. Records of another record
    version count, too, whether they were validated again or not: nobody asks about their rows.
    """
    named = ask.definition.named
    columns = [f'{named(each)} AS "{each}"' for each in ("topic_id", "partition", "offset", "at")]
    columns += [f"{named('error')} IS NULL AS answered"]
    chosen = f"{SOURCE} = '{ask.join.right.source}' AND {named('version')} = '{ask.definition.version}'"
    own, again = list_log_files(pipeline, layout, times, until, above)
    bounds = f"_epoch > {above} AND _epoch <= {until} AND ({' OR '.join(map(within_sql, times))})"
    parts = [
        "SELECT * FROM blank_record",
        *(f"SELECT * FROM {read_parquet_sql(each, uneven=True)}" for each in (own, again) if each),
    ]
    con.register("blank_record", rows_schema(pipeline).empty_table())
    try:
        rows = f"SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) WHERE {bounds}"
        yield f"SELECT {', '.join(columns)} FROM ({rows}) WHERE {chosen}"
    finally:
        con.unregister("blank_record")


def read_unanswered_rows(
    con: duckdb.DuckDBPyConnection,
    ask: CompiledAsk,
    pipeline: CompiledPipeline,
    layout: Layout,
    *,
    until: int,
    times: Sequence[Times],
    only_errors: bool,
) -> pa.Table:
    """Read the rows of some event times, as ``read_asked_rows``, that epochs up to one have read no answer for.

    With ``only_errors`` only rows with a recorded error.
    """
    requests = (f"_request{at}" for at in range(len(ask.request)))
    chosen = ", ".join([*ASKED, *requests])
    with (
        recorded_rows(con, ask, pipeline, layout, above=NOTHING, until=until, times=times) as records,
        logged_rows(con, ask.join, pipeline, layout, times, until, None, NOTHING) as rows,
    ):
        lefts = side_rows_sql(ask.join, ask.join.left, rows, DUCKDB)
        asked = f"SELECT {', '.join([*ASKED, *write_requests(ask)])} FROM ({lefts})"
        found = f"SELECT * FROM ({asked}) ANTI JOIN (FROM ({records}) WHERE answered) ON {SAME_ROW}"
        if only_errors:
            found = f"SELECT * FROM ({found}) SEMI JOIN ({records}) ON {SAME_ROW}"
        return con.sql(f"SELECT {chosen} FROM ({found}) ORDER BY _epoch").to_arrow_table()


def write_requests(ask: CompiledAsk) -> list[str]:
    """Write what a request has, as columns that are numbered."""
    return [f"{made.duckdb} AS _request{at}" for at, (_, made) in enumerate(ask.request)]


def find_time_bounds(rows: pa.Table) -> Sequence[Times]:
    """Return the span of the event times of rows, in microseconds from 1970, its end not in it; none without rows."""
    if not rows.num_rows:
        return ()
    found = pc.min_max(rows["_event_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
    return ((found["min"].as_py(), found["max"].as_py() + 1),)
