"""One lease, one driver: searched over every order of looks, commits, replies and deaths, with any clock on a wall."""

from __future__ import annotations

import pytest
from tests.protocol.model.leases import TTL, Rules, search, waited

SKEWS = [(0, 0), (6, 0), (-6, 0)]
OFF = {
    "by_beats": Rules(by_beats=False),
    "looks_again": Rules(looks_again=False),
    "since_seen": Rules(since_seen=False),
    "since_sent": Rules(since_sent=False),
    "conditional": Rules(conditional=False),
}


@pytest.mark.parametrize(
    ("until", "commits", "states"),
    [(4, 3, 39_741), pytest.param(5, 4, 141_612, marks=pytest.mark.faults)],
)
def test_no_two_believe_in_one_lease(until: int, commits: int, states: int) -> None:
    """Tokens keep the tables right all the same; but two drivers would read everything twice and fence each other."""
    visited, found = search(Rules(), (0, 0), until=until, commits=commits)
    assert found is None
    assert visited == states


@pytest.mark.parametrize("rule", OFF)
def test_a_rule_of_leases_that_is_turned_off_is_missed(rule: str) -> None:
    """What the search does not miss it does not need."""
    assert any(search(OFF[rule], skews, until=4, commits=3)[1] for skews in SKEWS[::-1])


@pytest.mark.parametrize("skews", SKEWS, ids=str)
def test_the_dead_are_replaced_in_time(skews: tuple[int, int]) -> None:
    """By their wall clock they would hold for as long as it is ahead."""
    assert waited(Rules(), skews) <= TTL + 1
    assert (waited(Rules(by_beats=False), skews) > TTL + 1) == (skews == (6, 0))
