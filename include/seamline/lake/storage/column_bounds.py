"""The bounds of a file's columns as Delta's statistics: exact or rounded outward, so that no reader prunes a row.

Engines order doubles in different ways, and Parquet's bounds leave NaN out: those of doubles are taken from the rows,
and Parquet is given none. Decimals are numbers with all of their digits: Spark, deltalake and Polars read them so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seamline.lake.storage.parquet_files import open_parquet_file
from seamline.model.types.exact_json import dump_exact_json

MILLISECOND = timedelta(milliseconds=1)
LETTERS = 64
LAST_LETTER = "\U0010ffff"


def list_bounded_columns(schema: pa.Schema) -> list[str]:
    """List the columns of which Parquet keeps bounds."""
    return [each.name for each in schema if not (pa.types.is_nested(each.type) or is_double(each.type))]


def is_double(type: pa.DataType) -> bool:
    """Return whether values of a type may be NaN."""
    return bool(pa.types.is_floating(type))


@dataclass
class Bounds:
    """The bounds of a file's columns."""

    low: dict[str, Any] = field(default_factory=dict)
    """The least value by column; a column of NULLs alone is left out."""
    high: dict[str, Any] = field(default_factory=dict)
    """The greatest value by column."""
    nulls: dict[str, int] = field(default_factory=dict)
    """How many values are NULL, by column."""
    known: bool = True
    """False as soon as one column has values and no bounds."""

    @classmethod
    def of_file(cls, path: str, metadata: pq.FileMetaData) -> Bounds:
        """Read the doubles of a file that another writer wrote."""
        found, schema = cls(), metadata.schema.to_arrow_schema()
        if doubles := [each.name for each in schema if is_double(each.type)]:
            with open_parquet_file(path) as file:
                for group in range(metadata.num_row_groups):
                    found.see(file.read_row_group(group, columns=doubles))
        return found

    def see(self, rows: pa.Table) -> None:
        """Widen the bounds by the doubles of some rows."""
        for each in rows.schema:
            if is_double(each.type):
                column = rows[each.name]
                self.known &= pc.all(pc.is_finite(column), min_count=0).as_py()
                least, most = pc.min_max(column).as_py().values()
                # Some engines distinguish 0.0 from -0.0.
                self.widen(each.name, (least or -0.0, most or 0.0), column.null_count, len(column))

    def widen(self, name: str, bounds: tuple[Any, Any] | None, nulls: int, values: int) -> None:
        """Widen a column's bounds by those of so many more values."""
        self.nulls[name] = self.nulls.get(name, 0) + nulls
        if values == nulls:
            return
        if bounds is None:
            self.known = False
            return
        low, high = bounds
        self.low[name] = min(self.low.get(name, low), low)
        self.high[name] = max(self.high.get(name, high), high)


def delta_statistics_json(metadata: pq.FileMetaData, doubles: Bounds) -> str:
    """Return Delta's statistics of every plain column as JSON, of which ``doubles`` are known.

    All or none: where a file has bounds for some columns, deltalake's dataset takes the absence of the others'
    for NULL bounds and prunes the file from a filter on them. No letter is escaped: deltalake reads the pair that
    stands for U+10FFFF as U+FFFFF.
    """
    found = replace(doubles, low=dict(doubles.low), high=dict(doubles.high), nulls=dict(doubles.nulls))
    try:
        for name, part in list_footer_statistics(metadata):
            bounds = (part.min, part.max) if part.has_min_max else None
            found.widen(name, bounds, part.null_count or 0, part.num_values + (part.null_count or 0))
        low, high = round_bounds_outward(found.low, up=False), round_bounds_outward(found.high, up=True)
    except OverflowError:
        found.known = False
    if not found.known:
        return dump_exact_json({"numRecords": metadata.num_rows})
    facts = {"numRecords": metadata.num_rows, "minValues": low, "maxValues": high, "nullCount": found.nulls}
    return dump_exact_json(facts, ensure_ascii=False)


def list_footer_statistics(metadata: pq.FileMetaData) -> Iterator[tuple[str, pq.Statistics]]:
    """List the statistics that a Parquet file has of its columns but doubles, for each column and row group."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            name, found = column.path_in_schema, column.statistics
            if found is None or "." in name or column.physical_type in ("DOUBLE", "FLOAT"):
                continue
            if column.physical_type != "BYTE_ARRAY" or found.logical_type.type == "STRING":
                yield name, found


def round_bounds_outward(bounds: Mapping[str, Any], *, up: bool) -> dict[str, Any]:
    """Write bounds as JSON has them; OverflowError for one that it has no word for."""
    return {name: round_bound(value, up=up) for name, value in bounds.items()}


def round_bound(value: Any, *, up: bool) -> Any:
    """Write a bound, rounded outward: instants to the millisecond, texts to their first letters."""
    match value:
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
            whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
            if up and whole < moment:
                whole += MILLISECOND
            return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case str():
            return truncate_text_bound(value, up=up)
    return value


def truncate_text_bound(text: str, *, up: bool) -> str:
    """Return the first letters of a text; ``up`` adds one that no letter is above, to be no less than the text."""
    at = LETTERS
    while text[at : at + 1] == LAST_LETTER:
        at += 1
    return text if len(text) <= at else text[:at] + (LAST_LETTER if up else "")
