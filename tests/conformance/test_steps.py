"""Steps that are no expressions mean the same in the plain engine and in Spark's tasks."""

from __future__ import annotations

import pytest

from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, sum

TALK = Pipeline(
    name="talk",
    source=KafkaSource(topic="talk", schema="text STRING NOT NULL, at TIMESTAMP", event_time="at"),
    transform="tests.unit.steps:words",
    transform_schema="words INT",
    views=[View("words", keys=["text"], window=Tumbling("1 day"), measures={"words": sum("words")})],
    batch=Batch("1 day", "2024-01-01"),
)


@pytest.fixture(params=["plain", "spark"])
def engine(request):
    """The session of the engine, none of the plain one."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


def said(text: str, at: str = "2024-01-01T10:00Z") -> dict[str, str]:
    return {"text": text, "at": at}


def test_a_transform_is_the_same_in_both_layers(engine, scenario):
    """What it leaves out is counted by the certificate; what it breaks on is refused alone."""
    talk = scenario(TALK, spark=engine, now="2024-01-03")
    talk.send(said("a b"), said("# c"), said("boom"), said("a b"), said("late", "2024-01-02T09:00Z"))
    assert dict(talk.epoch().refused) == {"error in transform": 1}
    seen = [(row["text"], row["words"]) for row in talk.answer()]
    assert seen == [("a b", 4), ("late", 1)]
    assert talk.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    assert [(row["words"], row["batch_part"]) for row in talk.answer(text="a b")] == [(4, 2)]
