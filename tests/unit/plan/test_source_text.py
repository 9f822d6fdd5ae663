"""What a pipeline reads and joins, in words."""

from __future__ import annotations

from typing import Any

import pytest

from seamline import Join, Open, Tumbling
from seamline.plan.wording.source_text import describe_join


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"after": "1 hour"}, "a.k = b.l, b up to 1 hour after a"),
        (
            {"before": "60 seconds", "after": Open("1 minute")},
            "a.k = b.l, b up to 60 seconds before and less than 1 minute after a",
        ),
        ({}, "a.k = b.l, at the same instant"),
        (
            {"right": "a", "on": {"k": "k"}, "before": Open("0 seconds"), "after": "1 hour"},
            "a with itself, left.k = right.k, right up to 1 hour after left, not at the same instant",
        ),
        (
            {"same": Tumbling("10 minutes"), "where": "b_n > 1"},
            "a.k = b.l, both in one window, tumbling 10 minutes, where b_n > 1",
        ),
    ],
)
def test_a_join_is_described(said: dict[str, Any], wanted: str) -> None:
    """A reader of `seamline check` or of the stream's page need not open the definition."""
    assert describe_join(Join("j", **{"left": "a", "right": "b", "on": {"k": "l"}, **said})) == wanted
