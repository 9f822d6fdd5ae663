"""A model of producers' statements: two that take them of one topic, their deaths, and what an interval is told by.

A producer sends statements of one interval to two partitions, and corrections of them. Whoever takes them sees a
version of the table and where each partition was taken to, reads some records, and commits rows and positions on that
version. The shipped decision says which statements hold, and compares them with what was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

from seamline.model.protocol.counts.comparison import Read, compare_counts
from seamline.model.protocol.counts.statement import SentCount, TakenStatement, list_current_statements
from seamline.model.protocol.counts.verdict import await_counts
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Interval(START, START + timedelta(days=1))
Row = tuple[int, int]
"""A record by partition and offset."""
Sent = tuple[int, int]
"""A record: the second at which Kafka got it, by the producer's clock, and what it says was sent."""


@dataclass(frozen=True)
class Rules:
    """What those keep to that take statements; each default is the rule.

    ``together``: rows and positions are one commit. ``decided``: it is refused if another has come since the version
    that was seen. ``by_offset``: of a partition the last statement holds, whatever clocks say. ``by_time``: between
    partitions the later one holds, whichever was taken first. ``expects``: a producer that has said nothing of an
    interval is waited for. ``unstated_only``: the end of a grace forgives that, and no statement that does not agree.
    """

    together: bool = True
    decided: bool = True
    by_offset: bool = True
    by_time: bool = True
    expects: bool = True
    unstated_only: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes: what the partitions have, and how often what may befall."""

    lanes: tuple[tuple[Sent, ...], ...] = (((1, 5), (0, 3)), ((4, 2),))
    takes: int = 2
    """The most records of a partition that are read at once."""
    deaths: int = 2
    """Deaths between reading and committing, and between two commits where there are two."""
    read: tuple[int, ...] = (2, 3)
    """How many records of the interval the log may have when its certificate is made."""


class Taker(NamedTuple):
    """Somebody who takes statements: the version that he has seen, what he has read, and what is left to commit."""

    version: int = -1
    rows: tuple[Row, ...] = ()
    ends: tuple[int, ...] = ()
    half: bool = False
    """Whether rows are committed and positions are not."""


class State(NamedTuple):
    """What is committed, and what takers are about."""

    version: int = 0
    rows: tuple[Row, ...] = ()
    """In the order in which they were committed."""
    ends: tuple[int, ...] = (0, 0)
    takers: tuple[Taker, ...] = (Taker(), Taker())
    deaths: int = 0


def stated_of(rows: tuple[Row, ...], bounds: Bounds, how: Rules) -> list[TakenStatement]:
    """Return rows as the table has them: with the largest time of their partition up to them, if that is the rule."""
    found = []
    for number, (part, offset) in enumerate(rows):
        lane = bounds.lanes[part]
        second = max(at for at, _ in lane[: offset + 1]) if how.by_offset else lane[offset][0]
        at = START + timedelta(seconds=second if how.by_time else number)
        said = SentCount("eu", DAY, lane[offset][1])
        found.append(TakenStatement(Lane("a", part), offset, at, said))
    return found


def reached(rows: tuple[Row, ...], bounds: Bounds) -> tuple[int, ...]:
    """Return up to where each partition is in the table."""
    return tuple(
        max((offset + 1 for own, offset in rows if own == part), default=0)
        for part in range(len(bounds.lanes))
    )


def truth(ends: tuple[int, ...], bounds: Bounds) -> int | None:
    """Return what the producer has said by some positions: its last word of each partition, the later of the two."""
    last = [
        (max(at for at, _ in lane[:end]), part, lane[end - 1][1])
        for part, (lane, end) in enumerate(zip(bounds.lanes, ends, strict=True))
        if end
    ]
    return max(last)[2] if last else None


def certify(state: State, read: int, bounds: Bounds, how: Rules, *, over: bool) -> bool:
    """Return whether a certificate that needs statements is green, of so many records, at the end of a grace or not."""
    stated = list_current_statements(stated_of(state.rows, bounds, how))
    expected = ["eu", "us"] if how.expects else []
    if not how.expects and not stated:
        return True
    found = compare_counts("", DAY, stated, expected, {"eu": {START: Read(read)}}, named=True)
    awaited = await_counts(found, DAY.end, required=True, patience=timedelta(0))
    if over and not how.unstated_only:
        return True
    return awaited.holds(now=DAY.end if over else DAY.start)


def moves(state: State, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what may happen next."""
    for number, taker in enumerate(state.takers):
        name = "ab"[number]

        def become(changed: Taker, *, now: State = state, at: int = number, **more: object) -> State:
            takers = tuple(changed if place == at else each for place, each in enumerate(now.takers))
            return now._replace(takers=takers, **more)  # type: ignore[arg-type]

        if taker.version < 0:
            for more in range(1, bounds.takes + 1):
                ends = tuple(
                    min(end + more, len(lane)) for end, lane in zip(state.ends, bounds.lanes, strict=True)
                )
                rows = tuple(
                    (part, offset)
                    for part, (start, end) in enumerate(zip(state.ends, ends, strict=True))
                    for offset in range(start, end)
                )
                if rows:
                    yield f"{name} reads {more}", become(Taker(state.version, rows, ends))
            continue
        if state.deaths < bounds.deaths:
            yield f"{name} dies", become(Taker(), deaths=state.deaths + 1)
        if how.decided and taker.version != state.version:
            yield f"{name} is refused", become(Taker())
        elif how.together:
            done = {"version": state.version + 1, "rows": state.rows + taker.rows, "ends": taker.ends}
            yield f"{name} commits", become(Taker(), **done)
        elif not taker.half:
            rows = state.rows + taker.rows
            changed = taker._replace(half=True, version=state.version + 1)
            yield f"{name} commits rows", become(changed, version=state.version + 1, rows=rows)
        else:
            yield f"{name} commits positions", become(Taker(), version=state.version + 1, ends=taker.ends)


def check(state: State, bounds: Bounds, how: Rules) -> None:
    """Hold every record to be taken once, in order, and each certificate to what was said by then."""
    if len(set(state.rows)) < len(state.rows):
        raise Violation(f"taken twice: {state.rows}")
    if how.together:
        wanted = {(part, offset) for part, end in enumerate(state.ends) for offset in range(end)}
        if set(state.rows) != wanted:
            raise Violation(f"taken to {state.ends}, and there is {sorted(state.rows)}")
    said = truth(reached(state.rows, bounds), bounds)
    for read in bounds.read:
        for over in (False, True):
            green = certify(state, read, bounds, how, over=over)
            agrees = said == read or (said is None and over)
            # Another producer is expected, and has said nothing: it is forgiven when the grace is over.
            if green and not (agrees and over):
                raise Violation(f"certified {read} read, {said} sent, grace {'over' if over else 'not over'}")
            if over and agrees and not green:
                raise Violation(f"not certified: {read} read, {said} sent")


def search(how: Rules, bounds: Bounds) -> Found:
    """Search every order of takers, deaths and certificates."""
    return explore(
        State(ends=(0,) * len(bounds.lanes)),
        lambda state: moves(state, bounds, how),
        lambda state: check(state, bounds, how),
    )
