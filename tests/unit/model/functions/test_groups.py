"""Both sides' rows of a key and window come in one call, whatever order they are read in."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.unit.model.functions.test_tails import KEY, Stream

from seamline.model.errors import DefinitionError
from seamline.model.functions.folding import BLANK, Fold, KeyRow, Place
from seamline.model.functions.groups import PREFIXES, RIGHT, load_group
from seamline.model.functions.kept_rows import PIECE
from seamline.model.functions.tails import KeySpan
from seamline.model.types.schema import Schema

LEFT_COLUMNS = Schema.parse("user STRING, n BIGINT, more MAP<STRING, INT>").fields
RIGHT_COLUMNS = Schema.parse("user STRING, n BIGINT").fields


class Both:
    """Says what it is given, and that it is not there without a left row."""

    emits = "user STRING, lefts ARRAY<BIGINT>, rights ARRAY<BIGINT>, more MAP<STRING, INT>"
    sides: Mapping[str, str] = {"alone": "rights BIGINT"}

    def group(self, key: Any, lefts: Sequence[Any], rights: Sequence[Any], out: Any) -> None:
        """Emit the numbers of both."""
        if lefts:
            more = {name: value for row in lefts for name, value in (row["more"] or {}).items()}
            out.emit(key["user"], [row["n"] for row in lefts], [row["n"] for row in rights], more)
        else:
            out.side("alone", len(rights))


FOLD = Fold(load_group(f"{__name__}:Both", {"user": "user"}, LEFT_COLUMNS, RIGHT_COLUMNS))


def row(at: int, n: int, *, right: bool = False, more: Mapping[str, int] | None = None) -> KeyRow:
    """Return a row of one of the two sides."""
    own = {"user": "a", "n": n, **({} if right else {"more": more})}
    values = {"user": "a", RIGHT: right, **{f"{PREFIXES[right]}{name}": value for name, value in own.items()}}
    return KeyRow(at, Place(0, n, "right" if right else "left", "id"), values)


def test_rows_of_both_sides_come_at_the_end_of_their_window():
    """In the order of their event times, each side's by itself; a side may have none."""
    rows = [row(0, 1, more={"x": 1}), row(1, 2, right=True), row(2, 3), row(3, 4, right=True)]
    [item] = FOLD.finish(BLANK, rows, 10)
    assert (item.at, item.needs, item.side) == (9, 10, "")
    assert item.values == ("a", (1, 3), (2, 4), {"x": 1})
    [item] = FOLD.finish(BLANK, [row(0, 1, right=True)], 10)
    assert (item.side, tuple(item.values)) == ("alone", (1,))


def test_many_rows_are_kept_without_copying_them_all():
    """A hot key has as many as it has; its state is a value, in pieces."""
    rows = [row(at, at, right=at % 3 == 0) for at in range(1000)]
    [item] = FOLD.finish(BLANK, rows, 1000)
    assert item.values.lefts == tuple(at for at in range(1000) if at % 3)
    _, half = FOLD.go_on(BLANK, rows[:500], 500)
    assert half.state
    assert max(len(piece) for column in half.state for piece in column) == PIECE
    again = FOLD.function.state.freeze([[[*piece] for piece in column] for column in half.state])
    assert again == half.state
    assert FOLD.finish(half._replace(state=again), rows[500:], 1000) == [item]


@pytest.mark.parametrize("seed", range(6))
def test_a_stream_shows_what_one_call_says(seed):
    """Late rows have the group of their window called again, and what it said before withdrawn."""
    dice, stream, mark = random.Random(seed), Stream(20, FOLD), 0
    for n in range(60):
        at = max(0, mark + dice.randrange(-30, 15))
        stream.read([(KEY, row(at, n, right=dice.random() < 0.5))], mark)
        mark += dice.randrange(4)
        assert all(count in (0, 1) for count in stream.shown.values())
    stream.read([], mark + 60)
    shown = {key.span: item.values for (key, item), count in stream.shown.items() if count and not item.side}
    for key, rows in stream.rows.items():
        lefts, rights = (
            tuple(each.values[f"{PREFIXES[right]}n"] for each in sorted(rows) if each.values[RIGHT] is right)
            for right in (False, True)
        )
        assert shown.get(key.span, (None, (), ()))[1:3] == (lefts, rights if lefts else ())
    assert KeySpan(KEY, 0) in stream.rows


class NoGroup:
    """Has no method."""

    emits = "n BIGINT"


def test_what_is_no_group_function_is_refused():
    """With the method that is missing."""
    with pytest.raises(DefinitionError, match="has no group") as raised:
        load_group(f"{__name__}:NoGroup", {"user": "user"}, LEFT_COLUMNS, RIGHT_COLUMNS)
    assert "group(self, key, lefts, rights, out)" in str(raised.value)


def test_a_state_is_told_by_its_sides() -> None:
    """And a class that raises is named with its own method."""
    _, half = FOLD.go_on(BLANK, [row(0, 1), row(1, 2, right=True), row(2, 3)], 5)
    assert half.state is not None
    assert FOLD.function.state.describe(half.state) == "rows: 2 left, 1 right"
    assert FOLD.function.last_call == "group"
