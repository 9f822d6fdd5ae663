"""Positions of sinks as text: a target gives back what it was given, and nothing else is taken for one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.model.protocol.sinks.steps import begin_way, find_range_due, plan_step

AGAIN = RangeAgain("2026-03-01T00:00:00Z")
STANDING = st.builds(SinkPosition, st.text(max_size=8), st.integers(0, 9))
UNDERWAY = st.builds(
    SinkPosition, st.text(max_size=8), st.integers(-1, 9), st.integers(10, 99), st.integers(0, 99)
)


@given(STANDING | UNDERWAY)
def test_a_position_comes_back_from_a_target(position: SinkPosition) -> None:
    """What a start reads is what the last write left."""
    assert SinkPosition.from_json(position.to_json()) == position


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '"x"', "null",
        '{"fingerprint":"f","version":"3","toward":null,"rows":0}',
        '{"fingerprint":"f","version":true,"toward":null,"rows":0}',
        '{"fingerprint":4,"version":3,"toward":null,"rows":0}',
        '{"fingerprint":"f","version":3,"toward":3,"rows":0}',
        '{"fingerprint":"f","version":3,"toward":null,"rows":1}',
        '{"fingerprint":"f","version":-1,"toward":null,"rows":0}',
        '{"fingerprint":"f","version":-2,"toward":null,"rows":0}',
        '{"fingerprint":"f","version":3,"toward":4,"rows":0,"more":1}',
    ],
)  # fmt: skip
def test_what_is_no_position_is_said_to_be_none(text: str) -> None:
    """A position that somebody else has written must not decide what is sent."""
    with pytest.raises(SetupError, match="position of a sink") as caught:
        SinkPosition.from_json(text)
    assert "resend" in caught.value.hint


def test_later_fields_are_not_guessed() -> None:
    """A position of a later release may mean what this one does not know."""
    with pytest.raises(SetupError):
        SinkPosition.from_json(
            json.dumps({"fingerprint": "f", "version": 1, "toward": None, "rows": 0, "lane": "x"})
        )


HERE = SinkPosition("a", 3)


@pytest.mark.parametrize(
    ("held", "position", "begun"),
    [
        (None, SinkPosition("b", 4), SinkPosition(" > b", -1, 4)),
        (None, SinkPosition(" > b", -1, 4, 7), SinkPosition(" > b", -1, 4)),
        (HERE, SinkPosition("b", 5), SinkPosition("a > b", 3, 5)),
        (HERE, SinkPosition("a > b", 3, 5, 7), SinkPosition("a > b", 3, 5)),
        (SinkPosition("a > b", 3, 5, 7), SinkPosition("a > b", 3, 5, 9), SinkPosition("a > b", 3, 5, 7)),
        (SinkPosition("a > b", 3, 5, 7), SinkPosition("b", 5), SinkPosition("a > b", 3, 5, 7)),
    ],
)
def test_who_takes_over_writes_all_of_what_was_begun(
    held: SinkPosition | None, position: SinkPosition, begun: SinkPosition
) -> None:
    """The way leads to the same version, and no change of it is passed over."""
    assert begin_way(held, position) == begun
    step = plan_step(begun, 99)
    assert step is not None
    assert (step.end, step.skip) == (position.toward or position.version, begun.rows)


def test_of_a_range_that_is_sent_again_the_position_says_so_already() -> None:
    """A write of it in parts changes the position with the last of them, and loses no request."""
    held = HERE.ask_again(RangeAgain("2026-03-01T00:00:00Z", "", 4))
    assert begin_way(held, held.send_again(2, whole=False)) == held
    assert begin_way(held, held.send_again(2, whole=True)) == held


@pytest.mark.parametrize("position", [HERE, SinkPosition("a > b", 3, 5, 7)])
def test_a_range_that_is_asked_for_is_a_part_of_the_position(position: SinkPosition) -> None:
    """It goes with the target on its way, is sent at a version, by count, and is gone once it was sent."""
    asked = position.ask_again(AGAIN)
    assert SinkPosition.from_json(asked.to_json()) == asked
    assert find_range_due(asked) == (AGAIN if position is HERE else None)
    step = plan_step(asked, 9)
    assert step is not None
    standing = step.reach("a", "b", 1, whole=True)
    assert find_range_due(standing) == AGAIN
    some = standing.send_again(5, whole=False)
    assert some.again == replace(AGAIN, done=5)
    assert some.send_again(2, whole=True) == SinkPosition("b", step.end)
    assert '"again"' not in position.to_json()


def test_two_ranges_are_one_that_has_both() -> None:
    """The end of one that has no end is none."""
    other = RangeAgain("2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z", 7)
    assert AGAIN.join(other) == RangeAgain("2026-02-01T00:00:00Z")
    late = RangeAgain("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
    assert other.join(late) == RangeAgain("2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z")
    finer = RangeAgain("2026-03-01T00:00:00.500000Z", "2026-03-02T00:00:00.500000Z")
    assert late.join(finer) == finer.join(late) == RangeAgain(late.start, finer.end)
