"""Sinks in a definition: what they are called, what is refused, and that they mean nothing for numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.model.refused import require_refused
from tests.unit.shop import sales_pipeline

from seamline import KafkaSink, Pipeline
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.sinks.sink_base import Sink

SINK = KafkaSink("sales", topic="sales.out")


class Fax(Sink):
    """A sink that there is not."""


def with_sinks(*sinks: Sink) -> Pipeline:
    """Declare the shop with sinks."""
    return replace(sales_pipeline().definition, sinks=sinks)


def test_a_sink_is_named_by_its_view_unless_it_has_a_name() -> None:
    """The name is that of a Kafka transaction too, so it must be the same at each start."""
    assert SINK.id == "sales_kafka"
    assert replace(SINK, name="out").id == "out"


def test_a_sink_takes_part_in_no_version_and_is_stored() -> None:
    """A sink may be added and left out at any time, and no interval is built again for it."""
    plain, sinking = sales_pipeline(), compile_pipeline(with_sinks(SINK))
    assert sinking.record_version == plain.record_version
    assert [view.id for view in sinking.views] == [view.id for view in plain.views]
    assert from_json(to_json(sinking.definition)).sinks == (SINK,)


@pytest.mark.parametrize(
    ("sinks", "field", "words"),
    [
        ([replace(SINK, view="seles")], "sinks[seles_kafka].view", "the pipeline has sales"),
        ([replace(SINK, name="Out-1")], "sinks[Out-1].name", '"out"'),
        ([replace(SINK, when="later")], "sinks[sales_kafka].when", "change, complete, certified"),
        ([replace(SINK, topic="a b")], "sinks[sales_kafka].topic", "is not the name of a topic"),
        ([replace(SINK, topic="a" * 241)], "sinks[sales_kafka].topic", "240 at most"),
        ([replace(SINK, topic="sales")], "sinks[sales_kafka].topic", "is one that the pipeline reads"),
        (
            [SINK, replace(SINK, topic="sales.out.position", name="b")],
            "sinks[b].topic",
            "position of another sink",
        ),
        ([replace(SINK, connection="a b")], "sinks[sales_kafka].connection", "Airflow"),
        (
            [replace(SINK, changes=True, when="certified")],
            "sinks[sales_kafka].changes",
            "may never have been sent",
        ),
        ([SINK, replace(SINK, topic="b")], "sinks[sales_kafka].name", "declared twice"),
        ([SINK, replace(SINK, name="b")], "sinks[sales_kafka]", "overwrite each other's rows"),
        ([Fax("sales")], "sinks", "Fax is not one of the sinks"),
        (["sales"], "sinks", "KafkaSink("),
        ([replace(SINK, topic=None)], "sinks[0].topic", "topic="),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(sinks: list[Sink], field: str, words: str) -> None:
    """Each is found before anything starts, and said with what to write instead."""
    found = with_sinks(*sinks)
    file = next((each.origin.file for each in sinks if isinstance(each, Sink)), found.origin.file)
    require_refused(found, field, words, file)
