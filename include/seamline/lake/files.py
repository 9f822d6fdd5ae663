"""Parquet files before a commit: written, measured, described to Delta."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

MILLISECOND = timedelta(milliseconds=1)
LETTERS = 64
LAST_LETTER = "\U0010ffff"


@dataclass(frozen=True)
class DataFile:
    """A Parquet file below a table's folder that no commit names yet.

    ``data_change`` is false for one that only says again what others said.
    """

    path: str
    size: int
    rows: int
    stats: str
    partition: Mapping[str, str] = field(default_factory=dict)
    data_change: bool = True

    def add(self, written_at: datetime) -> AddAction:
        """Describe the file to Delta."""
        moment = int(written_at.timestamp() * 1000)
        return AddAction(self.path, self.size, dict(self.partition), moment, self.data_change, self.stats)


def write(
    table: pa.Table,
    root: Path,
    name: str,
    *,
    stats: Collection[str] = (),
    partition: Mapping[str, str] | None = None,
    group: int | None = None,
) -> DataFile:
    """Write one Parquet file of a table, in groups of ``group`` rows; ``stats`` names the columns that prune reads."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", compression_level=1, row_group_size=group)
    return described(root, name, stats=stats, partition=partition)


def described(
    root: Path, name: str, *, stats: Collection[str] = (), partition: Mapping[str, str] | None = None
) -> DataFile:
    """Describe a Parquet file that is already there, from its footer."""
    metadata = pq.read_metadata(root / name)
    return DataFile(
        name, (root / name).stat().st_size, metadata.num_rows, footer_stats(metadata), partition or {}
    )


def footer_stats(metadata: pq.FileMetaData) -> str:
    """Give Delta's statistics of every plain column as JSON.

    All or none: where a file has bounds for some columns, deltalake's dataset takes the absence of the others'
    for NULL bounds and prunes the file from a filter on them. No letter is escaped: deltalake reads the pair that
    stands for U+10FFFF as U+FFFFF.
    """
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            name, found = column.path_in_schema, column.statistics
            if found is None or "." in name or isinstance(found.min, bytes):
                continue
            nulls[name] = nulls.get(name, 0) + (found.null_count or 0)
            if found.has_min_max:
                low[name] = min(low.get(name, found.min), found.min)
                high[name] = max(high.get(name, found.max), found.max)
    if any(
        isinstance(value, float) and not math.isfinite(value) for value in [*low.values(), *high.values()]
    ):
        return json.dumps({"numRecords": metadata.num_rows})
    return json.dumps(
        {
            "numRecords": metadata.num_rows,
            "minValues": {name: plain(value, up=False) for name, value in low.items()},
            "maxValues": {name: plain(value, up=True) for name, value in high.items()},
            "nullCount": nulls,
        },
        ensure_ascii=False,
    )


def plain(value: Any, *, up: bool) -> Any:
    """Write a bound as JSON, rounded outward: instants to the millisecond, texts to their first letters."""
    match value:
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
            whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
            if up and whole < moment:
                whole += MILLISECOND
            return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case str():
            return value if len(value) <= LETTERS else value[:LETTERS] + (LAST_LETTER if up else "")
    return value
