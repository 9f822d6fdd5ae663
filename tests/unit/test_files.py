"""A file's statistics: a reader that filters on any column must find its rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seamline.lake import files
from seamline.lake.pins import Files
from seamline.lake.tables import Table
from seamline.model.errors import ProtocolError

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.int64()),
        ("raw", pa.binary()),
        ("missing", pa.string()),
        ("flag", pa.bool_()),
        ("exact", pa.decimal128(38, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("double", pa.float64()),
    ]
)
ROW = {
    "text": "a" * 100,
    "number": 1,
    "raw": b"x",
    "missing": None,
    "flag": True,
    "exact": Decimal("1.23"),
    "at": datetime(2024, 1, 1, 0, 0, 0, 1234, tzinfo=UTC),
    "day": date(2024, 1, 1),
    "double": 1.5,
}


@pytest.mark.parametrize("double", [1.5, float("inf")], ids=str)
@pytest.mark.parametrize("column", [name for name in ROW if name != "missing"])
def test_a_filter_on_any_column_finds_the_row(tmp_path: Path, column: str, double: float) -> None:
    """deltalake takes a column without bounds, beside columns with bounds, for one that holds nothing."""
    row = {**ROW, "double": double}
    table = Table.ensure(tmp_path, SCHEMA)
    table.append([files.write(pa.Table.from_pylist([row], schema=SCHEMA), tmp_path, "a.parquet")])
    dataset = table.handle.to_pyarrow_dataset()
    assert (
        dataset.to_table(
            filter=pc.field(column) == pa.scalar(row[column], SCHEMA.field(column).type)
        ).num_rows
        == 1
    )
    assert dataset.to_table(filter=pc.field("missing").is_null()).num_rows == 1


def test_a_table_of_many_columns_is_pruned_by_the_last(tmp_path: Path) -> None:
    """Of itself Delta keeps 32 statistics, and a view of many measures names its generations in the last column."""
    schema = pa.schema([*((f"c{at}", pa.int64()) for at in range(50)), ("generation", pa.string())])
    row = {**dict.fromkeys(schema.names, 1), "generation": "g"}
    table = Table.ensure(tmp_path, schema)
    table.append([files.write(pa.Table.from_pylist([row], schema=schema), tmp_path, "a.parquet")])
    found = Files.of(table)
    assert found.low("generation").to_pylist() == found.high("generation").to_pylist() == ["g"]


def test_states_of_another_release_are_told(tmp_path: Path) -> None:
    """A view keeps its name while a release learns to keep its state better: rows of both cannot be added up."""
    schema = pa.schema([("total__sum", pa.float64()), ("total__lost", pa.float64())])
    table = Table.ensure(tmp_path, schema.remove(1))
    with pytest.raises(ProtocolError, match="'total__lost' of .* is not there"):
        table.holding(schema)
    with pytest.raises(ProtocolError, match="'total__sum' of .* keeps a state of .*long"):
        table.holding(pa.schema([("total__sum", pa.int64())]))
    assert table.holding(schema.remove(1)) is table
