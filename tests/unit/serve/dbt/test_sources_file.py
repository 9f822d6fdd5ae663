"""Sources of dbt: what is said of each view, as YAML that others read, and tests that find what they are for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.past import sell_two_days
from tests.unit.shop import DEFINITION, Shop, opened, sales_pipeline

from seamline.cli import main
from seamline.lake.read.serving_table import ensure_serving_table, refresh_serving_table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.serve.dbt.sources_file import PROFILE, escape_jinja, make_sources
from seamline.serve.dbt.yaml_text import format_yaml

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
"""What a value without parts may be."""
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two days of sales, the first of them built, and their serving table."""
    made = opened(tmp_path, monkeypatch, warehouse)
    sell_two_days(made)
    refresh_serving_table(made.compiled, made.layout, made.view)
    return made


def table_of(folder: Path, text: str = DEFINITION, severity: str = "warn") -> dict[str, Any]:
    """Return what is said of the one view of a definition."""
    pipeline = sales_pipeline(text=text)
    [source] = make_sources([(pipeline, Layout(folder, "shop"))], severity)["sources"]
    [table] = source["tables"]
    return table


def columns_of(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the columns by name."""
    return {each["name"]: each for each in table["columns"]}


@pytest.mark.everywhere
def test_columns_and_place_are_those_of_the_serving_table(shop: Shop) -> None:
    """As DuckDB sees it through Arrow, by which the plugin reads."""
    [source] = make_sources([(shop.compiled, shop.layout)], "warn")["sources"]
    [table] = source["tables"]
    served = ensure_serving_table(shop.layout, shop.view)
    rows = served.handle.to_pyarrow_dataset().schema.empty_table()
    described = duckdb.connect().execute("DESCRIBE SELECT * FROM rows").fetchall()
    assert rows.num_rows == 0
    said = {name: each["data_type"] for name, each in columns_of(table).items()}
    assert said == {name: type.lower() for name, type, *_ in described}
    assert table["config"]["meta"]["delta_table_path"] == str(shop.layout.serving(shop.view))
    assert source["config"]["meta"]["plugin"] == PROFILE["seamline"]["outputs"]["dev"]["plugins"][0]["module"]


def test_a_measure_is_said_as_it_was_declared(tmp_path: Path) -> None:
    """Who reads the catalogue of dbt need not look into the definition."""
    text = DEFINITION.replace("count(),", "count(where='amount > 1'),").replace(
        "amount BIGINT", "amount DECIMAL(38,2)"
    )
    columns = columns_of(table_of(tmp_path, text))
    assert columns["orders"]["description"] == "count() where amount > 1."
    assert columns["total"]["description"] == "sum(amount)."
    assert columns["total__beyond"]["data_type"] == "varchar"


def test_a_key_is_tested_for_null_only_where_it_cannot_be(tmp_path: Path) -> None:
    """NULL is a key like others; a test that it never is would fail on good rows."""
    assert "data_tests" not in columns_of(table_of(tmp_path))["customer"]
    text = DEFINITION.replace("customer STRING", "customer STRING NOT NULL")
    assert columns_of(table_of(tmp_path, text))["customer"]["data_tests"] == ["not_null"]
    grouped = text.replace(
        'window=Tumbling("1 hour"),', 'window=Tumbling("1 hour"), grouping_sets=[["customer"], []],'
    )
    table = table_of(tmp_path, grouped)
    assert "data_tests" not in columns_of(table)["customer"]
    assert table["data_tests"][0]["unique"]["arguments"]["column_name"].startswith(
        'row("grouping", "customer", '
    )


def test_time_until_certified_is_that_of_the_definition(tmp_path: Path) -> None:
    """An interval's length and ``fresh_within``; without it, as long again."""
    assert table_of(tmp_path)["config"]["freshness"] == {
        "warn_after": {"count": 2, "period": "day"},
        "error_after": {"count": 4, "period": "day"},
        "filter": "certified",
    }
    text = DEFINITION.replace('start="2013-01-01"', 'start="2013-01-01", fresh_within="90 minutes"')
    table = table_of(tmp_path, text, "error")
    assert table["config"]["freshness"]["warn_after"] == {"count": 1530, "period": "minute"}
    config = table["data_tests"][1]["accepted_values"]["config"]
    assert config == {"severity": "error", "where": "window_end < now() - INTERVAL 1530 minute"}


def test_a_window_without_an_end_has_no_age(tmp_path: Path) -> None:
    """Nothing says when it should be certified."""
    text = DEFINITION.replace('Tumbling("1 hour")', "Global()").replace("View, count", "View, Global, count")
    table = table_of(tmp_path, text)
    assert [*table["config"]] == ["meta"] and [*table["data_tests"][0]] == ["unique"]
    assert len(table["data_tests"]) == 1 and "data_tests" not in columns_of(table)["window_end"]


def test_a_key_that_has_two_rows_is_found_also_where_it_is_null(tmp_path: Path) -> None:
    """Text joined to text would be NULL where a key is, and dbt passes over NULL."""
    expression = table_of(tmp_path)["data_tests"][0]["unique"]["arguments"]["column_name"]
    found = duckdb.sql(
        f"SELECT {expression} AS unique_field, count(*) AS n_records "
        "FROM (VALUES (NULL, 1, 2), (NULL, 1, 2), (NULL, 2, 3), ('a', 1, 2)) "
        "AS rows(customer, window_start, window_end) "
        f"WHERE {expression} IS NOT NULL GROUP BY {expression} HAVING count(*) > 1"
    ).fetchall()
    assert [count for _, count in found] == [2]


def test_a_text_with_braces_is_no_template() -> None:
    """dbt renders descriptions."""
    assert escape_jinja("plain { text }") == "plain { text }"
    assert escape_jinja("{{ danger }}") == "{% raw %}{{ danger }}{% endraw %}"


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_is_written_is_read_again(value: dict[str, Any]) -> None:
    """By a reader of YAML, with the types that it had."""
    assert (yaml.safe_load(format_yaml(value)) or {}) == value


def test_the_command_writes_over_its_own_files_only(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What somebody has written by hand stays."""
    assert main(["export", "dbt", "shop"]) == 0
    printed = capsys.readouterr().out
    folder = tmp_path / "dbt" / "models"
    for _ in range(2):
        assert main(["export", "dbt", "--output", str(folder)]) == 0
    assert (folder / "sources.yml").read_text().endswith(printed)
    assert yaml.safe_load((folder / "profiles.example.yml").read_text()) == PROFILE
    (folder / "sources.yml").write_text("version: 2\n")
    assert main(["export", "dbt", "--output", str(folder)]) == 5
    assert "was not written by this command" in capsys.readouterr().err
    assert (folder / "sources.yml").read_text() == "version: 2\n"
    assert main(["export", "dbt", "other"]) == 4
