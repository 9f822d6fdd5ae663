"""A look-up that was wrong for a while: named intervals are built again as the corrected table has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records import pipeline

from seamline import (
    CountWindow,
    Global,
    Lookup,
    Rule,
    Tumbling,
    View,
    collect_distinct,
    count,
    distinct,
    max,
    min,
    sum,
)
from seamline.lake.publish.planning import plan_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.model.errors import ProtocolError
from seamline.model.protocol.seam import Status
from seamline.quality.certify import Certificates
from seamline.serve.explain import explain_number
from seamline.serve.explanation import format_explanation
from seamline.serve.lookup_versions import lookups_of
from seamline.serve.pipeline_status import status_of
from seamline.testing import Scenario
from seamline.testing.tables import Tables

Row = tuple[Any, ...]
CITIES = Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["name", "rate DECIMAL(6,2)"])
SHOP = pipeline(
    "id INT NOT NULL, shop STRING, amount INT, at TIMESTAMP",
    event_id=["id"],
    lookups=[CITIES],
    select={"dear": "amount * cities_rate > 100"},
    where="cities_name IS NULL OR cities_name <> 'closed'",
    side={"abroad": "cities_name = 'Lyon'"},
    views=[
        View(
            "by_city",
            keys=["cities_name"],
            window=Tumbling("1 day"),
            measures={"n": count(), "paid": sum("amount * cities_rate")},
        ),
        View("by_price", keys=["dear"], window=Tumbling("1 day"), measures={"n": count()}),
    ],
)
WRONG = "shop,name,rate\na,Oslo,1\nb,Rome,2\nc,closed,1\nd,Lyon,1\n"
RIGHT = "shop,name,rate\na,Rome,3\nb,Rome,2\nc,Oslo,1\nd,Bern,1\n"
AGAIN = "shop,name,rate\na,Bern,1\nb,Rome,2\nc,Lyon,1\nd,Bern,1\n"


@pytest.fixture(params=["plain", "spark"])
def made(
    request: pytest.FixtureRequest,
    scenario: Callable[..., Scenario],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Scenario]:
    """Make the same scenario on both engines, with the wrong table."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    correct(tmp_path, WRONG)
    session = request.getfixturevalue("spark") if request.param == "spark" else None
    return lambda definition=SHOP: scenario(definition, spark=session, now="2024-01-05")


def correct(folder: Path, table: str) -> None:
    """Change the table as careful people do: at once."""
    (folder / "new.csv").write_text(table)
    (folder / "new.csv").replace(folder / "cities.csv")


def sale(id: int, shop: str, day: int = 1, amount: int = 50) -> dict[str, Any]:
    return {"id": id, "shop": shop, "amount": amount, "at": f"2024-01-0{day}T10:00:00Z"}


def cities(shop: Scenario, day: int = 1, side: str = "merged") -> list[Row]:
    rows = [row for row in shop.answer("by_city", side=side) if row["window_start"].day == day]
    proven(shop, rows) if side == "merged" else None
    return [(row["cities_name"], row["n"], int(row["paid"] or 0)) for row in rows]


def prices(shop: Scenario, day: int = 1) -> list[Row]:
    rows = [row for row in shop.answer("by_price") if row["window_start"].day == day]
    return [(row["dear"], row["n"]) for row in rows]


def taken_apart(engine: Tables, city: str) -> list[str]:
    """What `explain` says of a city on the first day; it must be proven."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    view = engine.pipeline.views[0]
    [key] = [each.name for each in view.keys]
    found = explain_number(engine.pipeline, view, engine.layout, {key: city}, (start, None))
    assert found.proven, found.proofs
    return format_explanation(found)


def proven(shop: Scenario, rows: list[dict[str, Any]]) -> None:
    """Every number is what the master's rows add up to, as the build has them."""
    if isinstance(shop.engine, Tables):
        view = shop.pipeline.views[0]
        for row in rows:
            key, start = {"cities_name": row["cities_name"]}, row["window_start"]
            found = explain_number(shop.pipeline, view, shop.engine.layout, key, (start, None))
            assert found.proven, found.proofs


