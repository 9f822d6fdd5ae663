"""The fold of a key's rows: in order of event time, with timers between them (docs/protocol.md, rule 25).

What a function emits in a call is booked at the call's instant. A row's is shown with the row, a timer's once the
recorded watermark has reached it. A call that raises has no effect but a row of the side ``errors``.
"""

from __future__ import annotations

import errno
import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from seamline.model.errors import ProtocolError
from seamline.model.functions.calls import ERRORS, NEVER, Call
from seamline.model.functions.function import LoadedFunction
from seamline.model.functions.records import Values, measure_value
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND

ALWAYS = -math.inf
"""Before any watermark."""
FATAL = (ImportError, OSError, MemoryError, ProtocolError)
"""What is no fault of a row: the function cannot be run here and now."""
RAISED = (Exception, SystemExit)
"""What users' code may raise, which is told."""
OF_VALUES = (errno.EINVAL, errno.ERANGE, errno.EOVERFLOW)
"""The numbers of an OSError that says of a value that it is out of range."""
MOST_CHAINED = 100_000
"""Timers that timers of a key may set without a row between them: one that sets the next for ever would never end."""
SHOWN = 500
"""Letters of an error that are kept."""


class Place(NamedTuple):
    """Where a record is; rows of one event time are folded in the order of their places."""

    partition: int
    offset: int
    topic: str
    topic_id: str


class KeyRow(NamedTuple):
    """A row of a key."""

    at: int
    """Its event time, in microseconds from 1970."""
    place: Place
    """Where it is."""
    values: Any
    """Its columns by name."""


class Item(NamedTuple):
    """A row that was emitted."""

    at: int
    """Where it is booked, in microseconds from 1970."""
    needs: float
    """The watermark from which on it is shown."""
    side: str
    """The side, empty for ``emits``."""
    values: Values
    """Its columns."""


class Snapshot(NamedTuple):
    """A key's fold up to an instant: with all earlier rows, and all earlier timers fired."""

    state: Values | None = None
    """The state, None without any."""
    timers: tuple[int, ...] = ()
    """The timers that wait, in order."""
    seen: int | None = None
    """The event time of the last row, None without any or where it is of no matter."""
    chained: int = 0
    """How many timers were set by timers since that row."""


BLANK = Snapshot()


class Watch(Protocol):
    """A list of numbers, or memory that another process sees."""

    def __getitem__(self, at: int, /) -> int: ...
    def __setitem__(self, at: int, value: int, /) -> None: ...


class FunctionUnusable(Exception):
    """A function cannot be run here and now, whatever its rows: its text says why."""


class EndlessTimers(FunctionUnusable):
    """A timer sets the next one, and that one the next."""


@dataclass(frozen=True)
class Fold:
    """How the rows of a key are folded."""

    function: LoadedFunction
    """The function."""
    forget: int | None = None
    """After how many microseconds of event time without a row a key is forgotten; None for never."""
    chained: int = MOST_CHAINED
    """How many timers may be set by timers without a row between them."""
    largest: int | None = None
    """Bytes that the state of a key may have, about; None for any number."""
    watch: Watch = field(default_factory=lambda: [0], compare=False, repr=False)
    """Its first number goes up when a call begins and when all of it is taken in: it is odd in between."""

    def go_on(self, begun: Snapshot, rows: Iterable[KeyRow], until: int) -> tuple[list[Item], Snapshot]:
        """Fold rows in order, from a snapshot's instant on, up to another instant; fire the timers before it."""
        run = KeyFold(self, begun)
        run.take_rows(rows)
        run.fire_timers(until)
        run.forget_before(until)
        return run.items, run.stop()

    def finish(self, begun: Snapshot, rows: Iterable[KeyRow], border: int) -> list[Item]:
        """Fold rows up to the border at which the state begins anew, and end it."""
        run = KeyFold(self, begun)
        run.take_rows(rows)
        run.end(border)
        return run.items


