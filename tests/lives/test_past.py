"""Lives that somebody thought of: columns that come later, and answers of then."""

from __future__ import annotations

from tests.lives.events.batching import Build, Publish, Upkeep
from tests.lives.events.faults import Mishap
from tests.lives.events.past import Note, Recall
from tests.lives.events.sending import Close, Send
from tests.lives.events.streaming import Epoch, Kill, Widen
from tests.lives.lives import Life, lived
from tests.lives.test_versions import shape_of

from seamline.model.definition.windows import Session
from seamline.model.protocol.seam import Side


def test_answers_of_then_are_given_again() -> None:
    """Through a column more, a death, a build and upkeep."""
    noted = [Note(side) for side in Side]
    steps = [
        Send(9, 12, 0), Epoch(40), *noted, Close(1, 2), Widen(3), Send(4, 12, 1),
        Kill("slices", 3, Send(5, 3, 1)), Epoch(40), *noted,
        Build(-1, ""), Publish(0, ""), *noted, Upkeep(-1, Mishap.DIES_AFTER), Recall(),
    ]  # fmt: skip
    failure = lived(Life(1, shape_of(Session("45 minutes")), tuple(enumerate(steps))))
    assert failure is None, str(failure)
