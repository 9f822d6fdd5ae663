"""Rows that another system is asked about: searched over all orders of epochs, starts, commits, deaths and losses."""

from __future__ import annotations

from dataclasses import replace
from graphlib import TopologicalSorter

import pytest
from tests.protocol.model.asks import Bounds, Rules, State, goes_on, moves, search

ONE = Bounds(rows=1)
FAILS = Bounds(rows=1, errors=1)
DECIDED = replace(FAILS, decisions=1)
DECIDED_ALL = Bounds(askers=1, errors=1, decisions=1, only_errors=False)
LOSES = Bounds(rows=1, losses=1)
SKIPS = Bounds(rows=1, skips=1)
GAPS = Bounds(rows=1, askers=1, losses=1, skips=1, gaps=1)
HOLES = Bounds(rows=1, holes=1, only_errors=False)
QUICK = {
    "one row": (FAILS, 2_570),
    "step by step": (replace(FAILS, stepwise=True), 3_024),
    "two rows": (Bounds(), 44_919),
    "three rows": (Bounds(rows=3, askers=1), 44_700),
    "a decision": (DECIDED, 20_270),
    "a decision about all": (DECIDED_ALL, 54_669),
    "a loss of the master": (LOSES, 22_245),
    "a loss, and two rows": (Bounds(askers=1, losses=1), 65_536),
    "a loss, and a decision": (replace(DECIDED, askers=1, losses=1), 16_497),
    "a hole in the answers": (HOLES, 49_042),
    "answers that are passed over": (SKIPS, 4_744),
    "the same, and a decision": (replace(SKIPS, decisions=1, only_errors=False), 34_329),
    "the same, and a loss of the master": (replace(SKIPS, askers=1, losses=1), 4_384),
    "rows that are passed over": (Bounds(rows=1, gaps=1), 4_526),
    "rows and answers that are, and a loss": (GAPS, 19_140),
}
WIDE = {
    "two rows and an error": (Bounds(errors=1), 128_330),
    "two decisions": (replace(DECIDED, decisions=2), 48_064),
    "two decisions about all": (replace(DECIDED_ALL, decisions=2), 148_367),
    "two losses": (replace(LOSES, losses=2), 120_472),
    "a hole, and two rows": (replace(HOLES, rows=2, askers=1), 101_666),
    "a hole and a loss": (replace(HOLES, askers=1, errors=1, losses=1), 81_638),
}
OFF = {
    "no fence": (Rules(order=("master", "tail")), ONE),
    "fenced last": (Rules(order=("master", "tail", "fence")), ONE),
    "the tail before the fence": (Rules(order=("tail", "fence", "master")), ONE),
    "the tail before the master": (Rules(order=("fence", "tail", "master")), LOSES),
    "no tail": (Rules(order=("fence", "master")), ONE),
    "settles": (Rules(settles=False), ONE),
    "from_e": (Rules(from_e=False), ONE),
    "to_end": (Rules(to_end=False), ONE),
    "remembers": (Rules(remembers=False), LOSES),
    "looks_back": (Rules(looks_back=False), LOSES),
    "held_only": (Rules(held_only=False), replace(ONE, stepwise=True)),
    "from_born": (Rules(from_born=False), ONE),
    "own_driver": (Rules(own_driver=False), LOSES),
    "ends": (Rules(ends=False), ONE),
    "recorded": (Rules(recorded=False), ONE),
    "gapless": (Rules(gapless=False), Bounds(askers=1)),
    "new_numbers": (Rules(new_numbers=False), LOSES),
    "waits": (Rules(waits=False), DECIDED),
    "notes": (Rules(notes=False), replace(DECIDED_ALL, rows=1)),
    "taken_up": (Rules(taken_up=False), replace(DECIDED_ALL, rows=1)),
    "carried_out": (Rules(carried_out=False), DECIDED),
    "mends": (Rules(mends=False), HOLES),
    "fills": (Rules(fills=False), SKIPS),
    "awaits": (Rules(awaits=False), replace(SKIPS, askers=1, decisions=1, only_errors=False)),
    "counts": (Rules(counts=False), SKIPS),
    "amended": (Rules(amended=False), GAPS),
    "both_ways": (Rules(both_ways=False), LOSES),
    "recorded_all": (Rules(recorded_all=False), ONE),
}
WORDS = {
    "from_born": "has passed",
    "recorded": "has passed",
    "gapless": "has passed",
    "held_only": "no epoch has held it",
    "carried_out": "has not got its record",
    "mends": "has not got its record",
    "fills": "has not read all",
    "both_ways": "slices have",
    "recorded_all": "are certified",
}
"""What is found where it is not that a row with an answer gets another record."""


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(each, marks=pytest.mark.faults) for each in WIDE)])
def test_each_row_gets_one_answer(name: str) -> None:
    """One record if nobody decides otherwise, and one answer ever; none is passed over, and slices are the build."""
    bounds, states = {**QUICK, **WIDE}[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    assert found.states == states
    assert {"an asker dies", "a commit is refused", "a reply is lost", "the position is moved"} <= found.done


@pytest.mark.parametrize("rule", OFF)
def test_a_rule_of_asking_that_is_turned_off_is_missed(rule: str) -> None:
    """What the search does not miss it does not need."""
    rules, bounds = OFF[rule]
    found = search(rules, bounds)
    assert WORDS.get(rule, "has an answer, and gets another record") in found.violation, str(found)


@pytest.mark.parametrize("bounds", [DECIDED, LOSES])
def test_the_master_may_be_read_before_the_fence(bounds: Bounds) -> None:
    """What an older asker writes until it is fenced off is in the tail: that alone has to be read after the fence."""
    found = search(Rules(order=("master", "fence", "tail")), bounds)
    assert not found.violation, str(found)


def test_what_goes_on_by_itself_comes_to_an_end() -> None:
    """If it went round, a state in which nothing happens by itself would not be all that is to be looked at."""
    seen, left = {State()}, [State()]
    while left:
        found = {after for _, after in moves(left.pop(), DECIDED, Rules())} - seen
        seen |= found
        left += found
    steps = {state: {after for _, after in goes_on(state, DECIDED, Rules())} for state in seen}
    TopologicalSorter(steps).prepare()
