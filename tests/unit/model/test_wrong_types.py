"""Whatever stands in a field of a definition, it compiles and can be stored, or is refused where it was written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from tests.unit.kernel.test_formats import PROTO

from seamline import (
    AlertRoute,
    Ask,
    AsOf,
    Avro,
    Batch,
    Changelog,
    CoGroup,
    Counts,
    CountWindow,
    Csv,
    Cumulating,
    DeadLetterSink,
    Debezium,
    DeltaSource,
    Expect,
    ExpectationSuite,
    ExpectRows,
    ExponentialDelay,
    FailureRate,
    FileSink,
    FixedDelay,
    Global,
    Join,
    Json,
    KafkaSink,
    KafkaSource,
    Lookup,
    NoRestart,
    Open,
    Pattern,
    Pipeline,
    PostgresSink,
    Process,
    RedisSink,
    Rule,
    Session,
    Sliding,
    Stream,
    Text,
    Tumbling,
    View,
    Watermark,
    avg,
    collect_distinct,
    count,
    count_true,
    distinct,
    first,
    formula,
    histogram,
    last,
    max,
    min,
    own,
    protobuf,
    quantile,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
    variance,
)
from seamline.model.compile.compiled_pipeline import compile_with_problems
from seamline.model.compile.defaults import NEWEST
from seamline.model.compile.stored_definition import CLASSES, from_json, to_json
from seamline.model.definition.field_examples import EXAMPLES, NOUNS
from seamline.model.errors import DefinitionError

HOUR = Tumbling("1 hour")
SOURCE = KafkaSource("shop.orders", "id STRING, amount DOUBLE, at TIMESTAMP", "at")
TABLE = DeltaSource("/lake/orders", SOURCE.schema, "at")
VIEW = View("all", keys=["id"], window=HOUR, measures={"n": count()})
SHOP = Pipeline("shop", source=SOURCE, views=[VIEW], batch=Batch("1 day", "2026-01-01"))
BOUGHT, SOLD = replace(SOURCE, name="bought"), replace(SOURCE, name="sold", topic="shop.sold")
JOIN = Join("both", "bought", "sold", on={"id": "id"}, after="1 hour")
JOINED = replace(
    SHOP, source=[BOUGHT, SOLD], derive=[JOIN], views=[replace(VIEW, of="both", keys=["bought_id"])]
)


def with_source(part: Any) -> Pipeline:
    return replace(SHOP, source=part)


def with_view(part: Any) -> Pipeline:
    return replace(SHOP, views=[part])


def with_window(part: Any) -> Pipeline:
    return with_view(replace(VIEW, window=part))


def with_measure(part: Any) -> Pipeline:
    return with_view(replace(VIEW, measures={"n": count(), "m": part}))


def with_format(part: Any) -> Pipeline:
    return with_source(replace(SOURCE, format=part))


def with_expectation(part: Any) -> Pipeline:
    return with_view(replace(VIEW, expect=[part]))


def with_join(part: Any) -> Pipeline:
    return replace(JOINED, derive=[part])


def with_restart(part: Any) -> Pipeline:
    """Put a restart policy into a pipeline."""
    return replace(SHOP, stream=Stream(restart=part))


AVRO = '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "string"}, {"name": "at", "type": "long"}]}'
SUITE = ExpectationSuite([{"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}}])
PLACES: Mapping[str, tuple[Any, Callable[[Any], Pipeline]]] = {
    "Pipeline": (SHOP, lambda part: part),
    "Pipeline of several sources": (JOINED, lambda part: part),
    "KafkaSource": (SOURCE, with_source),
    "DeltaSource": (TABLE, with_source),
    "DeltaSource of several": (
        replace(TABLE, name="sold"),
        lambda part: replace(JOINED, source=[BOUGHT, part]),
    ),
    "KafkaSource of several": (SOLD, lambda part: replace(JOINED, source=[BOUGHT, part])),
    "Ask": (
        Ask(
            "scored",
            of="sold",
            by="tests.unit.asking.payments:ask",
            request={"id": "id"},
            columns=["risk INT"],
        ),
        lambda part: replace(JOINED, derive=[JOIN, part]),
    ),
    "Process": (
        Process(
            "carts", of="sold", by="tests.unit.process_functions:Remembers", keys=["id"], columns=["amount"]
        ),
        lambda part: replace(JOINED, derive=[JOIN, part]),
    ),
    "Pattern": (
        Pattern(
            "risen",
            of="sold",
            keys=["id"],
            steps="low high",
            within="1 hour",
            define={"low": "amount < 1"},
            select={"most": "max(amount)"},
        ),
        lambda part: replace(JOINED, derive=[JOIN, part]),
    ),
    "CoGroup": (
        CoGroup(
            "met",
            left="sold",
            right="bought",
            on={"id": "id"},
            window=Tumbling("1 hour"),
            by="tests.unit.group_functions:Both",
        ),
        lambda part: replace(JOINED, derive=[JOIN, part]),
    ),
    "Changelog": (
        Changelog("open", of="bought"),
        lambda part: replace(JOINED, source=[replace(BOUGHT, key=["id"]), SOLD], derive=[JOIN, part]),
    ),
    "Debezium": (
        Debezium(),
        lambda part: with_source(
            replace(SOURCE, schema=f"{SOURCE.schema}, __deleted BOOLEAN", key=["id"], format=part)
        ),
    ),
    "KafkaSink": (
        KafkaSink("all", topic="orders.all", changes=True, name="out"),
        lambda part: replace(SHOP, sinks=[part]),
    ),
    "DeadLetterSink": (
        DeadLetterSink("late", topic="orders.late", name="out"),
        lambda part: replace(SHOP, sinks=[part]),
    ),
    "PostgresSink": (
        PostgresSink("all", table="all", name="out"),
        lambda part: replace(SHOP, sinks=[part]),
    ),
    "FileSink": (
        FileSink(
            "all", path="/exports/all", buckets=["1 hour"], roll_age="5 minutes", history=True, name="out"
        ),
        lambda part: replace(SHOP, sinks=[part]),
    ),
    "RedisSink": (
        RedisSink("all", prefix="all:", expire="7 days", at_once=50, name="out"),
        lambda part: replace(SHOP, sinks=[part]),
    ),
    "Counts": (
        Counts("orders.counts", producer="id", producers=["eu"], required=True, grace="1 hour"),
        lambda part: with_source(replace(SOURCE, counts=part)),
    ),
    "Lookup": (
        Lookup("tariff", "tariff.csv", on={"id": "id"}, columns=["rate INT"]),
        lambda part: replace(SHOP, lookups=[part], select={"rate": "tariff_rate"}),
    ),
    "Lookup of rules": (
        Lookup(
            "tariff", "t.csv", {"id": "id"}, ["name", "least INT"], every="rates", where="tariff_least > 1"
        ),
        lambda part: replace(SHOP, lookups=[part], select={"rate": "get(rates, 0)"}),
    ),
    "Lookup of answers": (
        Lookup("tariff", "tariff.csv", on={"id": "id"}, columns=["rate INT"]),
        lambda part: replace(SHOP, lookups=[part]),
    ),
    "Rule": (Rule("paid", "amount > 0"), lambda part: replace(SHOP, rules=[part])),
    "Join": (JOIN, with_join),
    "AsOf": (
        AsOf("known", left="bought", versions="sold", on={"id": "id"}, at_most="1 hour"),
        lambda part: replace(JOINED, derive=[JOIN, part]),
    ),
    "Open": (Open("1 minute"), lambda part: with_join(replace(JOIN, before=part))),
    "View": (VIEW, with_view),
    "View of a join": (JOINED.views[0], lambda part: replace(JOINED, views=[part])),
    "Expect": (Expect("n", at_least=1), with_expectation),
    "ExpectRows": (ExpectRows(at_least=1), with_expectation),
    "ExpectationSuite": (SUITE, with_expectation),
    "Stream": (Stream(), lambda part: replace(SHOP, stream=part)),
    "Batch": (SHOP.batch, lambda part: replace(SHOP, batch=part)),
    "Watermark": (Watermark(), lambda part: with_source(replace(SOURCE, watermark=part))),
    "AlertRoute": (
        AlertRoute("alerts.pager", "critical", ["hole"]),
        lambda part: replace(SHOP, alerts=[part]),
    ),
    "ExponentialDelay": (ExponentialDelay(), with_restart),
    "FixedDelay": (FixedDelay(), with_restart),
    "FailureRate": (FailureRate(), with_restart),
    "NoRestart": (NoRestart(), with_restart),
    "Tumbling": (HOUR, with_window),
    "Tumbling of a join": (
        HOUR,
        lambda part: with_join(replace(JOIN, before="0 seconds", after="0 seconds", same=part)),
    ),
    "Sliding": (Sliding("1 hour", "20 minutes"), with_window),
    "Cumulating": (Cumulating("1 day", "1 hour"), with_window),
    "Global": (Global(), with_window),
    "Session": (Session("1 hour"), with_window),
    "CountWindow": (CountWindow(3), with_window),
    "Json": (Json(), with_format),
    "Csv": (Csv(), with_format),
    "Text": (Text("(?P<id>.)(?P<amount>.)(?P<at>.)"), with_format),
    "Avro": (
        Avro(AVRO),
        lambda part: with_source(replace(SOURCE, schema="id STRING, at TIMESTAMP", format=part)),
    ),
    "Protobuf": (
        PROTO,
        lambda part: with_source(replace(SOURCE, schema="id STRING, at TIMESTAMP", format=part)),
    ),
    "Count": (count("id"), with_measure),
    "Sum": (sum("amount"), with_measure),
    "Average": (avg("amount"), with_measure),
    "Minimum": (min("amount"), with_measure),
    "Maximum": (max("amount"), with_measure),
    "First": (first("amount"), with_measure),
    "Last": (last("amount"), with_measure),
    "Variance": (variance("amount"), with_measure),
    "Deviation": (stddev("amount"), with_measure),
    "Distinct": (distinct("id"), with_measure),
    "Quantile": (quantile("amount", 0.5), with_measure),
    "Quantiles": (quantiles("amount", [0.5]), with_measure),
    "Top": (top("id", 3), with_measure),
    "Histogram": (histogram("amount", [1, 2]), with_measure),
    "CollectDistinct": (collect_distinct("id"), with_measure),
    "Own": (own("amount", "tests.unit.own_measures:Span"), with_measure),
    "Ratio": (ratio("n", "n"), with_measure),
    "Formula": (formula("n + 0D", n=avg("amount")), with_measure),
}
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: 5,
    lambda: -1,
    lambda: 10**40,
    lambda: 1.5,
    lambda: float("nan"),
    lambda: "",
    lambda: " ",
    lambda: "no such thing",
    lambda: "id",
    lambda: "\ud800",
    lambda: "3650000 days",
    lambda: "99999999999999 weeks",
    lambda: "9" * 5000 + " days",
    lambda: "0001-01-01T00:00+14:00",
    lambda: b"id",
    lambda: object(),
    lambda: str,
    lambda: len,
    list,
    lambda: ["id"],
    lambda: ("id",),
    lambda: ["id", None],
    lambda: [["id"]],
    lambda: [[["id"]]],
    lambda: [5],
    lambda: [{}],
    lambda: range(3),
    lambda: {"id"},
    lambda: (each for each in ["id"]),
    lambda: iter([VIEW]),
    lambda: {"id": 0}.keys(),
    dict,
    lambda: {"a": "id"},
    lambda: {"a": 1},
    lambda: {"a": None},
    lambda: {5: "id"},
    lambda: {None: count()},
    lambda: [("a", "id")],
    lambda: HOUR,
    lambda: VIEW,
    lambda: [VIEW, 5],
    lambda: {"n": VIEW},
    lambda: {"n": count(5)},  # type: ignore[arg-type]
    lambda: [Expect(5)],  # type: ignore[arg-type]
)


def require_clear_refusal(made: Pipeline) -> list[DefinitionError]:
    """Return the problems of a definition, each with its place and a hint; where it has none it can be stored."""
    compiled, problems = compile_with_problems(made)
    assert problems or compiled
    for each in problems:
        assert each.file == __file__
        assert each.line
        assert each.field
        assert each.hint
        assert " at 0x" not in each.message + each.hint
    if compiled:
        again, stored = (compile_with_problems(each)[0] for each in (made, from_json(to_json(made))))
        assert again
        assert stored
        assert [view.id for view in compiled.views] == [view.id for view in again.views]
        assert [view.id for view in compiled.views] == [view.id for view in stored.views]
    return problems


def wrong_parts(name: str) -> Iterator[tuple[str, int, Callable[[], Pipeline]]]:
    """Make the definitions with a value in a field of one of their parts, each with the field and the value's place."""
    part, place = PLACES[name]
    for field in (each for each in fields(part) if each.name != "origin"):
        for at, value in enumerate(VALUES):
            yield field.name, at, lambda: place(replace(part, **{field.name: value()}))  # noqa: B023