def reasons(shop: Scenario) -> list[Row]:
    """What a run over the dirty intervals would build, where there are tables to plan from."""
    assert isinstance(shop.engine, Tables)
    plan = plan_run(shop.pipeline, shop.engine.layout, asked=None, dirty=True)
    return [(each.interval.id[8:10], each.reason) for each in plan.builds]


def test_a_corrected_table_moves_a_shop_to_another_city(
    made: Callable[..., Scenario], tmp_path: Path
) -> None:
    """By hand. Wrong: a Oslo at 1, b Rome at 2, c closed, d Lyon (abroad). Right: a Rome at 3, c Oslo, d Bern.

    Sale 1 is sent twice; the second is no row of the batch side, by either table.
    """
    shop = made()
    shop.send(sale(1, "a"), sale(2, "b"), sale(3, "c"), sale(4, "d"), sale(1, "a"), sale(9, "a", day=2))
    shop.send(sale(10, "b", day=4))
    shop.epoch()
    assert shop.batch() == ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]
    before = [("Oslo", 1, 50), ("Rome", 1, 100)]
    assert cities(shop) == before

    correct(tmp_path, RIGHT)
    shop.send(sale(5, "a"))
    shop.epoch()
    late = [("Oslo", 1, 50), ("Rome", 2, 250)]
    assert cities(shop) == late
    # Decided, and not built: what is served is what it was.
    first = shop.restate("cities", "2024-01-01")
    assert cities(shop) == late
    if isinstance(shop.engine, Tables):
        assert reasons(shop) == [("01", "restated: cities, 1 late row")]
        assert told(shop.engine) == {"01": Status.DIRTY, "02": Status.CERTIFIED, "04": Status.OPEN}
        said = status_of(shop.pipeline, shop.engine.layout)
        assert f"  restated and not built yet, 1 interval: {first}" in said
        assert any("1 certified, 1 dirty" in line for line in said)
        assert f"    restated: {first}" in lookups_of(shop.pipeline, shop.engine.layout)
    assert shop.batch() == ["2024-01-01T00:00:00Z"]
    # a twice 150, b 100; c is in, d is no longer abroad; sale 5 found Rome by itself.
    after = [("Bern", 1, 50), ("Oslo", 1, 50), ("Rome", 3, 400)]
    assert cities(shop) == after == cities(shop, side="batch")
    if isinstance(shop.engine, Tables):
        assert kept(shop.engine, "2024-01-01") == after
        assert told(shop.engine)["01"] is Status.CERTIFIED
        assert f"  reprocessed: {first}" in taken_apart(shop.engine, "Bern")
    assert prices(shop) == [(False, 3), (True, 2)]
    # The second day was not named.
    assert cities(shop, day=2) == [("Oslo", 1, 50)]
    assert shop.batch() == []
    assert shop.batch("2024-01-01")
    assert cities(shop) == after

    # A later row finds what its epoch found, and so do all when the day is built again.
    correct(tmp_path, AGAIN)
    shop.send(sale(6, "a"))
    shop.epoch()
    more = [("Bern", 2, 100), *after[1:]]
    assert cities(shop) == more
    assert shop.batch() == ["2024-01-01T00:00:00Z"]
    assert cities(shop) == more
    assert cities(shop, side="speed")[0] == ("Bern", 1, 50)

    # The second correction wins, also where the first was: a Bern at 1 (1, 5, 6), c abroad.
    second = shop.restate("cities", "2024-01-01", "2024-01-03")
    assert second.version != first.version
    assert shop.batch() == ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]
    assert cities(shop) == [("Bern", 4, 200), ("Rome", 1, 100)]
    assert cities(shop, day=2) == [("Bern", 1, 50)]
    assert prices(shop) == [(False, 5)]
    if isinstance(shop.engine, Tables):
        balanced(shop.engine)
    assert " ~  restate " in shop.timeline()


def told(engine: Tables) -> dict[str, Status]:
    """What an answer says of its days."""
    found = read_merged_answer(engine.pipeline, engine.pipeline.views[0], engine.layout)
    return {id[8:10]: each.status for id, each in found.intervals.items()}


