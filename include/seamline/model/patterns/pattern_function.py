"""A pattern as a process function: the rows of a key are taken in, and what matches is emitted where it is decided.

The state is what cannot be made again: the rows since the first one whose match is not decided, with the columns that
a match shows. The search in them is kept beside it, by the state that it belongs to. Where there is none, as behind a
snapshot, it is made again from the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from seamline.model.errors import DefinitionError
from seamline.model.functions.calls import EMITTED, ERRORS, Call
from seamline.model.functions.frozen import make_freezer
from seamline.model.functions.function import ERROR_FIELDS, LoadedFunction, Row
from seamline.model.functions.kept_rows import KeptRows, join_values
from seamline.model.functions.records import RecordFreezer, Values, parse_columns
from seamline.model.patterns.automaton import build_automaton
from seamline.model.patterns.matching import Match, Search
from seamline.model.patterns.selecting import parse_select
from seamline.model.patterns.steps import parse_steps
from seamline.model.patterns.threads import ThreadBook
from seamline.model.time.intervals import EPOCH, LONGEST, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import BIGINT, Field, Schema

HOLDS = "_steps"
"""The column of a row that has a bit for each step whose condition holds, the first step's the lowest."""
PAST_LAST_ROW, TO_NEXT_ROW = "past last row", "to next row"
LAST_INSTANT = (LONGEST - EPOCH) // MICROSECOND
MOST_SHOWN = 10
"""So many of the rows that wait are told."""
MOST_KEPT = 64
"""So many searches are kept. A fold takes the rows of a key one after the other, and needs but one for it."""


class WaitingRows(KeptRows):
    """The rows of a key since the first one whose match is not decided."""

    def __init__(self, fields: Sequence[Field], steps: Sequence[str]) -> None:
        super().__init__(fields)
        self.steps = tuple(steps)

    def describe(self, values: Values) -> str:
        """Write how many rows wait, and which steps hold for the newest of them."""
        times, holds = values[0], values[1]
        newest = [*zip(times[-1], holds[-1], strict=True)][-MOST_SHOWN:]
        said = ", ".join(
            f"{format_utc_instant(EPOCH + at * MICROSECOND)} {self.name_steps(bits)}" for at, bits in newest
        )
        count = sum(map(len, times))
        return f"{count:,} waiting{', the newest' if count > len(newest) else ''}: {said}"

    def name_steps(self, bits: int) -> str:
        """Name the steps that hold for a row."""
        return "|".join(name for bit, name in enumerate(self.steps) if bits >> bit & 1) or "no step"


