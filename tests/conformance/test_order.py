"""What depends on the records before: duplicates that the stream takes out, and count windows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from seamline import (
    Batch,
    CountWindow,
    KafkaSource,
    Pipeline,
    Tumbling,
    View,
    Watermark,
    count,
    max,
    min,
    sum,
)
from seamline.lake.read.merged_read import read_merged_answer
from seamline.serve.explain import explain_number

GATE = Pipeline(
    name="gate",
    source=KafkaSource(
        topic="gate.passes",
        schema="id STRING NOT NULL, gate STRING NOT NULL, weight INT, at TIMESTAMP",
        event_time="at",
        event_id=["id"],
        dedup_within="1 hour",
        watermark=Watermark("10 minutes", idle_after="1 minute"),
    ),
    views=[
        View("hours", ["gate"], Tumbling("1 hour"), {"n": count(), "weight": sum("weight")}),
        View(
            "pairs",
            ["gate"],
            CountWindow(2),
            {"n": count(), "weight": sum("weight"), "least": min("weight"), "most": max("weight")},
            where="weight IS NOT NULL",
        ),
    ],
    batch=Batch("1 day", "2024-01-01"),
)


def passed(id, weight, at="09:00", gate="north", day=1):
    return {"id": id, "gate": gate, "weight": weight, "at": f"2024-01-0{day}T{at}Z"}


@pytest.fixture(params=["plain", "spark"])
def gate(request, scenario):
    session = request.getfixturevalue("spark") if request.param == "spark" else None
    return scenario(GATE, spark=session, now="2024-01-05")


def hours(story, side="merged"):
    return [
        (f"{row['window_start']:%d %H}", row["n"], row["weight"])
        for row in story.answer("hours", side=side, gate="north")
    ]


def pairs(story, side="merged", **where):
    return [
        (row["gate"], row["window_number"], row["n"], row["weight"], row["batch_part"])
        for row in story.answer("pairs", side=side, **where)
    ]


@pytest.mark.parametrize("gate", ["plain", pytest.param("spark", marks=pytest.mark.faults)], indirect=True)
def test_the_stream_takes_out_what_its_horizon_covers(gate):
    """Watermark minus an hour is how far back ids are known; the build knows all of them."""
    gate.send(passed("a", 1), passed("a", 1), passed("b", 2))
    gate.epoch()
    assert hours(gate) == [("01 09", 2, 3)]
    # Another epoch, after a crash and a start: the register is made again from the master.
    gate.send(passed("a", 1), passed("c", 4, "09:50"))
    assert gate.crash("slices") is None
    gate.epoch()
    assert hours(gate) == [("01 09", 3, 7)]
    assert f"{gate.watermark:%H:%M}" == "09:40"

    # 10:09 - 10 minutes - 1 hour = 08:59: ids of 09:00 are known. After 10:30 they are not, those of 09:50 are.
    gate.send(passed("z", 0, "10:09"))
    gate.epoch()
    gate.send(passed("a", 1))
    gate.epoch()
    assert hours(gate) == [("01 09", 3, 7), ("01 10", 1, 0)]
    gate.send(passed("z", 0, "10:30"), passed("y", 8, "10:30"))
    gate.epoch()
    gate.send(passed("a", 1), passed("c", 4, "09:50"))
    gate.send(passed("y", 8, "10:30"), partition=1)
    gate.epoch()
    assert hours(gate) == [("01 09", 4, 8), ("01 10", 2, 8)]

    # An id in two intervals is two events. The build takes out what the stream could not.
    gate.send(passed("a", 16, day=3), passed("end", 0, day=4))
    gate.send(passed("end2", 0, day=4), partition=1)
    gate.epoch()
    gate.batch("2024-01-01")
    assert hours(gate) == [("01 09", 3, 7), ("01 10", 2, 8), ("03 09", 1, 16), ("04 09", 2, 0)]
    assert gate.quarantine() == []


def test_a_refused_record_is_nobodys_first(gate):
    """Only what is accepted and selected makes a later one a duplicate."""
    gate.send("{not json", {"id": "a", "gate": "north", "weight": "heavy", "at": "2024-01-01T09:00Z"})
    gate.send(passed("a", 1))
    gate.epoch()
    assert hours(gate) == [("01 09", 1, 1)]
    assert len(gate.quarantine()) == 2


def test_every_second_event_of_a_key(gate):
    """north: 1 2 | 4 8 | 16, in the order they were read; a weight that is not there does not count."""
    gate.send(passed("a", 1), passed("b", None), passed("c", 2, "08:00"), passed("s", 100, gate="south"))
    gate.epoch()
    gate.send(passed("d", 4), passed("a", 1))
    assert gate.crash("master") is not None
    gate.send(passed("e", 8))
    gate.send(passed("f", 16), partition=1)
    gate.epoch(edge=False)
    gate.epoch()
    before = [("north", 1, 2, 3, 0), ("north", 2, 2, 12, 0), ("north", 3, 1, 16, 0), ("south", 1, 1, 100, 0)]
    assert pairs(gate) == before

    # A build answers for its day whole; what comes later waits for the next.
    gate.send(passed("end", 0, day=3))
    gate.send(passed("end2", 0, day=3), partition=1)
    gate.epoch()
    gate.batch("2024-01-01")
    built = [("north", 1, 2, 3, 2), ("north", 2, 2, 12, 2), ("north", 3, 1, 16, 1), ("south", 1, 1, 100, 1)]
    third = ("north", 1, 2, 0, 0)
    assert sorted(pairs(gate)) == sorted([*built, third])
    gate.send(passed("late", 32, "23:00"))
    gate.epoch()
    assert sorted(pairs(gate)) == sorted([*built, third])
    assert pairs(gate, "speed", gate="north")[2] == ("north", 3, 2, 48, 0)
    gate.batch()
    assert pairs(gate, gate="north")[2] == ("north", 3, 2, 48, 2)


@pytest.mark.faults
def test_a_window_of_two_events_is_taken_apart(scenario, spark):
    """What the master has of the third pair is what is served, by either side; the answer says what a horizon is."""
    story = scenario(GATE, spark=spark, now="2024-01-05")
    story.send(passed("a", 1), passed("b", 2), passed("c", 4), passed("c", 4))
    story.send(passed("d", 8), passed("e", 16), partition=1)
    story.epoch()
    view, layout = story.pipeline.view("pairs"), story.engine.layout
    assert "not removed in every interval yet, and within 1 hour after" in (
        read_merged_answer(story.pipeline, view, layout).summary()
    )
    for side, counted in (("speed", (0, 2)), ("batch", (2, 0))):
        third = {"gate": "north", "window_number": "2"}
        found = explain_number(story.pipeline, view, layout, third, (datetime(2024, 1, 1, tzinfo=UTC), None))
        assert found.row["weight"] == 12
        assert [(row["_partition"], row["_offset"], row["weight"]) for row in found.page] == [
            (0, 2, 4),
            (1, 0, 8),
        ]
        assert found.proven, found.proofs
        [part] = found.originals.values()
        assert (part.batch, part.speed) == counted
        story.send(passed(f"end {side}", 0, day=3))
        story.send(passed(f"end too {side}", 0, day=3), partition=1)
        story.epoch()
        story.batch("2024-01-01")
