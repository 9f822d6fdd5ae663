"""As-of joins as definitions: what they mean, and what they cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.model.refused import require_refused

from seamline import (
    AsOf,
    Batch,
    CountWindow,
    KafkaSource,
    Pipeline,
    Session,
    Tumbling,
    View,
    avg,
    count,
    formula,
    last,
    max,
    sum,
)
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.used_names import list_pipeline_expressions
from seamline.model.time.reached_intervals import list_reaching_intervals, widen_by_reach
from seamline.plan.wording.source_text import list_derived_facts

HOUR = Tumbling("1 hour")
ORDERS = KafkaSource(
    name="orders",
    topic="orders",
    schema="sku STRING, shop STRING, amount INT, part DOUBLE, at TIMESTAMP",
    event_time="at",
)
PRICES = KafkaSource(
    name="prices",
    topic="prices",
    schema="sku STRING, price DECIMAL(10,2), part DOUBLE, number INT, at TIMESTAMP",
    event_time="at",
)
PRICED = AsOf("priced", left="orders", versions="prices", on={"sku": "sku"}, at_most="7 days")
MEASURES = {"orders": count(), "worth": sum("prices_price")}
BY_SHOP = View("by_shop", of="priced", keys=["orders_shop"], window=HOUR, measures=MEASURES)
SHOP = Pipeline(
    name="shop", source=[ORDERS, PRICES], derive=[PRICED], views=[BY_SHOP], batch=Batch("1 day", "2026-01-01")
)


def with_as_of(**changes: Any) -> Pipeline:
    """Return the pipeline with another as-of join."""
    return replace(SHOP, derive=[replace(PRICED, **changes)])


def with_view(**changes: Any) -> Pipeline:
    """Return the pipeline with another view."""
    return replace(SHOP, views=[replace(BY_SHOP, **changes)])


def view_of(pipeline: Pipeline) -> CompiledView:
    """Compile a pipeline, and return its first view."""
    return compile_pipeline(pipeline).views[0]


def join_of(pipeline: Pipeline) -> CompiledJoin:
    """Compile a pipeline, and return the join of its first view."""
    join = view_of(pipeline).join
    assert join
    return join


WRONG: Mapping[str, tuple[Pipeline, str, str]] = {
    "no left source": (with_as_of(left="nobody"), "derive[priced].left", "no source 'nobody'"),
    "no versions": (with_as_of(versions="priced"), "derive[priced].versions", "of sources, not of joins"),
    "a name of a source": (with_as_of(name="orders"), "derive[orders].name", "name of a source"),
    "no bound": (with_as_of(at_most=""), "derive[priced].at_most", "how old a version may be"),
    "a bound that is none": (
        with_as_of(at_most="soon"),
        "derive[priced].at_most",
        "'soon' is not a duration",
    ),
    "a bound of no length": (with_as_of(at_most="0 days"), "derive[priced].at_most", "0 days"),
    "a reach too far": (with_as_of(at_most="200 days"), "derive[priced]", "more than 100 intervals"),
    "nothing compared": (with_as_of(on={}), "derive[priced].on", "compares no columns"),
    "a column that is none": (with_as_of(on={"sku": "x"}), "derive[priced].on", "'prices' has no column 'x'"),
    "keys of two types": (
        with_as_of(on={"sku": "number"}),
        "derive[priced].on",
        "sku is STRING, number is INT",
    ),
    "a key of doubles": (with_as_of(on={"part": "part"}), "derive[priced].on", "must compare exactly"),
    "a null-safe column that is none": (
        with_as_of(null_safe=["shop"]),
        "derive[priced].null_safe",
        "not a left column of on=",
    ),
    "a condition on the other side": (
        with_as_of(left_where="price > 1"),
        "derive[priced].left_where",
        "price",
    ),
    "a condition that can fail": (
        with_as_of(versions_where="number + 1 > 2"),
        "derive[priced].versions_where",
        "can fail",
    ),
    "copies that nobody knows": (with_as_of(copies=True), "derive[priced].copies", "no event_id"),
    "two columns of one name": (
        replace(
            SHOP,
            source=[
                replace(ORDERS, name="a", schema="sku STRING, b_c INT, at TIMESTAMP"),
                replace(PRICES, name="a_b", schema="sku STRING, c INT, at TIMESTAMP"),
            ],
            derive=[replace(PRICED, left="a", versions="a_b")],
        ),
        "derive[priced]",
        "Two columns of a pair are called 'a_b_c'",
    ),
    "a greatest price": (
        with_view(measures={"m": max("prices_price")}),
        "views[by_shop].measures[m]",
        "cannot subtract",
    ),
    "a last price": (
        with_view(measures={"m": last("prices_price")}),
        "views[by_shop].measures[m]",
        "cannot subtract",
    ),
    "a total of doubles": (
        with_view(measures={"m": avg("prices_part")}),
        "views[by_shop].measures[m]",
        "DOUBLE",
    ),
    "a formula of what cannot": (
        with_view(measures={"m": formula("m", m=max("prices_price"))}),
        "views[by_shop].measures[m]",
        "cannot subtract",
    ),
    "a measure that can fail": (
        with_view(measures={"m": sum("orders_amount * prices_number")}),
        "views[by_shop].measures[m]",
        "can fail",
    ),
    "left rows, of which all are": (
        with_view(measures={"m": count("left")}),
        "views[by_shop].measures[m]",
        "left",
    ),
    "a session": (with_view(window=Session("1 hour")), "views[by_shop].window", "cannot take them out"),
    "a count window": (with_view(window=CountWindow(3)), "views[by_shop].window", "cannot take them out"),
    "rows that explode": (
        with_view(explode={"x": "split(orders_shop, ',')"}),
        "views[by_shop].explode",
        "cannot have explode",
    ),
    "the kind of a row": (with_view(keys=["_kind"]), "views[by_shop].keys", "no column '_kind'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_as_of_join_is_refused_with_its_place(name: str) -> None:
    """A version that is not the one its author means gives numbers that look right."""
    require_refused(*WRONG[name], __file__)


def test_a_row_has_the_columns_of_both() -> None:
    """Each by the name of its source; no column is read that no view needs."""
    join = join_of(SHOP)
    names = [field.name for field in join.schema.fields]
    assert names == ["_kind", "orders_sku", "orders_shop", "prices_sku", "prices_price"]
    itself = with_as_of(versions="orders", left_where="amount > 0", versions_where="amount IS NULL")
    made = join_of(
        replace(itself, views=[replace(BY_SHOP, keys=["left_shop"], measures={"n": count("right_shop")})])
    )
    assert [side.prefix for side in made.sides] == ["left_", "right_"]
    assert [side.where.text for side in made.sides if side.where] == ["amount > 0", "amount IS NULL"]


def test_an_interval_is_made_of_versions_before_it() -> None:
    """And nothing behind it: it is over when its own rows are."""
    view, grid = view_of(SHOP), compile_pipeline(SHOP).grid
    assert view.netted
    assert (view.before, view.after) == (timedelta(days=7), timedelta(0))
    day = grid.named("2026-02-10T00:00:00Z")
    assert widen_by_reach(grid, day, view).start == day.start - timedelta(days=7)
    assert len([*list_reaching_intervals(grid, day, view)]) == 8


def test_what_it_says_is_part_of_its_views_versions() -> None:
    """And of no other: a view of a source stays what it is."""
    plain = View("plain", of="orders", keys=["shop"], window=HOUR, measures={"n": count()})
    one = compile_pipeline(replace(SHOP, views=[BY_SHOP, plain]))
    for changes in (
        {"at_most": "6 days"},
        {"left_where": "amount > 0"},
        {"versions_where": "number > 0"},
        {"null_safe": ["sku"]},
    ):
        other = compile_pipeline(replace(with_as_of(**changes), views=[BY_SHOP, plain]))
        assert one.record_version == other.record_version
        assert one.views[0].id != other.views[0].id
        assert one.views[1].id == other.views[1].id
        assert other.views[0].join
        assert join_of(SHOP).id != other.views[0].join.id
    sides = [join_of(with_as_of(**{side: "sku > 'a'"})).id for side in ("left_where", "versions_where")]
    assert len({*sides}) == 2, "an index has rows of one of them"


def test_a_stored_definition_has_it() -> None:
    """A version that is born outlives the file it was in."""
    stored = with_as_of(left_where="amount > 0", versions_where="number > 0", null_safe=["sku"])
    assert from_json(to_json(stored)) == stored
    assert view_of(from_json(to_json(stored))) == view_of(stored)
    texts = [*list_pipeline_expressions(stored)]
    assert {"amount > 0", "number > 0", "sku"} <= {*texts}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, "each row of orders with its latest of prices, orders.sku = prices.sku, at most 7 days older"),
        (
            {"versions": "orders", "left_where": "amount > 0", "versions_where": "amount IS NULL"},
            (
                "each row of orders with its latest of orders, left.sku = right.sku, at most 7 days older, "
                "left where amount > 0, right where amount IS NULL"
            ),
        ),
    ],
)
def test_it_is_described(changes: dict[str, Any], wanted: str) -> None:
    """A reader of `seamline check` or of the stream's page need not open the definition."""
    assert list_derived_facts(with_as_of(**changes)) == [("as-of join priced", wanted)]