def kept(engine: Tables, day: str) -> list[Row]:
    """What the table for everybody has."""
    rows = Table.open(engine.layout.serving(engine.pipeline.views[0])).read().to_pylist()
    mine = [row for row in rows if row["interval"].startswith(day)]
    return sorted((row["cities_name"], row["n"], int(row["paid"])) for row in mine)


def balanced(engine: Tables, least: int = 10) -> None:
    """Each certificate accounts for all rows, and says so."""
    found = Certificates.ensure(engine.layout).of()
    assert len(found) >= least
    for certificate in found:
        assert certificate.passed


def test_a_build_fails_for_a_row_that_would_be_refused(made: Callable[..., Scenario], tmp_path: Path) -> None:
    """Nothing of the run is published, and a sounder table is the way out."""
    rule = Rule("known shop", "cities_name IS NOT NULL")
    shop = made(replace(SHOP, rules=[rule]))
    shop.send(sale(1, "a"), sale(2, "b"), sale(10, "b", day=4))
    shop.epoch()
    before = [("Oslo", 1, 50), ("Rome", 1, 100)]
    assert shop.batch("2024-01-01")
    correct(tmp_path, "shop,name,rate\na,Bern,1\n")
    shop.restate("cities", "2024-01-01")
    with pytest.raises(ProtocolError) as problem:
        shop.batch()
    if isinstance(shop.engine, Tables):
        assert problem.value.message.startswith("t/0@1 of epoch 0, reprocessed with cities ")
        assert problem.value.message.endswith("is refused: rule known shop cities_name IS NOT NULL.")
    assert cities(shop) == before
    correct(tmp_path, RIGHT)
    shop.restate("cities", "2024-01-01")
    assert shop.batch() == ["2024-01-01T00:00:00Z"]
    assert cities(shop) == [("Rome", 2, 250)]


SORTS = Lookup(
    "sorts", "cities.csv", on={"shop": "element_at(_headers, 'shop')"}, columns=["name", "rate INT"]
)
BASKETS = pipeline(
    "id STRING, items ARRAY<INT>, tags MAP<STRING, STRING>, note STRUCT<text: STRING, at: TIMESTAMP>, at TIMESTAMP",
    lookups=[SORTS],
    event_id=["id"],
    dedup_within="2 days",
    select={"key": "_key", "first": "tags['x']"},
    views=[
        View(
            "items",
            keys=["sorts_name"],
            window=Tumbling("1 day"),
            explode={"item": "items"},
            where="item > sorts_rate",
            measures={"n": count(), "total": sum("item"), "words": collect_distinct("note.text", limit=9)},
        ),
        View("every_two", keys=["sorts_name"], window=CountWindow(2), measures={"n": count()}),
        View("keys", keys=["key", "first"], window=Global(), measures={"shops": distinct("sorts_name")}),
    ],
)


@pytest.mark.faults
def test_nested_columns_headers_and_windows_of_events(made: Callable[..., Scenario], tmp_path: Path) -> None:
    """By hand: a goes from Oslo (items above 1) to Rome (above 3); the duplicate within the horizon stays one."""
    shop = made(BASKETS)
    basket = {"items": [1, 2, 5], "tags": {"x": "y"}, "note": {"text": "w"}, "at": "2024-01-01T10:00:00Z"}
    for id, name in (("1", b"a"), ("2", b"b"), ("1", b"a"), ("3", b"a")):
        shop.send({**basket, "id": id}, key=b"k", headers={"shop": name})
    shop.send({**basket, "id": "9", "at": "2024-01-04T10:00:00Z"})
    shop.epoch()
    assert shop.batch("2024-01-01")

    def items() -> list[Row]:
        rows = [row for row in shop.answer("items") if row["window_start"].day == 1]
        return [(row["sorts_name"], row["n"], row["total"], row["words"]["values"]) for row in rows]

    def pairs() -> list[Row]:
        rows = [row for row in shop.answer("every_two") if row["window_start"].day == 1]
        return [(row["sorts_name"], row["window_number"], row["n"]) for row in rows]

    assert items() == [("Oslo", 4, 14, ["w"]), ("Rome", 1, 5, ["w"])]
    assert pairs() == [("Oslo", 1, 2), ("Rome", 1, 1)]
    correct(tmp_path, RIGHT)
    shop.restate("sorts", "2024-01-01")
    assert shop.batch() == ["2024-01-01T00:00:00Z"]
    assert items() == [("Rome", 3, 15, ["w"])]
    assert pairs() == [("Rome", 1, 2), ("Rome", 2, 1)]
    if isinstance(shop.engine, Tables):
        assert taken_apart(shop.engine, "Rome")


