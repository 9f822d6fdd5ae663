"""Classes for ``Process``: functions that keep the laws, and some that break one each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

HALF_HOUR = timedelta(minutes=30)
TICKS = (timedelta(microseconds=1), timedelta(microseconds=3))


class Abandoned:
    """A cart that nobody touches for half an hour."""

    state = "cart DECIMAL(10,2)"
    emits = "kind STRING, amount DECIMAL(10,2)"
    sides: Mapping[str, str] = {"refunds": "amount DECIMAL(10,2) NOT NULL"}

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> tuple[Any, ...]:
        """Wait for half an hour from here."""
        if row["total"] < 0:
            out.side("refunds", -row["total"])
        out.clear_timers()
        out.timer(out.at + HALF_HOUR)
        return (row["total"],)

    def timer(self, state: Any, at: Any, out: Any) -> None:
        """Nobody came."""
        out.emit("abandoned", state.cart)

    def end(self, state: Any, at: Any, out: Any) -> None:
        """The day is over."""
        out.emit(amount=state.cart)


class Remembers:
    """Emits all that it has been through: what is done in another order, or not at all, does not stay unseen."""

    state = "past ARRAY<STRING>"
    emits = "said STRING, past ARRAY<STRING>"

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> tuple[Any, ...]:
        """Set two timers."""
        past = state.past if state else ()
        out.emit(f"row {row['n']}", past)
        for ahead in TICKS:
            out.timer(out.at + ahead)
        return ((*past, str(row["n"])),)

    def timer(self, state: Any, at: Any, out: Any) -> tuple[Any, ...]:
        """Remember it."""
        out.emit("timer", state.past)
        return ((*state.past, f"timer {at.microsecond}"),)

    def end(self, state: Any, at: Any, out: Any) -> None:
        """Say all."""
        out.emit("end", state.past)


class Counts:
    """How many rows of each name a key has had, and on every third a word."""

    state = "names MAP<STRING, BIGINT>, last STRUCT<name: STRING>"
    emits = "name STRING, n BIGINT"

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> tuple[Any, ...] | None:
        """Count; a row without a name forgets the key."""
        if row["name"] is None:
            return None
        names = state.names if state else {}
        n = names.get(row["name"], 0) + 1
        if n % 3 == 0:
            out.emit(name=row["name"], n=n)
        return ({**names, row["name"]: n}, {"name": row["name"]})


class Fails(Counts):
    """Raises for some rows."""

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> tuple[Any, ...] | None:
        """Emit, set aside what was there, and raise."""
        out.emit(name="never", n=0)
        if row["name"] == "bad":
            raise ValueError("no such name")
        return super().row(state, row, out)
