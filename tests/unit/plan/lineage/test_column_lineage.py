"""Which columns of records a table's columns come from, and what is done with them on the way."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.examples import catalog

from seamline import (
    Batch,
    KafkaSource,
    Lookup,
    Pipeline,
    Rule,
    Tumbling,
    View,
    avg,
    count,
    max,
    ratio,
    sum,
)
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.plan.lineage.column_lineage import (
    read_master,
    trace_answers,
    trace_master,
    trace_published,
    trace_sources,
    trace_states,
)
from seamline.plan.lineage.dataset_names import DatasetName, name_topic
from seamline.plan.lineage.lineage_events import ColumnLineage, InputColumn

PRICES = DatasetName("file", "/lake/products.csv")
MASTER = DatasetName("file", "/lake/tables/orders/master")
ORDERS = Pipeline(
    name="orders",
    source=KafkaSource(
        topic="shop.orders",
        schema="id BIGINT NOT NULL, shop STRING, amount BIGINT, tax BIGINT, at TIMESTAMP NOT NULL",
        event_time="at",
    ),
    rules=[Rule("amount is positive", "amount > 0")],
    select={"place": "upper(shop)", "gross": "amount + tax", "twice": "gross * 2", "same": "shop"},
    where="place <> 'TEST'",
    lookups=[Lookup("product", table="products.csv", on={"id": "id"}, columns=["kind"])],
    views=[
        View(
            "by_place",
            keys=["place", "product_kind"],
            window=Tumbling("1 hour"),
            where="tax > 0",
            measures={
                "n": count(),
                "total": sum("twice"),
                "mean": avg("amount", where="shop IS NOT NULL"),
                "most": max("same"),
                "share": ratio("total", "n"),
            },
        )
    ],
    batch=Batch("1 day", "2026-01-01"),
    defaults="2026-11",
)


def spell(inputs: tuple[InputColumn, ...]) -> list[str]:
    """Spell columns: where each is from, and what is done with it."""
    return [f"{each.dataset.name}.{each.field} {each.how.name} {each.text}".rstrip() for each in inputs]


def spell_fields(lineage: ColumnLineage) -> Mapping[str, list[str]]:
    """Spell the columns of a table."""
    return {name: spell(inputs) for name, inputs in lineage.fields.items()}


def trace(pipeline: CompiledPipeline) -> dict[str, Mapping[str, tuple[InputColumn, ...]]]:
    """Follow the rows of each source to its topics."""
    topics = {
        each.name: tuple(name_topic("b:9092", topic) for topic in each.topics)
        for each in pipeline.definition.sources
    }
    return trace_sources(pipeline, topics, {"product": PRICES})


def test_columns_of_the_master_are_followed_through_expressions() -> None:
    """A derived column that another is made of is none of the topic's: the first of them is what counts."""
    pipeline = compile_pipeline(ORDERS)
    found = trace_master(pipeline, trace(pipeline))
    assert spell_fields(found) == {
        "id": ["shop.orders.id IDENTITY"],
        "shop": ["shop.orders.shop IDENTITY"],
        "amount": ["shop.orders.amount IDENTITY"],
        "tax": ["shop.orders.tax IDENTITY"],
        "at": ["shop.orders.at IDENTITY"],
        "product_kind": ["/lake/products.csv.kind IDENTITY", "shop.orders.id JOIN id"],
        "place": ["shop.orders.shop TRANSFORMATION upper(shop)"],
        "gross": [
            "shop.orders.amount TRANSFORMATION amount + tax",
            "shop.orders.tax TRANSFORMATION amount + tax",
        ],
        "twice": [
            "shop.orders.amount TRANSFORMATION gross * 2",
            "shop.orders.tax TRANSFORMATION gross * 2",
        ],
        "same": ["shop.orders.shop IDENTITY"],
    }
    assert spell(found.whole) == ["shop.orders.amount FILTER amount > 0"]


def test_measures_are_aggregations_and_keys_group() -> None:
    """What decides which rows count is lineage of the whole table; a count of rows comes from no column."""
    pipeline = compile_pipeline(ORDERS)
    [view] = pipeline.views
    found = trace_answers(pipeline, view, trace(pipeline), {})
    assert spell_fields(found) == {
        "place": ["shop.orders.shop TRANSFORMATION upper(shop)"],
        "product_kind": ["/lake/products.csv.kind IDENTITY", "shop.orders.id JOIN id"],
        "total": ["shop.orders.amount AGGREGATION sum(twice)", "shop.orders.tax AGGREGATION sum(twice)"],
        "mean": [
            "shop.orders.amount AGGREGATION avg(amount, where=shop IS NOT NULL)",
            "shop.orders.shop AGGREGATION avg(amount, where=shop IS NOT NULL)",
        ],
        "most": ["shop.orders.shop AGGREGATION max(same)"],
        "share": ["shop.orders.amount AGGREGATION sum(twice)", "shop.orders.tax AGGREGATION sum(twice)"],
    }
    assert spell(found.whole) == [
        "shop.orders.shop FILTER place <> 'TEST'",
        "shop.orders.tax FILTER tax > 0",
        "shop.orders.shop GROUP_BY upper(shop)",
        "/lake/products.csv.kind GROUP_BY",
        "shop.orders.id JOIN id",
        "shop.orders.at WINDOW",
    ]


def test_states_of_a_build_come_from_the_master() -> None:
    """A build reads no topic; the master has what expressions have made."""
    pipeline = compile_pipeline(ORDERS)
    [view] = pipeline.views
    found = spell_fields(trace_states(pipeline, view, read_master(pipeline, MASTER)))
    assert found["place"] == [f"{MASTER.name}.place IDENTITY"]
    assert found["total__sum"] == [f"{MASTER.name}.twice AGGREGATION sum(twice)"]
    assert found.keys() <= {*(each.name for each in view.keys), *(each.name for each in view.parts)}
    served = spell_fields(trace_published(view, DatasetName("file", "/g")))
    assert served["place"] == ["/g.place IDENTITY"]
    assert "/g.total__sum AGGREGATION ratio" in served["share"]


def test_both_sides_of_a_join_are_followed() -> None:
    """A pair has columns of two topics, and what they are joined by decides which pairs there are."""
    found = catalog().pipeline("ad_attribution")
    view = found.views[0]
    made = trace_answers(found, view, trace(found), {})
    topics = {each.dataset.name for inputs in made.fields.values() for each in inputs}
    joined = {each.dataset.name for each in made.whole if each.how.name == "JOIN"}
    assert topics <= set(found.definition.topics)
    assert joined == set(found.definition.topics)


def test_what_a_function_emits_may_come_from_all_that_it_is_given() -> None:
    """Nobody reads a user's code: its columns are those of every row that it sees."""
    found = catalog().pipeline("abandoned_carts")
    view = found.view("by_shop")
    assert view is not None
    assert view.process is not None
    made = trace_answers(found, view, trace(found), {})
    name = view.process.function.name
    given = {field.name for field in view.process.columns}
    emitted = [each for inputs in made.fields.values() for each in inputs if each.how.name == "AGGREGATION"]
    assert {each.field for each in emitted} == given
    assert name
