"""Answers questions in SQL: views are read into DuckDB, which is then shut off from all else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

import duckdb
import pyarrow as pa

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.read.answers import Answer
from seamline.model.errors import BadRange, NotFound
from seamline.model.time.intervals import Interval, parse_moment
from seamline.runtime.spill_folder import measure_free_space
from seamline.serve.bi import quote_ansi_name
from seamline.serve.sql.sql_answer import SqlAnswer, narrow_nanoseconds, writing_values
from seamline.serve.sql.statement import AskedWindows, NamedView, first_line, parse_statement, step_behind
from seamline.serve.streamed import read_memory_setting, stream_answer

LIMIT = 10_000
"""Rows of an answer, if nobody says how many."""
BATCH = 256
"""Rows that are fetched at once: DuckDB hands out copies, which are not in its memory, and so are its texts."""
MOST_SPILL = 16 << 30
LOCKED = "SET python_enable_replacements = false; SET enable_external_access = false; SET lock_configuration = true"


def sql(
    text: str,
    *,
    start: str | None = None,
    end: str | None = None,
    limit: int = LIMIT,
    memory: int | None = None,
    may_read: Callable[[str], bool] = lambda _: True,
) -> SqlAnswer:
    """Answer one SELECT in DuckDB's SQL over merged views, each named ``PIPELINE.VIEW``.

    Of a view the windows are read that start in ``[start, end)``, UTC, and for which the WHERE beside it lets
    ``window_start`` be. Each view is as of one state of its tables. DuckDB reads no file and changes nothing.
    ``may_read`` tells of a pipeline whether its views are there for whoever asks. ``memory`` is in bytes, of what is
    read and of the answer's rows; SEAMLINE_READ_MEMORY says how many unless it does. Raises BadRange, NotFound,
    ReadUnstable, and duckdb.InterruptException where it is broken off.
    """
    asked = parse_statement(text)
    for named in asked.views:
        if not may_read(named.pipeline):
            raise NotFound(f"There is no pipeline {named.pipeline!r}.", hint="`seamline check` lists them.")
    room = read_memory_setting(os.environ) if memory is None else memory
    most = room // len(asked.views)
    with open_beside(1) as con:
        con.execute(f"SET max_temp_directory_size = '{bound_spill() >> 20}MiB'")
        told = [
            load_view(con, named, most, add_bounds(windows, start, end))
            for named, windows in asked.views.items()
        ]
        con.execute(LOCKED)
        rows = fetch_rows(con, asked.text, limit + 1, room)
    return SqlAnswer(rows.slice(0, limit), rows.num_rows > limit, tuple(told))


def bound_spill() -> int:
    """Return how many bytes a statement may put on disk: half of what is free, and at most ``MOST_SPILL``."""
    return min(measure_free_space() // 2, MOST_SPILL)


def add_bounds(windows: AskedWindows, start: str | None, end: str | None) -> AskedWindows:
    """Return the bounds of a read: those of the statement within those that were given.

    Conditions may contradict each other; BadRange for a given end that is not after the given start.
    """
    given = AskedWindows(parse_moment(start) if start else None, parse_moment(end) if end else None)
    if given.start and given.end:
        Interval(given.start, given.end)
    return windows & given


def load_view(con: duckdb.DuckDBPyConnection, named: NamedView, memory: int, windows: AskedWindows) -> Answer:
    """Make a view's answer a table of DuckDB, which spills to disk; tell how far it is right."""
    schema, table = quote_ansi_name(named.pipeline), quote_ansi_name(named.view)
    start, end = windows.start, windows.end
    if none := bool(start and end and start >= end):
        end = step_behind(start)
    with closing(stream_answer(str(named), memory=memory, start=start, end=end)) as stream:
        con.register("_rows", stream.reader({}))
        con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        try:
            con.execute(f"CREATE TABLE {schema}.{table} AS SELECT * FROM _rows")
        except duckdb.OutOfMemoryException as problem:
            raise explain_failure(problem) from None
        con.unregister("_rows")
        if none:
            con.execute(f"TRUNCATE {schema}.{table}")
        return stream.told()


def fetch_rows(con: duckdb.DuckDBPyConnection, text: str, most: int, room: int) -> pa.Table:
    """Run a statement and fetch its first rows; BadRange for what DuckDB refuses, and for rows of more bytes."""
    try:
        reader = con.sql(text).to_arrow_reader(BATCH)
        batches = list(take_rows(reader, most, room))
    except (duckdb.Error, pa.ArrowException, OSError) as problem:
        raise explain_failure(problem) from None
    names = unique_names(reader.schema.names)
    with writing_values():
        return narrow_nanoseconds(pa.Table.from_batches(batches, reader.schema).rename_columns(names))


def explain_failure(problem: Exception) -> Exception:
    """Say what a statement has failed with; what fails behind the first rows comes through Arrow, as a mere text."""
    said = first_line(problem)
    if isinstance(problem, duckdb.InterruptException) or said.startswith("INTERRUPT"):
        return duckdb.InterruptException(said)
    if isinstance(problem, duckdb.OutOfMemoryException) or said.startswith("Out of Memory"):
        return BadRange(
            "The SQL needs more memory than DuckDB may take, and cannot do with its part of the disk.",
            hint="bound window_start, or group by fewer columns.",
        )
    return BadRange(f"The SQL is wrong: {said}", hint="DuckDB's SQL is possible, over the views.")


def take_rows(batches: Iterable[pa.RecordBatch], most: int, room: int) -> Iterator[pa.RecordBatch]:
    """Take batches up to a number of rows; BadRange as soon as they have more bytes than there is room for."""
    left = room
    for batch in batches:
        taken = batch.slice(0, most)
        left -= taken.nbytes
        if left < 0:
            raise BadRange(
                f"The answer has more than {room / (1 << 20):,.4g} MiB.",
                hint="ask for fewer rows or columns, or for shorter texts and lists; "
                "SEAMLINE_READ_MEMORY bounds it, over HTTP by a quarter.",
            )
        yield taken
        most -= taken.num_rows
        if most <= 0:
            return


def unique_names(names: Sequence[str]) -> list[str]:
    """Make the names of columns unique: JSON has each once."""
    found: list[str] = []
    for name in names:
        number, own = 1, name
        while own in found:
            own, number = f"{name}_{number}", number + 1
        found.append(own)
    return found
