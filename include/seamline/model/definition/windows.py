"""Windows as a user declares them; what is not a way to cut time is refused here."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError
from seamline.model.time.intervals import EPOCH, Grid, format_exact_duration, parse_duration
from seamline.model.time.window_arithmetic import Gaps, Ruling, Whole, Windows
from seamline.model.time.zone_clock import MICROSECOND, Clock, clock_of

PANES = 100_000
"""A window of more panes than these is cut too finely to be read."""
MOST_WINDOWS = 1_000
"""So many sliding count windows an event may be in."""


@dataclass(frozen=True)
class Window:
    """How a view cuts time; ``laid`` makes it ready for a pipeline's intervals."""

    kind: ClassVar[str] = ""

    def lay_out(self, grid: Grid) -> Windows:
        """Return the arithmetic of the windows; DefinitionError where they cannot be cut."""
        raise NotImplementedError

    @property
    def facts(self) -> list[Any]:
        """List what the windows are: the kind, what must be said, and what differs from its default."""
        must = [getattr(self, each.name) for each in fields(self) if each.default is MISSING]
        may = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.default is not MISSING and getattr(self, each.name) != each.default
        }
        return [self.kind, *must, *([may] if may else [])]

    def __str__(self) -> str:
        kind, *said = self.facts
        return " ".join([kind, *(str(each) for each in said)])


@dataclass(frozen=True)
class Tumbling(Window):
    """Windows of one size that follow each other without a gap.

    A size that divides every change of the zone's clock ("1 hour") is counted in elapsed time; a longer one
    ("1 day") follows the clock, so that a day has 23, 24 or 25 hours.
    """

    size: str
    """The length of a window, as a duration: "1 hour"."""
    offset: str = ""
    """By how much windows begin after 1970-01-01T00:00, as a duration; "" is not at all."""
    zone: str = "UTC"
    """The IANA time zone whose clocks cut days and longer windows."""
    kind: ClassVar[str] = "tumbling"

    @property
    def length(self) -> timedelta:
        """Return the size as a duration; DefinitionError where it is none."""
        return parse_duration(self.size)

    def lay_out(self, grid: Grid) -> Ruling:
        return build_zone_ruling(grid, self.length, self.length, self.length, self.offset, self.zone)


@dataclass(frozen=True)
class Sliding(Window):
    """Windows of one size, of which one begins every ``slide``: an event is in ``size / slide`` of them.

    Rows are stored per pane, as for tumbling windows of the slide; windows are made when they are read.
    """

    size: str
    """The length of a window, as a duration: "1 hour"."""
    slide: str
    """The time from the start of one window to the next; it divides ``size``."""
    offset: str = ""
    """By how much windows begin after 1970-01-01T00:00, as a duration; "" is not at all."""
    zone: str = "UTC"
    """The IANA time zone whose clocks cut days and longer windows."""
    kind: ClassVar[str] = "sliding"

    @property
    def length(self) -> timedelta:
        """Return the size as a duration; DefinitionError where it is none."""
        return parse_duration(self.size)

    def lay_out(self, grid: Grid) -> Ruling:
        size, slide = self.length, parse_duration(self.slide)
        require_even_division(size, slide, f"A slide of {self.slide}", self.size)
        return build_zone_ruling(grid, size, slide, size, self.offset, self.zone)


@dataclass(frozen=True)
class Cumulating(Window):
    """Windows that begin every ``size`` and grow by ``step``: the day so far, at each hour."""

    size: str
    """The length of the longest window, as a duration: "1 day"."""
    step: str
    """By how much a window is longer than the one before; it divides ``size``."""
    offset: str = ""
    """By how much windows begin after 1970-01-01T00:00, as a duration; "" is not at all."""
    zone: str = "UTC"
    """The IANA time zone whose clocks cut days and longer windows."""
    kind: ClassVar[str] = "cumulating"

    @property
    def length(self) -> timedelta:
        """Return the greatest size as a duration; DefinitionError where it is none."""
        return parse_duration(self.size)

    def lay_out(self, grid: Grid) -> Ruling:
        size, step = self.length, parse_duration(self.step)
        require_even_division(size, step, f"A step of {self.step}", self.size)
        return build_zone_ruling(grid, size, size, step, self.offset, self.zone)


