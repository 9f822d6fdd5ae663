"""Sinks: searched over every order of refreshes, writes, deaths, takeovers, upkeep and resendings (rule 32)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.protocol.model.sinks import Bounds, Rules, search

ONE = Bounds(runners=1)
NO_UPKEEP = Bounds(upkeeps=0)
RESENT = Bounds(clears=1, upkeeps=0, deaths=1, versions=Bounds().versions[:2])
PARTS = Bounds(upkeeps=0, chunk=2, parts=True, deaths=1)
CERTIFIED = Bounds(certified=True, runners=1)
AGAIN = Bounds(asks=1, upkeeps=0, deaths=1, versions=Bounds().versions[1:3])
HARMED = replace(AGAIN, runners=1, harms=1)
SEARCHED = {
    "one runner": (ONE, 9_000),
    "two runners": (replace(NO_UPKEEP, deaths=1), 50_000),
    "two runners and upkeep": (replace(ONE, runners=2, deaths=1, versions=Bounds().versions[:2]), 10_000),
    "two changes a transaction": (replace(NO_UPKEEP, chunk=2, deaths=1), 30_000),
    "two changes one by one": (PARTS, 30_000),
    "one by one beside upkeep": (replace(PARTS, runners=1, upkeeps=1, deaths=2), 1),
    "certified rows alone": (CERTIFIED, 7_000),
    "sent again": (RESENT, 15_000),
    "a range sent again": (AGAIN, 20_000),
    "a range that somebody has changed": (HARMED, 2_000),
    "a range sent again, two at once, and upkeep": (replace(HARMED, chunk=2, upkeeps=1), 1_000),
    "a range sent again one by one": (replace(HARMED, chunk=2, parts=True), 1_000),
    "a range of certified rows": (replace(AGAIN, runners=1, certified=True), 500),
}
OFF = {
    "together": (Rules(together=False), ONE),
    "fenced": (Rules(fenced=False), NO_UPKEEP),
    "from_target": (Rules(from_target=False), ONE),
    "ordered": (Rules(ordered=False), NO_UPKEEP),
    "to_the_end": (Rules(to_the_end=False), ONE),
    "deletes": (Rules(deletes=False), ONE),
    "by_version": (Rules(by_version=False), ONE),
    "interlock": (Rules(interlock=False), ONE),
    "behind": (Rules(behind=False), ONE),
    "copied_first": (Rules(copied_first=False), ONE),
    "looks_again": (Rules(looks_again=False), ONE),
    "created": (Rules(created=False), replace(ONE, runners=2, deaths=1)),
    "marked": (Rules(marked=False), RESENT),
    "begun": (Rules(begun=False), replace(PARTS, runners=1)),
    "counted": (Rules(counted=False), replace(AGAIN, runners=1)),
    "standing": (Rules(standing=False), replace(AGAIN, runners=1)),
    "again_first": (Rules(again_first=False), replace(AGAIN, harms=1)),
    "strays": (Rules(strays=False), HARMED),
    "asked_by_owner": (Rules(asked_by_owner=False), AGAIN),
}


@pytest.mark.parametrize("name", SEARCHED)
def test_a_target_holds_what_its_position_says(name: str) -> None:
    """Each change is sent once, whoever dies when, and the files that are to be compared are there."""
    bounds, least = SEARCHED[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    # A search that a change has emptied proves nothing.
    assert found.states >= least, str(found)
    assert {"a dies", "a gets no reply", "the table is refreshed"} <= found.done


@pytest.mark.parametrize("rule", OFF)
def test_a_rule_of_sinks_that_is_turned_off_is_missed(rule: str) -> None:
    """What the search does not miss it does not need."""
    rules, bounds = OFF[rule]
    assert search(rules, bounds).violation
