"""Parquet files read by DuckDB: a connection per thread, and the scan spelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from seamline.lake.per_thread import PerThread


def opened() -> duckdb.DuckDBPyConnection:
    """Open a DuckDB in UTC that remembers what Parquet files say of themselves."""
    return duckdb.connect().execute("SET TimeZone='UTC'; SET parquet_metadata_cache=true")


connection = PerThread(opened)
"""Gives this thread's."""


@contextmanager
def relations(**tables: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """Let this thread's DuckDB know tables by name, for as long as it takes: it holds on to what it knows."""
    con = connection()
    for name, table in tables.items():
        con.register(name, table)
    try:
        yield con
    finally:
        for name in tables:
            con.unregister(name)


def scan(paths: Iterable[str], *, uneven: bool = False) -> str:
    """Spell the reading of Parquet files, without a guess at partitions from their names.

    ``uneven`` files may each lack columns that others have: those are NULL.
    """
    names = ", ".join(map(literal, paths))
    return f"read_parquet([{names}], hive_partitioning=false, union_by_name={str(uneven).lower()})"


def literal(value: str) -> str:
    """Write a string for SQL."""
    return "'" + value.replace("'", "''") + "'"


def aligned(column: str, size: int) -> str:
    """Spell the start of the span of ``size`` microseconds, counted from 1970, that holds an instant."""
    # The remainder of an instant before 1970 is below zero. DuckDB divides once for both mentions of it.
    over = f"{column} % {size}"
    return f"({column} - {over} - CASE WHEN {over} < 0 THEN {size} ELSE 0 END)"