@dataclass(frozen=True)
class Global(Window):
    """No window: one answer per key over the whole life of the pipeline."""

    kind: ClassVar[str] = "global"

    def lay_out(self, grid: Grid) -> Whole:
        return Whole((grid.start - EPOCH) // MICROSECOND)


@dataclass(frozen=True)
class Session(Window):
    """Events of a key that are less than ``gap`` apart; a session ends ``gap`` after its last event.

    Nothing bounds its length: it goes on over epochs, intervals and the seam until a gap ends it.
    """

    gap: str
    """The least time without an event of the key that ends a session, as a duration: "30 minutes"."""
    kind: ClassVar[str] = "session"

    def lay_out(self, grid: Grid) -> Gaps:
        return Gaps(parse_duration(self.gap) // MICROSECOND, grid.length // MICROSECOND)


@dataclass(frozen=True)
class CountWindow(Window):
    """Every so many events of a key in the order in which they were read, counted again in each interval.

    A row has ``window_number``, from 1, and the interval's bounds. Which events are in a window depends on all
    before them: the view is owned, by the speed layer until a published build answers for the interval whole.

    With ``slide`` or ``begin`` events are counted in the order of their event times, and a window is shown when its
    last event is read: see ``Process``.
    """

    events: int
    """The number of events in a window, 1 or more."""
    slide: int = 0
    """After how many events the next window ends; 0 for ``events``. A window has at most 1,000 times as many."""
    begin: str = ""
    """How often counting begins anew, as a duration: a part of an interval, or a multiple; "" for its length."""
    copies: bool = False
    """Whether intervals are certified in which copies of events are counted; with ``slide`` or ``begin`` only."""
    kind: ClassVar[str] = "count"

    @property
    def folded(self) -> bool:
        """Whether events are counted by event time, as a fold of the rows of a key."""
        return bool(self.begin or self.slide)

    @property
    def facts(self) -> list[Any]:
        """List what the windows are; whether copies are certified is no part of it."""
        kind, events, *more = super().facts
        said = {name: value for each in more for name, value in each.items() if name != "copies"}
        if self.begin:
            said["begin"] = format_exact_duration(parse_duration(self.begin))
        return [kind, events, *([said] if said else [])]

    def lay_out(self, grid: Grid) -> Ruling:
        if not isinstance(self.events, int) or self.events < 1:
            raise DefinitionError(
                f"{self.events!r} events cannot make a window.", hint="for example: CountWindow(100)."
            )
        if not isinstance(self.slide, int) or isinstance(self.slide, bool) or self.slide < 0:
            raise DefinitionError(
                f"Windows cannot end every {self.slide!r} events.",
                hint="for example: CountWindow(100, slide=10).",
            )
        if self.copies and not self.folded:
            raise DefinitionError(
                "copies= is of windows with slide= or begin=: copies are not counted in others.",
                hint="remove copies=.",
            )
        if self.slide and self.events > MOST_WINDOWS * self.slide:
            raise DefinitionError(
                f"An event would be in {self.events // self.slide} windows.",
                hint=f"use a larger slide: it may be in {MOST_WINDOWS}.",
            )
        return build_zone_ruling(grid, grid.length, grid.length, grid.length, "", "UTC")


WINDOWS: tuple[type[Window], ...] = (Tumbling, Sliding, Cumulating, Global, Session, CountWindow)


def require_even_division(size: timedelta, part: timedelta, named: str, whole: str) -> None:
    """Refuse a slide or a step that is longer than the size or does not divide it."""
    if part > size:
        raise DefinitionError(
            f"{named} is longer than the window of {whole}: some events would be in no window.",
            hint=f"use at most {whole}; with {whole} the windows are tumbling.",
        )
    if size % part:
        raise DefinitionError(
            f"{named} does not divide the window of {whole}.",
            hint=f"use one of which {whole} is a multiple: {suggest_even_part(size, part)}.",
        )


def suggest_even_part(size: timedelta, part: timedelta) -> str:
    """Say which length that divides the size is the next one below a part that does not."""
    whole = size // MICROSECOND
    number = next(each for each in range(-(-size // part), whole + 1) if not whole % each)
    return f'"{format_exact_duration(size // number)}"'


def build_zone_ruling(
    grid: Grid, size: timedelta, slide: timedelta, step: timedelta, offset: str, zone: str
) -> Ruling:
    """Rule windows on a zone's clock; DefinitionError where clocks or panes do not allow it."""
    shifted = parse_duration(offset) if offset else timedelta()
    if shifted >= slide:
        raise DefinitionError(
            f"An offset of {offset} is not shorter than {format_exact_duration(slide)}, after which windows repeat.",
            hint=f'write offset="{format_exact_duration(shifted % slide)}".'
            if shifted % slide
            else "leave it out: windows begin at the same times without it.",
        )
    clock = clock_for(clock_of(zone, grid.start), slide // MICROSECOND, zone)
    ruling = Ruling(
        size // MICROSECOND, slide // MICROSECOND, step // MICROSECOND, shifted // MICROSECOND, clock
    )
    pane = ruling.pane(grid.length // MICROSECOND)
    if ruling.size // pane > PANES:
        raise DefinitionError(
            f"A window of {format_exact_duration(size)} would be merged from {ruling.size // pane} panes of "
            f"{format_exact_duration(pane * MICROSECOND)}, the longest that fit size, slide, offset, changes "
            f"of the clock and the interval of {format_exact_duration(grid.length)}.",
            hint=f"choose them so that a window has at most {PANES} panes.",
        )
    return ruling


def clock_for(clock: Clock, slide: int, zone: str) -> Clock:
    """Choose how windows pass a change of the clock: by elapsed time, or stretched with it."""
    if all(shift % slide == 0 for shift in clock.shifts):
        return clock.fixed()
    if any(shift >= slide for shift in clock.shifts):
        least, most = (format_exact_duration(each(clock.shifts) * MICROSECOND) for each in (min, max))
        raise DefinitionError(
            f"Windows every {format_exact_duration(slide * MICROSECOND)} do not fit the clock of {zone}, which changes "
            f"by up to {most}.",
            hint=f"use a length that divides {least}, or one longer than {most}.",
        )
    return clock
