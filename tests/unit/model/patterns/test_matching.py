"""Which rows match: by hand, and as trying all ways finds it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from tests.unit.model.patterns.brute_force import TimedRow, find_matches, grow, is_empty, make_rows, write

from seamline.model.patterns.automaton import build_automaton
from seamline.model.patterns.matching import Match, Search
from seamline.model.patterns.steps import Steps, parse_steps
from seamline.model.patterns.threads import ThreadBook


class Looker:
    """Takes rows in one after the other, and notes when which match was decided."""

    def __init__(self, text: str, within: int | None = None, *, to_next_row: bool = False) -> None:
        self.steps: Steps = parse_steps(text)
        self.search = Search(ThreadBook(build_automaton(self.steps)), within, to_next_row)

    def take(self, at: int, holds: frozenset[str] | str) -> list[tuple[int, str]]:
        """Take a row, and return what it decides."""
        found = self.search.decide(at)
        bits = sum(1 << number for number, name in enumerate(self.steps.names) if name in holds)
        self.search.take(at, bits)
        return self.name([*found, *self.search.decide(at)])

    def end(self) -> list[tuple[int, str]]:
        """Return what the end decides."""
        return self.name(self.search.decide(None))

    def name(self, found: Sequence[Match]) -> list[tuple[int, str]]:
        """Name the steps of matches."""
        return [(match.first, "".join(self.steps.names[step] for step in match.steps)) for match in found]


def look(
    text: str, rows: Sequence[TimedRow], within: int | None, *, to_next_row: bool
) -> list[tuple[int, str]]:
    """List all matches in rows."""
    looker = Looker(text, within, to_next_row=to_next_row)
    return [found for row in rows for found in looker.take(*row)] + looker.end()


def find(text: str, rows: str) -> str:
    """Write the matches in rows that are a second apart; each word has the letters of the steps that hold."""
    timed = [(at, frozenset(word)) for at, word in enumerate(rows.split())]
    return " ".join(f"{first}:{names}" for first, names in look(text, timed, None, to_next_row=False))


@pytest.mark.parametrize(
    ("text", "rows", "found"),
    [
        ("a", "a b a a", "0:a 2:a 3:a"),
        ("a b", "a a b b a", "1:ab"),
        ("a? b", "b a b a", "0:b 1:ab"),
        ("a?? b", "ab b", "0:b 1:b"),
        ("a? b", "ab b", "0:ab"),
        ("a* b", "a ab a b", "0:aaab"),
        ("a*? b", "a ab a b", "0:ab 2:ab"),
        ("a+", "a a b a", "0:aa 3:a"),
        ("a+?", "a a b a", "0:a 1:a 3:a"),
        ("a+ b", "b a a b", "1:aab"),
        ("a+? b", "a ab b", "0:ab"),
        ("a{2}", "a a a a a", "0:aa 2:aa"),
        ("a{2,}", "a b a a a", "2:aaa"),
        ("a{2,}?", "a a a a a", "0:aa 2:aa"),
        ("a{2,3}", "a a a a a a", "0:aaa 3:aaa"),
        ("a{2,3}", "a a a a", "0:aaa"),
        ("a{2,3}?", "a a a a", "0:aa 2:aa"),
        ("a{,2} b", "a a a b b", "1:aab 4:b"),
        ("a{,2}? b", "ab b", "0:b 1:b"),
        ("a | b", "ab", "0:a"),
        ("b | a", "ab", "0:b"),
        ("(a | a b) c", "a b c", "0:abc"),
        ("(a | a b)", "a b", "0:a"),
        ("(a b | a)", "a b a c", "0:ab 2:a"),
        ("(a b)+ c", "a b a b c", "0:ababc"),
        ("a (b | c)* d", "a c b d a b", "0:acbd"),
        ("a b a | b", "a b b a b a", "1:b 2:b 3:aba"),
    ],
)
def test_each_quantifier(text, rows, found):
    """Greedy before fewer, reluctant the other way, alternatives as they are written, and the leftmost start first."""
    assert find(text, rows) == found


@pytest.mark.parametrize(
    ("text", "rows", "found"),
    [
        ("(a??)* b", "ab b", "0:b 1:b"),
        ("(a?)* b", "ab b", "0:ab"),
        ("(a? | b){1,2} c", "b ac c", "0:bac"),
        ("(b?? | b*){0,2} c", "b b bc c", "0:bbc 3:c"),
        ("(a?){2,3} b", "a a a b", "0:aaab"),
        ("((a*)* b?)+ c", "a b a a c", "0:abaac"),
    ],
)
def test_a_repetition_of_no_rows_is_the_last(text, rows, found):
    """ISO/IEC 19075-5, 7.2.8: it does not go on for ever, and does not come behind what consumes rows."""
    assert find(text, rows) == found


def test_a_step_without_a_condition_holds_for_every_row():
    """Its bit is always set: SQL has such steps to skip over anything."""
    assert find("a x* b", "ax x bx x bx") == "0:axxxb"


# a  0 1
# b          5
# within 5  [--------]   within 4  [-------]
def test_a_row_too_far_away_is_as_good_as_none():
    """A match at the border is as long as it may be; one microsecond more, and the next start has its turn."""
    rows = [(0, "a"), (1, "a"), (5, "b")]
    for within, found in ((5, [(0, "aab")]), (4, [(1, "ab")]), (3, [])):
        timed = [(at, frozenset(holds)) for at, holds in rows]
        assert look("a+ b", timed, within, to_next_row=False) == found


def test_a_shorter_match_is_taken_where_the_preferred_one_is_too_long():
    """It is preferred among those that are in time, not given up with the others."""
    timed = [(at, frozenset("a")) for at in (0, 3, 6, 9)]
    assert look("a+", timed, 5, to_next_row=False) == [(0, "aa"), (2, "aa")]
    assert look("a{3} | a", timed, 5, to_next_row=False) == [(0, "a"), (1, "a"), (2, "a"), (3, "a")]


def test_the_next_row_may_begin_a_match_within_the_last():
    """With skip="to next row" each row has its turn."""
    timed = [(at, frozenset(holds)) for at, holds in enumerate("aaba")]
    assert look("a+ b", timed, None, to_next_row=True) == [(0, "aab"), (1, "ab")]
    assert look("a+", timed, None, to_next_row=True) == [(0, "aa"), (1, "a"), (3, "a")]


def test_a_match_is_decided_once_nothing_is_preferred_to_it():
    """Speed: a match is shown as soon as it is sure, not when its time is over."""
    greedy, reluctant, counted = Looker("a+", 10), Looker("a+?", 10), Looker("a{2} b?", 10)
    assert [greedy.take(at, "a") for at in (0, 1)] == [[], []]
    assert greedy.take(2, "") == [(0, "aa")]
    assert reluctant.take(0, "a") == [(0, "a")]
    assert [counted.take(at, "a") for at in (0, 1, 2)] == [[], [], [(0, "aa")]]
    assert counted.take(3, "a") == [] and counted.take(4, "b") == [(2, "aab")]


def test_a_match_waits_for_the_one_before_it():
    """0 a, 1 b: whether the match of b counts depends on that of a, which may yet take it."""
    looker = Looker("a b+ c | b", 10)
    assert looker.take(0, "a") == looker.take(1, "b") == looker.take(2, "b") == []
    assert looker.search.decide(10) == []
    assert looker.name(looker.search.decide(11)) == [(1, "b"), (2, "b")]


def test_what_cannot_match_is_forgotten():
    """A key whose rows matter no more costs nothing."""
    looker = Looker("a{3} b", 10)
    for at, holds in enumerate(["a", "a", "a", "c"]):
        looker.take(at, holds)
    assert not looker.search.starts and not looker.search.waiting and looker.search.begun == 4


def test_what_is_skipped_is_forgotten():
    """A match that might have begun within another one is looked for no longer."""
    looker = Looker("a b | b c* d")
    assert looker.take(0, "a") == [] and looker.take(1, "b") == [(0, "ab")]
    assert not looker.search.starts and not looker.search.waiting


def test_many_starts_are_a_few_groups():
    """A thousand failures are looked at once each: the search does not go back."""
    looker = Looker("fail{3,} ok", 10_000)
    for at in range(1_000):
        looker.search.take(at, 1)
    assert len(looker.search.starts) == 1_000 and len(looker.search.waiting) == 3


def test_all_that_is_found_by_trying_is_found():
    """Random steps and rows: the automaton, its groups and its times against a search by trying."""
    dice = random.Random(7)
    compared = matched = 0
    while compared < 2_000:
        tree = grow(dice, 3)
        if is_empty(tree):
            continue
        rows, within = make_rows(dice, 7), dice.choice([None, 0, 1, 2, 4, 7])
        to_next_row = dice.random() < 0.4
        wanted = find_matches(tree, rows, within, to_next_row=to_next_row)
        assert look(write(tree), rows, within, to_next_row=to_next_row) == wanted, (write(tree), rows, within)
        compared += 1
        matched += len(wanted) > 1
    assert matched > 400
