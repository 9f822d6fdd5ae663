"""Lives that somebody thought of: versions of views that are born when there are records already."""

from __future__ import annotations

import pytest
from tests.lives.definitions import Shape
from tests.lives.events.batching import Build, Flip, Look, Publish
from tests.lives.events.losing import Lose, PassOver
from tests.lives.events.sending import Close, Send
from tests.lives.events.streaming import Epoch, Redefine, Serve
from tests.lives.lives import Life, lived
from tests.lives.records import Column

from seamline import Batch, KafkaSource, Pipeline, View, count
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.windows import Session, Sliding, Tumbling, Window
from seamline.model.protocol.seam import Side

WINDOWS = [Session("45 minutes"), Sliding("2 hours", "1 hour"), Tumbling("1 hour", "5 minutes")]
SOURCE = KafkaSource(
    topic="events", schema="number BIGINT NOT NULL, customer STRING, at TIMESTAMP", event_time="at"
)


def shape_of(window: Window) -> Shape:
    """Declare a count by customer."""
    view = View("v", keys=["customer"], window=window, measures={"n": count()})
    pipeline = Pipeline(name="life", source=SOURCE, views=[view], batch=Batch("1 day", "2024-01-01"))
    columns = (Column("customer", "STRING", ("a", "b")),)
    return Shape(columns, "at", "number", unique=False, lanes=1, pipeline=compile_pipeline(pipeline))


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_that_touch_a_day_without_rows_are_answered(window: Window) -> None:
    """A day without records, and the one before the pipeline's first, are never built for their rows' sake."""
    shape = shape_of(window)
    steps = [
        Send(9, 12, 0),
        Send(4, 12, 2),
        Epoch(40),
        Close(1, 3),
        Epoch(40),
        Redefine(0),
        Close(2, 4),
        Epoch(40),
    ]
    steps += [Build(-1, ""), Publish(0, ""), Flip(), Serve()]
    failure = lived(Life(1, shape, tuple(enumerate(steps))))
    assert failure is None, str(failure)


def test_a_version_born_before_any_row_was_accepted_lacks_none() -> None:
    """Epochs that read nothing, or nothing good, are no reason to wait for a build of every day to come."""
    steps = [Serve(), Send(9, 12, 0), Lose(0, 12), Redefine(0), Send(4, 12, 1), Epoch(40), Look(Side.SPEED)]
    failure = lived(Life(1, shape_of(Tumbling("1 hour")), tuple(enumerate(steps))))
    assert failure is None, str(failure)


def test_a_day_that_was_passed_over_is_built_once_it_is_read() -> None:
    """Its only rows are of the life's last epoch, up to which a run reads when the stream has come to rest."""
    steps = [Serve(), Send(9, 12, 0), PassOver(0, 12), Send(4, 12, 2), Epoch(40), Redefine(0)]
    failure = lived(Life(1, shape_of(Tumbling("1 hour")), tuple(enumerate(steps))))
    assert failure is None, str(failure)
