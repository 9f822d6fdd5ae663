"""A fold of a key told call by call: what each call was given, what state it met, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from seamline.model.functions.calls import Call
from seamline.model.functions.folding import ALWAYS, BLANK, Fold, Item, KeyFold, KeyRow, Place
from seamline.model.functions.records import Values

CALL = "_call"
"""The column that says which call has emitted a row."""
ROW, TIMER = "row", "timer"
"""The methods of a function, by their names; that of the end has one of its own."""


@dataclass(frozen=True)
class TracedCall:
    """One call."""

    call: str
    """The method."""
    at: int
    """The call's instant, in microseconds from 1970."""
    before: Values | None
    """The state that it was given, None without any."""
    after: Values | None
    """The state that it has left, None without any."""
    items: tuple[Item, ...]
    """What it has emitted; of a call that raised the row of the side of errors."""
    row: KeyRow | None = None
    """The row of the call, None for a timer and at the end of a span."""


class TracedFold(KeyFold):
    """A fold that remembers its calls."""

    __slots__ = ("steps",)

    def __init__(self, fold: Fold) -> None:
        super().__init__(fold, BLANK)
        self.steps: list[TracedCall] = []

    def take(self, state: object, out: Call, needs: float) -> None:
        before, known = self.state, len(self.items)
        super().take(state, out, needs)
        call = ROW if needs == ALWAYS else TIMER if needs == out.instant else self.function.last_call
        self.steps.append(TracedCall(call, out.instant, before, self.state, tuple(self.items[known:])))

    def tell(
        self, call: str, error: Exception | SystemExit, instant: int, needs: float, place: Place | None = None
    ) -> None:
        known = len(self.items)
        super().tell(call, error, instant, needs, place)
        self.steps.append(TracedCall(call, instant, self.state, self.state, tuple(self.items[known:])))


def trace_calls(fold: Fold, rows: Iterable[KeyRow], mark: float, border: int) -> list[TracedCall]:
    """Fold all rows of a key in a span, in order, up to a watermark; return the calls in order."""
    # A state is measured behind the rows of an epoch, which are not known here.
    run = TracedFold(replace(fold, largest=None))
    for row in rows:
        run.take_rows([row])
        run.steps[-1] = replace(run.steps[-1], row=row)
    run.reach(mark, border)
    return run.steps