def test_every_class_has_its_place() -> None:
    """A class that is missing here is one of which nobody knows what it refuses."""
    assert {name.split()[0] for name in PLACES} == {*CLASSES}


@pytest.mark.parametrize("name", PLACES)
def test_a_part_is_right_where_nothing_is_wrong(name: str) -> None:
    """Else every value would be refused, whatever it is."""
    part, place = PLACES[name]
    assert compile_with_problems(place(part))[1] == []


@pytest.mark.parametrize("name", PLACES)
def test_any_value_in_any_field_compiles_or_is_refused(name: str) -> None:
    """A traceback names a line of ours, and neither the field nor what to write there."""
    for field, at, make in wrong_parts(name):
        try:
            require_clear_refusal(make())
        except Exception as error:
            raise AssertionError(f"{name}.{field} of VALUES[{at}]") from error


@pytest.mark.parametrize("name", [name for name in PLACES if "origin" in vars(PLACES[name][0])])
def test_an_origin_is_not_an_authors_to_say(name: str) -> None:
    """A place that is none would be looked for in every message about it."""
    part, place = PLACES[name]
    found = compile_with_problems(place(replace(part, origin=5)))[1]
    assert [each.message for each in found] == ["5 is not an Origin."]
    assert found[0].field.endswith("origin")


