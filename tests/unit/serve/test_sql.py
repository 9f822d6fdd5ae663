"""Questions in SQL: over merged answers, with how far these are right, and nothing else in reach."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.cli import main
from seamline.lake.store.locations import Location
from seamline.model.errors import BadRange, NotFound
from seamline.serve.answer_request import as_json
from seamline.serve.read import read
from seamline.serve.sql import asked
from seamline.serve.sql.asked import sql
from seamline.serve.sql.statement import AskedWindows, NamedView, parse_statement

SALES = NamedView("shop", "sales")
FIRST, SECOND = datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two days of sales, the first of them built."""
    made = opened(tmp_path, monkeypatch, warehouse)
    made.epoch([Sale(1, "a", 10), Sale(2, "b", 5), Sale(70, None, 3), Sale(1500, "a", 1)])
    build(made, "g", cut=0)
    return made


def windows_of(text: str) -> AskedWindows:
    """Return the windows that a statement needs of shop.sales."""
    return parse_statement(text).views[SALES]


@pytest.mark.everywhere
def test_views_are_grouped_and_joined(shop: Shop) -> None:
    """What an answer says of itself comes with the rows."""
    found = sql(
        "WITH days AS (SELECT date_trunc('day', window_start) AS day, sum(total) AS total FROM shop.sales GROUP BY 1) "
        "SELECT d.day, s.customer, s.total, d.total AS of_day FROM days AS d "
        "JOIN shop.sales AS s ON date_trunc('day', s.window_start) = d.day ORDER BY 1, 2"
    )
    rows = [tuple(row.values()) for row in found.rows.to_pylist()]
    assert rows == [(FIRST, "a", 10, 18), (FIRST, "b", 5, 18), (FIRST, None, 3, 18), (SECOND, "a", 1, 1)]
    [told] = found.views
    assert told.summary() == read("shop.sales", format="answer").summary()
    assert not found.final and not found.more


