"""A look-up that changes under a running stream: every row keeps what it found, on both sides of the seam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records import pipeline

from seamline import KafkaSource, Lookup, Rule, Tumbling, View, avg, count, sum
from seamline.lake.engine.states import aggregate_states, present_states
from seamline.serve.explain import explain_number
from seamline.spark.stream.catch_up import compute_missing_slices
from seamline.testing import Scenario
from seamline.testing.tables import Tables

Row = tuple[Any, ...]
CITIES = Lookup("cities", "cities.csv", on={"zone": "substring(zones_name, 1, 2)"}, columns=["mayor"])
ZONES = Lookup("zones", "zones.csv", on={"shop": "shop"}, columns=["name", "rate DECIMAL(6,2)"])
SHOP = pipeline(
    "id INT NOT NULL, shop STRING, amount INT, at TIMESTAMP",
    event_id=["id"],
    lookups=[ZONES, CITIES],
    select={"dear": "amount * zones_rate > 100"},
    where="zones_name IS NULL OR zones_name <> 'closed'",
    views=[
        View(
            "by_zone",
            keys=["zones_name"],
            window=Tumbling("1 day"),
            measures={"n": count(), "paid": sum("amount * zones_rate"), "rate": avg("zones_rate")},
        ),
        View("by_price", keys=["dear"], window=Tumbling("1 day"), measures={"n": count()}),
    ],
)
FIRST = "shop,name,rate\na,north,1.50\nb,south,2.00\nc,closed,9\n"
SECOND = "shop,name,rate\na,south,3.00\nb,south,2.00\nc,closed,9\n"
THIRD = "shop,name,rate\na,south,3.00\nb,east,2.00\nc,south,1\n"


@pytest.fixture(params=["plain", "spark"])
def shop(
    request: pytest.FixtureRequest,
    scenario: Callable[..., Scenario],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Scenario:
    """The same lines on both engines, with the first version of the table."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    write(tmp_path, FIRST)
    (tmp_path / "cities.csv").write_text("zone,mayor\nno,Nora\n")
    session = request.getfixturevalue("spark") if request.param == "spark" else None
    return scenario(SHOP, spark=session, now="2024-01-05")


def write(folder: Path, table: str) -> None:
    """Change the table as careful people do: at once."""
    (folder / "new.csv").write_text(table)
    (folder / "new.csv").replace(folder / "zones.csv")


def sale(id: int, shop: str, amount: int = 50) -> dict[str, Any]:
    return {"id": id, "shop": shop, "amount": amount, "at": "2024-01-01T10:00:00Z"}


def zones(shop: Scenario, side: str = "merged") -> list[Row]:
    rows = first_day(shop, "by_zone", side=side)
    return [(row["zones_name"], row["n"], row["paid"], row["rate"]) for row in rows]


def first_day(shop: Scenario, view: str, side: str = "merged") -> list[dict[str, Any]]:
    return [row for row in shop.answer(view, side=side) if row["window_start"].day == 1]


def test_batch_says_what_speed_said(shop: Scenario, tmp_path: Path) -> None:
    """By hand, with versions 1, 2, 3 of the table in the epochs that saw them.

    a: 50 * 1.5 in version 1; 50 * 3 in version 2. b: 50 * 2, south in 1, east in 3. c: closed until 3.
    """
    shop.send(sale(1, "a"), sale(2, "b"), sale(3, "c"), sale(4, "x"))
    first = shop.epoch()
    write(tmp_path, SECOND)
    shop.send(sale(5, "a"))
    second = shop.epoch()
    # Killed with its files written: tried again under a new number, with what is there by then.
    shop.send(sale(6, "b"))
    assert shop.crash("files") is None
    write(tmp_path, THIRD)
    shop.send(sale(7, "c"))
    third = shop.epoch()
    # Killed when it was held, while somebody breaks the table: both stand.
    (tmp_path / "zones.csv").write_text("shop,name\na,nowhere\n")
    shop.send(sale(8, "a"))
    fourth = shop.crash("master")
    assert fourth is not None
    assert first.lookups["zones"] != second.lookups["zones"] != third.lookups["zones"]
    assert third.lookups == fourth.lookups

    seen = [
        (None, 1, None, None),
        ("east", 1, Decimal("100.00"), 2.0),
        ("north", 1, Decimal("75.00"), 1.5),
        ("south", 4, Decimal("450.00"), 2.25),
    ]
    assert zones(shop) == seen
    prices = [(False, 4), (None, 1), (True, 2)]
    assert [(row["dear"], row["n"]) for row in first_day(shop, "by_price")] == prices

    shop.send({**sale(9, "a"), "at": "2024-01-03T00:00:00Z"})
    shop.epoch()
    assert shop.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    assert zones(shop, "batch") == zones(shop, "speed") == zones(shop) == seen
    assert [(row["dear"], row["batch_part"]) for row in first_day(shop, "by_price")] == prices
    if isinstance(shop.engine, Tables):
        kept_and_told(shop.engine, seen)


