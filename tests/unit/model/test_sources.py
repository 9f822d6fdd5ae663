"""Several sources in one pipeline: what each says of its own records, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from seamline import Batch, KafkaSource, Lookup, Pipeline, Rule, Tumbling, View, count, sum
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.event_ids import list_id_expressions
from seamline.model.compile.live_versions import live_views, stood_still
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.protocol.manifest import Manifest, fold_statements
from seamline.plan.publish.publication import plan_births

ORDERS = KafkaSource(
    name="orders",
    topic=["shop.orders", "web.orders"],
    schema="id STRING, shop STRING, amount DECIMAL(10,2), at TIMESTAMP",
    event_time="at",
    event_id=["id"],
    rules=[Rule("positive", "amount > 0")],
)
RETURNS = KafkaSource(
    name="returns",
    topic="returns",
    format="csv",
    schema="parcel BIGINT, shop STRING, sent TIMESTAMP, why STRING",
    event_time="sent",
    event_id=["parcel"],
    select={"reason": "upper(why)", "at": "sent"},
    where="shop <> 'closed'",
    side={"odd": "why IS NULL"},
)
BY_SHOP = View("by_shop", of="orders", keys=["shop"], window=Tumbling("1 hour"), measures={"n": count()})
BOTH = View(
    "both", of=["orders", "returns"], keys=["shop"], window=Tumbling("1 hour"), measures={"n": count()}
)
SHOP = Pipeline(
    name="shop", source=[ORDERS, RETURNS], views=[BY_SHOP, BOTH], batch=Batch("1 day", "2026-01-01")
)


def with_sources(*sources: Any, **changes: Any) -> Pipeline:
    """Return the shop with other sources, or other settings."""
    return replace(SHOP, source=list(sources) or SHOP.source, **changes)


def of_one(source: KafkaSource, **changes: Any) -> Pipeline:
    """Return a pipeline of one source."""
    return replace(SHOP, source=source, **{"views": [OF_NOBODY], **changes})


OF_NOBODY = View("v", keys=[], window=Tumbling("1 hour"), measures={"n": count()})
PLAIN = replace(RETURNS, name="", select={}, where="", side={})
TARIFF = Lookup("tariff", "tables/tariff.csv", on={"shop": "shop"}, columns=["rate DOUBLE"])
RULES = Lookup("rules", "tables/rules.csv", on={}, columns=["name"], condition="when", every="found")
WRONG: Mapping[str, tuple[Pipeline, str, str]] = {
    "no source": (replace(SHOP, source=[]), "source", "needs a source"),
    "no sources": (replace(SHOP, source=["orders"]), "source", "'orders' is not a KafkaSource"),  # type: ignore[list-item]
    "source without a name": (with_sources(ORDERS, replace(RETURNS, name="")), "source.name", "has no name"),
    "source of a wrong name": (with_sources(ORDERS, replace(RETURNS, name="My")), "source.name", "'My'"),
    "two sources of a name": (with_sources(ORDERS, replace(RETURNS, name="orders")), "source.name", "twice"),
    "a topic of two sources": (
        with_sources(ORDERS, replace(RETURNS, topic="web.orders")),
        "source[returns].topic",
        "is of source 'orders' too",
    ),
    "two brokers": (with_sources(ORDERS, replace(RETURNS, connection="b")), "source.connection", "share one"),
    "two horizons": (
        with_sources(replace(ORDERS, dedup_within="1 day"), replace(RETURNS, dedup_within="1 hour")),
        "source.dedup_within",
        "share one",
    ),
    "an id for some": (with_sources(ORDERS, replace(RETURNS, event_id=[])), "source.event_id", "has none"),
    "added columns of several": (
        with_sources(ORDERS, replace(RETURNS, added=["colour STRING"])),
        "source[returns].added",
        "no added columns",
    ),
    "a column of two types": (
        with_sources(ORDERS, replace(RETURNS, schema="parcel BIGINT, shop INT, sent TIMESTAMP, why STRING")),
        "source[returns].schema",
        "but 'shop' of source 'orders' is STRING",
    ),
    "a column of two cases": (
        with_sources(
            ORDERS, replace(RETURNS, schema="parcel BIGINT, SHOP STRING, sent TIMESTAMP, why STRING")
        ),
        "source[returns].schema",
        "Column 'SHOP'",
    ),
    "a rule of all": (with_sources(rules=[Rule("r", "amount > 0")]), "rules", "has one source"),
    "a selection of all": (with_sources(where="shop = 'a'"), "where", "has one source"),
    "a transform of several": (with_sources(transform="tests.unit.steps:words"), "transform", "one source"),
    "a wrong rule of one": (
        with_sources(replace(ORDERS, rules=[Rule("r", "why = 'x'")]), RETURNS),
        "source[orders].rules[r].condition",
        "why",
    ),
    "a wrong schema of one": (
        with_sources(ORDERS, replace(RETURNS, schema="parcel TEXTS")),
        "source[returns].schema",
        "TEXTS",
    ),
    "rules of two records": (
        with_sources(
            replace(ORDERS, lookups=[RULES], select={"rated": "size(found)"}),
            replace(RETURNS, lookups=[RULES], select={"rating": "size(found)"}),
        ),
        "source[returns].lookups[rules]",
        "with conditions that see other columns",
    ),
    "a look-up of two shapes": (
        with_sources(
            replace(ORDERS, lookups=[TARIFF], select={"rated": "tariff_rate"}),
            replace(
                RETURNS,
                lookups=[replace(TARIFF, columns=["rate INT"])],
                select={"rated": "CAST(tariff_rate AS DOUBLE)"},
            ),
        ),
        "source[returns].lookups[tariff]",
        "another table, key or columns",
    ),
    "a look-up that no row has": (
        with_sources(replace(ORDERS, lookups=[TARIFF]), RETURNS),
        "source[orders].lookups[tariff]",
        "Nothing uses its columns",
    ),
    "a look-up of a source and of answers": (
        with_sources(
            replace(ORDERS, lookups=[TARIFF], select={"rated": "tariff_rate"}), RETURNS, lookups=[TARIFF]
        ),
        "source[orders].lookups[tariff]",
        "has 'tariff' too",
    ),
    "two rules of a name": (
        with_sources(replace(ORDERS, rules=[Rule("r", "amount > 0"), Rule("r", "amount < 9")]), RETURNS),
        "source[orders].rules",
        "'r' is declared twice",
    ),
    "nothing for a source": (replace(SHOP, source=None), "source", "None is not a KafkaSource"),  # type: ignore[arg-type]
    "a view of no source": (with_sources(views=[OF_NOBODY]), "views[v].of", "several sources"),
    "a view of another source": (
        with_sources(views=[replace(OF_NOBODY, of="claims")]),
        "views[v].of",
        "There is no source 'claims'",
    ),
    "a view of a source twice": (
        with_sources(views=[replace(OF_NOBODY, of=["orders", "orders"])]),
        "views[v].of",
        "named twice",
    ),
    "a column of the other source": (
        with_sources(views=[replace(BY_SHOP, keys=["reason"])]),
        "views[by_shop].keys",
        "no column 'reason'",
    ),
    "a column that not all have": (
        with_sources(views=[replace(BOTH, measures={"s": sum("amount")})]),
        "views[both].measures[s]",
        "amount",
    ),
    "a name for one source": (of_one(replace(PLAIN, name="returns")), "source.name", "no name"),
    "steps in one source": (
        of_one(replace(RETURNS, name="")),
        "source.select",
        "select= of the pipeline",
    ),
    "a view of the one source": (
        of_one(PLAIN, views=[replace(OF_NOBODY, of="returns")]),
        "views[v].of",
        "has no name",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_source_is_refused_with_its_place(name: str) -> None:
    """The author of three sources must be told which of them is wrong."""
    pipeline, field, words = WRONG[name]
    compiled, problems = compile_with_problems(pipeline)
    assert compiled is None
    [found] = [each for each in problems if each.field.startswith(field)]
    assert words in found.message + found.hint
    assert found.hint
    assert found.file == __file__


def test_rows_of_all_sources_have_the_columns_of_each() -> None:
    """One master: what a source does not have is NULL in its rows, and each row names its source."""
    made = compile_pipeline(SHOP)
    assert [field.name for field in made.record.flags] == ["_source", "_selected", "_side"]
    assert [field.name for field in made.schema.fields] == [
        "id", "shop", "amount", "at", "parcel", "sent", "why", "reason",
    ]  # fmt: skip
    assert made.definition.topics == ("shop.orders", "web.orders", "returns")
    for alone in made.by_source:
        assert [field.name for field in alone.record.flags] == ["_source", "_selected", "_side"]
    assert [[view.name for view in alone.views] for alone in made.by_source] == [
        ["by_shop", "both"],
        ["both"],
    ]


def test_a_view_of_several_sees_the_columns_that_all_of_them_have() -> None:
    """``at`` is a column of both: of one it is declared, of the other derived."""
    made = compile_pipeline(with_sources(views=[replace(BOTH, keys=["shop", "at"])]))
    [view] = made.views
    assert [key.name for key in view.keys] == ["shop", "at"]
    assert view.of == ("orders", "returns")
    assert view.where is not None
    assert view.where.columns >= {"_source", "_selected"}


def test_an_event_is_one_of_its_source() -> None:
    """Two sources may use the same id: a column counts for the rows of those that name it."""
    made = compile_pipeline(SHOP)
    assert made.event_id == ("_source", "id", "parcel")
    assert list_id_expressions(made, lambda name: name) == [
        "_source",
        "CASE WHEN _source IN ('orders') THEN id END",
        "CASE WHEN _source IN ('returns') THEN parcel END",
    ]
    plain = Pipeline(
        name="plain",
        source=replace(ORDERS, name="", rules=[]),
        views=[OF_NOBODY],
        batch=SHOP.batch,
    )
    assert list_id_expressions(compile_pipeline(plain), lambda name: name) == ["id"]


def test_what_any_source_says_is_part_of_every_version() -> None:
    """Rows of all have one record version, and every view follows it: an epoch has rows of all."""
    before = compile_pipeline(SHOP)
    changed = compile_pipeline(with_sources(ORDERS, replace(RETURNS, where="")))
    assert before.record_version != changed.record_version
    assert {view.id for view in before.views}.isdisjoint(view.id for view in changed.views)
    turned = compile_pipeline(with_sources(RETURNS, ORDERS))
    assert turned.record_version == before.record_version
    assert turned.clock == before.clock
    assert [view.id for view in turned.views] == [view.id for view in before.views]
    described = compile_pipeline(with_sources(ORDERS, RETURNS, description="A shop.", owner="me"))
    assert described.record_version == before.record_version


def test_views_of_the_same_measures_differ_by_their_source() -> None:
    """They are other numbers."""
    made = compile_pipeline(with_sources(views=[BOTH, replace(BOTH, name="orders_only", of="orders")]))
    both, orders = made.views
    assert both.fingerprint != orders.fingerprint
    turned = compile_pipeline(with_sources(views=[replace(BOTH, of=["returns", "orders"])]))
    assert turned.views[0].id == compile_pipeline(with_sources(views=[BOTH])).views[0].id


def test_a_stored_definition_has_all_sources() -> None:
    """A version that is born outlives the file it was in."""
    assert from_json(to_json(SHOP)) == SHOP
    assert compile_pipeline(from_json(to_json(SHOP))).views == compile_pipeline(SHOP).views


def test_a_source_is_not_read_as_another_s() -> None:
    """What is forgotten would be a row of some source that is not its own."""
    with pytest.raises(TypeError, match="2 sources"):
        _ = compile_pipeline(SHOP).source


def test_the_order_of_sources_does_not_stop_an_earlier_version() -> None:
    """They have other places in the file now, and the same topics."""
    before, now = compile_pipeline(SHOP), datetime(2026, 1, 1, tzinfo=UTC)
    births = plan_births(Manifest(), {view.id: to_json(SHOP) for view in before.views}, held=-1, now=now)
    manifest = fold_statements([replace(each, seq=at) for at, each in enumerate(births)], len(births))
    changed = replace(BY_SHOP, measures={"n": count(), "total": sum("amount")})
    after = compile_pipeline(with_sources(RETURNS, ORDERS, views=[changed, BOTH]))
    assert stood_still(after, manifest) == {}
    assert before.views[0].id in [view.id for view in live_views(after, manifest).views]
