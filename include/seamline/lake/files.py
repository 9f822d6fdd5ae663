"""Parquet files before a commit: written, measured, described to Delta."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class DataFile:
    """A Parquet file below a table's folder that no commit names yet."""

    path: str
    size: int
    rows: int
    stats: str
    partition: Mapping[str, str] = field(default_factory=dict)

    def add(self, written_at: datetime) -> AddAction:
        """Describe the file to Delta."""
        moment = int(written_at.timestamp() * 1000)
        return AddAction(self.path, self.size, dict(self.partition), moment, True, self.stats)


def write(
    table: pa.Table,
    root: Path,
    name: str,
    *,
    stats: Collection[str],
    partition: Mapping[str, str] | None = None,
) -> DataFile:
    """Write one Parquet file of a table; ``stats`` names the columns that prune reads."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", compression_level=1)
    return described(root, name, stats=stats, partition=partition)


def described(
    root: Path, name: str, *, stats: Collection[str], partition: Mapping[str, str] | None = None
) -> DataFile:
    """Describe a Parquet file that is already there, from its footer."""
    metadata = pq.read_metadata(root / name)
    return DataFile(
        name, (root / name).stat().st_size, metadata.num_rows, footer_stats(metadata, stats), partition or {}
    )


def footer_stats(metadata: pq.FileMetaData, columns: Collection[str]) -> str:
    """Give Delta's statistics as JSON; instants are rounded outward to the millisecond."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            name, found = column.path_in_schema, column.statistics
            if name not in columns or found is None or not found.has_min_max:
                continue
            low[name] = min(low.get(name, found.min), found.min)
            high[name] = max(high.get(name, found.max), found.max)
            nulls[name] = nulls.get(name, 0) + (found.null_count or 0)
    return json.dumps(
        {
            "numRecords": metadata.num_rows,
            "minValues": {name: plain(value, up=False) for name, value in low.items()},
            "maxValues": {name: plain(value, up=True) for name, value in high.items()},
            "nullCount": nulls,
        }
    )


def plain(value: Any, *, up: bool) -> Any:
    """Write a statistic as JSON."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        if up and whole < moment:
            whole += MILLISECOND
        return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value