def test_what_only_decorates_is_of_the_newest_version(shop: Scenario, tmp_path: Path) -> None:
    """Also beside numbers that were built before it."""
    shop.send(sale(1, "a"), sale(2, "b"), {**sale(3, "a"), "at": "2024-01-03T00:00:00Z"})
    assert "cities" not in shop.epoch().lookups
    mayors = [(row["zones_name"], row["cities_mayor"]) for row in first_day(shop, "by_zone")]
    assert mayors == [("north", "Nora"), ("south", None)]
    assert "cities_mayor" not in first_day(shop, "by_price")[0]
    assert shop.batch("2024-01-01")
    for table in ("zone,mayor\nno,Nat\nso,Sue\n", "zone\nno\n"):
        (tmp_path / "cities.csv").write_text(table)
        rows = first_day(shop, "by_zone")
        assert [(row["zones_name"], row["cities_mayor"], row["batch_part"]) for row in rows] == [
            ("north", "Nat", 1),
            ("south", "Sue", 1),
        ]


RULES = pipeline(
    "shop STRING, amount INT, at TIMESTAMP",
    lookups=[
        Lookup(
            "limits",
            "limits.csv",
            on={"shop": "shop"},
            columns=["name", "least INT"],
            where="amount > limits_least",
            every="limits",
        )
    ],
    side={"unlimited": "size(limits) = 0"},
    views=[
        View(
            "by_limit",
            keys=["limit"],
            window=Tumbling("1 day"),
            explode={"limit": "limits"},
            measures={"n": count(), "paid": sum("amount")},
        )
    ],
)


