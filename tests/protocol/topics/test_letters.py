"""Dead letters: searched over every order of epochs, writes, deaths, takeovers, losses of power, backups (rule 33)."""

from __future__ import annotations

import pytest
from tests.protocol.model.letters import Bounds, Rules, search

ONE = Bounds(runners=1, deaths=2)
TWO = Bounds(records=3)
CUT = Bounds(records=3, runners=1, cuts=1)
RESTORED = Bounds(runners=1, failures=0, restores=1)
SEARCHED = {
    "one runner": (ONE, 20_000),
    "two runners": (TWO, 60_000),
    "lost power": (CUT, 25_000),
    "a backup": (RESTORED, 12_000),
}
OFF = {
    "together": (Rules(together=False), ONE),
    "fenced": (Rules(fenced=False), TWO),
    "from_target": (Rules(from_target=False), ONE),
    "ordered": (Rules(ordered=False), TWO),
    "committed": (Rules(committed=False), ONE),
    "settled": (Rules(settled=False), CUT),
    "named": (Rules(named=False), RESTORED),
}


@pytest.mark.parametrize("name", SEARCHED)
def test_a_topic_has_each_record_once(name: str) -> None:
    """Each is sent once, and none is passed over, whoever dies when and whatever the tables lose."""
    bounds, least = SEARCHED[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    # A search that a change has emptied proves nothing.
    assert found.states >= least, str(found)
    assert {"a dies", "a gets no reply", "an epoch is committed"} <= found.done


@pytest.mark.parametrize("rule", OFF)
def test_a_rule_of_dead_letters_that_is_turned_off_is_missed(rule: str) -> None:
    """What the search does not miss it does not need."""
    rules, bounds = OFF[rule]
    assert search(rules, bounds).violation
