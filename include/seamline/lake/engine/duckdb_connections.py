"""DuckDB in memory: one set of settings, and two connections for each thread: on all cores, and on one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import duckdb
import pyarrow as pa

from seamline.lake.engine.spark_hashes import add_spark_hashes
from seamline.runtime.deadline import require_time_left
from seamline.runtime.machine_memory import read_memory_limit
from seamline.runtime.per_thread import PerThread
from seamline.runtime.spill_folder import delete_stale_spills, own_spill_folder

SHARE = 4
"""Each DuckDB takes one part in this many of the process's memory at most; then it writes to disk."""
UNREADABLE = (duckdb.DataError, duckdb.ProgrammingError, duckdb.IOException)
"""What DuckDB raises of a file that is not what it was told to be; too little memory is none of them."""


Connection = duckdb.DuckDBPyConnection
"""A connection to DuckDB, by name for those who are only given one."""


def open_duckdb(threads: int | None = 1) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB in memory: in UTC, bounded in memory, spilling to this process's folder, with no progress bar.

    Without a number of ``threads`` it takes those that the machine, or the container, lets it have. It remembers
    what Parquet files say of themselves: none of ours ever changes.
    """
    delete_stale_spills()
    con = duckdb.connect(
        config={
            **({} if threads is None else {"threads": threads}),
            "memory_limit": f"{read_memory_limit() // SHARE >> 20}MiB",
            "temp_directory": str(own_spill_folder()),
        }
    )
    add_spark_hashes(con)
    con.execute("SET TimeZone = 'UTC'; SET parquet_metadata_cache = true; SET enable_progress_bar = false")
    return con


connection = PerThread(lambda: open_duckdb(None))
"""Returns this thread's connection on all cores: for scans, which keep the order of rows, and for recounts."""
merging = PerThread(open_duckdb)
"""Returns this thread's connection on one core, for answers: the last digit of a sum of doubles depends on the order in
which they are added, and the same question has the same answer."""
_beside: PerThread[list[duckdb.DuckDBPyConnection]] = PerThread(list)
"""Returns what this thread's work has opened beside them."""
_registered: PerThread[set[tuple[int, str]]] = PerThread(set)
"""Returns what is registered in this thread's connections: which of them, and under which name."""


@contextmanager
def open_beside(threads: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB for work that this thread does while the block runs, which is broken off with the thread's own."""
    others = _beside()
    with open_duckdb(threads) as con:
        others.append(con)
        try:
            yield con
        finally:
            others.remove(con)


def find_interrupt() -> Callable[[], None]:
    """Return what breaks off the queries that this thread has running; any thread may call it."""
    own, others = (connection(), merging()), _beside()

    def interrupt() -> None:
        for con in (*own, *others):
            # It may be closed by now.
            with suppress(duckdb.ConnectionException):
                con.interrupt()

    return interrupt


@contextmanager
def register_tables(**tables: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """Register tables by name for scans while the block runs; the connection keeps what it knows of Parquet files."""
    with registered_in(connection(), tables) as con:
        yield con


def query_tables(query: str, **tables: pa.Table) -> pa.Table:
    """Ask a question of some tables; the same tables give the same answer, to the last digit."""
    with registered_in(merging(), tables) as con:
        return con.sql(query).to_arrow_table()


@contextmanager
def registered_in(
    con: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Register tables in a connection while the block runs; RuntimeError for a name that is registered already."""
    require_time_left()
    known, own = _registered(), {(id(con), name) for name in tables}
    if taken := known & own:
        raise RuntimeError(
            f"{', '.join(sorted(name for _, name in taken))}: registered in this DuckDB already."
        )
    known |= own
    try:
        for name, table in tables.items():
            con.register(name, table)
        yield con
    finally:
        known -= own
        for name in tables:
            con.unregister(name)
