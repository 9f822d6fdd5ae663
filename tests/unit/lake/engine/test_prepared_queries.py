"""Queries that are planned once answer like those that are planned each time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import duckdb
import pyarrow as pa
import pytest

from seamline.lake.engine import prepared_queries
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.prepared_queries import ask_planned_once


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_duckdb() as opened:
        yield opened


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the queries that are planned."""
    noted: list[str] = []
    real = prepared_queries.Plan.__init__

    def note(self: prepared_queries.Plan, con: duckdb.DuckDBPyConnection, query: str, *tables: Any) -> None:
        noted.append(query)
        real(self, con, query, *tables)

    monkeypatch.setattr(prepared_queries.Plan, "__init__", note)
    return noted


def numbers(*values: int | None) -> pa.Table:
    """Make a table of one column."""
    return pa.table({"x": pa.array(values, pa.int64())})


QUERIES = {
    "select": "SELECT x + 1 AS y FROM rows",
    "from first": "FROM rows SELECT x + 1 AS y",
    "with": "WITH more AS (SELECT x + 1 AS y FROM rows) SELECT y FROM more",
    "in order": "SELECT y FROM (SELECT x + 1 AS y, -x AS place FROM rows) ORDER BY place DESC",
    "twice": "SELECT a.x + 1 AS y FROM rows AS a POSITIONAL JOIN rows AS b WHERE a.x IS NOT DISTINCT FROM b.x",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_one_plan_answers_for_table_after_table(
    query: str, con: duckdb.DuckDBPyConnection, planned: list[str]
) -> None:
    for table in (numbers(1, 2), numbers(), numbers(*range(15_000)), numbers(7)):
        found = ask_planned_once(con, query, {"rows": table})
        assert found["y"].to_pylist() == [value + 1 for value in table["x"].to_pylist()]
    assert planned == [query]


def test_other_columns_are_another_plan(con: duckdb.DuckDBPyConnection, planned: list[str]) -> None:
    """And do not harm the one there is."""
    query, texts = "SELECT typeof(x) AS y FROM rows", pa.table({"x": ["a"]})
    for table, type in (
        (numbers(1), "BIGINT"),
        (texts, "VARCHAR"),
        (numbers(1), "BIGINT"),
        (texts, "VARCHAR"),
    ):
        assert ask_planned_once(con, query, {"rows": table})["y"].to_pylist() == [type]
    assert len(planned) == 2


def test_several_tables_with_names_that_need_quotes(con: duckdb.DuckDBPyConnection) -> None:
    tables = {'a "name"': numbers(1, 2), "Select": numbers(2, 3)}
    query = 'SELECT x FROM "a ""name""" JOIN "Select" USING (x)'
    assert ask_planned_once(con, query, tables)["x"].to_pylist() == [2]
    assert ask_planned_once(con, query, {**tables, "Select": numbers(1)})["x"].to_pylist() == [1]


def test_tables_that_stay_are_read_as_they_are(con: duckdb.DuckDBPyConnection, planned: list[str]) -> None:
    """Another version of a look-up is planned for, also where its columns and its place in memory are the same."""
    query = "SELECT x, name FROM rows LEFT JOIN names USING (x)"
    for name in "abca":
        names = pa.table({"x": [1], "name": [name]})
        for value in (1, 2):
            found = ask_planned_once(con, query, {"rows": numbers(value)}, {"names": names})
            assert found["name"].to_pylist() == [name if value == 1 else None]
        del names
    assert len(planned) == 4
    assert len(prepared_queries._plans[con]) == 1, "earlier versions are in memory"


def test_one_version_of_a_look_up_is_kept(con: duckdb.DuckDBPyConnection) -> None:
    """Also where the text has its conditions: some hundred versions would be in memory."""
    for number in range(5):
        names = pa.table({"x": [1], "name": [f"name {number}"]})
        query = f"SELECT x, name FROM rows LEFT JOIN names USING (x) WHERE x > -{number}"
        ask_planned_once(con, query, {"rows": numbers(1)}, {"names": names})
    assert len(prepared_queries._plans[con]) == 1
    ask_planned_once(con, "SELECT x FROM rows", {"rows": numbers(1)})
    ask_planned_once(con, "SELECT name FROM rows, names", {"rows": numbers(1)}, {"names": names})
    assert len(prepared_queries._plans[con]) == 3


def test_much_is_planned_for(con: duckdb.DuckDBPyConnection, planned: list[str]) -> None:
    """However few rows it is: an answer of a plan is in memory twice."""
    wide = pa.table({"x": ["x" * (prepared_queries.LITTLE // 2)] * 3})
    found = ask_planned_once(con, "SELECT length(x) AS y FROM rows", {"rows": wide})
    assert found["y"].to_pylist() == [prepared_queries.LITTLE // 2] * 3
    assert not planned


def test_many_rows_are_planned_for(
    con: duckdb.DuckDBPyConnection, planned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_queries, "FEW", 3)
    for count in (3, 4, 2):
        found = ask_planned_once(con, "SELECT x + 1 AS y FROM rows", {"rows": numbers(*range(count))})
        assert found["y"].to_pylist() == [*range(1, count + 1)]
    assert len(planned) == 1
    with pytest.raises(duckdb.CatalogException):
        con.sql("FROM rows")


def test_only_so_many_plans_are_kept(
    con: duckdb.DuckDBPyConnection, planned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plans of all conditions of rules would be the memory of a year; DuckDB forgets the oldest."""
    monkeypatch.setattr(prepared_queries, "MOST", 3 * len("SELECT x + 0 AS y FROM rows"))

    def ask(number: int) -> None:
        found = ask_planned_once(con, f"SELECT x + {number} AS y FROM rows", {"rows": numbers(1)})
        assert found["y"].to_pylist() == [1 + number]

    for number in (0, 1, 2, 0, 3, 0, 1):
        ask(number)
    assert [each[11] for each in planned] == ["0", "1", "2", "3", "1"]
    views = con.sql("SELECT count(*) FROM duckdb_views() WHERE view_name LIKE 'plan_%'").fetchall()
    assert (views, con.sql("SELECT count(*) FROM duckdb_prepared_statements()").fetchall()) == (
        [(3,)],
        [(3,)],
    )


def test_a_query_that_fails_is_asked_again(con: duckdb.DuckDBPyConnection) -> None:
    """Of rows for which it has an answer; and what cannot be planned leaves nothing behind."""
    query = "SELECT CASE WHEN x = 0 THEN error('zero') ELSE 10 // x END AS y FROM rows"
    for values in ((2,), (0,), (5,)):
        if 0 in values:
            with pytest.raises(duckdb.Error, match="zero"):
                ask_planned_once(con, query, {"rows": numbers(*values)})
        else:
            assert ask_planned_once(con, query, {"rows": numbers(*values)})["y"].to_pylist() == [
                10 // values[0]
            ]
    before = con.sql("SELECT count(*) FROM duckdb_views()").fetchall()
    for _ in range(2):
        with pytest.raises(duckdb.BinderException):
            ask_planned_once(con, "SELECT nothing FROM rows", {"rows": numbers(1)})
    assert con.sql("SELECT count(*) FROM duckdb_views()").fetchall() == before


def test_the_rows_are_let_go_of(con: duckdb.DuckDBPyConnection) -> None:
    """A plan of a worker that has nothing to do would keep an epoch in memory."""
    ask_planned_once(con, "SELECT x FROM rows", {"rows": numbers(1)})
    [plan] = prepared_queries._plans[con].values()
    assert [slot.table for slot in plan.slots.values()] == [None]


def test_what_others_register_changes_no_plan(con: duckdb.DuckDBPyConnection, planned: list[str]) -> None:
    """Nor does a table of the same name hide what is asked about."""
    query = "SELECT x FROM rows"
    assert ask_planned_once(con, query, {"rows": numbers(1)})["x"].to_pylist() == [1]
    con.register("rows", numbers(100))
    con.execute("CREATE TABLE others AS SELECT 1 AS x")
    assert ask_planned_once(con, query, {"rows": numbers(2)})["x"].to_pylist() == [2]
    assert con.sql("SELECT x FROM rows").fetchall() == [(100,)]
    assert len(planned) == 1


def test_a_connection_goes_with_its_last_user() -> None:
    con = open_duckdb()
    ask_planned_once(con, "SELECT x FROM rows", {"rows": numbers(1)})
    gone = ref(con)
    del con
    gc.collect()
    assert gone() is None
