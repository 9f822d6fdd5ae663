"""Rows of files as records: the same bytes for the same row, and none that the topic has."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.imports.history_records import PLACE, UNREADABLE, make_records, read_history_records
from seamline.lake.imports.import_options import ImportOptions
from seamline.model.errors import BadRange
from seamline.plan.stream.import_plan import FileRows, HistoryFile

AT = datetime(2026, 6, 1, tzinfo=UTC)
MICROS = datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC)
OPTIONS = ImportOptions("orders", event_time="at")


def records(rows: pa.Table, options: ImportOptions = OPTIONS) -> list[dict[str, object]]:
    """Return the raw records of rows whose places begin at 0."""
    placed = rows.append_column(PLACE, pa.arange(0, rows.num_rows))
    with open_duckdb() as con:
        return [row for batch in make_records(con, placed, options, AT) for row in batch.to_pylist()]


def value(rows: pa.Table, options: ImportOptions = OPTIONS) -> str:
    """Return the bytes of one row, as text."""
    [record] = records(rows, options)
    return bytes(record["value"]).decode()  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([Decimal("1.10")], pa.decimal128(38, 2)), "1.10"),
        (pa.array([2**63], pa.uint64()), "9223372036854775808"),
        (pa.array([1.1], pa.float32()), "1.1"),
        (pa.array([float("nan")]), '"NaN"'),
        (pa.array([float("-inf")], pa.float32()), '"-Infinity"'),
        (pa.array(['a "b"\n\u00e9']), '"a \\"b\\"\\n\u00e9"'),
        (pa.array([b"\xaa\x00"]), '"qgA="'),
        (pa.array([MICROS], pa.timestamp("us", "UTC")), '"2026-01-01T00:00:00.000005Z"'),
        (pa.array([MICROS], pa.timestamp("us", "Europe/Berlin")), '"2026-01-01T00:00:00.000005Z"'),
        (pa.array([datetime(1500, 1, 1)], pa.timestamp("us")), '"1500-01-01T00:00:00.000000Z"'),
        (pa.array([date(2026, 1, 1)]), '"2026-01-01"'),
        (pa.array([None], pa.struct([("x", pa.int32())])), "null"),
        (pa.array([{"x": 1.5, "y": [{"z": b"q"}, None]}]), '{"x":1.5,"y":[{"z":"cQ=="},null]}'),
        (pa.array([[("k", date(2026, 1, 1))]], pa.map_(pa.string(), pa.date32())), '{"k":"2026-01-01"}'),
    ],
    ids=str,
)
def test_a_value_keeps_what_it_says(column: pa.Array, text: str) -> None:
    """Another digit, or another instant, would be another record."""
    assert value(pa.table({"x": column})) == f'{{"x":{text}}}'


def test_a_record_has_the_time_and_the_bytes_that_columns_say() -> None:
    """Kafka's own time if a column has it, else the event time; of bytes too; else the import's."""
    late = datetime(2026, 1, 1, 8, tzinfo=UTC)
    rows = pa.table(
        {
            "at": pa.array([MICROS], pa.timestamp("us", "UTC")),
            "sent": pa.array([late], pa.timestamp("us", "UTC")),
            "raw": pa.array([b'{"at": "2026-01-01T00:00:00.000005Z"}']),
            "user": pa.array(["ada"]),
        }
    )
    [plain] = records(rows)
    [named] = records(
        rows,
        ImportOptions(
            "orders", (("_kafka_timestamp", "sent"), ("_key", "user"), ("_value", "raw")), event_time="at"
        ),
    )
    [inside] = records(rows.select(["raw"]), ImportOptions("orders", (("_value", "raw"),), event_time="at"))
    [nothing] = records(
        pa.table({"raw": [b"{broken"]}), ImportOptions("orders", (("_value", "raw"),), event_time="at")
    )
    assert (plain["timestamp"], plain["key"]) == (MICROS, None)
    assert (named["timestamp"], named["key"], named["value"]) == (late, b"ada", rows["raw"][0].as_py())
    assert (inside["timestamp"], nothing["timestamp"]) == (MICROS, AT)


def test_a_field_may_have_another_name_and_text_of_csv_its_type() -> None:
    """Cells of CSV are text: where they are JSON, and the field is none, they are taken as they are."""
    rows = pa.table(
        {"qty": ["7"], "name": ["7"], "tags": ['["a"]'], "odd": ["seven"], "none": pa.nulls(1, pa.string())}
    )
    options = ImportOptions("orders", (("count", "qty"),), bare=("count", "tags", "odd", "none"))
    assert json.loads(value(rows, options)) == {
        "count": 7,
        "name": "7",
        "tags": ["a"],
        "odd": "seven",
        "none": None,
    }


def test_rows_that_the_topic_is_read_from_are_left_to_it() -> None:
    """A row without an offset, or of a partition that nobody reads, is in no topic."""
    rows = pa.table({"p": [0, 0, 1, 2, None], "o": [9, 10, 10, 99, 5]})
    options = ImportOptions("orders", (("_partition", "p"), ("_offset", "o")), border=((0, 10), (1, 20)))
    assert [record["offset"] for record in records(rows, options)] == [0, 2, 3, 4]


def test_a_run_of_a_file_is_read_by_the_numbers_of_its_rows(tmp_path: Path) -> None:
    """Whatever its row groups are; rows that are not there are an error, and no record."""
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": range(10)}), file, row_group_size=3)
    known = HistoryFile("rows.parquet", "m", str(file), 10, 1, values=(("day", '"monday"'),))
    with open_duckdb() as con:
        for first, last in ((0, 10), (2, 4), (3, 6), (8, 10), (5, 5)):
            run = FileRows(known, first, last, 100 + first)
            found = [
                row for batch in read_history_records(con, run, OPTIONS, AT) for row in batch.to_pylist()
            ]
            assert [json.loads(row["value"]) for row in found] == [
                {"n": n, "day": "monday"} for n in range(first, last)
            ]
            assert [row["offset"] for row in found] == [*range(100 + first, 100 + last)]
        with pytest.raises(BadRange, match="has 10 rows; 10 were planned"):
            [*read_history_records(con, FileRows(known, 8, 12, 0), OPTIONS, AT)]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("0.1234567890123456789", "0.1234567890123456789"),
        ("12345678901234567890.12", "12345678901234567890.12"),
        ("1e3", "1e3"),
        ("true", "true"),
        ('{"a": [1.10]}', '{"a": [1.10]}'),
        ("NaN", '"NaN"'),
        ("-nan", '"-nan"'),
        ("007", '"007"'),
        ("1,5", '"1,5"'),
        ("", '""'),
        (None, "null"),
    ],
)
def test_a_cell_keeps_its_digits(cell: str | None, text: str) -> None:
    """A number that went through a double would be another; what is no JSON is text."""
    rows = pa.table({"n": pa.array([cell], pa.string()), "x": ["a"]})
    assert value(rows, ImportOptions("orders", bare=("n",))) == f'{{"n":{text},"x":"a"}}'


def test_lists_of_one_length_are_lists(tmp_path: Path) -> None:
    """What is no number, and instants, are written as in any other."""
    pairs = pa.array([[1.0, float("nan")]], pa.list_(pa.float64(), 2))
    assert value(pa.table({"x": pairs})) == '{"x":[1.0,"NaN"]}'


def test_a_file_that_is_older_than_a_column_has_none_of_it() -> None:
    """Its rows are like those that have NULL there."""
    rows = pa.table({"at": pa.array([MICROS], pa.timestamp("us", "UTC"))})
    options = ImportOptions(
        "orders", (("_key", "user"), ("_offset", "o"), ("_partition", "p")), event_time="at", border=((0, 5),)
    )
    [record] = records(rows, options)
    assert (record["key"], record["timestamp"]) == (None, MICROS)


def test_places_that_are_text_are_numbers_and_any_name_may_be_a_columns(tmp_path: Path) -> None:
    """CSV has offsets as text; what is none is the file's fault, and no record's."""
    rows = pa.table({"p": ["0", "0"], "o": ["9", "10"], "_place": [7, 8]})
    options = ImportOptions("orders", (("_partition", "p"), ("_offset", "o")), border=((0, 10),))
    [record] = records(rows, options)
    assert (record["offset"], json.loads(bytes(record["value"]))["_place"]) == (0, 7)  # type: ignore[call-overload]
    pq.write_table(pa.table({"p": ["0"], "o": ["many"]}), tmp_path / "a.parquet")
    run = FileRows(HistoryFile("a", "m", str(tmp_path / "a.parquet"), 1, 1), 0, 1, 0)
    with open_duckdb() as con, pytest.raises(BadRange, match=f"^{UNREADABLE}.*many"):
        [*read_history_records(con, run, options, AT)]


def test_a_time_of_the_future_does_not_vouch_for_itself() -> None:
    """As its own Kafka timestamp it would never be too far ahead, and would move the watermark of all."""
    ahead = datetime(2999, 1, 1, tzinfo=UTC)
    [plain] = records(pa.table({"at": pa.array([ahead], pa.timestamp("us", "UTC"))}))
    raw = pa.table({"raw": [b'{"at": "2999-01-01T00:00:00Z"}']})
    [inside] = records(raw, ImportOptions("orders", (("_value", "raw"),), event_time="at"))
    assert (plain["timestamp"], inside["timestamp"]) == (AT, AT)