def test_windows_that_nobody_asks_for_are_not_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The WHERE beside a view, and the bounds that are given, are those of its read."""
    asked_for: list[tuple[datetime | None, datetime | None]] = []
    stream = asked.stream_answer

    def noted(view: str, **options: object) -> object:
        asked_for.append((options["start"], options["end"]))  # type: ignore[arg-type]
        return stream(view, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(asked, "stream_answer", noted)
    text = "SELECT count(*) AS n FROM shop.sales WHERE window_start >= '2013-01-01T01:00'"
    assert sql(text).rows.to_pylist() == [{"n": 2}]
    assert sql(text, end="2013-01-02").rows.to_pylist() == [{"n": 1}]
    hour = FIRST.replace(hour=1)
    assert asked_for == [(hour, None), (hour, SECOND)]


@pytest.mark.parametrize(
    ("where", "start", "end"),
    [
        ("window_start >= '2013-01-01' AND s.window_start < TIMESTAMP '2013-01-02 00:00'", FIRST, SECOND),
        (
            "('2013-01-01' <= window_start) AND (DATE '2013-01-02' > window_start AND total > 1)",
            FIRST,
            SECOND,
        ),
        ("window_start > '2013-01-01T00:00Z'::timestamptz", FIRST, None),
        ("window_start = '2013-01-01'", FIRST, FIRST.replace(microsecond=1)),
        ("window_start BETWEEN '2013-01-01' AND '2013-01-02'", FIRST, SECOND.replace(microsecond=1)),
        ("window_start >= '2013-01-01' AND window_start >= '2013-01-02'", SECOND, None),
        ("window_start >= '2013-01-01' OR total > 1", None, None),
        ("NOT (window_start >= '2013-01-01')", None, None),
        ("window_start >= DATE '2013-01-01T10:00'", None, None),
        ("window_start >= now()", None, None),
        ("t.window_start >= '2013-01-01'", None, None),
        ("window_end >= '2013-01-01'", None, None),
        ("window_start >= '20130101'", None, None),
        ("window_start < TIMESTAMP '2013-01-02 00:00+02'", None, None),
        ("window_start >= TIMESTAMPTZ '2013-01-01 02:00+02'", FIRST, None),
        ("window_start >= TIMESTAMP(0) '2013-01-01 00:00'", None, None),
        ("window_start BETWEEN '2013-01-01' AND '9999-12-31 23:59:59.999999'", FIRST, None),
    ],
)
def test_bounds_are_read_from_where(where: str, start: datetime | None, end: datetime | None) -> None:
    """Conditions that must all hold, between the start of a window and an instant that is written out."""
    assert windows_of(f"SELECT * FROM shop.sales AS s WHERE {where}") == AskedWindows(start, end)


@pytest.mark.parametrize(
    ("text", "bounded"),
    [
        (
            "SELECT * FROM shop.sales s LEFT JOIN shop.other o USING (x) WHERE s.window_start >= '2013-01-01'",
            True,
        ),
        (
            "SELECT * FROM shop.other o LEFT JOIN shop.sales s USING (x) WHERE s.window_start >= '2013-01-01'",
            True,
        ),
        ("SELECT * FROM shop.other o JOIN shop.sales s USING (x) WHERE window_start >= '2013-01-01'", False),
        (
            "SELECT * FROM shop.other o ASOF JOIN shop.sales s ON o.a >= s.b WHERE s.window_start >= '2013-01-01'",
            False,
        ),
        (
            "SELECT * FROM shop.other o SEMI JOIN shop.sales s USING (x) WHERE o.window_start >= '2013-01-01'",
            False,
        ),
        ("SELECT * FROM shop.sales TABLESAMPLE 10% WHERE window_start >= '2013-01-01'", False),
        ("SELECT * FROM shop.sales s(window_start, a) WHERE window_start >= '2013-01-01'", False),
        ("SELECT * FROM (SELECT * FROM shop.sales) WHERE window_start >= '2013-01-01'", False),
        (
            "SELECT * FROM shop.sales WHERE window_start >= '2013-01-01' UNION ALL SELECT * FROM shop.sales",
            False,
        ),
    ],
)
def test_a_condition_bounds_the_read_only_where_that_changes_no_row(text: str, bounded: bool) -> None:
    """Not beside joins that look for the nearest row, in samples, or under other names; of two mentions, both."""
    assert windows_of(text) == AskedWindows(FIRST if bounded else None, None)


def test_of_two_views_of_one_name_a_condition_bounds_the_one_that_it_names() -> None:
    """DuckDB tells them apart by their schemas, which are the pipelines."""
    text = "SELECT * FROM shop.sales JOIN other.sales USING (x) WHERE shop.sales.window_start >= '2013-01-01'"
    other = NamedView("other", "sales")
    assert parse_statement(text).views == {other: AskedWindows(), SALES: AskedWindows(FIRST, None)}
    assert windows_of("SELECT * FROM shop.sales s WHERE a.s.window_start >= '2013-01-01'") == AskedWindows()


def test_a_timestamp_is_written_without_its_zone_as_in_duckdb(shop: Shop) -> None:
    """DuckDB passes over the zone of a TIMESTAMP: a read that heeded it would lack rows."""
    text = "SELECT count(*) AS n FROM shop.sales WHERE window_start < TIMESTAMP '2013-01-01 01:30+02'"
    assert sql(text).rows.to_pylist() == [{"n": 3}]


def test_conditions_that_no_window_meets_give_no_rows(shop: Shop) -> None:
    """They are no mistake; an end that is given before its start is."""
    text = "SELECT count(*) AS n FROM shop.sales WHERE window_start >= '2013-01-02'"
    assert sql(f"{text} AND window_start < '2013-01-01'").rows.to_pylist() == [{"n": 0}]
    assert sql(text, end="2013-01-02").rows.to_pylist() == [{"n": 0}]
    assert sql(text.replace("2013-01-02", "2012-01-01"), end="2012-01-01").rows.to_pylist() == [{"n": 0}]
    with pytest.raises(BadRange, match="is not before"):
        sql(text, start="2013-01-02", end="2013-01-01")


def test_what_fails_behind_the_first_rows_is_said_as_well(shop: Shop) -> None:
    """Arrow's reader hands it on as an error of its own: neither a traceback, nor an end of the time that is missed."""
    text = (
        "SELECT if(i = 90000, 'x', '1')::INT AS n FROM shop.sales, range(100000) AS r(i) WHERE customer = 'b'"
    )
    with pytest.raises(BadRange, match="Could not convert string 'x'"):
        sql(text, limit=200_000)
    with pytest.raises(duckdb.InterruptException):
        raise asked.explain_failure(OSError("INTERRUPT Error: Interrupted!"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELEC 1", "The SQL is wrong"),
        ("", "There are 0 statements"),
        ("SELECT * FROM shop.sales; SELECT * FROM shop.sales", "There are 2 statements"),
        ("SELECT 1", "names no view"),
        ("SELECT * FROM sales", "sales is not a view"),
        ("SELECT * FROM 'file.csv'", "is not a view"),
        ("SELECT * FROM a.shop.sales", "is not a view"),
        ("COPY (SELECT * FROM shop.sales) TO 'x'", "Only a SELECT"),
        ("DELETE FROM shop.sales", "Only a SELECT"),
        ("CREATE TABLE x AS SELECT * FROM shop.sales", "Only a SELECT"),
        ("SELECT * INTO x FROM shop.sales", "Only a SELECT"),
        ("INSTALL httpfs", "Only a SELECT"),
        ("SET memory_limit = '1TB'", "Only a SELECT"),
        ("PRAGMA database_list", "Only a SELECT"),
        ("(" * 3000, "The SQL is wrong"),
        ("SELECT * FROM shop.sales, query('SELECT * FROM read_text(''x'')')", "it tells of the server"),
    ],
)
def test_what_is_no_select_over_views_is_refused(text: str, said: str) -> None:
    """By name, before anything is read."""
    with pytest.raises(BadRange, match=said):
        parse_statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM shop.sales, read_csv('{file}')",
        "SELECT * FROM shop.sales, read_text('{file}')",
        "SELECT * FROM shop.sales, glob('{file}')",
        "SELECT total, (SELECT content FROM read_text('{file}')) FROM shop.sales",
        "SELECT no_such_column FROM shop.sales",
        "SELECT total / 'x' FROM shop.sales",
    ],
)
def test_nothing_but_the_views_is_read(shop: Shop, tmp_path: Path, text: str) -> None:
    """A file stays out of reach by every function; what DuckDB says is told."""
    secret = tmp_path / "secret"
    secret.write_text("hush")
    with pytest.raises(BadRange, match="The SQL is wrong") as refused:
        sql(text.format(file=secret))
    assert "hush" not in str(refused.value)


