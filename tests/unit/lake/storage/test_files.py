"""A file's statistics: a reader that filters on any column must find its rows."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from seamline.lake.log.record_files import Sink
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.table_cache import Files
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
    table.append(
        [data_files.write_data_file(pa.Table.from_pylist([row], schema=SCHEMA), tmp_path, "a.parquet")]
    )
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
    table.append(
        [data_files.write_data_file(pa.Table.from_pylist([row], schema=schema), tmp_path, "a.parquet")]
    )
    found = Files.of(table)
    assert found.low("generation").to_pylist() == found.high("generation").to_pylist() == ["g"]


WIDE = pa.schema(
    [
        ("money", pa.decimal128(38, 18)),
        ("cents", pa.decimal128(18, 2)),
        ("number", pa.int64()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
    ]
)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


rows = st.fixed_dictionaries(
    {
        "money": st.none() | decimals(38, 18),
        "cents": st.none() | decimals(18, 2),
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
        "double": st.none() | st.floats(),
        "text": st.none()
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
        | st.text("\U0010ffffa", min_size=60, max_size=70),
        "at": st.none()
        | st.datetimes(datetime(1, 1, 1), datetime.max, timezones=st.just(UTC))
        | st.just(datetime.max.replace(tzinfo=UTC)),
        "day": st.none() | st.dates(),
        "flag": st.none() | st.booleans(),
    }
)


def read(value: Any, type: pa.DataType) -> Any:
    """Read a bound as engines do."""
    if pa.types.is_timestamp(type):
        return datetime.fromisoformat(value)
    if pa.types.is_date(type):
        return date.fromisoformat(value)
    if pa.types.is_decimal(type):
        return Decimal(value)
    if pa.types.is_floating(type):
        return float(value)
    return value.encode() if isinstance(value, str) else value


@settings(max_examples=50)
@given(st.lists(rows, min_size=1, max_size=4), st.booleans())
def test_no_value_is_beyond_the_bounds(given: list[dict[str, Any]], in_pieces: bool) -> None:
    """An engine that prunes by them would lose its row; what cannot be bounded has none."""
    table = pa.Table.from_pylist(given, schema=WIDE)
    with TemporaryDirectory() as folder:
        if in_pieces:
            sink = Sink(Path(folder), "a.parquet", WIDE)
            for row in range(len(given)):
                sink.write(table.slice(row, 1))
            [file] = sink.close()
        else:
            file = data_files.write_data_file(table, Path(folder), "a.parquet")
        described = data_files.describe_data_file(Path(folder), "a.parquet")
    assert file.stats == described.stats
    stats = json.loads(file.stats, parse_float=lambda text: text)
    assert stats["numRecords"] == len(given)
    if "minValues" not in stats:
        doubles = [row["double"] for row in given if row["double"] is not None]
        assert not all(map(math.isfinite, doubles)) or any(
            row["at"] and row["at"] > datetime.max.replace(tzinfo=UTC) - timedelta(milliseconds=1)
            for row in given
        )
        return
    for name, type in zip(WIDE.names, WIDE.types, strict=True):
        values = [row[name] for row in given if row[name] is not None]
        assert stats["nullCount"][name] == len(given) - len(values)
        if values:
            low, high = (read(stats[which][name], type) for which in ("minValues", "maxValues"))
            sought = [value.encode() if isinstance(value, str) else value for value in values]
            assert low <= min(sought) <= max(sought) <= high
            if name == "double":
                assert math.copysign(1, low) <= min(math.copysign(1, each) for each in values)
                assert math.copysign(1, high) >= max(math.copysign(1, each) for each in values)


LOST = {
    "money": [Decimal("12345678901234567890.123456789012345678"), Decimal("0.123456789012345678")],
    "cents": [Decimal("1234567890123456.78")],
    "double": [1.5, math.nan],
    "text": ["\U0010ffff" * 70, "a" * 64 + "\U0010ffff" * 3],
    "at": [datetime.max.replace(tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
}


@pytest.mark.parametrize("name", LOST)
def test_every_engine_finds_the_row_of_an_awkward_value(tmp_path: Path, name: str) -> None:
    """Each reads the bounds in its own way: deltalake's dataset, DataFusion, and pyarrow beneath."""
    table = Table.ensure(tmp_path, WIDE)
    given = pa.Table.from_pylist([{**dict.fromkeys(WIDE.names), name: value} for value in LOST[name]], WIDE)
    table.append([data_files.write_data_file(given, tmp_path, "a.parquet")])
    for again in (False, True):
        if again:
            table.handle.create_checkpoint()
        handle = Table.open(tmp_path).handle
        for value in LOST[name]:
            if value == value:
                sought = pc.field(name) == pa.scalar(value, WIDE.field(name).type)
                assert handle.to_pyarrow_dataset().to_table(filter=sought).num_rows == 1
            kind = {
                "money": "DECIMAL(38,18)",
                "cents": "DECIMAL(18,2)",
                "double": "DOUBLE",
                "text": "VARCHAR",
            }
            if name in kind:
                query = f"SELECT * FROM t WHERE {name} = CAST('{value}' AS {kind[name]})"
                found = QueryBuilder().register("t", handle).execute(query).read_all()
                assert pa.table(found).num_rows == 1


def test_states_of_another_release_are_told(tmp_path: Path) -> None:
    """A view keeps its name while a release learns to keep its state better: rows of both cannot be added up."""
    schema = pa.schema([("total__sum", pa.float64()), ("total__lost", pa.float64())])
    table = Table.ensure(tmp_path, schema.remove(1))
    with pytest.raises(ProtocolError, match="'total__lost' of .* is missing"):
        table.holding(schema)
    with pytest.raises(ProtocolError, match="'total__sum' of .* keeps a state of .*long"):
        table.holding(pa.schema([("total__sum", pa.int64())]))
    assert table.holding(schema.remove(1)) is table


def test_numbers_that_repeat_have_a_dictionary(tmp_path: Path) -> None:
    """Of those that all differ it would be as large as they are, and is not made."""
    count = 1000
    columns = {
        "few": pa.array([number % 7 for number in range(count)], pa.int64()),
        "many": pa.array(range(count), pa.int64()),
        "at": pa.array(range(count), pa.timestamp("us", tz="UTC")),
        "same": pa.repeat(pa.scalar(1.5), count),
        "none": pa.nulls(count, pa.int64()),
        "text": pa.array(map(str, range(count))),
    }
    rows = pa.table(columns)
    sink = Sink(tmp_path, "a.parquet", rows.schema)
    sink.write(rows)
    sink.close()
    group = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    found = {group.column(at).path_in_schema: group.column(at).encodings for at in range(group.num_columns)}
    assert {name for name, each in found.items() if "RLE_DICTIONARY" in each} == {
        "few",
        "same",
        "none",
        "text",
    }
