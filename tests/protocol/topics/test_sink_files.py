"""Files of sinks: searched over every order of writes, takeovers, sleeps, lost replies and upkeep (rule 34)."""

from __future__ import annotations

import pytest
from tests.protocol.model.sink_files import Bounds, Rules, search

WRITES = Bounds(changes=3, takeovers=3, lost=2)
CLEANED = Bounds(changes=3, takeovers=2, lost=0, wholes=1, cleanings=1)
SWEPT = Bounds(changes=2, takeovers=3, lost=1, merges=1, sweeps=1)
ALL = Bounds(changes=2, takeovers=2, lost=1, merges=1, wholes=1, cleanings=1, sweeps=1)
SEARCHED = {
    "writes": (WRITES, 1_000),
    "cleaned": (CLEANED, 500),
    "swept": (SWEPT, 1_000),
    "all": (ALL, 5_000),
}
OFF = {
    "created": (Rules(created=False), WRITES),
    "claims": (Rules(claims=False), SWEPT),
    "settled": (Rules(settled=False), WRITES),
    "looks_behind": (Rules(looks_behind=False), CLEANED),
    "looks_ahead": (Rules(looks_ahead=False), ALL),
    "in_order": (Rules(in_order=False), CLEANED),
    "to_the_base": (Rules(to_the_base=False), CLEANED),
    "by_claim": (Rules(by_claim=False), SWEPT),
}


@pytest.mark.parametrize("name", SEARCHED)
def test_a_reader_finds_each_change_once(name: str) -> None:
    """Whoever sleeps, dies or hears nothing: what manifests name is there, and is what the position says."""
    bounds, least = SEARCHED[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    # A search that a change has emptied proves nothing.
    assert found.states >= least, str(found)
    assert {"a dies", "a is fenced off", "b goes on"} <= found.done


@pytest.mark.parametrize("rule", OFF)
def test_a_rule_of_files_that_is_turned_off_is_missed(rule: str) -> None:
    """What the search does not miss it does not need."""
    rules, bounds = OFF[rule]
    assert search(rules, bounds).violation
