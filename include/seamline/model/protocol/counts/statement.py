"""A producer's statement of how many records it has sent: how its bytes are read, and which statements hold."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from seamline.model.errors import BadRange
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import EPOCH, Grid, Interval

FIELDS = ("producer", "from", "to", "count")
MOST_BYTES = 10_000
LONGEST_NAME = 200
MOST_COUNT = 2**63 - 1
MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)


class BadStatement(ValueError):
    """Why a record of a topic of statements is none; it is kept with that reason."""


@dataclass(frozen=True)
class SentCount:
    """What one producer says of a span of event time."""

    producer: str
    """Its name."""
    window: Interval
    """The event times; they lie in one interval of the pipeline."""
    count: int
    """How many records of them it has sent, or how many events where events have ids."""


@dataclass(frozen=True)
class TakenStatement:
    """A record of the topic, as it was taken."""

    lane: Lane
    """The partition that it was read of."""
    offset: int
    """Its offset."""
    at: datetime
    """The largest Kafka timestamp of its partition up to it, UTC."""
    statement: SentCount | None
    """What it says; None where it is none."""
    reason: str = ""
    """Why it is none."""
    value: str = ""
    """The beginning of what it says instead."""

    @property
    def order(self) -> tuple[datetime, Lane, int]:
        """Where it stands among all: in a partition by offset, between partitions by time, whenever it was taken."""
        return self.at, self.lane, self.offset


def parse_statement(value: bytes | None, grid: Grid) -> SentCount:
    """Read the bytes of a record; BadStatement where they are no statement about intervals of the grid."""
    found = parse_fields(value)
    producer, count = found["producer"], found["count"]
    if not isinstance(producer, str) or not 0 < len(producer) <= LONGEST_NAME or not producer.isprintable():
        raise BadStatement("producer is not a name")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_COUNT:
        raise BadStatement("count is not a whole number of 0 or more")
    start, end = (parse_zoned_instant(name, found[name]) for name in ("from", "to"))
    if start >= end:
        raise BadStatement("from is not before to")
    unit = find_statement_unit(grid.length)
    if (start - EPOCH) % unit or (end - EPOCH) % unit:
        raise BadStatement(f"from and to are not whole multiples of {unit.total_seconds():g} s")
    if start < grid.start or end > grid.of(start).end:
        raise BadStatement("from and to are not in one interval of the pipeline")
    return SentCount(producer, Interval(start, end), count)


def parse_fields(value: bytes | None) -> dict[str, Any]:
    """Read a JSON object with exactly the fields of a statement."""
    if not value:
        raise BadStatement("empty value")
    if len(value) > MOST_BYTES:
        raise BadStatement(f"larger than {MOST_BYTES} bytes")
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise BadStatement("not JSON") from None
    if not isinstance(found, dict):
        raise BadStatement("not a JSON object")
    if unknown := sorted(found.keys() - set(FIELDS)):
        raise BadStatement(f"unknown field {unknown[0][:LONGEST_NAME]!r}")
    if missing := [name for name in FIELDS if name not in found]:
        raise BadStatement(f"no field {missing[0]!r}")
    return found


def parse_zoned_instant(name: str, value: object) -> datetime:
    """Read an instant that says its time zone."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None or moment.tzinfo is None:
            raise BadStatement(f"{name} is not an instant with a time zone")
        return moment.astimezone(EPOCH.tzinfo)
    except BadStatement:
        raise
    except (ValueError, OverflowError, BadRange):
        raise BadStatement(f"{name} is not an instant with a time zone") from None


def find_statement_unit(length: timedelta) -> timedelta:
    """Return the span of which the bounds of a statement are multiples: a minute, or what divides it and intervals."""
    return math.gcd(MINUTE // MICROSECOND, length // MICROSECOND) * MICROSECOND


def find_step(length: timedelta, windows: Iterable[Interval]) -> timedelta:
    """Return the longest span from which an interval and some windows in it can be put together."""
    bounds = [bound - EPOCH for each in windows for bound in (each.start, each.end)]
    return math.gcd(length // MICROSECOND, *(each // MICROSECOND for each in bounds)) * MICROSECOND


def list_current_statements(stated: Iterable[TakenStatement]) -> dict[str, list[SentCount]]:
    """List the statements that hold, by producer and in order of time: a later one replaces those that it overlaps."""
    held: dict[str, list[SentCount]] = {}
    for each in sorted(stated, key=lambda one: one.order):
        if (new := each.statement) is not None:
            known = held.setdefault(new.producer, [])
            # They are in order and do not overlap: a producer may have made one for each minute of months.
            first = bisect_right(known, new.window.start, key=lambda one: one.window.end)
            known[first : bisect_left(known, new.window.end, key=lambda one: one.window.start)] = [new]
    return held


def list_unstated_spans(interval: Interval, statements: Sequence[SentCount]) -> list[Interval]:
    """List the spans of an interval of which sorted statements say nothing."""
    found, at = list[Interval](), interval.start
    for each in statements:
        if at < each.window.start:
            found.append(Interval(at, each.window.start))
        at = each.window.end
    return [*found, Interval(at, interval.end)] if at < interval.end else found
