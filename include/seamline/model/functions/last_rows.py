"""Count windows that slide, or go on over intervals, as a process function: each has a key's last so many rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from seamline.model.functions.calls import EMITTED, ERRORS, Call
from seamline.model.functions.frozen import make_freezer
from seamline.model.functions.function import ERROR_FIELDS, LoadedFunction, Row
from seamline.model.functions.kept_rows import KeptRows, join_values
from seamline.model.functions.records import RecordFreezer, Values
from seamline.model.types.schema import BIGINT, Field

PLACE = Field("row_number", BIGINT, nullable=False)
"""The number of a kept row, from 1."""


class LastRows(KeptRows):
    """The last rows of a key; the first column has their numbers."""

    def describe(self, values: Values) -> str:
        """Write which rows are kept."""
        numbers = join_values(values[0])
        return f"rows {numbers[0]:,} to {numbers[-1]:,}"


class CountedWindows:
    """Every ``slide`` rows, emits the last ``events`` rows of a key with the number of their window, from 1.

    Before the state begins anew, the next window is emitted with the rows that it has by then, if it has any.
    """

    def __init__(self, fields: Sequence[Field], events: int, slide: int) -> None:
        self.names = [field.name for field in fields]
        self.freezers = [make_freezer(field.type) for field in fields]
        self.events, self.slide = events, slide
        self.kept = LastRows([PLACE, *(Field(f"column_{each.name}", each.type) for each in fields)])

    def row(self, state: Values | None, row: Row, out: Call) -> Values:
        """Keep a row, and emit the window that it ends, if it ends one."""
        number = state[0][-1][-1] + 1 if state else 1
        values = [freeze(row[name]) for name, freeze in zip(self.names, self.freezers, strict=True)]
        kept = self.kept.add(state, (number, *values))
        if number > self.events:
            kept = self.kept.drop(kept, 1)
        if number % self.slide == 0:
            self.emit(kept, number // self.slide, out)
        return kept

    def end(self, state: Values, at: datetime, out: Call) -> None:
        """Emit the window that the last rows are in and that did not end."""
        number = state[0][-1][-1]
        if number % self.slide:
            self.emit(state, number // self.slide + 1, out)

    def emit(self, state: Values, window: int, out: Call) -> None:
        """Emit the rows of a window, as far as there are any."""
        first = window * self.slide - self.events
        for number, *values in zip(*map(join_values, state), strict=True):
            if number > first:
                out.emit(window, *values)


def load_windows(name: str, number: str, fields: Sequence[Field], events: int, slide: int) -> LoadedFunction:
    """Return windows of so many rows as a function that can be folded; ``number`` names the column of the window's."""
    made: Any = CountedWindows(fields, events, slide)
    shown = [Field(number, BIGINT, nullable=False), *fields]
    forms = {EMITTED: RecordFreezer("emits", shown), ERRORS: RecordFreezer(ERRORS, ERROR_FIELDS)}
    return LoadedFunction(name, made, f"{events} rows each {slide}", made.kept, forms, has_end=True)
