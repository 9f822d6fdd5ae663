"""Lives that somebody thought of: rows that are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from random import Random
from typing import Any

import pytest
from tests.lives.builds import STAND_INS
from tests.lives.checks import check, decided
from tests.lives.definitions import Shape
from tests.lives.derived.joined import JOIN, SOURCE, joined_view
from tests.lives.events.batching import Build, Publish
from tests.lives.events.ending import End
from tests.lives.events.sending import Close, Send, SendCopies
from tests.lives.events.streaming import Epoch, Idle, Rules
from tests.lives.flagged import copies, flagged
from tests.lives.lives import Life, drawn, lived
from tests.lives.operations import Operation
from tests.lives.oracle import named
from tests.lives.records import Column
from tests.lives.switches import ON
from tests.lives.world import World

from seamline import Batch, Join, KafkaSource, Pipeline, Watermark
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.time.intervals import parse_duration

COLUMNS = (Column("customer", "STRING", ("a", "b")), Column("amount", "INT", (1, 2)))


def shape_of(seed: int, **ids: Any) -> Shape:
    """Declare a join of a topic with itself by customer, and a view of it; of rows with ``ids`` copies are known."""
    shape = Shape(COLUMNS, "at", "number", unique=False, lanes=1, pipeline=None)  # type: ignore[arg-type]
    pipeline = Pipeline(
        name="life",
        source=[
            KafkaSource(
                name=SOURCE,
                topic="events",
                schema="number BIGINT NOT NULL, customer STRING, amount INT, at TIMESTAMP",
                event_time="at",
                watermark=Watermark("10 minutes"),
                **ids,
            )
        ],
        derive=[Join(JOIN, left=SOURCE, right=SOURCE, on={"customer": "customer"}, after="1 hour")],
        views=[joined_view("v", shape, "customer", Random(seed))],
        batch=Batch("1 day", "2024-01-01"),
    )
    within = parse_duration(ids["dedup_within"]) if ids else None
    return replace(shape, unique=bool(ids), within=within, pipeline=compile_pipeline(pipeline))


def test_an_epoch_without_records_does_not_keep_joined_rows_behind() -> None:
    """The log's condensed rows have the number of their last epoch, about which there is no verdict then."""
    steps: list[Operation] = [
        Send(9, 12, 0),
        Epoch(40),
        Send(8, 12, 0),
        Epoch(40),
        Idle(9),
        Rules(),
        Send(7, 5, 1),
    ]
    steps += [Epoch(40), Build(-1, ""), Publish(0, ""), End()]
    failure = lived(Life(1, shape_of(3), tuple(enumerate(steps))))
    assert failure is None, str(failure)


def test_half_of_lives_join_rows() -> None:
    """Else chance would try little of them."""
    joined = [drawn(seed, ON, length=1).shape.joined for seed in range(60)]
    assert 20 < sum(joined) < 45


def test_copies_come_within_the_horizon_and_behind_it() -> None:
    """Those that the stream still knows are joined nowhere; others are, and keep their day from being certified."""
    with World(shape_of(3, event_id=["number"], dedup_within="1 day")) as world:
        before: list[Operation] = [Send(9, 12, 0), Epoch(40), SendCopies(3, 5), Epoch(40)]
        after: list[Operation] = [Close(1, 2), Epoch(40), SendCopies(3, 5), Epoch(40), Idle(9)]
        for step in before:
            step.run(world)
            check(world)
        assert flagged(world)
        assert not list(copies(world, world.newest))
        known = flagged(world)
        for step in [*after, Build(-1, ""), Publish(0, "")]:
            step.run(world)
            check(world)
        assert flagged(world) >= known
        assert {each.interval for each in copies(world, world.newest)} == {named(0)}
        published = {id for view, id in decided(world).published if view == world.pipeline.views[0].id}
        assert named(0) not in published


def test_copies_that_are_validated_again_are_joined_once() -> None:
    """The records were read by other rules: an interval with copies would not be certified."""
    steps: list[Operation] = [Send(9, 12, 0), Epoch(40), SendCopies(3, 5), Epoch(40), Rules()]
    steps += [Epoch(40), Build(-1, ""), Publish(0, ""), End()]
    shape = shape_of(3, event_id=["number"], dedup_within="30 minutes")
    failure = lived(Life(1, shape, tuple(enumerate(steps))))
    assert failure is None, str(failure)


def test_lives_have_event_ids_of_joined_rows_several_topics_and_two_sources() -> None:
    """Else chance would try little of them."""
    shapes = [drawn(seed, ON, length=1).shape for seed in range(60)]
    assert 10 < sum(each.within is not None for each in shapes) < 30
    assert 15 < sum(each.topics > 1 for each in shapes) < 35
    assert 3 < sum(len(each.pipeline.definition.sources) > 1 for each in shapes) < 15


def shape(called: Callable[..., object]) -> list[tuple[object, object]]:
    """Tell how a function is called: its parameters' kinds and defaults, in order."""
    return [(each.kind, each.default) for each in signature(called).parameters.values()]


@pytest.mark.parametrize(("module", "name", "mine"), STAND_INS, ids=[name for _, name, _ in STAND_INS])
def test_what_stands_in_the_place_of_spark_is_called_as_it_is(module, name, mine):
    assert shape(mine) == shape(getattr(module, name))
