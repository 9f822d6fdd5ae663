"""Each rule turned off is found out: the drafts of the protocol that were wrong, by the shortest way to it."""

from __future__ import annotations

from functools import cache

import pytest
from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.search import search as search_

PAIR = Bounds(writers=2, tokens=2)
TWICE = Bounds(tokens=2)
DAYS = Bounds((0, 0, 1, 0), takes=1, numbers=4, builds=2, floors=1, rollbacks=1, crashes=False)
READ = Bounds((0, 0), numbers=4, upkeeps=1, builds=1, floors=1, reads=1, crashes=False)
VERSIONS = Bounds((0, 0), views=2, tokens=2, flips=2)
search = cache(search_)

BROKEN: dict[str, tuple[Rules, Bounds, str]] = {
    # What is not in the master yet is taken for dead, and removed.
    "C1": (Rules(dead_below=False), Bounds(upkeeps=1), "answers"),
    # Nothing fences; the master is fenced and the other tables are not; the highest number is looked for too early.
    "C2-no-fence": (Rules(fenced="none"), PAIR, "answers"),
    "C2-master-only": (Rules(fenced="master"), PAIR, "answers"),
    "C2-looks-first": (Rules(looks_after=False), PAIR, "answers"),
    "C2-old-number": (Rules(fenced="none", refuses_old=False, asserts_join=False), PAIR, "answers"),
    # Slices are deleted up to the least cut of any interval; or before the floor says so.
    "C3": (Rules(floors=False), DAYS, "answers"),
    "C3-floor-late": (Rules(floor_first=False), DAYS, "answers"),
    # A start believes the ledger, the checkpoint, or nobody: read twice, or not at all, or stopped for ever.
    "C4-ledger": (Rules(position="ledger", asserts_join=False), TWICE, "begins at"),
    "C4-ledger-unrepaired": (Rules(position="ledger", repairs_ledger=False), TWICE, "a gap that is none"),
    "C4-checkpoint": (Rules(position="checkpoint", asserts_join=False), TWICE, "begins at"),
    # A look back over so many commits meets the fences of failed starts alone.
    "C4-looks-back": (Rules(looks_back=1), Bounds((0, 0), tokens=4), "answers"),
    "C4-latest": (Rules(position="latest", asserts_join=False), TWICE, "begins at"),
    # A version's first slice comes before its birth; a flip asks for nothing.
    "C5": (Rules(births=False), VERSIONS, "answers"),
    "C5-flip": (Rules(flips_checked=False), VERSIONS, "become"),
    # A view that is behind takes the next epoch; its gap is not seen.
    "C6": (Rules(in_order=False), Bounds(mishaps=1), "answers"),
    "C6-frontier": (Rules(counts_to_frontier=False), Bounds(mishaps=1), "answers"),
    "C6-block": (Rules(recognises="nothing"), Bounds((0, 0), tokens=2, mishaps=1), "answers"),
    "C6-block-by-epoch": (
        Rules(recognises="number"),
        Bounds((0, 0), tokens=3, numbers=4, mishaps=2),
        "answers",
    ),
    # Pins out of order; a generation that is gone reads as an empty one.
    "C7-slices-first": (Rules(pins=("slices", "log", "manifest", "generations")), READ, "answers"),
    "C7-manifest-first": (Rules(pins=("log", "manifest", "slices", "generations")), READ, "answers"),
    "C7-short": (
        Rules(whole=False),
        Bounds((0, 0, 0, 0), takes=1, numbers=4, builds=2, reads=1, crashes=False, forgets=1),
        "answers",
    ),
    # A number is used again for what is tried again; readers do not skip what is dead.
    "C9": (Rules(new_number=False), TWICE, "answers"),
    "C9-dead": (Rules(held_only=False), TWICE, "answers"),
    # Of two upkeeps both commit.
    "C10": (Rules(upkeep_decides=False), Bounds(upkeeps=2), "answers"),
    # The commit order of an epoch.
    "order-master-first": (Rules(order=("master", "slices", "quarantine", "ledger")), Bounds(), "answers"),
    "order-quarantine-last": (
        Rules(order=("slices", "master", "quarantine", "ledger")),
        Bounds((0, None, 1)),
        "quarantine has",
    ),
    "order-ledger-first": (Rules(order=("slices", "quarantine", "ledger", "master")), TWICE, "answers"),
    # A commit that has landed late, or without an answer, is taken for a newer driver's.
    "U-late": (Rules(settles=False), Bounds((0, 0), mishaps=2), "takes its own commit"),
    # A driver reads a range again while the master may hold it yet.
    "U-insists": (Rules(insists=False), Bounds((0, 0), tokens=3, numbers=4, mishaps=2), "answers"),
    # The last row of an id wins, so that a higher cut changes the winner.
    "H2": (Rules(first_wins=False), Bounds((0, 0, 0), ids=(7, 1, 7), builds=1, numbers=4), "answers"),
    # A version that the definition does not name gets no slices, and is flipped back to.
    "H3": (Rules(flips_checked=False, runs_live=False), VERSIONS, "become"),
    # A stop leaves epochs that no cut reaches; cuts fall anywhere; slices are joined over edges, or above W.
    "H6-stop": (Rules(edge_at_stop=False), Bounds(stops=True), "no cut may ever reach"),
    "H6-cuts": (Rules(cuts_on_edges=False), Bounds(builds=1, numbers=4), "no edge"),
    "H6-joins": (Rules(joins_between_edges=False), Bounds(builds=1, upkeeps=1, numbers=4), "crosses the cut"),
    "H6-frontier": (Rules(joins_to_frontier=False), Bounds(upkeeps=1, mishaps=1, numbers=4), ""),
    # An answer over two days says the larger of their epochs.
    "H7": (Rules(states_least=False), Bounds(builds=1, mishaps=1), "a window over both days"),
    # A build looks up what is there today.
    "H8": (Rules(pins_lookups=False), Bounds(builds=1, lookups=1), "answers"),
    # A slow build publishes after a fast one; a rollback below the floor; two builds take one id.
    "H11": (Rules(cas=False, keeps_cut=False, keeps_floor=False), DAYS, "become"),
    "H11-floor": (Rules(keeps_floor=False), DAYS, "below its floor"),
    "H11-ids": (Rules(unique_ids=False), DAYS, "never be read"),
}


@pytest.mark.parametrize("id", BROKEN)
def test_a_rule_that_is_turned_off_is_missed(id: str) -> None:
    """A model that cannot fail has proven nothing; the same bounds with all rules are clean."""
    rules, bounds, words = BROKEN[id]
    found = search(rules, bounds)
    assert words in found.violation and found.violation, str(found)
    whole = search(Rules(), bounds)
    assert not whole.violation, str(whole)


@pytest.mark.parametrize(
    "rules", [Rules(refuses_old=False), Rules(asserts_join=False), Rules(cas=False), Rules(keeps_cut=False)]
)
def test_what_another_rule_covers_too_harms_nobody_alone(rules: Rules) -> None:
    """These are second locks: the fence, the position, the cut and the expected generation hold without them."""
    for bounds in (PAIR, DAYS):
        assert not search(rules, bounds).violation