WORDS = {
    word.__name__: word
    for word in (
        count, count_true, sum, avg, min, max, first, last, variance, stddev, distinct, quantile, quantiles,
        top, histogram, collect_distinct, ratio, formula, own,
    )
}  # fmt: skip
GIVEN = {
    "of": "amount", "condition": "amount > 1", "at": 0.5, "k": 3, "edges": [1], "above": "n", "below": "n",
    "by": "tests.unit.own_measures:Span", "sql": "n", "parts": count(),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_any_argument_of_a_measure_compiles_or_is_refused(name: str) -> None:
    """What makes a measure runs before anything is checked, on the author's line."""
    asked = inspect.signature(WORDS[name]).parameters.values()
    needed = {each.name: GIVEN[each.name] for each in asked if each.default is each.empty}
    for given in (each.name for each in asked):
        for at, value in enumerate(VALUES):
            try:
                arguments = {**needed, given: value()}
                require_clear_refusal(with_measure(WORDS[name](**arguments)))
            except Exception as error:
                raise AssertionError(f"{name}({given}=) of VALUES[{at}]") from error


@pytest.mark.parametrize(
    "make", [ExpectationSuite.of, lambda value: protobuf(value, value)], ids=["of", "protobuf"]
)
@pytest.mark.parametrize("at", range(len(VALUES)))
def test_what_is_taken_over_is_refused_where_it_is_none(make: Callable[[Any], Any], at: int) -> None:
    """Both look into what they are given before there is a definition to check."""
    with pytest.raises(DefinitionError) as told:
        make(VALUES[at]())
    assert told.value.hint


REFUSED: Mapping[str, tuple[Pipeline, str, str, str]] = {
    "nothing for a condition": (
        with_view(replace(VIEW, where=None)),
        "views[all].where",
        "None is not a condition.",
        'write where="amount > 0", or leave it out.',
    ),
    "one key as a text": (
        with_view(replace(VIEW, keys="id")),
        "views[all].keys",
        "'id' is not a list of columns.",
        'write keys=["id"].',
    ),
    "keys without an order": (
        with_view(replace(VIEW, keys={"id", "amount"})),
        "views[all].keys",
        "",
        'write keys=["amount", "id"].',
    ),
    "views that can be read once": (
        replace(SHOP, views=iter([VIEW])),
        "views",
        "A list_iterator can be read only once.",
        'write list(...) around it, or views=[View("by_shop", keys=["shop"], ...)].',
    ),
    "keys that can be read once": (
        with_view(replace(VIEW, keys=(each for each in ["id"]))),
        "views[all].keys",
        "A generator can be read only once.",
        'write list(...) around it, or keys=["shop"].',
    ),
    "measures in a list": (
        with_view(replace(VIEW, measures=[count()])),
        "views[all].measures",
        "[Count(of='', where='')] is not a mapping.",
        'write measures={"n": count()}.',
    ),
    "a measure that is a text": (
        with_view(replace(VIEW, measures={"n": "count()"})),
        "views[all].measures[n]",
        "'count()' is not a measure.",
        'write measures={"n": count()}.',
    ),
    "an expression that is a number": (
        replace(SHOP, select={"a": 1}),
        "select[a]",
        "1 is not an expression.",
        'write select={"name": "expression"}, or leave it out.',
    ),
    "a left side that is a list": (
        with_join(replace(JOIN, left=["bought"])),
        "derive[both].left",
        "['bought'] is not a name.",
        'write left="orders".',
    ),
    "a name that is a number": (
        with_view(replace(VIEW, name=5)),
        "views[0].name",
        "5 is not a name.",
        'write name="orders".',
    ),
    "a topic that is none": (
        with_source(replace(SOURCE, topic=None)),
        "source.topic",
        "None is not a topic or a list of topics.",
        'write topic="orders", or topic=["orders", "returns"].',
    ),
    "a watermark that is a duration": (
        with_source(replace(SOURCE, watermark="10 minutes")),
        "source.watermark",
        "'10 minutes' is not a Watermark.",
        'write watermark=Watermark("10 minutes"), or leave it out.',
    ),
    "half a letter": (
        with_source(replace(SOURCE, schema="\ud800 STRING")),
        "source.schema",
        "'\\ud800 STRING' cannot be written as UTF-8.",
        'write schema="order_id STRING, amount DOUBLE, placed_at TIMESTAMP".',
    ),
    "a duration beyond the calendar": (
        with_source(replace(SOURCE, max_past="9999999 days")),
        "source.max_past",
        "'9999999 days' is longer than 3650000 days.",
        "use a shorter one: no event is that far from another.",
    ),
    "a topic that Kafka cannot have": (
        with_source(replace(SOURCE, topic="shop orders")),
        "source.topic",
        "'shop orders' is not the name of a topic.",
        "Kafka's names have letters, digits, dots, underscores and dashes, 249 at most.",
    ),
    "fewer parts than none": (
        replace(SHOP, stream=Stream(parts=-1)),
        "stream.parts",
        "-1 is not a number of parts.",
        "use a whole number of 0 or more.",
    ),
    "a name in capitals": (
        with_view(replace(VIEW, name="ByShop")),
        "views[ByShop].name",
        "'ByShop' is not a valid name.",
        'use lower-case letters, digits and single underscores, as in "by_shop".',
    ),
    "a key that is nearly one": (
        with_view(replace(VIEW, keys=["amoount"])),
        "views[all].keys",
        "There is no column 'amoount'.",
        "did you mean amount? the schema has id, amount, at.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_what_to_write_instead(name: str) -> None:
    """A hint that can be typed as it stands saves a look into the docs."""
    made, field, message, hint = REFUSED[name]
    [found] = [each for each in require_clear_refusal(made) if each.field == field]
    assert message in found.message
    assert found.hint == hint


def test_examples_are_of_fields_and_of_today() -> None:
    """A word that no field has any more is never said."""
    known = {(each.__name__, field.name) for each in CLASSES.values() for field in fields(each)}
    names = {name for _, name in known} | {f"{owner}.{name}" for owner, name in known}
    assert {*NOUNS, *EXAMPLES} <= names
    assert NEWEST in EXAMPLES["defaults"]


def test_a_stored_definition_says_nothing_by_none() -> None:
    """Earlier releases let None pass where nothing was meant, and stored it so."""
    text = (
        to_json(SHOP)
        .replace('"dedup_within":""', '"dedup_within":null')
        .replace('"on_late":""', '"on_late":null')
    )
    assert text.count(":null") > to_json(SHOP).count(":null")
    assert from_json(text) == SHOP
