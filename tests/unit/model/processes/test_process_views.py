"""Views of what a process emits: columns of the key and of a side, measures from which rows can be withdrawn."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.model.processes.test_processes import CARTS, compiled
from tests.unit.process_functions import Counts

from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.process_view import compile_process_view
from seamline.model.compile.sources import split_process_name
from seamline.model.definition.pipeline import View
from seamline.model.definition.windows import CountWindow, Session, Tumbling
from seamline.model.errors import DefinitionError
from seamline.model.measures import avg, count, formula, max, sum


def view(side: str = "", process: dict[str, Any] | None = None, **changes: Any) -> CompiledView:
    """Compile a view of a side; raise its first problem."""
    settings: dict[str, Any] = {
        "keys": ["user"],
        "window": Tumbling("1 hour"),
        "measures": {"n": count()},
        **changes,
    }
    problems, grid = Problems(), compile_pipeline(CARTS).grid
    declared = View("lost", of="carts", **settings)
    found = compile_process_view(CARTS, declared, compiled(**(process or {})), side, grid, problems)
    if found is None:
        raise problems.found[0]
    return found


def test_a_view_counts_what_was_emitted():
    """By columns of the key and of the side, in totals that give back what is withdrawn."""
    made = view(keys=["user", "kind"], where="amount > 1", measures={"n": count(), "lost": sum("amount")})
    assert [part.name for part in made.parts] == ["n__n", "lost__sum", "lost__n"]
    assert [key.name for key in made.keys] == ["user", "kind"]
    assert made.where
    assert [part.name for part in view("errors", keys=["call"]).parts] == ["n__n"]


def test_a_side_is_named_behind_its_process():
    """As a column is behind its table."""
    assert split_process_name("carts") == ("carts", "")
    assert split_process_name("carts.refunds") == ("carts", "refunds")


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"measures": {"m": max("amount")}}, "measures[m]", "cannot subtract them"),
        ({"measures": {"m": formula("m", m=max("amount"))}}, "measures[m]", "cannot subtract them"),
        (
            {"measures": {"m": avg("n"), "o": avg("n * 0.5D")}, "process": {"by": Counts}},
            "measures[o]",
            "DOUBLE",
        ),
        ({"measures": {"m": sum("CAST(kind AS INT)")}}, "measures[m]", "can fail"),
        ({"window": Session("5 minutes")}, "window", "may split a session"),
        ({"window": CountWindow(5)}, "window", "would move all later ones to other windows"),
        ({"explode": {"one": "kinds"}}, "explode", "cannot have explode"),
        ({"keys": ["total"]}, "keys", "There is no column 'total'"),
        ({"side": "refund"}, "of", "has no side 'refund'"),
    ],
)
def test_what_such_a_view_cannot_have_is_refused(changes, field, problem):
    """With the reason, and with what to do instead."""
    with pytest.raises(DefinitionError) as raised:
        view(**changes)
    assert f"views[lost].{field}" in str(raised.value)
    assert problem in raised.value.message
    assert raised.value.hint
