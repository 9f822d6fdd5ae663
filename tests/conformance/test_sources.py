"""Several sources in one pipeline, as people ask about them: each row, number and bound says whose it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.unit.testing.test_sources import HOUR, NOW, ORDERS, RETURNS, SHOP, order, sent_back

from seamline import Lookup, View, count
from seamline.lake.read.named_sides import side_rows
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import NotFound
from seamline.plan.batch.restating_plan import find_joined_lookup
from seamline.plan.wording.source_text import list_source_lines
from seamline.serve.explain import explain_number
from seamline.serve.explanation import format_explanation
from seamline.serve.lookup_versions import lookups_of
from seamline.serve.pipeline_status import status_of
from seamline.testing import Scenario
from seamline.testing.tables import Tables

CITIES = Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["city"])
SOURCES = [
    replace(ORDERS, lookups=[CITIES], select={"city": "cities_city"}, side={"tests": "amount = 0"}),
    replace(RETURNS, select={"city": "'?'"}, max_past="3000 days"),
]
VIEWS = [
    View("sent_back", of="returns", keys=["shop"], window=HOUR, measures={"n": count()}),
    View("both", of=["orders", "returns"], keys=["shop"], window=HOUR, measures={"n": count()}),
]


@pytest.fixture
def shop(
    scenario: Callable[..., Scenario], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scenario:
    """A life of orders and returns: five rows of one hour, one of them a duplicate, and one of a side."""
    (tmp_path / "cities.csv").write_text("shop,city\na,Rome\n")
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    made = scenario(replace(SHOP, source=SOURCES, views=VIEWS), spark=spark, now=NOW)
    made.send(order(1), order(1), order(2), order(3, amount=0), topic="orders")
    made.send(sent_back(1), topic="returns")
    made.send(order(90, hour=60), topic="orders")
    made.send(sent_back(90, hour=60), topic="returns")
    made.epoch()
    made.batch("2026-01-05")
    made.send(sent_back(7), topic="returns")
    made.epoch()
    return made


def explained(shop: Scenario, view: str) -> str:
    """Explain the number of shop a at ten."""
    assert isinstance(shop.engine, Tables)
    chosen = shop.pipeline.view(view)
    assert chosen
    start = next(row["window_start"] for row in shop.answer(view) if row["window_start"].hour == 10)
    found = explain_number(shop.pipeline, chosen, shop.engine.layout, {"shop": "a"}, (start, None))
    assert found.proven
    return "\n".join(format_explanation(found))


def test_a_number_is_explained_by_the_rows_of_its_sources(shop: Scenario) -> None:
    """It was not explained at all: a view's condition names the source, which was not read."""
    said = explained(shop, "both")
    assert "orders: orders/0@0 epoch 0: id=1, shop=a, amount=1" in said
    assert "orders: orders/0@1 epoch 0  (duplicate, left out): id=1" in said
    assert "returns: returns/0@0 epoch 0: id=1, shop=a" in said
    said = explained(shop, "sent_back")
    assert "returns: returns/0@2 epoch 1: id=7, shop=a, at=2026-01-05T10:00:00Z, city=?" in said
    assert "amount" not in said, "which no return has"


def test_a_restated_number_is_explained(shop: Scenario, tmp_path: Path) -> None:
    """Rows of the source with the look-up are made again, those of the other as they were."""
    (tmp_path / "cities.csv").write_text("shop,city\na,Oslo\n")
    shop.restate("cities", "2026-01-05")
    shop.batch("2026-01-05")
    said = explained(shop, "both")
    assert "orders: orders/0@0 epoch 0: id=1, shop=a, amount=1" in said
    assert said.count(", city=Oslo") == 3
    assert said.count(", city=?") == 2


def test_a_side_has_the_columns_of_its_source(shop: Scenario) -> None:
    """Two topics may have a record at one place each: a row says which it is of."""
    assert isinstance(shop.engine, Tables)
    [row] = side_rows(shop.pipeline, shop.engine.layout, "tests").to_pylist()
    assert (row["_source"], row["_topic"], row["_offset"], row["id"]) == ("orders", "orders", 3, 3)


def test_look_ups_of_a_source_are_listed(shop: Scenario) -> None:
    """The pipeline itself declares none."""
    assert isinstance(shop.engine, Tables)
    said = lookups_of(shop.pipeline, shop.engine.layout)
    assert said[:2] == ["shop", "  cities  cities.csv: pinned, in the rows"]
    with pytest.raises(NotFound) as raised:
        find_joined_lookup(shop.pipeline, "towns")
    assert raised.value.hint == "it has cities."


def test_bounds_are_listed_by_source(shop: Scenario) -> None:
    """Neither could be asked for: the pipeline has no bounds of its own."""
    assert isinstance(shop.engine, Tables)
    defaults = 'neither max_past nor defaults (defaults="2026-11" is 366 days, max_past="" is no bound)'
    ahead = "event times up to 1 day ahead of Kafka's timestamps"
    bounds = [
        f"orders: {ahead}, as old as may be: it says {defaults}",
        f"returns: {ahead}, up to 3000 days behind",
    ]
    assert status_of(shop.pipeline, shop.engine.layout)[1:3] == [f"  {each}" for each in bounds]
    assert list_source_lines(compile_pipeline(SHOP).definition)[:2] == [
        "2 sources by connection kafka_default",
        "source orders: topic orders as json, event time at",
    ]
