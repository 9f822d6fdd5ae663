"""What somebody waits for who builds on a view's intervals: that they are complete, or certified."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from seamline.model.errors import BadRange
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import How, Manifest, Statement
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid, Interval, format_utc_instant

MOST = 10_000
"""Intervals that one may wait for: each look at the tables goes through them."""


class Until(StrEnum):
    """How far an interval must have come.

    COMPLETE: the watermark has passed its end, and each epoch's rows are in the view's slices. CERTIFIED: a certified
    generation of it is published, or it is complete and has no rows.
    """

    COMPLETE = "complete"
    CERTIFIED = "certified"


@dataclass(frozen=True)
class Awaited:
    """The intervals of a view that somebody waits for."""

    view: str
    """The view's name, without the pipeline; the version that is served counts."""
    grid: Grid
    """The pipeline's intervals."""
    span: Interval
    """The event times that are asked for."""
    until: Until
    """How far they must have come."""
    ahead: timedelta = timedelta(0)
    """How far behind an interval's end rows may be that are counted in it."""
    reach: int = 0
    """How many intervals further than an event's own the view's windows reach."""
    emits: bool = False
    """Whether an interval without accepted rows may have rows, since a function emits them."""

    def __post_init__(self) -> None:
        if self.span.start < self.grid.start:
            raise BadRange(
                f"{format_utc_instant(self.span.start)} is before the pipeline's start "
                f"{format_utc_instant(self.grid.start)}: it never has rows.",
                hint=f"wait for intervals from {format_utc_instant(self.grid.start)} on.",
            )
        count = -(-(self.span.end - self.span.start) // self.grid.length)
        if count > MOST:
            raise BadRange(
                f"{self.span} has {count} intervals; {MOST} can be waited for at once.",
                hint="wait for a shorter span.",
            )

    @property
    def intervals(self) -> list[Interval]:
        """Those that must have come so far: windows that begin in the span may end behind it."""
        own = list(self.grid.touching(self.span))
        last = own[-1].start
        return own + [self.grid.of(last + number * self.grid.length) for number in range(1, self.reach + 1)]

    @property
    def closes(self) -> datetime:
        """The watermark at which the span is complete."""
        return self.span.end + self.reach * self.grid.length + self.ahead

    def feeding(self, interval: Interval) -> list[str]:
        """List the ids of the intervals whose rows make rows of one: its own, and those that reach into it."""
        return [
            self.grid.of(interval.start - number * self.grid.length).id for number in range(self.reach + 1)
        ]


@dataclass(frozen=True)
class Readiness:
    """How far awaited intervals have come."""

    lacking: str
    """What is still lacking, in a sentence; empty once nothing is."""
    unbuilt: tuple[Interval, ...] = ()
    """Intervals that are complete and have no certified generation: what is lacking depends on whether they have
    rows."""
    statements: tuple[Statement, ...] = field(default=(), repr=False)
    """The publications that answer for the intervals, oldest interval first."""


def assess(
    awaited: Awaited,
    manifest: Manifest,
    newest: Epoch | None,
    watermark: datetime | None,
    filled: Collection[str] | None = None,
) -> Readiness:
    """Say how far intervals have come at the newest epoch, whose ``watermark`` it is.

    ``filled`` are the ids of intervals with accepted rows, None where nobody has looked: then ``unbuilt`` names those
    of which it has to be known.
    """
    if (version := manifest.serving.get(awaited.view)) is None or newest is None:
        return Readiness("the stream has not started")
    intervals = awaited.intervals
    found = {each.id: manifest.published.get((version, each.id)) for each in intervals}
    statements = tuple(each for each in found.values() if each)
    late = say_what_is_open(awaited, newest, watermark, version)
    if awaited.until is Until.COMPLETE:
        building = [each for each in intervals if manifest.is_building(version, each.id)]
        return Readiness(late or name_intervals("not built yet", building), statements=statements)
    unbuilt = tuple(each for each in intervals if not is_final(found[each.id]))
    if unbuilt and late:
        return Readiness(late)
    if filled is not None and not awaited.emits:
        unbuilt = tuple(
            each for each in unbuilt if found[each.id] or not filled_nowhere(awaited, each, filled)
        )
    return Readiness(name_intervals("not certified yet", unbuilt), unbuilt, statements)


def filled_nowhere(awaited: Awaited, interval: Interval, filled: Collection[str]) -> bool:
    """Return whether no rows are in an interval, nor in those that reach into it: nothing of it is ever built."""
    return not any(id in filled for id in awaited.feeding(interval))


def is_final(statement: Statement | None) -> bool:
    """Return whether a publication is one that a certificate allows and that is not provisional."""
    return bool(statement and statement.certified and statement.how is not How.PROVISIONAL)


def say_what_is_open(awaited: Awaited, newest: Epoch, watermark: datetime | None, version: str) -> str:
    """Say why the span is not complete yet; empty if it is."""
    if watermark is None or watermark < awaited.closes:
        mark = format_utc_instant(watermark) if watermark else "unknown"
        return f"open: the watermark is {mark}, and must be {format_utc_instant(awaited.closes)}"
    if newest.frontiers.get(version, NOTHING) < newest.number:
        return f"the slices of {awaited.view} are behind the log"
    return ""


def name_intervals(state: str, intervals: Collection[Interval]) -> str:
    """Name the first of some intervals, and say how many more there are; empty for none."""
    if not intervals:
        return ""
    first = min(intervals)
    more = f" and {len(intervals) - 1} more" if len(intervals) > 1 else ""
    return f"{state}: {first.id}{more}"
