"""Several sources in plain Python and on Spark: what each has of its own, and a definition that changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.unit.testing.test_sources import HOUR, NOW, ORDERS, RETURNS, SHOP, order

from seamline import CountWindow, Pipeline, View, count, max, sum
from seamline.spark.stream.catch_up import catch_up
from seamline.testing import Scenario
from seamline.testing.tables import Tables

DAY = "2026-01-05"
BOTH = View("both", of=["orders", "returns"], keys=["shop"], window=HOUR, measures={"n": count()})
Life = Callable[[Scenario], Any]


@pytest.fixture
def agree(scenario: Callable[..., Scenario], spark: SparkSession) -> Callable[[Pipeline, Life], Any]:
    """Live a life on both engines, which must come to the same, and return what it came to."""

    def live(pipeline: Pipeline, life: Life) -> Any:
        plain, tables = (scenario(pipeline, spark=engine, now=NOW) for engine in (None, spark))
        found = life(plain)
        assert life(tables) == found
        assert tables.quarantine() == plain.quarantine()
        assert isinstance(tables.engine, Tables)
        catch_up(spark, tables.engine.writer)
        tables.epoch()
        plain.epoch()
        for view in plain.pipeline.views:
            for side in ("merged", "batch", "speed"):
                assert tables.answer(view.name, side) == plain.answer(view.name, side), (view.name, side)
        return found

    return live


def built(life: Scenario, view: str, measure: str = "n") -> dict[str, int]:
    """Return a measure of the day that is built, by shop, the greatest of its windows."""
    rows = [row for row in life.answer(view, "batch") if row["window_start"].day == 5]
    return {row["shop"]: row[measure] for row in sorted(rows, key=lambda row: row[measure])}


def test_what_is_wrong_in_one_source_is_not_in_another(agree: Callable[[Pipeline, Life], Any]) -> None:
    """A view's expressions are those of its rows: others have no number in that column, and stay."""
    orders = replace(
        ORDERS,
        schema="id INT NOT NULL, shop STRING, amount INT, code STRING, items ARRAY<STRING>, at TIMESTAMP",
        dedup_within="2 days",
    )
    returns = replace(
        RETURNS,
        format="json",
        schema="shop STRING, id INT, code STRING, at TIMESTAMP NOT NULL",
        dedup_within="2 days",
    )
    views = [
        View("codes", of="orders", keys=["shop"], window=HOUR, measures={"n": sum("CAST(code AS INT)")}),
        View(
            "items",
            of="orders",
            keys=["shop"],
            window=HOUR,
            explode={"item": "items"},
            where="CAST(item AS INT) < 100 / amount",
            measures={"n": count()},
        ),
        View(
            "pairs", of=["orders", "returns"], keys=["shop"], window=CountWindow(2), measures={"n": count()}
        ),
        BOTH,
    ]

    def life(made: Scenario) -> Any:
        for restarted in (False, True):
            if restarted:
                made.restart()
            for id, code, item, amount in (
                (1, "5", "1", 1),
                (2, "x", "1", 1),
                (3, "7", "y", 1),
                (4, "8", "1", 0),
            ):
                sent = {**order(id, amount=amount), "code": code, "items": [item, "2"]}
                made.send(sent, sent, topic="orders")
            made.send(*({**order(id, shop="b"), "code": "x"} for id in (1, 1, 2)), topic="returns")
            made.epoch()
        made.send({**order(90, 90), "code": "1", "items": []}, topic="orders")
        made.send(order(90, 90), topic="returns")
        made.epoch()
        made.batch(DAY)
        return {view.name: built(made, view.name) for view in views}

    found = agree(replace(SHOP, source=[orders, returns], views=views), life)
    assert found == {
        "codes": {"a": 5},
        "items": {"a": 2},
        "pairs": {"a": 1, "b": 2},
        "both": {"a": 1, "b": 2},
    }


def test_one_source_becomes_several_and_one_again(agree: Callable[[Pipeline, Life], Any]) -> None:
    """Each build counts all that was ever read, as the definition at hand says it."""
    one = replace(
        ORDERS,
        name="",
        topic=["orders", "returns"],
        schema="id INT, shop STRING, amount INT, at TIMESTAMP",
    )
    alone = replace(SHOP, source=one, views=[replace(BOTH, of="")])
    returns = replace(
        RETURNS,
        format="json",
        schema="shop STRING, id INT, at TIMESTAMP, extra DOUBLE",
        side={"odd": "id = 9"},
    )
    several = replace(SHOP, source=[replace(ORDERS, where="amount > 0"), returns], views=[BOTH])

    def life(made: Scenario) -> Any:
        found = []
        for at, each in enumerate((alone, several, alone, several), 1):
            if at > 1:
                made.redefine(each)
            made.send(order(at), order(100 + at, amount=0), order(90 + at, 60), topic="orders")
            made.send(order(at), order(9, shop="b"), order(90 + at, 60), topic="returns")
            made.epoch()
            made.batch(DAY)
            found.append(built(made, "both"))
        return found

    assert agree(alone, life) == [{"a": 2, "b": 1}, {"a": 4}, {"a": 6, "b": 1}, {"a": 8}]


def test_sources_may_change_places(agree: Callable[[Pipeline, Life], Any]) -> None:
    """Columns of one type have another order in the files then: a build reads them by name."""
    orders = replace(ORDERS, schema="id INT, shop STRING, amount INT, cost INT, at TIMESTAMP")
    returns = replace(
        RETURNS, format="json", schema="cost INT, weight INT, shop STRING, id INT, at TIMESTAMP"
    )
    views = [
        View(
            "paid", of="orders", keys=["shop"], window=HOUR, measures={"n": max("amount"), "m": max("cost")}
        ),
        View(
            "back", of="returns", keys=["shop"], window=HOUR, measures={"n": max("weight"), "m": max("cost")}
        ),
    ]
    first, second = (
        replace(SHOP, source=sources, views=views) for sources in ([orders, returns], [returns, orders])
    )

    def life(made: Scenario) -> Any:
        for at, each in enumerate((first, second, first, second), 1):
            made.redefine(each)
            made.send({**order(at, amount=10 + at), "cost": 20 + at}, order(90 + at, 60), topic="orders")
            made.send({**order(at), "weight": 30 + at, "cost": 40 + at}, order(90 + at, 60), topic="returns")
            made.epoch()
        made.batch(DAY)
        return [built(made, view, measure)["a"] for view in ("paid", "back") for measure in ("n", "m")]

    assert agree(first, life) == [14, 24, 34, 44]
