"""Rules from a topic: searched over every order of epochs, failures, deaths and definitions."""

from __future__ import annotations

import pytest
from tests.protocol.model.rule_topics import Bounds, Rules, search

OFF = {
    "named": Rules(named=False),
    "forgets": Rules(forgets=False),
    "own_range": Rules(own_range=False),
    "in_order": Rules(in_order=False),
    "tombstones": Rules(tombstones=False),
    "always_named": Rules(always_named=False),
    "one_definition": Rules(one_definition=False),
}


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        (Bounds(), 422),
        (Bounds(events=4, deaths=3, changes=2), 1_374),
    ],
    ids=["small", "large"],
)
def test_each_event_meets_the_rules_that_were_read_with_it_or_before(bounds: Bounds, states: int) -> None:
    """Whoever dies in between, and whatever was read by another definition."""
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    assert found.states == states


@pytest.mark.parametrize("rule", OFF)
def test_a_rule_that_is_turned_off_is_missed(rule: str) -> None:
    """What the search does not miss it does not need."""
    assert search(OFF[rule], Bounds()).violation
