"""Process functions: slices, builds and snapshots are the fold of a key's rows, in whatever order these come."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.protocol.model.functions import RIGHT, Bounds, Rules, check_all
from tests.protocol.model.state import Violation

THREE = Bounds(3, (0, 1, 3), (0, 1, 3, 4))
QUICK = {"two epochs": (Bounds(), 2_058), "three epochs": (THREE, 2_560)}
WIDE = {
    "three epochs, two spans": (Bounds(3), 38_416),
    "four epochs": (Bounds(4, (0, 1, 2, 3), (0, 2, 3, 4)), 43_750),
}
SLICES, BUILDS, SNAPSHOTS = "slice", "a build", "by a snapshot"
STALE, CLOSED, BLOCKS, BORN = "counts as up to date", "was closed", "blocks", "born after"
MISSED = {
    "by_time": SLICES,
    "by_place": SLICES,
    "timers_first": SLICES,
    "within": SLICES,
    "anew": SLICES,
    "late": SLICES,
    "settles": SLICES,
    "until_mark": SLICES,
    "withdraws": SLICES,
    "recorded": BUILDS,
    "unchanged": SNAPSHOTS,
    "both_ways": SNAPSHOTS,
    "pending": SNAPSHOTS,
    "own_span": SNAPSHOTS,
    "apart": STALE,
    "whole": STALE,
    "moves": STALE,
    "to_end": CLOSED,
    "fired": BORN,
    "takes": BLOCKS,
    "passed": BLOCKS,
    "to_edge": BLOCKS,
    "own_clock": BLOCKS,
}
"""What is wrong first where a rule is turned off."""
THIRD = ("to_edge", "own_clock")
"""Rules that only a third epoch misses."""


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(each, marks=pytest.mark.faults) for each in WIDE)])
def test_slices_builds_and_snapshots_are_the_fold(name: str) -> None:
    """Of every log: no interval that changes counts as up to date, and none that is closed changes by itself."""
    bounds, wanted = {**QUICK, **WIDE}[name]
    assert check_all(bounds, RIGHT) == wanted


@pytest.mark.parametrize("rule", [each.name for each in fields(Rules)])
def test_a_rule_of_functions_that_is_turned_off_is_missed(rule: str) -> None:
    """What no log misses is not needed."""
    rules = replace(RIGHT, **{rule: False})
    with pytest.raises(Violation, match=MISSED[rule]):
        check_all(THREE if rule in ("settles", *THIRD) else Bounds(), rules)
