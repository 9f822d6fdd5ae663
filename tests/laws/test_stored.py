"""A stored definition is the definition: whatever is stored at a birth must run years later."""

from __future__ import annotations

import json
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.fingerprint import fingerprint_view, record_version, view_facts
from seamline.model.compile.stored_definition import CLASSES, compile_stored_version, from_json, to_json
from seamline.model.definition import expectations, pipeline
from seamline.model.definition.alert_routes import AlertRoute
from seamline.model.definition.debezium import Debezium
from seamline.model.definition.expectations import Expect, ExpectationSuite, ExpectRows
from seamline.model.definition.format_base import Format
from seamline.model.definition.formats import Avro, Csv, Json, Protobuf, Text
from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.origin import Origin
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.restarts import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartPolicy,
)
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.model.definition.sources import KafkaSource, Lookup, Rule
from seamline.model.definition.windows import (
    CountWindow,
    Cumulating,
    Global,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from seamline.model.errors import DefinitionError
from seamline.model.measures import MEASURES, Formula, Measure, Own, Quantile, Sum
from seamline.model.protocol.watermark import Watermark

TEXT = st.text(max_size=12)
NAMES = st.text("abcdefgh", min_size=1, max_size=6)
NUMBERS = st.none() | st.integers() | st.floats(allow_nan=False)


def several(each: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(each, max_size=3) | st.lists(each, max_size=3).map(tuple)


MORE: dict[type[Measure], dict[str, st.SearchStrategy[Any]]] = {
    Quantile: {"at": st.floats(0, 1)},
    Own: {"by": st.just("tests.unit.own_measures:Span"), "version": TEXT},
    Formula: {
        "sql": TEXT,
        "made_of": st.dictionaries(NAMES, st.builds(Sum, of=TEXT, where=TEXT), max_size=2),
    },
}
MEASURE = st.sampled_from(MEASURES).flatmap(
    lambda made: st.builds(made, of=TEXT, where=TEXT, **MORE.get(made, {}))
)
SUITE = st.builds(
    ExpectationSuite,
    several(
        st.fixed_dictionaries({"type": NAMES, "kwargs": st.dictionaries(NAMES, NUMBERS | several(TEXT))})
    ),
    several(NAMES),
)
EXPECT = (
    st.builds(
        Expect,
        NAMES,
        at_least=NUMBERS,
        at_most=NUMBERS,
        not_null=st.booleans(),
        unique=st.booleans(),
        in_set=several(TEXT),
        regex=TEXT,
    )
    | st.builds(ExpectRows, at_least=st.none() | st.integers(), max_change=NUMBERS)
    | SUITE
)
VIEW = st.builds(
    View,
    name=NAMES,
    keys=several(NAMES),
    window=st.builds(Tumbling, TEXT, offset=TEXT, zone=TEXT)
    | st.builds(Sliding, TEXT, TEXT)
    | st.builds(Cumulating, TEXT, TEXT)
    | st.builds(Session, TEXT)
    | st.builds(CountWindow, st.integers())
    | st.just(Global()),
    measures=st.dictionaries(NAMES | st.sampled_from(["is", "of", "rows"]), MEASURE, max_size=4),
    where=TEXT,
    explode=st.dictionaries(NAMES, TEXT, max_size=1),
    expect=several(EXPECT) | SUITE,
    grouping_sets=several(several(NAMES)),
)
FORMAT = (
    st.sampled_from(["json", "csv", Json()])
    | st.builds(Csv, TEXT, TEXT, TEXT)
    | st.builds(Text, TEXT)
    | st.builds(Avro, TEXT, st.booleans())
    | st.builds(Protobuf, TEXT, TEXT)
    | st.builds(Debezium, TEXT, TEXT, st.booleans(), TEXT)
)
RESTART = (
    st.builds(ExponentialDelay, TEXT, TEXT, st.integers())
    | st.builds(FixedDelay, TEXT, st.integers())
    | st.builds(FailureRate, st.integers(), TEXT, TEXT)
    | st.just(NoRestart())
)
PIPELINE = st.builds(
    Pipeline,
    name=NAMES,
    source=st.builds(
        KafkaSource,
        topic=TEXT,
        schema=TEXT,
        event_time=TEXT,
        event_id=several(NAMES),
        format=FORMAT,
        watermark=st.builds(Watermark, TEXT, TEXT),
    ),
    views=several(VIEW),
    batch=st.builds(Batch, TEXT, TEXT),
    rules=several(st.builds(Rule, TEXT, TEXT)),
    select=st.dictionaries(NAMES, TEXT, max_size=3),
    where=TEXT,
    side=st.dictionaries(NAMES, TEXT, max_size=3),
    transform=st.sampled_from(["", "tests.unit.steps:words"]),
    transform_schema=TEXT,
    transform_version=TEXT,
    lookups=several(
        st.builds(Lookup, NAMES, TEXT, st.dictionaries(NAMES, TEXT, max_size=2), several(TEXT), TEXT)
    ),
    stream=st.builds(Stream, trigger=TEXT, edge_epochs=st.integers(), restart=RESTART),
    tags=several(TEXT),
    alerts=several(st.builds(AlertRoute, TEXT, TEXT, several(TEXT))),
)


def flights() -> Pipeline:
    folder = Path(__file__).parents[2] / "include" / "pipelines"
    return load_catalog(folder).pipeline("flights").definition


@given(PIPELINE)
def test_a_definition_comes_back_as_it_was(made: Pipeline) -> None:
    """Equal, with equal fingerprints: the same tables are found and the same numbers made."""
    back = from_json(to_json(made))
    assert back == made
    assert [fingerprint_view(back, view) for view in back.views] == [
        fingerprint_view(made, view) for view in made.views
    ]
    assert record_version(back) == record_version(made)
    assert to_json(back) == to_json(made)


def test_the_demo_comes_back_and_compiles_to_the_same() -> None:
    """The lines of the file are not kept, and nothing else is lost."""
    made = flights()
    text = to_json(made)
    assert Path(made.origin.file).name not in text
    assert from_json(text) == made
    assert compile_pipeline(from_json(text)).views == compile_pipeline(made).views


def test_every_word_of_a_definition_can_be_stored() -> None:
    """A class added to the language and not to the registry would break the first start that uses it."""
    words = {
        each for module in (pipeline, expectations) for each in vars(module).values() if is_dataclass(each)
    } - {
        Origin,
        Format,
        Measure,
        RestartPolicy,
        AnySink,
        Window,
    }
    assert words <= set(CLASSES.values())


def test_what_is_no_word_is_refused_when_it_is_stored() -> None:
    """A birth that could not be read again would be found out too late."""
    wrong = Pipeline("p", flights().source, [], Batch("1 day", "2024-01-01"), tags=[object()])  # type: ignore[list-item]
    with pytest.raises(DefinitionError, match="object cannot be stored"):
        to_json(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        '"flights"',
        json.dumps(view_facts(flights(), flights().views[0])),
        to_json(flights()).replace("Quantile", "Mode"),
        to_json(flights()).replace('"owner"', '"landlord"'),
    ],
)
def test_what_cannot_be_read_is_a_sentence(text: str) -> None:
    """Also what an earlier or a later release stored."""
    with pytest.raises(DefinitionError, match="stored definition"):
        from_json(text)


def test_what_an_earlier_release_let_pass_keeps_no_version_from_being_read() -> None:
    """What a view expects changes no number of it; who edits the definition is told."""
    made = flights()
    view = replace(made.views[0], expect=[Expect("carrier", at_least=0)])
    text = to_json(replace(made, views=[view, *made.views[1:]]))
    with pytest.raises(DefinitionError, match="has no bounds"):
        compile_pipeline(from_json(text))
    compiled, found = compile_stored_version(f"{view.name}/{fingerprint_view(made, view)}", text)
    assert not found.expect and len(compiled.views) == len(made.views)
