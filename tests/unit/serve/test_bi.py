"""Views for other engines: what is written names the table that holds the merged answer."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import sqlglot
from deltalake import DeltaTable
from sqlglot.expressions import Literal
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.cli import main
from seamline.lake.read import serving_table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.serve.bi import ENGINES, bi_views_sql, quote_string
from seamline.serve.read import read


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Sales of a day, built and served."""
    made = opened(tmp_path, monkeypatch, warehouse)
    made.epoch([Sale(1, "a", 10), Sale(2, "b", 5)])
    build(made, "g", cut=0)
    serving_table.refresh_serving_table(made.compiled, made.layout, made.view, ["2013-01-01T00:00:00Z"])
    return made


@pytest.mark.everywhere
def test_the_table_that_is_named_holds_the_answer(shop: Shop) -> None:
    """Any reader of Delta takes the same rows from it."""
    place = shop.layout.serving(shop.view)
    rows = DeltaTable(place).to_pyarrow_table().sort_by("customer")
    assert rows["total"].to_pylist() == read("shop.sales").sort_by("customer")["total"].to_pylist() == [10, 5]
    [duckdb] = bi_views_sql(shop.compiled, shop.layout, shop.compiled.views, "duckdb")
    assert duckdb == f"CREATE OR REPLACE VIEW \"shop_sales\" AS SELECT * FROM delta_scan('{place}');"
    [spark] = bi_views_sql(shop.compiled, shop.layout, shop.compiled.views, "spark")
    assert spark == f"CREATE TABLE IF NOT EXISTS `shop_sales` USING DELTA LOCATION '{place}';"
    [trino] = bi_views_sql(shop.compiled, shop.layout, shop.compiled.views, "trino")
    assert "register_table" in trino and f"'{place.as_uri()}'" in trino


def test_duckdb_s_view_gives_the_rows(shop: Shop) -> None:
    """Its extension for Delta comes from DuckDB's own server: here deltalake's rows stand for what it scans."""
    place = str(shop.layout.serving(shop.view))
    con = duckdb.connect()
    con.register("held", DeltaTable(place).to_pyarrow_dataset())
    con.execute(
        f"CREATE MACRO delta_scan(place) AS TABLE SELECT * FROM held WHERE place = {quote_string(place)}"
    )
    for statement in bi_views_sql(shop.compiled, shop.layout, shop.compiled.views, "duckdb"):
        con.execute(statement)
    assert con.sql("SELECT customer, total FROM shop_sales ORDER BY 1").fetchall() == [("a", 10), ("b", 5)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("folder", ["plain", 'it\'s "odd" `here`; DROP'])
def test_each_engine_s_own_grammar_reads_it(shop: Shop, tmp_path: Path, engine: str, folder: str) -> None:
    """As one statement, wherever the warehouse is."""
    elsewhere = Layout(tmp_path / folder, "shop")
    place = elsewhere.serving(shop.view)
    for statement in bi_views_sql(shop.compiled, elsewhere, shop.compiled.views, engine):
        # What is called is read as a function.
        [read] = sqlglot.parse(statement.replace("CALL ", "SELECT ", 1), dialect=engine)
        assert read is not None
        texts = [each.this for each in read.find_all(Literal)]
        assert (place.as_uri() if engine == "trino" else str(place)) in texts


def test_the_command_writes_one_view_or_all(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """And says what there is where a name is wrong."""
    assert main(["sql", "shop.sales", "--engine", "spark"]) == 0
    assert capsys.readouterr().out.count("CREATE TABLE") == 1
    assert main(["sql", "shop"]) == 0
    assert capsys.readouterr().out.count("delta_scan") == 1
    assert main(["sql", "shop.sails"]) != 0
    assert "sales" in capsys.readouterr().err
    assert main(["comparisons", "shop"]) != 0
    assert "There is no view 'shop'." in capsys.readouterr().err
