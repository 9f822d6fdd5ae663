"""Positions of sinks as text: a target gives back what it was given, and nothing else is taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition

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