RATES = pipeline(
    "id INT NOT NULL, shop STRING, at TIMESTAMP",
    event_id=["id"],
    lookups=[
        Lookup(
            "cities", "cities.csv", on={"shop": "shop"}, columns=["rate DECIMAL(38,18)", "fee DECIMAL(18,2)"]
        )
    ],
    select={"due": "cities_fee * 3"},
    views=[
        View(
            "by_rate",
            keys=["cities_rate"],
            window=Tumbling("1 day"),
            measures={"n": count(), "total": sum("cities_rate"), "due": sum("due")},
        ),
        # Spark itself aggregates these where rows are judged again.
        View(
            "by_fee",
            keys=["cities_fee"],
            window=Tumbling("1 day"),
            measures={"least": min("cities_rate"), "most": max("due"), "fees": sum("cities_fee")},
        ),
    ],
)
LONG = "shop,rate,fee\na,12345678901234567890.123456789012345678,1234567890123456.78\n"
LONGER = "shop,rate,fee\na,0.123456789012345678,9999999999999999.99\n"


@pytest.mark.faults
def test_decimals_of_a_restated_table_keep_every_digit(made: Callable[..., Scenario], tmp_path: Path) -> None:
    """As read, built by the kernel's SQL, judged again by Spark's, and by the version of before once more."""
    correct(tmp_path, LONG)
    shop = made(RATES)
    shop.send(sale(1, "a"), sale(2, "a"), sale(3, "a", day=4))
    shop.epoch()

    def answers() -> list[Row]:
        [by_rate] = [row for row in shop.answer("by_rate") if row["window_start"].day == 1]
        [by_fee] = [row for row in shop.answer("by_fee") if row["window_start"].day == 1]
        rates = [by_rate[name] for name in ("cities_rate", "n", "total", "due")]
        return [(*rates, *(by_fee[name] for name in ("cities_fee", "least", "most", "fees")))]

    rate, fee = Decimal("12345678901234567890.123456789012345678"), Decimal("1234567890123456.78")
    twice, thrice = Decimal("24691357802469135780.246913578024691356"), Decimal("3703703670370370.34")
    long = [
        (rate, 2, twice, Decimal("7407407340740740.68"), fee, rate, thrice, Decimal("2469135780246913.56"))
    ]
    assert answers() == long
    assert shop.batch("2024-01-01")
    assert answers() == long
    correct(tmp_path, LONGER)
    shop.restate("cities", "2024-01-01")
    assert shop.batch()
    rate, fee = Decimal("0.123456789012345678"), Decimal("9999999999999999.99")
    twice, thrice = Decimal("0.246913578024691356"), Decimal("29999999999999999.97")
    other = [
        (rate, 2, twice, Decimal("59999999999999999.94"), fee, rate, thrice, Decimal("19999999999999999.98"))
    ]
    assert answers() == other
    correct(tmp_path, LONG)
    shop.restate("cities", "2024-01-01")
    assert shop.batch()
    assert answers() == long
    if isinstance(shop.engine, Tables):
        balanced(shop.engine, 6)
        rows = Table.open(shop.engine.layout.serving(shop.pipeline.views[0])).read().to_pylist()
        assert {
            (row["cities_rate"], row["total"]) for row in rows if row["interval"].startswith("2024-01-01")
        } == {long[0][0:1] + long[0][2:3]}
