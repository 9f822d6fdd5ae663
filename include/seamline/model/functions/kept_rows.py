"""Rows that a function keeps in its state, by column: values in pieces, so that one more does not copy them all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

from seamline.model.functions.records import RecordFreezer, Values, measure_value, parse_columns
from seamline.model.types.schema import Field

PIECE = 256
"""Values of a piece. The last piece of a column may have fewer, and the first one once rows of it are gone."""
Pieces = tuple[tuple[Any, ...], ...]


class KeptRows(RecordFreezer):
    """A state of the columns of rows.

    A state that was made here is frozen already, however many rows it has.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self.ddl = ", ".join(f"{each.name} ARRAY<ARRAY<{each.type}>>" for each in fields)
        super().__init__("state", parse_columns(self.ddl, "state"))

    def freeze(self, values: Sequence[Any], like: Values | None = None) -> Values:
        """Return a state; TypeError where it is none."""
        if values.__class__ is self.named:
            return cast("Values", values)
        return super().freeze(values, like)

    def measure(self, values: Values) -> int:
        """Return about how many bytes the rows have, by the mean of each column's two newest pieces."""
        found = 0
        for pieces in values:
            if newest := [*chain.from_iterable(pieces[-2:])]:
                found += sum(map(len, pieces)) * sum(map(measure_value, newest)) // len(newest)
        return found

    def add(self, state: Values | None, row: Sequence[Any]) -> Values:
        """Return a state with one more row."""
        columns = state or ((),) * len(row)
        return self.make([add_value(pieces, value) for pieces, value in zip(columns, row, strict=True)])

    def drop(self, state: Values, count: int) -> Values:
        """Return a state without its first rows."""
        return self.make([drop_values(pieces, count) for pieces in state])

    def make(self, columns: Sequence[Pieces]) -> Values:
        """Return a state of columns."""
        made: Values = self.named(*columns)
        return made


def add_value(pieces: Pieces, value: Any) -> Pieces:
    """Return a column with one more value."""
    if not pieces or len(pieces[-1]) == PIECE:
        return (*pieces, (value,))
    return (*pieces[:-1], (*pieces[-1], value))


def drop_values(pieces: Pieces, count: int) -> Pieces:
    """Return a column without its first values, of which it has more."""
    at = 0
    while len(pieces[at]) <= count:
        count -= len(pieces[at])
        at += 1
    return (pieces[at][count:], *pieces[at + 1 :])


def join_values(pieces: Pieces) -> list[Any]:
    """List a column's values."""
    return [*chain.from_iterable(pieces)]
