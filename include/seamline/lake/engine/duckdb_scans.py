"""SQL for scans of Parquet files, and for spans of time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from seamline.lake.store.fetched_files import localize_files
from seamline.model.time.intervals import EPOCH
from seamline.model.time.zone_clock import MICROSECOND

SINCE_YEAR_1 = (EPOCH - datetime.min.replace(tzinfo=UTC)) // MICROSECOND


def read_parquet_sql(paths: Iterable[str], *, uneven: bool = False) -> str:
    """Write the reading of Parquet files, without a guess at partitions from their names.

    ``uneven`` files may each lack columns that others have: those are NULL.
    """
    names = ", ".join(map(quote_literal, localize_files(paths)))
    return f"read_parquet([{names}], hive_partitioning=false, union_by_name={str(uneven).lower()})"


def quote_literal(value: str) -> str:
    """Quote a string for SQL."""
    return "'" + value.replace("'", "''") + "'"


def span_number(instant: str, size: int) -> str:
    """Write the number of the span of ``size`` microseconds that contains an instant of the years that Python knows.

    ``instant`` is in microseconds from 1970, which begins a span. DuckDB divides towards zero: spans are counted from
    before the year 1, so that no number is below zero.
    """
    return f"(({instant} + {span_origin_offset(size)}) // {size})"


def span_start_sql(instant: str, size: int) -> str:
    """Write the start of the span of ``span_number``, in microseconds from 1970."""
    return f"({span_number(instant, size)} * {size} - {span_origin_offset(size)})"


def span_origin_offset(size: int) -> int:
    """Return the microseconds of the whole spans that reach from 1970 back to the year 1, or before it."""
    return -(-SINCE_YEAR_1 // size) * size
