"""Parquet files of tables, wherever they are, read with instants as we write them.

Spark writes an instant as INT96 unless it is set otherwise, without a time zone, also where it packs files of ours;
read as nanoseconds, what is beyond 1677 to 2262 would be another instant.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.store.fetched_files import localize_file
from seamline.lake.store.locations import Location

NAIVE, AWARE = pa.timestamp("us"), pa.timestamp("us", "UTC")
OLD = "INT96"


def read_parquet_file(path: str | Location, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a file, or some of its columns."""
    asked = None if columns is None else list(columns)
    path = localize_file(path)
    rows = pq.read_table(path, columns=asked, partitioning=None, coerce_int96_timestamp_unit="us")
    if not any(str(NAIVE) in str(field.type) for field in rows.schema):
        return rows
    old = written_old(path)
    return rows.cast(
        pa.schema(
            [
                field.with_type(to_utc_type(field.type)) if field.name in old else field
                for field in rows.schema
            ],
            metadata=rows.schema.metadata,
        )
    )


def read_plain_columns(path: str | Location, columns: Sequence[str] | None = None) -> pa.Table:
    """Read columns of which none is an instant, as they are in the file."""
    asked = None if columns is None else list(columns)
    return pq.read_table(localize_file(path), columns=asked, partitioning=None)


def read_replaced_file(path: Location) -> pa.Table:
    """Read a file that another is put in the place of from time to time, which no copy may stand for."""
    return pq.read_table(pa.BufferReader(path.read_bytes()), partitioning=None)


def open_parquet_file(path: str | Location) -> pq.ParquetFile:
    """Open a file, to read a part of it; whoever opens it closes it."""
    return pq.ParquetFile(localize_file(path))


def read_parquet_footer(path: str | Location) -> pq.FileMetaData:
    """Read what a file says of itself."""
    return pq.read_metadata(localize_file(path))


def written_old(path: str) -> set[str]:
    """List the columns of a file that have instants in the old form."""
    with pq.ParquetFile(path) as file:
        leaves = map(file.schema.column, range(len(file.schema)))
        return {leaf.path.partition(".")[0] for leaf in leaves if leaf.physical_type == OLD}


def to_utc_type(type: pa.DataType) -> pa.DataType:
    """Return a type with instants in UTC, in whatever they are."""
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(to_utc_type(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(to_utc_type(type.value_type)))
    if pa.types.is_map(type):
        return pa.map_(to_utc_type(type.key_type), to_utc_type(type.item_type))
    return AWARE if type == NAIVE else type
