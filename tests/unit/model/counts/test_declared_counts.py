"""What a definition may say of its producers, and to whom it matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.counts_world import declare

from seamline import Batch, Counts, Join, KafkaSource, Pipeline, Tumbling, View, count
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.counts.counting_sources import list_counts_of_view
from seamline.model.compile.stored_definition import from_json, to_json

GOOD = Counts("orders.counts", producer="shop")


@pytest.mark.parametrize(
    ("counts", "field", "words"),
    [
        (Counts("orders counts"), "source.counts.topic", "not the name of a topic"),
        (Counts("orders"), "source.counts.topic", "is also read"),
        (replace(GOOD, producer="store"), "source.counts.producer", "no column 'store'"),
        (replace(GOOD, producer="at"), "source.counts.producer", "cannot hold the name"),
        (replace(GOOD, producers=["eu", ""]), "source.counts.producers", "an empty name"),
        (replace(GOOD, producers=["eu", "eu"]), "source.counts.producers", "a name twice"),
        (replace(GOOD, remember="soon"), "source.counts.remember", "not a duration"),
        (replace(GOOD, remember=""), "source.counts.remember", "not a duration"),
        (replace(GOOD, grace="soon", required=True), "source.counts.grace", "not a duration"),
        (replace(GOOD, grace="1 hour"), "source.counts.grace", "No interval waits"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(counts: Counts, field: str, words: str) -> None:
    """Before anything waits for a topic that nobody can write."""
    _, problems = compile_with_problems(declare(counts))
    assert [each.field for each in problems] == [field]
    assert words in problems[0].message


def test_event_time_must_be_known_to_producers() -> None:
    """Nobody can say how many records will be read at an hour."""
    declared = declare(GOOD)
    source: Any = replace(declared.source, event_time="processing_time()")  # type: ignore[type-var]
    _, problems = compile_with_problems(replace(declared, source=source))
    assert "which producers cannot know" in problems[0].message


def test_counts_change_no_number_and_are_stored() -> None:
    """Views keep their versions when producers begin to make statements."""
    with_, without = declare(GOOD), declare(None)  # type: ignore[arg-type]
    assert compile_pipeline(with_).views[0].id == compile_pipeline(without).views[0].id
    assert compile_pipeline(with_).record_version == compile_pipeline(without).record_version
    assert from_json(to_json(with_)) == with_


def test_a_view_is_held_to_the_producers_of_its_rows() -> None:
    """And to no others: of a join to those of both sides."""

    def source(name: str, counts: Counts | None) -> KafkaSource:
        return KafkaSource(name, schema="id BIGINT, at TIMESTAMP", event_time="at", name=name, counts=counts)

    pipeline = Pipeline(
        name="shop",
        source=[
            source("orders", Counts("orders.counts")),
            source("refunds", Counts("refunds.counts")),
            source("visits", None),
        ],
        derive=[Join("returned", left="orders", right="refunds", on={"id": "id"}, after="1 hour")],
        views=[
            View(name, of=of, keys=[], window=Tumbling("1 hour"), measures={"n": count()})
            for name, of in (("ordered", "orders"), ("visited", "visits"), ("returns", "returned"))
        ],
        batch=Batch("1 day", "2026-01-01"),
        defaults="2026-11",
    )
    made = compile_pipeline(pipeline)
    assert [[source.name for source, _ in list_counts_of_view(made, view)] for view in made.views] == [
        ["orders"], [], ["orders", "refunds"]
    ]  # fmt: skip
