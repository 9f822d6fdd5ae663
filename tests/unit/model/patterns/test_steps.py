"""The text of steps: what it means, and what is said of one that is wrong."""

from __future__ import annotations

import pytest

from seamline.model.errors import DefinitionError
from seamline.model.patterns.automaton import ACCEPT, build_automaton
from seamline.model.patterns.steps import list_step_names, parse_steps
from seamline.model.patterns.tree import Choice, Repeat, Sequence, Step


def test_steps_are_numbered_as_they_appear():
    """The engines classify rows by these numbers: another order would swap conditions."""
    assert list_step_names("up+ (down | flat)* up Down_2") == ("up", "down", "flat", "Down_2")


def test_a_text_becomes_a_tree():
    """Alternatives bind the least, then what follows, then what repeats."""
    read = parse_steps(" a b{2,}?|( a |c )* b\n")
    a, b, c = Step(0), Step(1), Step(2)
    assert read.tree == Choice(
        (
            Sequence((a, Repeat(b, 2, None, True))),
            Sequence((Repeat(Choice((a, c)), 0, None, False), b)),
        )
    )


@pytest.mark.parametrize(
    ("text", "least", "most", "reluctant"),
    [
        ("a?", 0, 1, False),
        ("a*", 0, None, False),
        ("a+", 1, None, False),
        ("a{3}", 3, 3, False),
        ("a{3,}", 3, None, False),
        ("a{ 3 , 5 }", 3, 5, False),
        ("a{,5}", 0, 5, False),
        ("a??", 0, 1, True),
        ("a+ ?", 1, None, True),
        ("a{3}?", 3, 3, True),
        ("a{,5}?", 0, 5, True),
    ],
)
def test_counts(text, least, most, reluctant):
    """A count that is read as another changes what is found, in silence."""
    assert parse_steps(f"{text} b").tree == Sequence((Repeat(Step(0), least, most, reluctant), Step(1)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Steps '' name no step."),
        (None, "Steps None name no step."),
        ("a - b", "Steps 'a - b', at letter 3: '-' is unknown."),
        ("a 1b", "at letter 3: '1' is unknown"),
        ("_a", "at letter 1: '_' is unknown"),
        ("^ a", "at letter 1: ^ is not there"),
        ("a $", "at letter 3: $ is not there"),
        ("a {- b -} c", "at letter 3: {- -} is not there"),
        ("PERMUTE(a, b)", "at letter 1: PERMUTE is not there"),
        ("(a b", "at letter 1: this bracket is never closed"),
        ("a b) c", "at letter 4: ')' closes nothing"),
        ("a ()", "at letter 4: here a step is missing"),
        ("a |", "at the end: here a step is missing"),
        ("| a", "at letter 1: here a step is missing"),
        ("+ a", "at letter 1: '+' repeats nothing"),
        ("a | {2}", "at letter 5: '{2}' repeats nothing"),
        ("a+*", "at letter 3: '*' repeats what is repeated"),
        ("a???", "at letter 4: '?' repeats what is repeated"),
        ("a{2}{3}", "at letter 5: '{3}' repeats what is repeated"),
        ("a{2", "at letter 2: this is no count"),
        ("a{x}", "at letter 2: this is no count"),
        ("a{}", "at letter 2: {} counts nothing"),
        ("a{,}", "at letter 2: {,} counts nothing"),
        ("a{5,3}", "at letter 2: {5,3} has no number within"),
        ("a{0} b", "at letter 2: {0} matches no row"),
        ("a{0,0} b", "at letter 2: {0,0} matches no row"),
        ("a{1234567890}", "at letter 2: {1234567890} is too much"),
        ("fail Fail", "at letter 6: 'Fail' differs from another step in upper and lower case only"),
        ("a*", "Steps 'a*' match no rows at all, too"),
        ("(a | b?) c{,2}", "match no rows at all, too"),
        ("(" * 60 + "a" + ")" * 60, "at letter 51: brackets are more than 50 deep"),
        (" ".join(f"s{number}" for number in range(63)), "there are more than 62 steps"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, said):
    """Whoever wrote the steps finds the letter, and a way out."""
    with pytest.raises(DefinitionError) as caught:
        parse_steps(text)
    assert said in caught.value.message and caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a{2001}", "2,001 places for rows"),
        ("(a{900,} b{200}){900000000}", "more than 2,000"),
        ("(a?){1000} b", "more than 50,000 ways"),
    ],
)
def test_an_automaton_stays_small(text, said):
    """A count of a count is a few letters, and would take all memory."""
    with pytest.raises(DefinitionError, match=said):
        build_automaton(parse_steps(text))


def test_the_largest_counts_that_are_allowed():
    """Optional places are within each other, however many they are."""
    built = build_automaton(parse_steps("a{,1999} b"))
    assert len(built.steps) == 2000 and max(map(len, built.follow)) == 2
    assert [follow for follow in built.follow if ACCEPT in follow] == [(ACCEPT,)]
