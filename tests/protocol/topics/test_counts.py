"""Producers' statements: searched over every order of those who take them, their deaths, and certificates."""

from __future__ import annotations

import pytest
from tests.protocol.model.counts import Bounds, Rules, search

OFF = {
    "together": Rules(together=False),
    "decided": Rules(decided=False),
    "by_offset": Rules(by_offset=False),
    "by_time": Rules(by_time=False),
    "expects": Rules(expects=False),
    "unstated_only": Rules(unstated_only=False),
}
MORE = (((1, 5), (0, 3), (3, 2)), ((4, 2), (2, 3)))
"""Corrections of corrections, by clocks that go back."""


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(lanes=MORE, deaths=3)], ids=["small", "large"])
def test_each_statement_is_taken_once_and_a_certificate_says_what_was_said(bounds: Bounds) -> None:
    """Whoever takes them, in whatever order, and wherever one dies."""
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    assert found.states > 50
    assert {"a dies", "b is refused", "a commits"} <= found.done


@pytest.mark.parametrize("rule", OFF)
def test_a_rule_of_counts_that_is_turned_off_is_missed(rule: str) -> None:
    """What the search does not miss it does not need."""
    assert search(OFF[rule], Bounds(lanes=MORE)).violation