def test_views_that_are_not_there_are_named(shop: Shop) -> None:
    """A pipeline that one may not read is one that is not there."""
    for text in ("SELECT * FROM shop.sails", "SELECT * FROM shops.sales"):
        with pytest.raises(NotFound):
            sql(text)
    with pytest.raises(NotFound, match="no pipeline 'shop'"):
        sql("SELECT * FROM shop.sales", may_read=lambda _: False)


def test_rows_are_limited_and_columns_have_names_of_their_own(shop: Shop) -> None:
    """That there are more is told; a name that comes twice is numbered."""
    found = sql("SELECT total, total FROM shop.sales ORDER BY total", limit=2)
    assert found.rows.to_pylist() == [{"total": 1, "total_1": 1}, {"total": 3, "total_1": 3}]
    assert found.more
    assert not sql("SELECT total FROM shop.sales", limit=4).more


def test_the_command_prints_rows_and_how_far_they_are_right(
    shop: Shop, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Rows to stdout or a file, the rest to stderr; an engine belongs to the other use of the command."""
    text = "SELECT customer, sum(total)::BIGINT AS total FROM shop.sales GROUP BY 1 ORDER BY 2 DESC"
    assert main(["sql", text, "--format", "json", "--limit", "2"]) == 0
    said = capsys.readouterr()
    assert [json.loads(line) for line in said.out.splitlines()] == [
        {"customer": "a", "total": 11},
        {"customer": "b", "total": 5},
    ]
    assert "The first 2 rows" in said.err and "shop.sales: " in said.err and "certified" in said.err
    assert main(["sql", text, "--format", "csv", "--out", str(tmp_path / "rows.csv")]) == 0
    assert (tmp_path / "rows.csv").read_text().splitlines()[1] == '"a",11'
    assert main(["sql", text, "--engine", "spark"]) == 2


def test_what_needs_too_much_memory_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, and the process lives on: a list of so many numbers is one value, which no disk takes."""
    monkeypatch.setattr(asked, "LOCKED", f"SET memory_limit = '50MB'; {asked.LOCKED}")
    with pytest.raises(BadRange, match="more memory"):
        sql("SELECT len(list(i)) FROM shop.sales, range(100_000_000) AS r(i)")


def test_what_needs_too_much_of_the_disk_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement may not fill the disk that others write to."""
    monkeypatch.setattr(asked, "MOST_SPILL", 8 << 20)
    monkeypatch.setattr(asked, "LOCKED", f"SET memory_limit = '60MB'; {asked.LOCKED}")
    with pytest.raises(BadRange, match="its part of the disk"):
        sql(
            "SELECT hash(i) AS h, i, repeat('x', 40) || i AS t FROM shop.sales, range(3_000_000) AS r(i) ORDER BY h"
        )


@pytest.mark.parametrize(
    "value", ["'infinity'::date", "DATE '12000-01-01'", "'2026-01-01 00:00:00.000000001'::timestamp_ns"]
)
@pytest.mark.parametrize("format", ["table", "json"])
def test_values_that_python_does_not_have_are_refused(
    shop: Shop, capsys: pytest.CaptureFixture[str], value: str, format: str
) -> None:
    """By a sentence that says what to do, and that works."""
    assert main(["sql", f"SELECT {value} AS v FROM shop.sales", "--format", format]) == BadRange.exit_code
    assert "cast others to VARCHAR" in capsys.readouterr().err
    assert main(["sql", f"SELECT ({value})::VARCHAR AS v FROM shop.sales", "--format", format]) == 0
    assert main(["sql", "SELECT 1 FROM shop.sales", "--limit", str(10**30)]) == 2


def test_an_instant_without_a_zone_is_utc_wherever_the_server_stands(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python takes such a one for the time of its machine's zone."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        found = sql(
            "SELECT window_start::TIMESTAMP AS v, window_start::TIMESTAMP_NS AS n FROM shop.sales LIMIT 1"
        )
        [row] = json.loads(as_json(found.serialize()))["rows"]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert row == {"v": "2013-01-01T00:00:00Z", "n": "2013-01-01T00:00:00Z"}


def test_nanoseconds_are_refused_with_pandas_and_without(shop: Shop) -> None:
    """Who asks by HTTP is told so too."""
    with pytest.raises(BadRange, match="cannot be written"):
        sql("SELECT '2026-01-01 00:00:00.000000001'::timestamp_ns AS v FROM shop.sales")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT current_setting('temp_directory') FROM shop.sales",
        "SELECT list_transform(['temp_directory'], x -> Current_Setting(x)) FROM shop.sales",
        "SELECT s.* FROM shop.sales, duckdb_settings() AS s",
        "SELECT s.* FROM shop.sales, duckdb_databases() AS s",
        "SELECT s.* FROM shop.sales, query('SELECT * FROM duckdb_settings()') AS s",
    ],
)
def test_nothing_is_told_of_the_server(shop: Shop, text: str) -> None:
    """Where it spills and what it may take is nobody's business who may read a view."""
    with pytest.raises(BadRange, match="tells of the server"):
        sql(text)


LONG = "SELECT repeat('x', 10_000) AS t FROM shop.sales, range(5_000)"
"""200 MB of texts, which DuckDB does not count as memory of its own."""


def test_an_answer_has_so_many_bytes_at_most(shop: Shop) -> None:
    """Rows alone do not bound it; what is fetched no further than that is refused, and one that fits is not."""
    with pytest.raises(BadRange, match="more than 16 MiB") as refused:
        sql(LONG, memory=16 << 20)
    assert "SEAMLINE_READ_MEMORY" in refused.value.hint
    assert sql(f"{LONG} LIMIT 1000", memory=16 << 20).rows.num_rows == 1000
    assert sql(LONG, memory=16 << 20, limit=100).more


def test_no_more_is_fetched_than_is_answered() -> None:
    """The rows behind a refusal, or behind the last that was asked for, are not made."""
    made = []

    def make() -> Iterator[pa.RecordBatch]:
        for number in range(10):
            made.append(number)
            yield pa.record_batch({"t": ["x" * 1000] * 10})

    with pytest.raises(BadRange):
        list(asked.take_rows(make(), 100, 25_000))
    assert made == [0, 1, 2]
    made.clear()
    assert sum(each.num_rows for each in asked.take_rows(make(), 15, 25_000)) == 15
    assert made == [0, 1]


def test_the_command_refuses_what_is_too_long(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the setting of the read path, and its hint is a way out."""
    monkeypatch.setenv("SEAMLINE_READ_MEMORY", "8m")
    assert main(["sql", LONG, "--format", "json"]) == BadRange.exit_code
    said = capsys.readouterr()
    assert not said.out and "more than 8 MiB" in said.err and "SEAMLINE_READ_MEMORY" in said.err
