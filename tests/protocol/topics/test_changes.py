"""Changelogs: all intervals add up to the table after all changes, whatever their cuts, and however it was made."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.protocol.model.changes import RIGHT, Bounds, Rules, check_all
from tests.protocol.model.state import Violation

QUICK = {"three rows": (Bounds(), 171_936), "two keys": (Bounds(2, 2, (1, 2)), 7_040)}
WIDE = {
    "four rows": (Bounds(4, orders=(1, 2)), 1_306_624),
    "three rows, two keys": (Bounds(3, 2, (1, None)), 407_552),
}
SUMS, INDEX, BLOCK = "cut at", "an index", "the block"
MISSED = {
    "newest": SUMS,
    "ties": SUMS,
    "keeps": SUMS,
    "unordered": SUMS,
    "by_log": INDEX,
    "stands": INDEX,
    "below": SUMS,
    "between": SUMS,
    "own_log": SUMS,
    "begins": BLOCK,
}
"""What is wrong first where a rule is turned off."""


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(each, marks=pytest.mark.faults) for each in WIDE)])
def test_all_intervals_add_up_to_the_table(name: str) -> None:
    """At any epoch, with any cut of each interval, any snapshot, and an index that was lost at any time."""
    bounds, wanted = {**QUICK, **WIDE}[name]
    assert check_all(bounds, RIGHT) == wanted


@pytest.mark.parametrize("rule", [each.name for each in fields(Rules)])
def test_a_rule_of_changelogs_that_is_turned_off_is_missed(rule: str) -> None:
    """What no log misses is not needed."""
    with pytest.raises(Violation, match=MISSED[rule]):
        check_all(Bounds(), replace(RIGHT, **{rule: False}))
