"""A pattern in the fold: what is emitted and where it is booked, what is kept, and cuts anywhere."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark import cloudpickle
from tests.unit.model.patterns.brute_force import TimedRow, find_matches, grow, is_empty, make_rows, write

from seamline.model.errors import DefinitionError
from seamline.model.functions import kept_rows
from seamline.model.functions.folding import BLANK, Fold, Item, KeyRow, Place, Snapshot
from seamline.model.functions.kept_rows import PIECE
from seamline.model.patterns import threads
from seamline.model.patterns.pattern_function import PatternFunction, load_pattern
from seamline.model.patterns.steps import list_step_names
from seamline.model.time.intervals import EPOCH
from seamline.model.types.schema import Schema

ROWS = Schema.parse("n INT, amount DECIMAL(10,2), tags ARRAY<STRING>")
BORDER = 10**9
COUNTS = {"first": "first(n)", "rows": "count(*)"}


def fold(
    steps: str,
    select: Mapping[str, str] = COUNTS,
    *,
    within: int | None = 10,
    skip: str = "past last row",
) -> Fold:
    """Return the fold of a pattern."""
    return Fold(load_pattern("found", PatternFunction(steps, select, ROWS, within=within, skip=skip)))


def rows(steps: str, timed: Sequence[TimedRow]) -> list[KeyRow]:
    """Return rows of a key, by the steps that hold for them."""
    names = list_step_names(steps)
    made = []
    for n, (at, holds) in enumerate(timed):
        bits = sum(1 << number for number, name in enumerate(names) if name in holds)
        values = {"_steps": bits, "n": n, "amount": Decimal(n) / 4, "tags": [str(n)]}
        made.append(KeyRow(at, Place(0, n, "t", "id"), values))
    return made


def at_once(holds: str, pace: int = 1) -> list[TimedRow]:
    """Return rows of one step each, ``pace`` apart."""
    return [(pace * n, frozenset(each)) for n, each in enumerate(holds)]


def told(items: Sequence[Item]) -> list[tuple[int, float, tuple[Any, ...]]]:
    """Return where items are booked, which watermark they need, and their values."""
    return [(item.at, item.needs, tuple(item.values)) for item in items]


def test_a_match_is_booked_where_it_is_decided():
    """At a row, when the time of its first row is over, or at the end of the span: whatever comes first."""
    always = float("-inf")
    greedy = rows("a+ b?", [*at_once("aab"), (20, frozenset("a")), (40, frozenset("a"))])
    items = fold("a+ b?").finish(BLANK, greedy, 45)
    assert told(items) == [(2, always, (0, 3)), (31, 31, (3, 1)), (44, 45, (4, 1))]


def test_the_timer_is_that_of_the_oldest_start():
    """Others are taken back: a key in wait is looked at once for each start that its time has decided."""
    timed = [(0, frozenset("a")), (3, frozenset("a")), (9, frozenset("a"))]
    waiting = fold("a b")
    _, done = waiting.go_on(BLANK, rows("a b", timed[:2]), 5)
    assert done.timers == (14,) and done.state is not None
    twice = fold("a{2} b")
    _, done = twice.go_on(BLANK, rows("a{2} b", timed), 10)
    assert done.timers == (14,)
    _, done = twice.go_on(BLANK, rows("a{2} b", timed), 15)
    assert done.timers == (20,) and done.state is not None and done.state[0] == ((9,),)
    assert twice.go_on(BLANK, rows("a{2} b", timed), 21) == ([], BLANK)


def test_a_match_of_the_longest_time_is_found():
    """A row at the border comes before the timer; one microsecond later it comes behind it."""
    for last, found in ((10, [(0, 2)]), (11, [])):
        timed = [(0, frozenset("a")), (last, frozenset("b"))]
        items = fold("a b").finish(BLANK, rows("a b", timed), BORDER)
        assert [tuple(item.values) for item in items] == found


def test_a_key_whose_rows_match_nothing_has_no_state():
    """Most keys never fail: they cost nothing."""
    assert fold("fail{3,} ok").go_on(BLANK, rows("fail{3,} ok", at_once("xyz")), 9) == ([], BLANK)


def test_what_a_match_shows():
    """Values come as their types have them, of the rows of their step."""
    steps = "a+ b c?"
    select = {
        "n": "count(a)",
        "total": "sum(a.amount)",
        "tags": "last(a.tags)",
        "b": "b.n",
        "none": "c.n",
        "last": "last(amount)",
    }
    items = fold(steps, select).finish(BLANK, rows(steps, at_once("xaabx")), BORDER)
    assert [tuple(item.values) for item in items] == [(2, Decimal("0.75"), ("2",), 3, None, Decimal("0.75"))]
    assert items[0].values._fields == ("n", "total", "tags", "b", "none", "last")


def test_a_view_may_count_matches_only():
    """Then there is nothing to show."""
    items = fold("a b", {}).finish(BLANK, rows("a b", at_once("abab")), BORDER)
    assert [(item.at, tuple(item.values)) for item in items] == [(1, ()), (3, ())]


def test_the_state_has_what_is_needed_only():
    """Rows from the oldest start on, and of those the columns that are selected: a snapshot is small."""
    steps = "a b+ c"
    looked = fold(steps, {"total": "sum(b.amount)"})
    _, done = looked.go_on(BLANK, rows(steps, at_once("xxabb")), 5)
    amounts = ((Decimal("0.50"), Decimal("0.75"), Decimal("1.00")),)
    assert done == Snapshot((((2, 3, 4),), ((1, 2, 2),), amounts), (13,))
    kept = (
        "row_at ARRAY<ARRAY<BIGINT>>, row_steps ARRAY<ARRAY<BIGINT>>, col_amount ARRAY<ARRAY<DECIMAL(10,2)>>"
    )
    assert looked.function.made.state == kept and looked.function.made.columns == ["amount"]


def test_a_state_that_came_from_a_table_goes_on():
    """Tables have lists; the search is made again from them."""
    steps = "a{2,} b"
    looked = fold(steps, {"tags": "last(a.tags)", "n": "count(a)"})
    whole = rows(steps, at_once("aaaab"))
    _, done = looked.go_on(BLANK, whole[:3], 3)
    assert done.state is not None
    read = looked.function.state.freeze([[[*piece] for piece in pieces] for pieces in done.state])
    assert read == done.state and read is not done.state
    items, after = looked.go_on(Snapshot(read, done.timers), whole[3:], 9)
    assert [tuple(item.values) for item in items] == [(("3",), 4)] and after == BLANK


def test_a_state_that_is_none_is_refused():
    """The freezer trusts what the function has made, and nothing else."""
    with pytest.raises(TypeError, match="row_at"):
        fold("a b").function.state.freeze([["x"], [], []])


def test_more_rows_than_a_piece_has():
    """Pieces are an inner matter: what is shown is of all rows, and gone are the first ones."""
    many = 2 * PIECE + 10
    steps = "a+ b"
    looked = fold(steps, {"n": "count(a)", "first": "first(a.n)"}, within=many)
    timed = [*at_once("a" * (many + 30)), (many + 30, frozenset("b"))]
    _, done = looked.go_on(BLANK, rows(steps, timed[:-1]), many + 30)
    assert done.state is not None and [len(piece) for piece in done.state[0]] == [PIECE - 29, PIECE, 40]
    items = looked.finish(BLANK, rows(steps, timed), BORDER)
    assert [tuple(item.values) for item in items] == [(many, 30)]


def test_a_row_that_cannot_be_read_leaves_the_search_as_it_was():
    """Its error is told; the rows before and behind it are one match."""
    whole = rows("a+ b", at_once("aaab"))
    whole[1] = whole[1]._replace(values={**whole[1].values, "_steps": None})
    items = fold("a+ b").finish(BLANK, whole, BORDER)
    assert [item.side for item in items] == ["errors", ""] and tuple(items[1].values) == (0, 3)


def test_keys_share_a_function():
    """Searches are kept by the state that they belong to: keys in turn find theirs, or make it again."""
    looked = fold("a+ b")
    keys = dict.fromkeys(range(100), BLANK)
    for at, holds in enumerate("aab"):
        for key, done in keys.items():
            row = rows("a+ b", [(at, frozenset(holds if key % 3 else "a"))])
            items, keys[key] = looked.go_on(done, row, at + 1)
            assert [tuple(item.values) for item in items] == ([(0, 3)] if holds == "b" and key % 3 else [])
    assert {done == BLANK for key, done in keys.items() if key % 3} == {True}
    assert len({done for key, done in keys.items() if not key % 3}) == 1


def test_one_state_may_go_on_twice():
    """A late row has a key folded again from its snapshot: what came of it before must not show."""
    looked = fold("a+ b")
    _, begun = looked.go_on(BLANK, rows("a+ b", at_once("aa")), 2)
    ends = [rows("a+ b", [(3, frozenset(holds)), (4, frozenset("b"))]) for holds in ("a", "x", "a")]
    found = [[tuple(item.values) for item in looked.go_on(begun, rest, 9)[0]] for rest in ends]
    assert found == [[(0, 4)], [], [(0, 4)]]


def test_a_row_decides_what_no_timer_has():
    """A timer whose call raised is gone: the next row is still none of a match whose time is over."""
    looked = fold("a+ b?")
    _, begun = looked.go_on(BLANK, rows("a+ b?", at_once("aa")), 2)
    items, _ = looked.go_on(Snapshot(begun.state), rows("a+ b?", [(50, frozenset("b"))]), 51)
    assert [(item.at, tuple(item.values)) for item in items] == [(50, (0, 2))]


def test_a_time_beyond_the_calendar_is_never_over():
    """There is no instant to be called at."""
    late = (EPOCH.replace(year=9998) - EPOCH) // timedelta(microseconds=1)
    looked = fold("a+", within=4 * 366 * 86_400_000_000)
    items, done = looked.go_on(BLANK, rows("a+", [(late, frozenset("a"))]), late + 10)
    assert (items, done.timers) == ([], ()) and done.state is not None


def test_a_skip_that_is_unknown_is_refused():
    """SQL has others, which go back into a match."""
    with pytest.raises(DefinitionError, match="skip='to first a' is unknown"):
        fold("a b", skip="to first a")


def test_a_definition_has_a_code_of_its_own():
    """Another pattern is another version; the same one is the same in every process."""
    one = fold("a b").function.code
    assert one == fold("a b").function.code
    others = [
        fold("a b+"),
        fold("a b", {"n": "count(*)"}),
        fold("a b", within=9),
        fold("a b", skip="to next row"),
    ]
    assert len({one, *(each.function.code for each in others)}) == 5


@pytest.mark.parametrize("small", [False, True])
def test_a_cut_anywhere_changes_nothing(monkeypatch, small):
    """The seam: random patterns and rows, folded in one go, by trying, and cut at any instant, from a snapshot."""
    if small:
        monkeypatch.setattr(kept_rows, "PIECE", 2)
        monkeypatch.setattr(threads, "MOST_KEPT", 2)
    dice = random.Random(11 + small)
    compared = 0
    while compared < 120:
        tree = grow(dice, 3)
        if is_empty(tree):
            continue
        compared += 1
        steps, timed, within = write(tree), make_rows(dice, 7), dice.choice([None, 0, 2, 4])
        skip = dice.choice(["past last row", "to next row"])
        whole = rows(steps, timed)
        looked = fold(steps, within=within, skip=skip)
        items = looked.finish(BLANK, whole, 60)
        wanted = find_matches(tree, timed, within, to_next_row=skip == "to next row")
        assert [tuple(item.values) for item in items] == [(first, len(names)) for first, names in wanted]
        assert [item.at for item in items] == sorted(item.at for item in items)
        for cut in sorted({dice.randrange(25) for _ in range(4)} | {at for at, _ in timed}):
            first, begun = looked.go_on(BLANK, [row for row in whole if row.at < cut], cut)
            later = [row for row in whole if row.at >= cut]
            assert begun.state is None or all(begun.state[0])
            if begun.state is not None and dice.random() < 0.5:
                begun = begun._replace(state=looked.function.state.freeze(list(begun.state)))
            assert [*first, *looked.finish(begun, later, 60)] == items
            assert looked.go_on(begun, later, 50)[1] == looked.go_on(BLANK, whole, 50)[1]


def test_a_pattern_goes_to_another_process_without_what_it_has_found() -> None:
    """Searches are of the states of this process; and threads of a long pattern hang on one another."""
    long = fold("a{300} b", within=None)
    timed = rows("a{300} b", at_once("a" * 300))
    _, half = long.go_on(BLANK, timed, 300)
    made = long.function.made
    assert made.searches
    sent = pickle.loads(cloudpickle.dumps(made))
    assert (sent.searches, sent.book.automaton) == ({}, made.book.automaton)
    rest = rows("a{300} b", [(300, frozenset("b"))])
    again = Fold(load_pattern("found", sent))
    assert told(again.finish(half, rest, 400)) == told(long.finish(half, rest, 400)) != []


def test_a_search_is_of_its_own_state() -> None:
    """Another state may come to have the number of one that is gone."""
    waiting = fold("a{2,3} b")
    _, half = waiting.go_on(BLANK, rows("a{2,3} b", at_once("aa")), 2)
    made, one = waiting.function.made, rows("a{2,3} b", at_once("a"))
    _, other = waiting.go_on(BLANK, one, 1)
    made.searches[id(other.state)] = made.searches[id(half.state)]
    assert waiting.finish(other, rows("a{2,3} b", [(5, frozenset("b"))]), 9) == []


def test_a_state_is_told_by_its_rows() -> None:
    """The newest ones, with the steps that hold."""
    waiting = fold("a+ b", within=10**7)
    _, few = waiting.go_on(
        BLANK, rows("a+ b", [(10**6, frozenset("a")), (2 * 10**6, frozenset("ab"))]), 2 * 10**6
    )
    assert few.state is not None
    _, few = waiting.go_on(BLANK, rows("a+ b", at_once("aaa", 10**6)), 3 * 10**6)
    state = waiting.function.state
    assert state.describe(few.state) == (
        "3 waiting: 1970-01-01T00:00:00Z a, 1970-01-01T00:00:01Z a, 1970-01-01T00:00:02Z a"
    )
    _, many = waiting.go_on(BLANK, rows("a+ b", at_once("a" * 1000, 1000)), 10**6)
    assert state.describe(many.state).startswith("1,000 waiting, the newest: ")
