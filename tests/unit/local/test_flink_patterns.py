"""Patterns are compared with Flink's where both mean the same, and nowhere else."""

from __future__ import annotations

import random

import pytest
from benchmarks.peers.flink_patterns import fold_all, make_query
from benchmarks.peers.pattern_cases import Case, Row, Step, is_common, make_case

ALL = frozenset(range(5))
SIGNS = {
    "": (1, 1),
    "?": (0, 1),
    "*": (0, None),
    "+": (1, None),
    "{2}": (2, 2),
    "{,2}": (0, 2),
    "{2,}": (2, None),
}


def read(text: str, **kinds: str) -> tuple[Step, ...]:
    """Return steps by their text; the kinds of rows that take each are digits."""
    steps = []
    for word in text.split():
        sign = word[1:].removesuffix("?") or word[1:]
        reluctant = word[1:] not in (sign, "")
        taken = frozenset(map(int, kinds[word[0]])) if word[0] in kinds else ALL
        steps.append(Step(word[0], *SIGNS[sign], reluctant, taken))
    return tuple(steps)


def case(text: str, found: str, within: int | None = None, **kinds: str) -> Case:
    """Return a case with a row a second of one key, each a kind."""
    rows = tuple(Row(0, at, at, int(kind), at) for at, kind in enumerate(found))
    return Case(read(text, **kinds), within, "past last row", rows)


@pytest.mark.parametrize("text", ["a b? c* d+ e", "a{2} b{,2} c{2,}?", "a*? b+?"])
def test_steps_are_written_as_both_read_them(text):
    """A sign that one of them reads in another way would be another pattern."""
    assert case(text, "").text == text


@pytest.mark.parametrize(
    ("text", "common"),
    [
        ("a b", True),
        ("a+ b", True),
        ("a+ c", False),
        ("a+ b? c", False),
        ("a+ b c", True),
        ("a+? c", True),
        ("b a+", False),
        ("b a+?", True),
        ("a+ b?", False),
        ("a+? b?", True),
        ("a b?", True),
        ("d", False),
    ],
)
def test_what_flink_means_differently_is_left_out(text, common):
    """Of a+ c, where rows of a are rows of c, too, Flink finds nothing, and SQL does."""
    assert is_common(read(text, a="01", b="2", c="13")) == common


def test_rows_at_which_flink_is_hasty_are_left_out():
    """It gives a match of a as soon as there is one, though the row of b belongs to it."""
    assert not case("a b?", "12", a="1", b="2").is_settled(0)
    assert case("a b?", "13", a="1", b="2").is_settled(0)
    assert case("a b{,2} c", "1223", a="1", b="2", c="3").is_settled(0)


def test_rows_that_match_in_two_ways_are_told():
    """Both find the same rows; that the first step takes fewer of them is known to one."""
    two = case("a+? b*? c", "112", a="1", b="1", c="2")
    assert two.is_settled(0) and not two.is_single(0)
    assert case("a+? b*? c", "12", a="1", b="1", c="2").is_single(0)


def test_a_row_at_the_border_counts_for_neither():
    """Flink drops it; Seamline is told a microsecond less."""
    timed = [case("a b", "12", within, a="1", b="2") for within in (1, 2)]
    assert [len(found) for found in (fold_all([each])[0, 0] for each in timed)] == [0, 1]


def test_a_query_has_what_the_pattern_has():
    """What is compared is the same question."""
    query = make_query(7, case("a+? b{,2}", "", 6, a="13"))
    assert "PATTERN (a+? b{0,2}) WITHIN INTERVAL '6' SECOND" in query
    assert "DEFINE a AS kind IN (1, 3)\n" in query and "AFTER MATCH SKIP PAST LAST ROW" in query


def test_cases_are_the_same_for_a_seed():
    """A difference must be there again when it is looked for."""
    one, other = (make_case(random.Random(5), 2, 6) for _ in range(2))
    assert one == other and len(one.rows) == 12 and is_common(one.steps)
