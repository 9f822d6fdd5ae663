"""A pipeline's graph: every part and every flow is there, rows go to the right, and nothing covers anything."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline import DeadLetterSink
from seamline.model.compile.catalog import load_catalog
from seamline.model.definition.pipeline import Pipeline
from seamline.plan.wording.pipeline_graph import (
    Graph,
    Node,
    NodeKind,
    draw_pipeline,
    lay_out,
    spread_out,
)

EXAMPLES = Path(__file__).parents[3] / "include" / "examples"
DERIVED = [Node(NodeKind.DERIVED, str(at), "") for at in range(9)]


def flows(graph: Graph) -> set[tuple[str, str]]:
    """Return which part feeds which, in words."""
    return {tuple(f"{kind.value} {name}" for kind, name in edge) for edge in graph.ways}


@pytest.fixture(scope="module")
def examples() -> dict[str, Pipeline]:
    """The definitions that are shipped."""
    return {name: each.definition for name, each in load_catalog(EXAMPLES).pipelines.items()}


def test_what_derived_rows_are_made_of_feeds_them(examples: dict[str, Pipeline]) -> None:
    """Joins have two inputs; a view of one source counts its records."""
    assert flows(draw_pipeline(examples["ad_attribution"])) == {
        ("source examples.impressions", "records shown"),
        ("source examples.clicks", "records clicked"),
        ("records shown", "derived rows attributed"),
        ("records clicked", "derived rows attributed"),
        ("derived rows attributed", "view by_site"),
        ("records shown", "view cost_by_campaign"),
    }


def test_answers_are_records_of_the_question(examples: dict[str, Pipeline]) -> None:
    """They come by a topic of ours, which is no source of the pipeline to people."""
    graph = draw_pipeline(examples["scored_payments"])
    assert ("derived rows scored", "records scored_answers") in flows(graph)
    assert ("records payments", "derived rows scored") in flows(graph)
    assert sum(each.kind is NodeKind.SOURCE for each in graph.nodes) == 1


def test_dead_letters_are_of_records(examples: dict[str, Pipeline]) -> None:
    """They are of no view; of each source that may have some."""
    two = replace(examples["ad_attribution"], sinks=[DeadLetterSink("rejected", topic="dead")])
    found = flows(draw_pipeline(two))
    assert {one for one, other in found if other == "sink rejected_dead_letters"} == {
        "records shown",
        "records clicked",
    }
    [about] = [each.about for each in draw_pipeline(two).nodes if each.kind is NodeKind.SINK]
    assert about == "dead letters topic dead of kafka_default, rejected records"


def test_every_view_of_the_examples_is_fed(examples: dict[str, Pipeline]) -> None:
    """Whatever the definition: a view or a derived row that nothing feeds would be drawn alone."""
    assert len(examples) > 10
    for definition in examples.values():
        graph = draw_pipeline(definition)
        fed = {other for _, other in graph.ways}
        assert {each.id for each in graph.nodes if each.kind is not NodeKind.SOURCE} == fed
        check(graph)


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda each: each[0] < each[1])))
def test_rows_go_right_and_nothing_is_covered(edges: set[tuple[int, int]]) -> None:
    """For any graph without circles."""
    check(lay_out(DERIVED, [(DERIVED[one].id, DERIVED[other].id) for one, other in sorted(edges)]))


def check(graph: Graph) -> None:
    """Assert what holds of every layout."""
    for way in graph.ways.values():
        assert all(graph.columns[other] == graph.columns[one] + 1 for one, other in pairwise(way))
    for column in set(graph.columns.values()):
        rows = sorted(graph.rows[id] for id in graph.columns if graph.columns[id] == column)
        assert all(other - one >= 0.98 for one, other in pairwise(rows))


@given(st.lists(st.integers(0, 20), max_size=6).map(sorted), st.data())
def test_places_are_as_near_as_they_can_be(wanted: list[int], data: st.DataObject) -> None:
    """No other places that are 1 apart are nearer to what is wanted."""
    found = spread_out(wanted)
    assert all(other - one >= 1 - 1e-9 for one, other in pairwise(found))
    other = [
        at + place for at, place in enumerate(sorted(data.draw(st.lists(st.floats(-9, 30), min_size=6))))
    ]

    def distance(places: list[float]) -> float:
        return sum((place - want) ** 2 for place, want in zip(places, wanted, strict=False))

    assert distance(found) <= distance(other) + 1e-6