class PatternFunction:
    """Looks for a pattern in the rows of a key, which have its ``_steps``.

    A match is booked where it is decided: at the row that no preferred match can take any more, at the instant at
    which ``within`` is over for its first row, or at the end of a span.
    """

    def __init__(
        self,
        steps: str,
        select: Mapping[str, str],
        schema: Schema,
        *,
        within: int | None,
        skip: str = PAST_LAST_ROW,
    ) -> None:
        if skip not in (PAST_LAST_ROW, TO_NEXT_ROW):
            raise DefinitionError(
                f"skip={skip!r} is unknown.", hint=f"use {PAST_LAST_ROW!r} or {TO_NEXT_ROW!r}."
            )
        read = parse_steps(steps)
        self.book = ThreadBook(build_automaton(read))
        self.selected = parse_select(select, read.names, schema)
        self.within, self.skip = within, skip
        shown = {each.column for each in self.selected}
        fields = [field for field in schema.fields if field.name in shown]
        self.columns = [field.name for field in fields]
        self.freezers = [make_freezer(field.type) for field in fields]
        own = [Field(f"col_{field.name}", field.type) for field in fields]
        self.kept = WaitingRows([Field("row_at", BIGINT), Field("row_steps", BIGINT), *own], read.names)
        self.state = self.kept.ddl
        self.emits = ", ".join(f"{each.name} {each.type}" for each in self.selected)
        self.searches: dict[int, tuple[Values, Search]] = {}
        said = (read.text, [*select.items()], self.state, self.emits, within, skip)
        self.code = hashlib.sha256(repr(said).encode()).hexdigest()[:12]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was found, which goes deep, and is of the states of this process."""
        return {**vars(self), "searches": {}, "book": ThreadBook(self.book.automaton)}

    def row(self, state: Values | None, row: Row, out: Call) -> Values | None:
        """Take a row in, and emit the matches that it decides."""
        values = [freeze(row[name]) for name, freeze in zip(self.columns, self.freezers, strict=True)]
        holds: int = row[HOLDS]
        search = self.find_search(state)
        begun = search.begun
        matches = search.decide(out.instant)
        search.take(out.instant, holds)
        matches += search.decide(out.instant)
        rows = self.kept.add(state, (out.instant, holds, *values))
        self.emit(rows, begun, matches, out)
        return self.go_on(rows, search, begun, out, new=state is None)

    def timer(self, state: Values | None, at: datetime, out: Call) -> Values | None:
        """Emit the matches that are decided now that the time of their first row is over."""
        if state is None:
            return None
        search = self.find_search(state)
        begun = search.begun
        self.emit(state, begun, search.decide(out.instant), out)
        return self.go_on(state, search, begun, out, new=True)

    def end(self, state: Values | None, at: datetime, out: Call) -> None:
        """Emit the matches that are left, as no row will come."""
        if state is not None:
            search = self.find_search(state)
            self.emit(state, search.begun, search.decide(None), out)

    def find_search(self, state: Values | None) -> Search:
        """Return the search that a state belongs to; it is nobody else's from now on."""
        search = Search(self.book, self.within, self.skip == TO_NEXT_ROW)
        if state is None:
            return search
        kept = self.searches.pop(id(state), None)  # The state is kept too, so that no other one has its id.
        if kept is not None and kept[0] is state:
            return kept[1]
        for at, holds in zip(join_values(state[0]), join_values(state[1]), strict=True):
            search.take(at, holds)
        return search

    def emit(self, rows: Values, begun: int, matches: Sequence[Match], out: Call) -> None:
        """Emit matches of rows, the first of which has the number ``begun``."""
        if not matches:
            return
        times, _, *columns = map(join_values, rows)
        values = dict(zip(self.columns, columns, strict=True))
        for match in matches:
            first, length = match.first - begun, len(match.steps)
            parts = {name: column[first : first + length] for name, column in values.items()}
            parts[""] = times[first : first + length]
            out.emit(*(each.show(parts[each.column], match.steps) for each in self.selected))

    def go_on(self, rows: Values, search: Search, begun: int, out: Call, *, new: bool) -> Values | None:
        """Return the state that is left; have the timer called where the time of its first row is over."""
        if not search.starts:
            return None
        gone = search.begun - begun
        if gone or new:
            self.set_timer(search.times[0], out)
        state = self.kept.drop(rows, gone) if gone else rows
        if len(self.searches) >= MOST_KEPT:
            self.searches.clear()
        self.searches[id(state)] = state, search
        return state

    def set_timer(self, first: int, out: Call) -> None:
        """Set the timer for the time of the first row, instead of another."""
        out.clear_timers()
        if self.within is not None and first + self.within < LAST_INSTANT:
            out.timer(EPOCH + (first + self.within + 1) * MICROSECOND)


def load_pattern(name: str, made: PatternFunction) -> LoadedFunction:
    """Return a pattern as a function that can be folded, without ``forget``: ``within`` says how long a key matters."""
    emitted = RecordFreezer("emits", parse_columns(made.emits, f"{name}.select"))
    forms = {EMITTED: emitted, ERRORS: RecordFreezer(ERRORS, ERROR_FIELDS)}
    return LoadedFunction(name, made, made.code, made.kept, forms, has_timer=True, has_end=True)
