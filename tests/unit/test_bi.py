"""Views for other engines: what is written names the table that holds the merged answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.cli import main
from seamline.lake import serving
from seamline.serve.bi import statements
from seamline.serve.read import read


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Sales of a day, built and served."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1, "a", 10), Sale(2, "b", 5)])
    build(made, "g", cut=0)
    serving.refresh(made.compiled, made.layout, made.view, ["2013-01-01T00:00:00Z"])
    return made


def test_the_table_that_is_named_holds_the_answer(shop: Shop) -> None:
    """Any reader of Delta takes the same rows from it."""
    place = shop.layout.serving(shop.view)
    rows = DeltaTable(place).to_pyarrow_table().sort_by("customer")
    assert rows["total"].to_pylist() == read("shop.sales").sort_by("customer")["total"].to_pylist() == [10, 5]
    [duckdb] = statements(shop.compiled, shop.layout, shop.compiled.views, "duckdb")
    assert duckdb == f"CREATE OR REPLACE VIEW \"shop_sales\" AS SELECT * FROM delta_scan('{place}');"
    [spark] = statements(shop.compiled, shop.layout, shop.compiled.views, "spark")
    assert spark == f"CREATE TABLE IF NOT EXISTS `shop_sales` USING DELTA LOCATION '{place}';"
    [trino] = statements(shop.compiled, shop.layout, shop.compiled.views, "trino")
    assert "register_table" in trino and f"'file://{place}'" in trino


def test_the_command_writes_one_view_or_all(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """And says what there is where a name is wrong."""
    assert main(["sql", "shop.sales", "--engine", "spark"]) == 0
    assert capsys.readouterr().out.count("CREATE TABLE") == 1
    assert main(["sql", "shop"]) == 0
    assert capsys.readouterr().out.count("delta_scan") == 1
    assert main(["sql", "shop.sails"]) != 0
    assert "sales" in capsys.readouterr().err
