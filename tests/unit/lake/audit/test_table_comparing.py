"""An answer beside the table of another job: what differs, and which records make the difference."""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from tests.unit.shop import START, Sale, Shop, opened

from seamline.cli import main
from seamline.lake.audit import foreign_tables, table_comparing
from seamline.lake.audit.table_comparing import WHY, Compared, compare_with_table
from seamline.model.errors import BadRange, NotFound, SeamlineError
from seamline.model.protocol.read_request import ReadRequest
from seamline.serve.table_differences import build_differing_rows, format_table_comparison

HOUR = timedelta(hours=1)
WRITTEN = START + timedelta(seconds=2)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two hours; then a late sale of the first, a copy in the second, and one that came after the table was written."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1, "a", 10), Sale(2, "b", 5), Sale(70, "a", 3, id=77)], watermark=START + 2 * HOUR)
    made.epoch([Sale(5, "a", 4)], watermark=START + 2 * HOUR)
    made.epoch([Sale(75, "a", 3, id=77)], watermark=START + 2 * HOUR)
    made.epoch([Sale(130, "b", 9)], watermark=START + 2 * HOUR)
    return made


RIGHT = {
    ("a", 0): (2, 14, 10),
    ("b", 0): (1, 5, 5),
    ("a", 1): (2, 6, 3),
    ("b", 2): (1, 9, 9),
}
"""What is answered: orders, total, largest by customer and hour; the copy counts until a build."""


def table_of(numbers: dict[tuple[str | None, int], tuple[int, int, int]], **names: str) -> pa.Table:
    """Make the other job's table."""
    rows = [
        {
            "customer": customer,
            "window_start": START + hour * HOUR,
            "orders": orders,
            "total": total,
            "largest": most,
        }
        for (customer, hour), (orders, total, most) in numbers.items()
    ]
    table = pa.Table.from_pylist(rows)
    return table.rename_columns([names.get(name, name) for name in table.column_names])


def compared(shop: Shop, table: pa.Table, folder: Path, **given: Any) -> Compared:
    """Compare with it, as a file that was written once the copy had come."""
    path = folder / "theirs.parquet"
    pq.write_table(table, path)
    options: dict[str, Any] = {"names": {}, "request": ReadRequest(), "written_at": WRITTEN} | given
    return compare_with_table(shop.compiled, shop.view, shop.layout, str(path), **options)


