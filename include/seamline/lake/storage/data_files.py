"""Parquet files before a commit: written, measured, described to Delta."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from seamline.lake.storage.column_bounds import Bounds, delta_statistics_json, list_bounded_columns
from seamline.lake.store.data_writing import DataTarget
from seamline.lake.store.fetched_files import look_at_files
from seamline.lake.store.locations import Location


@dataclass(frozen=True)
class DataFile:
    """A Parquet file below a table's folder that no commit names yet."""

    path: str
    """Relative to the table's folder."""
    size: int
    """Bytes."""
    rows: int
    """Rows in the file."""
    stats: str
    """Delta's statistics as JSON."""
    partition: Mapping[str, str] = field(default_factory=dict)
    """Values by partition column."""
    data_change: bool = True
    """False if the file only repeats rows of files that it replaces."""

    def add(self, written_at: datetime) -> AddAction:
        """Describe the file to Delta."""
        moment = int(written_at.timestamp() * 1000)
        return AddAction(self.path, self.size, dict(self.partition), moment, self.data_change, self.stats)


def name_epoch_file(token: int | None, first: int, last: int) -> str:
    """Name a file by its writer's token and its epochs, by which upkeep tells what nobody needs (rule 16).

    No two files have the same name, not even those of a table that was begun again: copies are found by names.
    """
    return f"{token or 0:06d}-{first:012d}-{last:012d}-{uuid.uuid4().hex}.parquet"


def write_data_file(
    table: pa.Table,
    root: Location,
    name: str,
    *,
    stats: Collection[str] = (),
    partition: Mapping[str, str] | None = None,
    group: int | None = None,
) -> DataFile:
    """Write one Parquet file of a table, in groups of ``group`` rows; ``stats`` names the columns that prune reads."""
    target, doubles = DataTarget(root / name), Bounds()
    doubles.see(table)
    pq.write_table(
        table,
        target.sink,
        compression="zstd",
        compression_level=1,
        row_group_size=group,
        write_statistics=list_bounded_columns(table.schema),
    )
    return describe_target(target, name, doubles, partition=partition)


def describe_target(
    target: DataTarget, name: str, doubles: Bounds, *, partition: Mapping[str, str] | None = None
) -> DataFile:
    """Finish a file that was just written, and describe it."""
    size, metadata = target.finish()
    return DataFile(name, size, metadata.num_rows, delta_statistics_json(metadata, doubles), partition or {})


def describe_data_file(
    root: Location,
    name: str,
    *,
    stats: Collection[str] = (),
    partition: Mapping[str, str] | None = None,
    doubles: Bounds | None = None,
) -> DataFile:
    """Describe a Parquet file that is already there, from its footer and the bounds of its doubles."""
    [(path, about)] = look_at_files([root / name])
    metadata = pq.read_metadata(path)
    told = delta_statistics_json(metadata, doubles or Bounds.of_file(path, metadata))
    return DataFile(name, about.st_size, metadata.num_rows, told, partition or {})