@pytest.mark.parametrize("engine", ["plain", "spark"])
def test_rules_are_those_that_the_epoch_has_read(
    engine: str,
    request: pytest.FixtureRequest,
    scenario: Callable[..., Scenario],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Changed between epochs, broken, and changed back; a build joins nothing, and a restatement joins again."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    table = tmp_path / "limits.csv"
    table.write_text("shop,name,least\na,some,10\na,many,100\nb,some,50\n")
    shop = scenario(
        RULES, spark=request.getfixturevalue("spark") if engine == "spark" else None, now="2024-01-05"
    )

    def paid(of: str, *amounts: int, day: int = 1) -> None:
        shop.send(*({"shop": of, "amount": n, "at": f"2024-01-0{day}T10:00:00Z"} for n in amounts))

    def limits(side: str) -> list[Row]:
        rows = first_day(shop, "by_limit", side=side)
        return [(row["limit"], row["n"], row["paid"]) for row in rows]

    paid("a", 5, 20, 200)
    paid("b", 20, 60)
    shop.epoch()
    table.write_text("shop,name,least\na,many,10\nb,many,10\nb,some,\n")
    paid("a", 20)
    paid("b", 60)
    shop.epoch()
    table.write_text("shop,name\na,some\n")
    paid("b", 20)
    shop.epoch()
    seen = [("many", 4, 300), ("some", 3, 280)]
    assert limits("speed") == seen
    table.write_text("shop,name,least\na,more,0\nb,more,0\n")
    paid("a", 1, day=3)
    shop.epoch(edge=True)
    assert shop.batch("2024-01-01")
    assert limits("batch") == limits("speed") == seen
    shop.restate("limits", "2024-01-01", "2024-01-02")
    assert shop.batch("2024-01-01")
    assert limits("batch") == [("more", 8, 405)]


def kept_and_told(engine: Tables, seen: Sequence[Row]) -> None:
    """What else reads the rows sees what they found, and upkeep leaves every version that an epoch names."""
    engine.upkeep()
    for epoch in engine.ledger():
        assert all(path.exists() for path in engine.lookups.version_paths(epoch.lookups).values())
    view = engine.pipeline.views[0]
    for name, n, *_ in seen:
        found = explain_number(
            engine.pipeline,
            view,
            engine.layout,
            {"zones_name": name},
            (datetime(2024, 1, 1, tzinfo=UTC), None),
        )
        assert found.proven
        assert found.row["n"] == n
    slices = engine.writer.slices[view.id]
    last = engine.ledger()[-1].number - 1
    again = compute_missing_slices(engine.spark, engine.writer, slices, after=-1, until=last)
    caught_up = present_states(
        view, aggregate_states(view, again, ["zones_name"], {}), ["zones_name"]
    ).to_pylist()
    assert sorted([tuple(row.values()) for row in caught_up], key=str) == sorted(seen, key=str)


LIMITS = KafkaSource(
    name="limits",
    topic="limits",
    schema="shop STRING, name STRING, least INT",
    event_time="_kafka_timestamp",
    rules=[Rule("low", "least < 1000")],
)
SALES = KafkaSource(
    name="sales",
    topic="sales",
    schema="shop STRING, amount INT, at TIMESTAMP",
    event_time="at",
    lookups=[replace(RULES.lookups[0], table="", of="limits")],
    side=RULES.side,
)


@pytest.mark.parametrize("engine", ["plain", "spark"])
def test_rules_of_a_topic_are_those_that_were_read_by_then(
    engine: str, request: pytest.FixtureRequest, scenario: Callable[..., Scenario]
) -> None:
    """Changed, taken out and killed in between; a build joins nothing, and what restates or reads anew joins again.

    By hand: 20 and 200 meet some (10), 200 many (100); then 20 meets many (10) alone, and 60 what b has left. Read anew
    without the bound, b has a huge of 5,000 from the second epoch on, which its 9,000 meets; a restatement stays.
    """
    made = replace(
        RULES, source=[SALES, LIMITS], views=[replace(RULES.views[0], of="sales")], lookups=(), side={}
    )
    shop = scenario(
        made, spark=request.getfixturevalue("spark") if engine == "spark" else None, now="2024-01-05"
    )

    def paid(of: str, *amounts: int, day: int = 1) -> None:
        rows = ({"shop": of, "amount": n, "at": f"2024-01-0{day}T10:00:00Z"} for n in amounts)
        shop.send(*rows, topic="sales")

    def rule(of: str, name: str, least: int | None) -> None:
        value = None if least is None else {"shop": of, "name": name, "least": least}
        shop.send(value, key=f"{of} {name}".encode(), topic="limits")

    def limits(side: str) -> list[Row]:
        rows = first_day(shop, "by_limit", side=side)
        return [(row["limit"], row["n"], row["paid"]) for row in rows]

    rule("a", "some", 10)
    rule("a", "many", 100)
    rule("b", "some", 50)
    paid("a", 5, 20, 200)
    paid("b", 20, 60)
    first = shop.epoch()
    rule("a", "many", 10)
    rule("a", "some", None)
    rule("b", "many", 10)
    rule("b", "huge", 5_000)
    paid("a", 20)
    assert shop.crash("files") is None
    paid("b", 60, 9_000)
    second = shop.crash("master")
    assert second is not None
    assert first.lookups != second.lookups
    paid("b", 20)
    assert shop.epoch().lookups == second.lookups
    seen = [("many", 5, 9_300), ("some", 5, 9_340)]
    assert limits("speed") == seen
    rule("a", "more", 0)
    paid("a", 1, day=3)
    shop.epoch()
    shop.wait("1 hour")
    assert shop.batch("2024-01-01")
    assert limits("batch") == limits("speed") == seen
    shop.restate("limits", "2024-01-01", "2024-01-02")
    assert shop.batch("2024-01-01")
    assert limits("batch") == [("many", 8, 9_400), ("more", 4, 245), ("some", 3, 9_120)]
    shop.redefine(replace(made, source=[SALES, replace(LIMITS, rules=())]))
    assert shop.batch("2024-01-01")
    assert limits("batch") == [("huge", 1, 9_000), ("many", 8, 9_400), ("more", 4, 245), ("some", 3, 9_120)]
    paid("b", 9_000)
    assert shop.epoch().lookups
    assert limits("merged")[0] == ("huge", 2, 18_000)
