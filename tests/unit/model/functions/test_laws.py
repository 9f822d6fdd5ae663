"""The laws of process functions: each is broken by a class that seems to work."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from tests.unit.process_functions import Abandoned, Counts, Fails, Remembers

from seamline.model.functions.folding import Fold, FunctionUnusable
from seamline.model.functions.function import load_function
from seamline.model.functions.laws import find_broken_law
from seamline.model.types.schema import Schema

COLUMNS = Schema.parse(
    "n BIGINT NOT NULL, name STRING, total DOUBLE NOT NULL, tags ARRAY<STRING>, more MAP<STRING, INT>, "
    "deep ARRAY<MAP<STRING, INT>>"
)
DAY = 24 * 3_600_000_000


def broken(found: type, forget: int | None = None) -> str:
    """Say which law a class breaks."""
    return find_broken_law(
        Fold(load_function(f"{found.__module__}:{found.__name__}"), forget), COLUMNS.fields, DAY
    )


@pytest.mark.parametrize("found", [Remembers, Counts, Fails, Abandoned])
def test_a_function_of_its_rows_keeps_the_laws(found):
    """Also one that raises, and one whose timers wait."""
    assert broken(found) == ""


@pytest.mark.parametrize("forget", [10_000, 3_600_000_000])
def test_forgetting_keeps_the_laws(forget):
    """A key is forgotten at the same instant wherever its fold is cut."""
    assert broken(Counts, forget) == ""


class CountsCalls(Counts):
    """Keeps a count beside its state."""

    calls: ClassVar[list[int]] = []

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> Any:
        self.calls.append(1)
        out.emit(name="calls", n=len(self.calls))
        return super().row(state, row, out)


class ChangesRows(Counts):
    """Uses its row as if it were its own."""

    def row(self, state: Any, row: Any, out: Any) -> Any:
        row.pop("total", None)
        return super().row(state, row, out)


class KeepsBeside(Counts):
    """Remembers the last key that it was called for, and is right as long as nobody else asks."""

    last: Any = None

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> Any:
        if state is None:
            type(self).last = None
        out.emit(name=self.last, n=0)
        type(self).last = row["name"]
        return super().row(state, {"name": "x"}, out) if row["n"] < 0 else ({}, None)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (CountsCalls, "when they are folded again"),
        (ChangesRows, "changes the rows that it is given"),
    ],
)
def test_a_broken_law_is_told_with_rows(found, words):
    """As few as show it: one."""
    said = broken(found)
    assert words in said
    assert said.count("1970-01-01T") <= 4


class Once(Counts):
    """Emits each name once in its life."""

    known: ClassVar[set[Any]] = set()

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> Any:
        if row["n"] not in self.known:
            self.known.add(row["n"])
            out.emit(name="new", n=row["n"])
        return super().row(state, row, out)


class Chains(Counts):
    """Rings each second, all day."""

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> Any:
        if state is None:
            out.timer(out.at + timedelta(seconds=1))
        return ({}, None)

    def timer(self, state: Any, at: Any, out: Any) -> Any:
        """Ring."""
        out.timer(out.at + timedelta(seconds=1))
        return state


class NotANumber(Counts):
    """Divides what cannot be divided."""

    emits = "x DOUBLE"

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> Any:
        out.emit(float("inf") - float("inf"))
        return ({}, None)


def test_what_is_found_once_is_told():
    """A function that remembers what it has emitted does not show it a second time."""
    assert "Once emits of" in broken(Once)


@pytest.mark.parametrize("found", [Chains, NotANumber])
def test_a_good_function_is_not_refused(found):
    """Whose timers go on for long, or whose doubles are no numbers."""
    assert broken(found) == ""


class ReadsFiles(Counts):
    """Cannot be run where its file is not."""

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> Any:
        raise FileNotFoundError("rates.csv")


def test_a_function_that_cannot_be_run_is_told():
    """It is no law that it breaks, and it will not do in a stream either."""
    with pytest.raises(FunctionUnusable, match=r"ReadsFiles.row: FileNotFoundError: rates.csv$"):
        broken(ReadsFiles)


def test_what_is_kept_beside_the_state_is_found():
    """The fold of a key is cut, and another key's rows come between: what is not in the state is another's then."""
    assert broken(KeepsBeside)
