"""Power cuts at every moment, starts that die half-way, and tables restored alone: no answer is ever wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.protocol.model.power import Bounds, Rules, search

SHORT = Bounds((True, True), crashes=0)
AGAIN = Bounds((True, False), cuts=2, crashes=0, epochs=2)
MERGED = Bounds((True,) * 4, epochs=5, merges=1, restores=1, crashes=0, cuts=0)
REFUSED = Bounds((False, True), crashes=0)
RESTORED = Bounds((True, True), restores=1, crashes=0, cuts=0)
QUICK = {
    "a cut, and a start that dies": (Bounds((True, False)), 20_000),
    "a cut while a start repairs": (AGAIN, 10_000),
    "a build and upkeep": (replace(SHORT, builds=1, merges=1), 3_000),
    "a view that is behind": (replace(SHORT, mishaps=1), 5_500),
    "a reader": (replace(SHORT, reads=1, epochs=2), 3_000),
    "a build of refused records": (replace(REFUSED, builds=1, merges=1), 2_500),
    "some tables restored": (replace(RESTORED, topic=(True, False, True), crashes=1), 1_900),
    "some restored after a build": (replace(RESTORED, topic=(True, True, True), builds=1, merges=1), 3_000),
    "some restored after a merge beyond": (MERGED, 10_000),
    "synced at once": (Bounds((True, False), fsync=True), 5_000),
}
WIDE = {
    "three records": (Bounds(), 110_000),
    "two cuts": (replace(AGAIN, crashes=1, epochs=3), 100_000),
    "everything once": (Bounds((True, True), builds=1, merges=1, mishaps=1), 110_000),
    "a reader through a repair": (Bounds((True, False), reads=1), 600_000),
    "restores and cuts": (replace(RESTORED, mishaps=1, cuts=1), 70_000),
    "restores of a view that was behind": (
        replace(RESTORED, topic=(True, True, True), builds=1, merges=1, mishaps=1),
        20_000,
    ),
}


@pytest.mark.parametrize("name", QUICK)
def test_no_cut_and_no_restore_makes_an_answer_wrong(name: str) -> None:
    """If this fails, the trace is the shortest way to it; after cuts alone no start may wait for a person."""
    bounds, least = QUICK[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    # A search that a change has emptied proves nothing.
    assert found.states >= least, str(found)


@pytest.mark.faults
@pytest.mark.parametrize("name", WIDE)
def test_no_cut_and_no_restore_makes_an_answer_wrong_further_out(name: str) -> None:
    """What two cuts, and all processes at once, can reach."""
    bounds, least = WIDE[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    assert found.states >= least, str(found)


BROKEN: dict[str, tuple[Rules, Bounds, str]] = {
    # Slices that lost what the master kept are taken for whole.
    "marks": (Rules(marks=False), SHORT, "answers [] up to"),
    # Refused records that are in no table, of epochs that the master holds.
    "cuts-back": (Rules(cuts_back=False), REFUSED, "the quarantine has"),
    # The ledger's rows of what the master lost make dead slices count.
    "trims": (Rules(trims=False, named=False), SHORT, "answers"),
    "trims-twice": (Rules(named=False, syncs_trimmed=False), AGAIN, "answers"),
    # A ledger from before a repair is believed.
    "lines": (Rules(lines=False), replace(RESTORED, cuts=1), "answers"),
    # A number that was told means something else later.
    "leaps": (Rules(leaps=False), SHORT, "held twice"),
    "looks-at-the-master": (Rules(looks_everywhere=False, leaps=False), SHORT, "answers"),
    # Other tables are of a line that no master tells of.
    "states": (Rules(states=False), SHORT, "a newer line"),
    # What is synced names what is not.
    "syncs-first": (Rules(syncs_first=False), replace(SHORT, builds=1), "answers"),
    "syncs-first-upkeep": (Rules(syncs_first=False), replace(SHORT, merges=1), "never be read"),
    "syncs-refused": (Rules(syncs_refused=False), replace(REFUSED, builds=1), "has synced"),
    # A catch-up adds what is there, since the number it left is held no more.
    "recognises": (Rules(recognises=False), replace(SHORT, mishaps=1), "answers"),
    # A master from a backup reads again what a generation has.
    "stops": (Rules(stops=False), replace(RESTORED, builds=1), "answers"),
    # What was built before a master was brought back is published after.
    "held-cut": (Rules(held_cut=False), replace(RESTORED, builds=1), "answers"),
    # A number that a build names means other records.
    "looks-at-builds": (
        Rules(looks_at_builds=False),
        replace(RESTORED, topic=(True, True, True), builds=1),
        "answers",
    ),
    # A person lets the master stand, and what it reads again is in a generation that is served.
    "withdraws": (Rules(withdraws=False), replace(RESTORED, builds=1), "answers"),
    # The same, and slices that cannot be divided, or have lost what the master relies on.
    "raises-floor": (
        Rules(raises_floor=False),
        replace(RESTORED, topic=(True, True, True), merges=1),
        "never be read",
    ),
    "raises-floor-of-another-line": (
        Rules(raises_floor=False),
        replace(RESTORED, topic=(True,), cuts=1),
        "answers [] up to",
    ),
    # Slices that were merged of lost epochs alone count beside those of the records that are read again.
    "merged-too": (Rules(merged_too=False), MERGED, "answers"),
    # The quarantine comes back alone: those who read before go by the line, and by numbers that it has no more.
    "begins-anew": (Rules(begins_anew=False), replace(RESTORED, topic=(True, False)), "goes on without"),
    # A generation of epochs that the next start takes out of the master.
    "waits": (Rules(waits=False), replace(REFUSED, builds=1), "has synced"),
}


@pytest.mark.parametrize("id", BROKEN)
def test_a_rule_that_is_turned_off_is_missed(id: str) -> None:
    """A model that cannot fail has proven nothing."""
    rules, bounds, words = BROKEN[id]
    found = search(rules, bounds)
    assert found.violation and words in found.violation, str(found)


@pytest.mark.parametrize("rules", [Rules(named=False), Rules(syncs_trimmed=False)], ids=["synced", "named"])
def test_one_of_two_locks_on_the_ledger_is_enough_for_cuts(rules: Rules) -> None:
    """Rows that are out of the chain are taken out whenever a start finds them; synced, they do not come back."""
    assert not search(rules, AGAIN).violation
