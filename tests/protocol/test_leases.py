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
    "by_place": Rules(by_place=False),
    "by_process": Rules(by_process=False),
}


@pytest.mark.parametrize(
    ("until", "commits", "places", "states"),
    [
        (4, 3, (0, 1), 39_741),
        (4, 3, (0, 0), 46_187),
        pytest.param(5, 4, (0, 1), 141_612, marks=pytest.mark.faults),
    ],
)
def test_no_two_believe_in_one_lease(until: int, commits: int, places: tuple[int, int], states: int) -> None:
    """Tokens keep the tables right all the same; but two drivers would read everything twice and fence each other."""
    visited, found = search(Rules(), (0, 0), until=until, commits=commits, places=places)
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


def test_only_in_its_own_place_is_a_holder_seen_to_be_gone() -> None:
    """There nobody waits for it; from anywhere else its beat is waited for, whatever its host is called."""
    assert waited(Rules(), (0, 0), places=(0, 0)) < TTL
    assert waited(Rules(), (0, 0), places=(0, 1)) >= TTL
