"""Views of joined rows: whatever is late, dies, is behind, is built alone or decided, each answer is the log's join."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.protocol.model import joined_answers, joined_moves, joined_pasts
from tests.protocol.model.joined_rows import Decision, Join, Row
from tests.protocol.model.joins import Bounds, Rules, State, first
from tests.protocol.model.search import Found, explore


def left(id: int, at: int, key: int | None = 1, *, of: int = -1) -> Row:
    """Return a left row."""
    return Row(id, "L", at, key, of)


def right(id: int, at: int, key: int | None = 1, *, of: int = -1, version: int = 0) -> Row:
    """Return a right row."""
    return Row(id, "R", at, key, of, version)


# A left in hour 0 joins rights of hours 0 and 1, one in hour 1 those of 1 and 2.
#   hour       0    1    2
#   PAIRS      L0 R2  R1
#   SPREAD          L0 R1  R2     R2 is not in R1's reach, and in that of L0, which is
PAIRS = Join((left(0, 0), right(1, 1), right(2, 0)))
SPREAD = Join((left(0, 1), right(1, 1), right(2, 2)))
BOTH = Join((left(0, 0), left(1, 1), right(2, 1)))
COPIED = Join((left(0, 0), left(1, 0, of=0), right(2, 1)))
COPIED_RIGHT = Join((left(0, 0), right(1, 1), right(2, 1, of=1)))
BOTH_COPIED = Join((left(0, 0), left(1, 0, of=0), right(2, 1), right(3, 1, of=2)))
MOVED = Join(PAIRS.topic[:2], (Decision(1, right(1, 2, version=1)),))
KEYED = Join((left(0, 0), right(1, 1, None)), (Decision(1, right(1, 1, version=1)),))
PRICED = Join(PAIRS.topic[:2], (Decision(1, right(1, 1, version=1)),))
TWICE = Join(
    (left(0, 0), right(1, 1, None), right(2, 1, None)),
    (Decision(1, right(1, 1, version=1)), Decision(2, right(2, 1, version=1))),
)
ERASED = Join(PAIRS.topic, (Decision(1, None),))
# As of: L1 may have R0 or R2 of its hour, or R3 of the hour before; the others reach over a border, too.
AS_OF = Join((right(0, 1), left(1, 1), right(2, 1)), before=1, after=0, latest=True)
EARLIER = replace(AS_OF, topic=(right(0, 0), left(1, 1), right(2, 1)))
OVER = replace(AS_OF, topic=(left(0, 0), right(1, 0), left(2, 1), right(3, 1)))
CORRECTED = replace(EARLIER, decisions=(Decision(2, right(2, 1, None, version=1)),))

CUTS = Bounds(PAIRS, builds=2, floors=1)
DIES = Bounds(PAIRS, deaths=1, stepwise=True)
SLEEPS = Bounds(PAIRS, sleeps=1, stepwise=True)
PRUNED = Bounds(PAIRS, prunes=1)
RESTORED = Bounds(Join(PAIRS.topic[:2]), restores=1, deaths=1, machines=True)
BEHIND = Bounds(PAIRS, fails=1, builds=1)
CRASHES = Bounds(PAIRS, fails=1, deaths=1)
CLOSES = Bounds(BOTH, builds=1, clocks=(1, 2))
HOLES = Bounds(PAIRS, builds=1, lost=1)
COPIES = Bounds(COPIED, builds=1)
FOREIGN = Bounds(COPIED, builds=1, born=True, foreign=True)
BORN = Bounds(PAIRS, builds=1, born=True)
DECIDED = Bounds(MOVED, builds=1, epochs=4)
DECIDED_BEHIND = Bounds(MOVED, fails=1, epochs=4)
CAPPED = Bounds(KEYED, builds=1, epochs=4, subtracts=False)
CAPPED_BEHIND = Bounds(KEYED, fails=1, merges=1, epochs=3, edges=(True, False), subtracts=False)
GATED = Bounds(KEYED, builds=2, rollbacks=1, epochs=4, subtracts=False, gated=True)
GATED_BEHIND = replace(GATED, fails=1, merges=1, rollbacks=0, epochs=3, edges=(True, False))
PAST = replace(GATED, rollbacks=0, past=True)
LOST = replace(PAST, epochs=3, withdrawals=1)
EMPTIED = replace(GATED, builds=1, rollbacks=0, epochs=3, born=True, foreign=True, refuses=(0,))

QUICK = {
    "cuts and floors": (CUTS, 12_000),
    "a rollback": (replace(CUTS, rollbacks=1, epochs=2), 1_600),
    "deaths": (DIES, 4_000),
    "a lost cache": (replace(PRUNED, losses=1, prunes=0), 280),
    "a driver that sleeps": (SLEEPS, 1_400),
    "a pruned cache": (PRUNED, 290),
    "a backup, and another machine": (RESTORED, 4_300),
    "a view that is behind": (replace(BEHIND, epochs=2, edges=(True, False)), 3_000),
    "a crash after a block": (CRASHES, 3_700),
    "a second reach": (replace(BEHIND, join=SPREAD, builds=0), 1_200),
    "closing": (CLOSES, 3_900),
    "a hole and what fills it": (HOLES, 1_800),
    "copies": (COPIES, 1_600),
    "copies on the right": (replace(COPIES, join=COPIED_RIGHT), 1_600),
    "copies of both": (replace(COPIES, join=BOTH_COPIED, builds=0), 820),
    "copies while behind": (replace(BEHIND, join=COPIED, epochs=2, edges=(True, False)), 4_300),
    "a copy that fills a hole": (replace(HOLES, join=COPIED_RIGHT), 2_600),
    "copies that are validated again": (FOREIGN, 23_000),
    "a birth": (BORN, 3_000),
    "a decision": (DECIDED, 2_200),
    "a decision while behind": (DECIDED_BEHIND, 3_700),
    "a decision that waits for builds": (replace(CAPPED, rollbacks=1), 2_200),
    "the same, behind": (CAPPED_BEHIND, 4_700),
    "a view that waits for builds": (GATED, 1_000),
    "the same, behind before": (GATED_BEHIND, 1_000),
    "cuts as of each epoch": (replace(CUTS, rollbacks=1, epochs=2, past=True), 1_600),
    "a view that waits, as of each epoch": (PAST, 20_000),
    "a generation of it is lost": (LOST, 5_200),
    "an interval that new rules have emptied": (EMPTIED, 9_000),
    "an erased row": (replace(DECIDED, join=ERASED, epochs=3), 2_400),
}
QUICK |= {
    "as of": (replace(CUTS, join=EARLIER), 8_000),
    "as of, two of one time": (replace(CUTS, join=AS_OF, floors=0), 1_000),
    "as of, with deaths": (replace(DIES, join=EARLIER), 3_000),
    "as of, a pruned cache": (replace(PRUNED, join=EARLIER, losses=1), 800),
    "as of, behind": (replace(BEHIND, join=EARLIER, epochs=2, edges=(True, False)), 1_000),
    "as of, a crash after a block": (replace(CRASHES, join=EARLIER), 3_500),
    "as of, closing": (replace(CLOSES, join=EARLIER), 3_500),
    "as of, a hole": (replace(HOLES, join=EARLIER, lost=0), 1_800),
    "as of, a birth": (replace(BORN, join=EARLIER), 2_900),
    "as of, a decision that is waited for": (replace(GATED, join=CORRECTED, builds=1, epochs=3), 500),
}
LONG = "the same, behind before"
"""The slow suite searches it: it takes as long as all others."""
FOUR = Join((left(0, 0), right(1, 1), right(2, 2), left(3, 1)))
WIDE = {
    "four rows": Bounds(FOUR, builds=2, rollbacks=1, floors=1),
    "three intervals, both ways, two keys": Bounds(
        Join((left(0, 1), right(1, 0), right(2, 2), left(3, 2, 2)), before=1, intervals=3), builds=1, epochs=4
    ),
    "deaths and builds": replace(DIES, losses=1, builds=1),
    "behind over edges": replace(BEHIND, edges=(True, False)),
    "behind, far": replace(BEHIND, join=SPREAD, edges=(True, False)),
    "closing with four rows": replace(CLOSES, join=FOUR, clocks=(0, 1, 2, 3), epochs=3),
    "decisions and everything": replace(DECIDED, builds=2, rollbacks=1, floors=1, fails=1, epochs=3),
    "decisions that wait": replace(CAPPED, join=MOVED, builds=2, rollbacks=1, fails=1, epochs=3),
    "a view that waits, and everything": replace(GATED, join=MOVED, fails=1, floors=1, merges=1),
    "a view that waits, step by step": replace(GATED, deaths=1, fails=1, epochs=3, stepwise=True),
    "rollbacks, as of each epoch": replace(PAST, builds=3, rollbacks=1),
    "a view that waits, as of each epoch, and losses": replace(GATED_BEHIND, past=True, withdrawals=1),
    "losses, and everything": replace(LOST, builds=3, rollbacks=1, floors=1, frugal=False),
    "two decisions and a loss, as of each epoch": replace(LOST, join=TWICE, builds=3),
    "emptied, and behind": replace(EMPTIED, builds=2, fails=1),
    "decisions, step by step": replace(DECIDED, builds=1, deaths=1, fails=1, epochs=3, stepwise=True),
    "a birth while behind": replace(BORN, fails=1, floors=1),
    "copies of both, and builds": replace(COPIES, join=BOTH_COPIED, builds=2, rollbacks=1),
    "as of, behind over edges": replace(BEHIND, join=EARLIER, edges=(True, False)),
    "as of, four rows": replace(CUTS, join=OVER, rollbacks=1, fails=1),
    "as of, behind, step by step": replace(CRASHES, join=OVER, stepwise=True, builds=1),
    "as of, decisions and everything": replace(GATED, join=CORRECTED, fails=1, floors=1, merges=1),
    "copies, behind and dying": replace(CRASHES, join=COPIED_RIGHT, builds=1),
    "copies of both that are validated again": replace(FOREIGN, join=BOTH_COPIED, fails=1, floors=1),
}


def search(rules: Rules, bounds: Bounds) -> Found:
    """Visit all that can happen."""

    def check(state: State) -> None:
        joined_answers.check(state, rules, bounds)
        joined_pasts.check_past(state, rules, bounds)

    return explore(
        first(bounds),
        lambda state: joined_moves.moves(state, rules, bounds),
        check,
    )


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.faults if each == LONG else []) for each in QUICK]
)
def test_each_answer_is_the_join_of_the_log(name: str) -> None:
    """If this fails, the trace is the shortest way to an answer, a plan or a certificate that is wrong."""
    bounds, least = QUICK[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    # A search that a change has emptied proves nothing.
    assert found.states >= least, str(found)


@pytest.mark.faults
@pytest.mark.parametrize("name", WIDE)
def test_each_answer_is_the_join_of_the_log_further_out(name: str) -> None:
    """What more rows, and more things at once, can reach."""
    found = search(Rules(), WIDE[name])
    assert not found.violation, str(found)
    assert found.states >= 10_000, str(found)


BROKEN: dict[str, tuple[Bounds, str]] = {
    # What is built at a neighbour's cut has too much or too little.
    "own_cut": (CUTS, "answers"),
    "own_slices": (CUTS, "answers"),
    "own_floor": (CUTS, "answers"),
    # A cache that stands somewhere else, or half.
    "stamped": (DIES, "answers"),
    "names_commit": (RESTORED, "answers"),
    "names_decisions": (DECIDED, "answers"),
    "one_transaction": (DIES, "answers"),
    "own_path": (SLEEPS, "answers"),
    "takes_held": (DIES, "answers"),
    "below": (PRUNED, "answers"),
    "strictly": (PRUNED, "answers"),
    "from_birth_on": (BORN, "answers"),
    "birth_floor": (BORN, "answers"),
    # Pairs of a block come twice or never.
    "to_b": (replace(BEHIND, builds=0), "answers"),
    "to_edge": (BEHIND, "reach over"),
    "by_larger": (BEHIND, "answers"),
    "once": (replace(BEHIND, builds=0), "answers"),
    "twice": (replace(BEHIND, join=SPREAD, builds=0), "answers"),
    "recognises": (CRASHES, "answers"),
    # Planning builds what need not be, or misses what came, went or closed.
    "derived": (replace(CUTS, frugal=False), "is clean, and has changed"),
    "reach_behind": (BEHIND, "is clean, and has changed"),
    "dirty_decisions": (CAPPED, "is clean, and has changed"),
    "closes": (CLOSES, "is clean, and has closed"),
    # A certificate is given too early.
    "reach_ahead": (replace(CLOSES, frugal=False), "which is not late"),
    "holes": (HOLES, "over the hole"),
    "hole_reach": (HOLES, "over the hole"),
    "holes_to_e": (HOLES, "over the hole"),
    "copies": (COPIES, "certified with copies"),
    # Layers that do not mean the same rows.
    "named_at_cut": (CAPPED, "answers"),
    "names_used": (replace(DECIDED, stepwise=True, builds=0), "answers"),
    "caps": (CAPPED, "answers"),
    "cap_reach": (CAPPED, "answers"),
    "ends_before": (CAPPED_BEHIND, "reach over"),
    "steps_back": (GATED, "answers"),
    "waits": (GATED, "answers"),
    "waits_in_reach": (GATED, "answers"),
    "waits_as_judged": (EMPTIED, "which is never built"),
    "keeps_decided": (replace(GATED, builds=3, epochs=3), "answers"),
    "fits_past": (PAST, "answers"),
    "floor_for_lost": (LOST, "answers"),
    "both_layers": (COPIES, "answers"),
    "flags_count": (COPIES, "answers"),
    "in_order": (FOREIGN, "nothing that it repeats counts"),
    # What is replaced later.
    "by_time": (replace(CUTS, join=EARLIER, builds=0), "answers"),
    "touches": (replace(CUTS, join=EARLIER, builds=0), "answers"),
    "withdraws": (replace(CUTS, join=EARLIER, builds=0), "answers"),
    "subtracts_before": (replace(BEHIND, join=EARLIER, builds=0), "answers"),
}
PAIR = {"apart", "dirty_decisions"}
"""Of a decision that changes what rows say and not how many, either is enough while slices have it."""


@pytest.mark.parametrize("rule", [each.name for each in fields(Rules) if each.name != "apart"])
def test_a_rule_that_is_turned_off_is_missed(rule: str) -> None:
    """A model that cannot fail has proven nothing."""
    bounds, words = BROKEN[rule]
    found = search(replace(Rules(), **{rule: False}), bounds)
    assert found.violation and words in found.violation, str(found)


def test_that_a_change_cancels_out_is_told_by_one_of_two_rules() -> None:
    """A price is corrected: a pair came, a pair went, and their numbers are as before."""
    bounds = replace(DECIDED, join=PRICED)
    for rule in PAIR:
        assert not search(replace(Rules(), **{rule: False}), bounds).violation
    found = search(replace(Rules(), **dict.fromkeys(PAIR, False)), bounds)
    assert "is clean, and has changed" in found.violation, str(found)


def test_the_model_comes_to_good_ends() -> None:
    """The rules do not win by forbidding everything."""
    seen: set[State] = set()
    bounds = replace(CLOSES, fails=1)

    def keep(state: State) -> None:
        seen.add(state)

    explore(first(bounds), lambda state: joined_moves.moves(state, Rules(), bounds), keep)
    assert any(each.served[0] and each.served[0].green and len(each.served[0].rows) == 3 for each in seen)
    assert any(each.served[0] and not each.served[0].green for each in seen)
    # Behind for an epoch, and caught up again.
    assert any(each.spent.fails and each.w == each.e and len(each.log) > 2 for each in seen)
