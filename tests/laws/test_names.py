"""What a user calls a thing changes no number: any name works as a harmless one does, or is refused with its place.

More of it, by random names and on Spark and Delta, is in tests/faults/test_names.py.
"""

from __future__ import annotations

import pytest
from tests.laws.dialects import DIALECTS
from tests.laws.names import (
    HOSTILE,
    ILL,
    ROLES,
    WINDOWS,
    answered,
    harmless,
    lived,
    named,
    pipeline,
    read,
    refused,
)

FIRST = {
    "key": "s", "other": "i", "text": "x", "whole": "u", "real": "v", "items": "n", "parts": "t", "member": "o",
    "spare": "x0", "derived": "y0", "item": "e", "measure": "f", "part": "m2", "on": "x1", "column": "a",
}  # fmt: skip
"""Names of one letter: those that SQL gives the parameters of a lambda."""
SECOND = {
    "key": "select", "other": "user", "text": "pane", "whole": "rows", "real": "interval", "items": "window_end",
    "parts": "struct", "member": "from", "spare": "Epoch", "derived": "generation", "item": "unnest",
    "measure": "order", "part": "values", "looked": "group", "on": 'a "b', "column": "end", "side": "where",
}  # fmt: skip
"""Words of SQL, and of our tables where a column may be called so."""


@pytest.mark.parametrize(
    ("given", "at", "exploding"),
    [(FIRST, 0, False), (FIRST, 0, True), (SECOND, 0, False), ({"measure": "grouping"}, 0, True)],
)
def test_any_name_changes_no_number(given: dict[str, str], at: int, exploding: bool) -> None:
    """A key named s broke the views of everybody who has one: SQL took it for a name of ours."""
    assert answered(named(given), WINDOWS[at], exploding=exploding) == harmless(at, exploding=exploding) != []


@pytest.mark.parametrize("format", [*DIALECTS])
def test_any_name_is_read_from_every_format(format: str) -> None:
    """Groups of a pattern, fields of a schema and members of an object are called by the user too."""
    expected = read(dict(ROLES), DIALECTS[format])
    assert read(named(FIRST), DIALECTS[format]) == read(named(SECOND), DIALECTS[format]) == expected


def test_windows_of_so_many_events_and_pinned_look_ups_take_any_name() -> None:
    """Both are in the row: events are numbered, and looked up, by keys that a user has named."""
    assert lived(named(SECOND), WINDOWS[4], pinned=True) == lived(dict(ROLES), WINDOWS[4], pinned=True)


def test_which_names_are_refused() -> None:
    """Most names are a user's own; what is refused is refused where it would be one with a name of ours."""
    found = {
        roles[0]: {name for name in some if refused(pipeline(named(dict.fromkeys(roles, name)), few=True))}
        for roles, some in ((["key"], HOSTILE), (["whole", "member"], HOSTILE[::4]))
    }
    assert found["key"].isdisjoint({"s", "i", "x", "order", "select", "step1", "n__", "value"})
    assert found["key"] >= {"rows", "Pane", "Total", "total__sum", "grouping", "Interval"}
    assert found["whole"] == set()


READ = ("key", "other", "whole", "real", "text", "items", "parts", "member", "spare", "column")
"""Roles of columns that records have: change events have such that begin with two underscores."""


@pytest.mark.parametrize("role", [*ROLES])
def test_what_is_no_name_is_refused_with_its_place(role: str) -> None:
    """Nothing but letters, digits and underscores gets into a table; the columns of a look-up's own table may."""
    for name in ILL:
        given = named({role: name})
        fits = role == "on" or (name == "__n" and role in READ)
        assert refused(pipeline(given, exploding=role == "item", few=True)) != fits, (role, name)


@pytest.mark.parametrize("role", ["key", "whole", "items", "spare"])
def test_names_that_differ_in_case_alone_are_refused(role: str) -> None:
    """Spark takes them for one, and Delta refuses the table at its first commit."""
    for other in {"key", "whole", "real", "parts", "derived"} - {role}:
        taken = ROLES[other] if other == "derived" else ROLES[other].upper()
        assert refused(pipeline(named({other: taken, role: ROLES[other].capitalize()}), few=True)), other


def test_a_key_and_the_column_of_a_look_up_differ_in_more_than_case() -> None:
    """They stand side by side in the serving table, and in the row where the look-up is pinned."""
    beside = named({"key": "Cities_Size"})
    assert refused(pipeline(beside, few=True)) and refused(pipeline(beside, few=True, pinned=True))
