"""DuckDB in memory: one set of settings, and a connection for each thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from seamline.runtime.deadline import require_time_left
from seamline.runtime.machine_memory import read_memory_limit
from seamline.runtime.per_thread import PerThread
from seamline.runtime.spill_folder import delete_stale_spills, own_spill_folder

SHARE = 2
"""Of the memory of the process one DuckDB takes this part at most; then it writes to disk."""


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
    con.execute("SET TimeZone = 'UTC'; SET parquet_metadata_cache = true; SET enable_progress_bar = false")
    return con


connection = PerThread(lambda: open_duckdb(None))
"""Returns this thread's connection."""


_registered: PerThread[set[str]] = PerThread(set)
"""Returns the names of the tables that are registered in this thread's connection."""


@contextmanager
def register_tables(**tables: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """Register tables by name in this thread's DuckDB while the block runs: it keeps what it knows in memory."""
    require_time_left()
    con, registered = connection(), _registered()
    if taken := registered & tables.keys():
        raise RuntimeError(f"{', '.join(sorted(taken))}: registered in this thread's DuckDB already.")
    for name, table in tables.items():
        con.register(name, table)
    registered |= tables.keys()
    try:
        yield con
    finally:
        registered -= tables.keys()
        for name in tables:
            con.unregister(name)


def query_tables(query: str, **tables: pa.Table) -> pa.Table:
    """Ask this thread's DuckDB about some tables."""
    with register_tables(**tables) as con:
        return con.sql(query).to_arrow_table()
