"""Lives that somebody thought of: rows that are joined."""

from __future__ import annotations

from random import Random

from tests.lives.definitions import Shape
from tests.lives.events.batching import Build, Publish
from tests.lives.events.ending import End
from tests.lives.events.sending import Send
from tests.lives.events.streaming import Epoch, Idle, Rules
from tests.lives.joined import JOIN, SOURCE, joined_view
from tests.lives.lives import Life, drawn, lived
from tests.lives.operations import Operation
from tests.lives.records import Column
from tests.lives.switches import ON

from seamline import Batch, Join, KafkaSource, Pipeline
from seamline.model.compile.compiled_pipeline import compile_pipeline

COLUMNS = (Column("customer", "STRING", ("a", "b")), Column("amount", "INT", (1, 2)))


def shape_of(seed: int) -> Shape:
    """Declare a join of a topic with itself by customer, and a view of it."""
    shape = Shape(COLUMNS, "at", "number", unique=False, lanes=1, pipeline=None)  # type: ignore[arg-type]
    pipeline = Pipeline(
        name="life",
        source=[
            KafkaSource(
                name=SOURCE,
                topic="events",
                schema="number BIGINT NOT NULL, customer STRING, amount INT, at TIMESTAMP",
                event_time="at",
            )
        ],
        derive=[Join(JOIN, left=SOURCE, right=SOURCE, on={"customer": "customer"}, after="1 hour")],
        views=[joined_view("v", shape, "customer", Random(seed))],
        batch=Batch("1 day", "2024-01-01"),
    )
    return Shape(COLUMNS, "at", "number", unique=False, lanes=1, pipeline=compile_pipeline(pipeline))


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
