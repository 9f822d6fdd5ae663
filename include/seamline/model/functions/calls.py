"""What a function may do in a call beside returning its state: emit, emit aside, set a timer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from seamline.model.functions.records import RecordFreezer, Values
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND

NEVER = -math.inf
"""The limit of timers of a class that has no ``timer``."""
EMITTED, ERRORS = "", "errors"
"""The side of what is emitted, and that of calls that raised."""
Emitted = tuple[str, Values]


class Call:
    """One call of a function: ``at`` is the event time of its row, the instant of its timer, or the border."""

    __slots__ = ("_at", "cleared", "forms", "instant", "items", "limit", "timers")

    def __init__(self, forms: Mapping[str, RecordFreezer], instant: int, limit: float) -> None:
        self.forms, self.instant, self.limit = forms, instant, limit
        self.items: list[Emitted] = []
        self.timers: list[int] = []
        self.cleared = False
        self._at: datetime | None = None

    @property
    def at(self) -> datetime:
        """Return the instant of the call, UTC."""
        if self._at is None:
            self._at = EPOCH + self.instant * MICROSECOND
        return self._at

    def emit(self, /, *values: Any, **named: Any) -> None:
        """Emit a row of the columns of ``emits``: values in their order, or by name; others are NULL."""
        form = self.forms[EMITTED]
        self.items.append((EMITTED, form.freeze(form.name_values(values, named) if named else values)))

    def side(self, side: str, /, *values: Any, **named: Any) -> None:
        """Emit a row of a side, in the same way."""
        if (form := self.forms.get(side)) is None or side == ERRORS:
            known = ", ".join(name for name in self.forms if name not in (EMITTED, ERRORS)) or "none"
            raise ValueError(f"there is no side {side!r}; declared are {known}")
        self.items.append((side, form.freeze(form.name_values(values, named) if named else values)))

    def timer(self, at: datetime) -> None:
        """Have ``timer`` called at a later instant; setting one twice sets it once.

        A timer at or behind the next ``begin`` is never due: ``end`` is called instead.
        """
        if not isinstance(at, datetime):
            raise TypeError(f"timer({at!r}) is no datetime: write out.timer(out.at + timedelta(minutes=30))")
        if at.tzinfo is None:
            raise ValueError(f"timer({at}) has no time zone; event times are in UTC")
        instant = (at - EPOCH) // MICROSECOND
        if instant <= self.instant:
            raise ValueError(f"timer({format_utc_instant(at)}) is not after {format_utc_instant(self.at)}")
        if instant >= self.limit:
            until = "this class has no timer()"
            if self.limit > NEVER:
                until = f"the key is forgotten at {format_utc_instant(EPOCH + int(self.limit) * MICROSECOND)}"
            raise ValueError(f"timer({format_utc_instant(at)}) is of no use: {until}")
        self.timers.append(instant)

    def clear_timers(self) -> None:
        """Take back all timers of the key."""
        self.timers.clear()
        self.cleared = True