def whys(found: Compared) -> dict[tuple[str, int], tuple[str, str]]:
    """Return of each row that differs how, and why."""
    return {
        (row["customer"], (row["window_start"] - START) // HOUR): (row["_change"], row[WHY])
        for row in build_differing_rows(found).to_pylist()
    }


def test_an_equal_table_is_equal(shop: Shop, tmp_path: Path) -> None:
    """Whatever the order of its rows."""
    found = compared(shop, table_of(dict(reversed(RIGHT.items()))), tmp_path)
    assert (found.difference.equal, found.difference.none, found.causes) == (4, True, {})


def test_each_difference_has_the_records_that_make_it(shop: Shop, tmp_path: Path) -> None:
    """Late ones, copies, what came after, and what nothing explains."""
    theirs = RIGHT | {("a", 0): (1, 10, 10), ("a", 1): (1, 3, 3), ("b", 0): (1, 6, 6), ("c", 0): (1, 1, 1)}
    del theirs["b", 2]
    found = compared(shop, table_of(theirs), tmp_path, request=ReadRequest(end=START + 3 * HOUR))
    assert whys(found) == {
        ("a", 0): ("differs", "came late"),
        ("a", 1): ("differs", "copies here"),
        ("b", 0): ("differs", "unexplained"),
        ("b", 2): ("only here", "came after the table was written"),
        ("c", 0): ("only there", "unexplained"),
    }
    assert found.unexplained == 2
    told = "\n".join(format_table_comparison(found))
    assert "windows that start from 2013-01-01T00:00:00Z to 2013-01-01T02:00:00Z:" in told
    assert "0 rows equal, 3 differ, 1 only here, 1 only there." in told
    assert "total: 3 differ, most 10 -> 14 (+4) at customer=a" in told


def test_a_record_that_reached_kafka_late_is_late_in_whatever_epoch_it_was_read(
    shop: Shop, tmp_path: Path
) -> None:
    """One who replays a topic reads late records with the others; that they were late is what Kafka knows."""
    hour, bound = START + 5 * HOUR, timedelta(minutes=10)
    on_time = Sale(301, "z", 1, sent_at=hour + HOUR + bound)
    shop.epoch([on_time, Sale(302, "z", 2, sent_at=on_time.sent_at + timedelta(microseconds=1))])
    theirs = table_of(RIGHT | {("z", 5): (1, 1, 1)})
    found = compared(shop, theirs, tmp_path, written_at=START + HOUR)
    assert whys(found) == {("z", 5): ("differs", "reached Kafka late")}


def test_a_difference_may_have_two_causes(shop: Shop, tmp_path: Path) -> None:
    """A late copy is one of each; here a late sale beside one that came after the table was written."""
    shop.epoch([Sale(6, "a", 1)], watermark=START + 2 * HOUR)
    found = compared(shop, table_of(RIGHT | {("a", 0): (1, 10, 10)}), tmp_path, written_at=START)
    assert whys(found)["a", 0] == ("differs", "came late")
    found = compared(shop, table_of(RIGHT), tmp_path)
    assert whys(found) == {("a", 0): ("differs", "came after the table was written")}


def test_copies_that_a_build_has_removed_are_in_the_table(shop: Shop, tmp_path: Path, monkeypatch) -> None:
    """Jobs that do not drop them."""
    shop.events[2] = []
    shop.build(0, 3, "g")
    found = compared(shop, table_of(RIGHT), tmp_path)
    assert whys(found) == {("a", 1): ("differs", "copies there")}


@pytest.mark.parametrize(("hours", "said"), [(1, "1 hour later"), (-3, "3 hours earlier")])
def test_windows_that_begin_elsewhere_are_noticed(shop: Shop, tmp_path: Path, hours: int, said: str) -> None:
    """Named by their end, or in another zone."""
    theirs = table_of({(customer, hour + hours): row for (customer, hour), row in RIGHT.items()})
    found = compared(shop, theirs, tmp_path)
    assert found.shift == hours * 3600
    assert f"The table's windows seem to begin {said}" in "\n".join(format_table_comparison(found))


def test_doubles_may_differ_by_rounding(shop: Shop, tmp_path: Path) -> None:
    """And by no more."""
    table = table_of(RIGHT)
    totals = pa.array([14.0000000001, 5.0, 6.0, 9.1])
    theirs = table.set_column(table.schema.get_field_index("total"), "total", totals)
    assert [*whys(compared(shop, theirs, tmp_path))] == [("b", 2)]
    assert [*whys(compared(shop, theirs, tmp_path, tolerance=0.1))] == []
    assert sorted(whys(compared(shop, theirs, tmp_path, tolerance=0.0))) == [("a", 0), ("b", 2)]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_equals_no_number(shop: Shop, tmp_path: Path, value: float) -> None:
    """However large the tolerance."""
    table = table_of(RIGHT)
    totals = pa.array([14.0, 5.0, 6.0, value])
    theirs = table.set_column(table.schema.get_field_index("total"), "total", totals)
    assert [*whys(compared(shop, theirs, tmp_path, tolerance=0.5))] == [("b", 2)]
    with pytest.raises(BadRange, match="is no tolerance"):
        compared(shop, theirs, tmp_path, tolerance=abs(value))


def test_a_record_that_came_before_the_table_was_written_is_missed(shop: Shop, tmp_path: Path) -> None:
    """Whenever it was read here: a topic may be read from its beginning long after the old job was stopped."""
    shop.epoch([Sale(300, "z", 1, sent_at=START + 5 * HOUR), Sale(301, "y", 1, sent_at=START + 7 * HOUR)])
    found = compared(
        shop,
        table_of(RIGHT),
        tmp_path,
        request=ReadRequest(end=START + 6 * HOUR),
        written_at=START + 6 * HOUR,
    )
    assert whys(found) == {
        ("z", 5): ("only here", "unexplained"),
        ("y", 5): ("only here", "reached Kafka late"),
    }


def test_rows_of_no_window_are_only_there(shop: Shop, tmp_path: Path) -> None:
    """They are not left out without a word."""
    stray = pa.Table.from_pylist(
        [{"customer": "a", "window_start": None, "orders": 1, "total": 1, "largest": 1}],
        schema=table_of(RIGHT).schema,
    )
    found = compared(shop, pa.concat_tables([table_of(RIGHT), stray]), tmp_path)
    assert (found.difference.equal, found.difference.only_before, found.unexplained) == (4, 1, 1)


@pytest.mark.parametrize("at", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_a_window_beyond_all_windows_is_refused(shop: Shop, tmp_path: Path, at: datetime) -> None:
    """With bounds it is none of those that are asked for."""
    stray = table_of({("a", 0): (1, 1, 1)})
    stray = stray.set_column(1, "window_start", pa.array([at], stray["window_start"].type))
    theirs = pa.concat_tables([table_of(RIGHT), stray])
    with pytest.raises(BadRange, match="where none of the view can"):
        compared(shop, theirs, tmp_path)
    within = ReadRequest(start=START, end=START + 3 * HOUR)
    assert compared(shop, theirs, tmp_path, request=within).difference.none


def test_a_file_that_is_gone_by_then_is_said(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old job runs on, and packs its files."""
    list_files = foreign_tables.list_table_files

    def meanwhile(place: Path) -> list[Path]:
        found = list_files(place)
        for each in found:
            each.unlink()
        return found

    monkeypatch.setattr(foreign_tables, "list_table_files", meanwhile)
    with pytest.raises(BadRange, match="has changed while it was read"):
        compared(shop, table_of(RIGHT), tmp_path)


def test_what_comes_while_it_is_compared_changes_nothing(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream runs on: causes are looked for in what the answer counts."""
    trace = table_comparing.trace_causes

    def meanwhile(*given: Any) -> Any:
        shop.epoch([Sale(7, "a", 100)])
        return trace(*given)

    monkeypatch.setattr(table_comparing, "trace_causes", meanwhile)
    found = compared(shop, table_of(RIGHT | {("a", 0): (1, 10, 10)}), tmp_path)
    assert whys(found) == {("a", 0): ("differs", "came late")}


def test_only_what_the_table_has_is_compared(shop: Shop, tmp_path: Path) -> None:
    """By its own names; the rest is said."""
    table = table_of(RIGHT, customer="who", window_start="hour", orders="n").select(["n", "hour", "who"])
    found = compared(shop, table, tmp_path, names={"customer": "who", "window_start": "hour", "orders": "n"})
    assert found.difference.none and [*found.difference.measures] == ["orders"]
    assert "no column for it: total, largest" in "\n".join(format_table_comparison(found))


@pytest.mark.parametrize("name", ["theirs", "theirs.parquet"])
def test_files_of_a_job_that_has_not_ended_are_not_read(shop: Shop, tmp_path: Path, name: str) -> None:
    """Nor marks of one that has; columns that came later are there. Spark's folders may be named as files are."""
    path = tmp_path / name
    (path / "_temporary" / "0").mkdir(parents=True)
    pq.write_table(table_of(RIGHT).slice(0, 2).drop_columns(["largest"]), path / "part-0.parquet")
    pq.write_table(table_of(RIGHT).slice(2), path / "part-1.parquet")
    pq.write_table(table_of(RIGHT).slice(2), path / "_temporary" / "0" / "part-1.parquet")
    found = compare_with_table(
        shop.compiled, shop.view, shop.layout, str(path), names={}, request=ReadRequest()
    )
    assert (found.difference.equal, found.difference.changed, found.table.about) == (2, 2, "2 files")


@pytest.mark.parametrize("kind", ["csv", "json", "delta", "folder"])
def test_tables_are_read_as_they_are_kept(shop: Shop, tmp_path: Path, kind: str) -> None:
    """Instants without a zone are UTC."""
    table, path = table_of(RIGHT), tmp_path / "theirs"
    path.mkdir()
    naive = table.set_column(1, "window_start", table["window_start"].cast(pa.timestamp("us")))
    match kind:
        case "csv":
            path = path / "theirs.csv"
            pcsv.write_csv(naive, path)
        case "json":
            path = path / "theirs.jsonl"
            rows = [{**row, "window_start": row["window_start"].isoformat()} for row in naive.to_pylist()]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case "delta":
            write_deltalake(str(path), naive.slice(0, 1))
            write_deltalake(str(path), naive.slice(1), mode="append")
        case "folder":
            (path / "_SUCCESS").touch()
            for at in range(2):
                (path / f"_part={at}").mkdir()
                pq.write_table(naive.slice(2 * at, 2), path / f"_part={at}" / "rows.parquet")
    found = compare_with_table(
        shop.compiled, shop.view, shop.layout, str(path), names={}, request=ReadRequest()
    )
    assert (found.difference.equal, found.difference.none) == (4, True)
    assert found.table.about == {"delta": "Delta version 1", "folder": "2 files"}.get(kind, "1 file")
    written = max(
        each.stat().st_mtime for each in (path.rglob("*") if path.is_dir() else [path]) if each.is_file()
    )
    assert abs(found.table.written_at.timestamp() - written) < 60


def test_what_cannot_be_compared_is_refused_with_a_way_out(shop: Shop, tmp_path: Path) -> None:
    """Every message names the table or the view, and the column."""
    table = table_of(RIGHT)
    refused: list[tuple[pa.Table, dict[str, str], str]] = [
        (table.drop_columns(["customer"]), {}, "no column 'customer'"),
        (table.select(["customer", "window_start"]), {}, "no column with the name of a measure"),
        (table, {"sum": "total"}, "shop.sales has no column 'sum'"),
        (table, {"orders": "n"}, "no column 'n'"),
        (
            pa.concat_tables([table, table.slice(0, 1)]),
            {},
            "has 2 rows for customer='a', window_start=2013-01-01T00",
        ),
        (table.slice(0, 0), {}, "has no row"),
        (table, {"window_start": "customer"}, "does not have the type"),
    ]
    for theirs, names, said in refused:
        with pytest.raises(BadRange, match=said) as error:
            compared(shop, theirs, tmp_path, names=names)
        assert error.value.hint
    (tmp_path / "mixed").mkdir()
    for end in ("csv", "parquet"):
        (tmp_path / "mixed" / f"a.{end}").write_text("x\n")
    (tmp_path / "torn.parquet").write_text("x")
    for place, said in (
        ("nothing.csv", "no file"), ("none", "no files of a table"), ("mixed", "end in .parquet and .csv"),
        ("torn.parquet", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(SeamlineError, match=said) as other:
            compare_with_table(
                shop.compiled, shop.view, shop.layout, str(tmp_path / place), names={}, request=ReadRequest()
            )
        assert other.value.hint and isinstance(other.value, BadRange | NotFound)


def test_the_command_says_what_differs_and_fails_for_what_is_unexplained(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows on stdout, the rest on stderr."""
    path = tmp_path / "theirs.csv"
    pcsv.write_csv(table_of(RIGHT | {("a", 0): (1, 10, 10)}, orders="n"), path)
    os.utime(path, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    asked = ["compare", "shop.sales", "--with", str(path), "--measure", "orders=n", "--format", "csv"]
    assert main([*asked, "--to", "2013-01-01T02:00Z"]) == 0
    rows, told = capsys.readouterr()
    header, row = rows.splitlines()
    assert '"_orders_there","_orders_here","_orders_difference"' in header and "came late" in row
    assert "1 came late: the table has no records" in told
    pcsv.write_csv(table_of(RIGHT | {("a", 0): (1, 99, 99)}, orders="n"), path)
    assert main(asked) == 1
    assert "1 unexplained" in capsys.readouterr().err
    pcsv.write_csv(table_of(dict.fromkeys(RIGHT, (9, 9, 9)), orders="n"), path)
    assert main([*asked, "--measure", "orders=total"]) == BadRange.exit_code
    assert "'orders' is given twice" in capsys.readouterr().err
    assert main([*asked, "--limit", "1"]) == 1
    rows, told = capsys.readouterr()
    assert len(rows.splitlines()) == 2 and "3 more rows that differ are not shown" in told