class KeyFold:
    """A fold that is being made, of one key."""

    __slots__ = ("chained", "fold", "function", "items", "seen", "state", "timers")

    def __init__(self, fold: Fold, begun: Snapshot) -> None:
        self.fold, self.function = fold, fold.function
        self.items: list[Item] = []
        self.state, self.seen, self.chained = begun.state, begun.seen, begun.chained
        self.timers = [*begun.timers]

    def stop(self) -> Snapshot:
        """Return what the fold has come to."""
        if self.state is None:
            return BLANK
        return Snapshot(self.state, tuple(self.timers), self.seen, self.chained)

    def forget_before(self, instant: int) -> None:
        """Forget the key where it had no row for long before an instant."""
        if self.seen is not None and instant >= self.seen + (self.fold.forget or 0):
            self.forget()

    def forget(self) -> None:
        """Forget the key, with its timers."""
        self.state, self.seen = None, None
        self.timers.clear()

    def fire_timers(self, before: float) -> None:
        """Fire the timers before an instant, each at its own, with those that they set."""
        timers, watch = self.timers, self.fold.watch
        while timers and timers[0] < before:
            instant = timers.pop(0)
            out = Call(self.function.forms, instant, self.find_limit())
            watch[0] += 1
            try:
                self.take(self.function.made.timer(self.state, out.at, out), out, instant)
            except RAISED as error:
                self.tell("timer", error, instant, instant)
            finally:
                watch[0] += 1
            self.chained += len(out.timers)
            if self.chained > self.fold.chained:
                at = format_utc_instant(EPOCH + instant * MICROSECOND)
                raise EndlessTimers(
                    f"{self.function.name}.timer: timers of a key have set {self.chained:,} others without a row "
                    f"between them, up to {at}; a timer that sets the next one has to stop some time"
                )

    def take_rows(self, rows: Iterable[KeyRow]) -> None:
        """Fold rows, each after the timers up to it; FunctionUnusable where the state is too large behind them."""
        self.take_some(rows)
        self.require_small()

    def take_some(self, rows: Iterable[KeyRow]) -> None:
        """Fold rows that others follow at once, as ``take_rows`` does; the state may be large between them."""
        call, forms, forget = self.function.made.row, self.function.forms, self.fold.forget
        watch, timers, limit = self.fold.watch, self.timers, self.find_limit()
        for at, place, values in rows:
            before = self.seen
            if timers and timers[0] <= at:
                self.fire_timers(at + 1)
            self.chained = 0
            if forget is not None:
                self.forget_before(at)
                before, self.seen = self.seen, at
                limit = self.find_limit()
            out = Call(forms, at, limit)
            watch[0] += 1
            try:
                self.take(call(self.state, values, out), out, ALWAYS)
            except RAISED as error:
                self.seen = before
                self.tell("row", error, at, ALWAYS, place)
            finally:
                watch[0] += 1

    def require_small(self) -> None:
        """Require that the state is not too large; FunctionUnusable."""
        most = self.fold.largest
        if most is None or self.state is None:
            return
        if self.function.state.measure(self.state) <= most:
            return
        size = measure_value(self.state)
        if size > most:
            raise FunctionUnusable(
                f"{self.function.name}: the state of a key has about {size >> 20:,} MiB, more than "
                f"the {most >> 20:,} MiB of memory="
            )

    def reach(self, mark: float, border: int) -> None:
        """Come to a watermark, or to the border where that is behind it."""
        if mark >= border:
            self.end(border)
            return
        if self.timers and self.timers[0] <= mark:
            self.fire_timers(mark + 1)
            self.require_small()
        if self.seen is not None and mark >= self.seen + (self.fold.forget or 0):
            self.forget()

    def end(self, border: int) -> None:
        """Come to the border at which the state begins anew."""
        self.fire_timers(border)
        self.forget_before(border)
        if self.state is None or not self.function.has_end:
            return
        out, watch = Call(self.function.forms, border - 1, self.find_limit()), self.fold.watch
        watch[0] += 1
        try:
            self.take(self.function.made.end(self.state, EPOCH + border * MICROSECOND, out), out, border)
        except RAISED as error:
            self.tell(self.function.last_call, error, border - 1, border)
        finally:
            watch[0] += 1

    def take(self, state: Any, out: Call, needs: float) -> None:
        """Take what a call has returned, emitted and set; TypeError where it has returned no state."""
        if state is None:
            if out.timers:
                raise TypeError("a timer was set, and no state returned: a key without one is forgotten")
            self.forget()
        elif isinstance(state, tuple):
            self.state = self.function.state.freeze(state, self.state)
            if out.cleared:
                self.timers.clear()
            for each in out.timers:
                self.set_timer(each)
        else:
            raise TypeError(f"{state!r} was returned: a state is a tuple, None forgets the key")
        for side, values in out.items:
            self.items.append(Item(out.instant, needs, side, values))

    def set_timer(self, instant: int) -> None:
        """Set a timer, if it is not set."""
        timers = self.timers
        if not timers or timers[-1] < instant:
            timers.append(instant)
            return
        place = bisect_left(timers, instant)
        if timers[place] != instant:
            timers.insert(place, instant)

    def find_limit(self) -> float:
        """Return before which instant timers may be due."""
        if not self.function.has_timer:
            return NEVER
        return math.inf if self.seen is None or self.fold.forget is None else self.seen + self.fold.forget

    def tell(
        self, call: str, error: Exception | SystemExit, instant: int, needs: float, place: Place | None = None
    ) -> None:
        """Say what a call has raised; FunctionUnusable where that is no fault of a row."""
        said = describe_error(error)
        if isinstance(error, FATAL) and getattr(error, "errno", None) not in OF_VALUES:
            raise FunctionUnusable(f"{self.function.name}.{call}: {said}") from error
        where = (place.topic, place.partition, place.offset) if place else (None, None, None)
        values = self.function.forms[ERRORS].freeze((call, said, *where))
        self.items.append(Item(instant, needs, ERRORS, values))


def describe_error(error: BaseException) -> str:
    """Say what a call has raised."""
    try:
        said = str(error)
    except Exception as other:  # noqa: BLE001 - an error of users' code may have such a method, too
        said = f"its text raised {type(other).__name__}"
    return f"{type(error).__name__}: {said}"[:SHOWN].encode(errors="replace").decode()
