"""When an interval has closed: a small model of lanes, clocks and certificates over the shipped decisions.

Two lanes, whose records' event times are hours; epochs read any of what is there, and the definition may come to tell
event times by another column. Searched exhaustively: a certified day lacks no row that was there to be read when its
cut was, none that is not late by the watermark of its cut, and events by the column of today have closed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import pytest
from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

from seamline.model.compile.evolution import Timed
from seamline.model.protocol.certificate_checks import Evidence, validate_evidence
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.watermark import SourceWatermarks, Watermark, advance_watermark
from seamline.model.time.intervals import Interval
from seamline.plan.stream.epoch_numbers import idle_lanes

START = datetime(2024, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = Interval(START, START + 24 * HOUR)
LANES = (Lane("t", 0), Lane("u", 0))
POLICY = SourceWatermarks({"t": Watermark("1 hour", "2 hours"), "u": Watermark("2 hours", "2 hours")})
"""The topics are of two sources: what is late by two hours is in order in one of them."""
SILENCE = 2 * HOUR
TOPIC = {"due": ((1, 30), (2, 23)), "placed": ((2, 3), (1, 26))}
"""Event times of each lane's records by either column, in hours after START; 26 and 30 are of the next day."""


class Epoch(NamedTuple):
    """What the ledger says of an epoch, and the topic's ends at that time."""

    there: tuple[int, int]
    ends: tuple[int, int]
    largest: tuple[int | None, int | None]
    watermark: datetime | None
    clock: str = "due"
    record_version: str = "due"


class Log(NamedTuple):
    """The topic's ends, the wall clock, when each lane was last heard of, and the epochs."""

    there: tuple[int, int] = (0, 0)
    clock: int = 0
    heard: tuple[int, int] = (0, 0)
    epochs: tuple[Epoch, ...] = ()
    certified: int = -1
    told: str = "due"
    """The column that tells event times."""

    @property
    def topic(self) -> tuple[tuple[int, ...], ...]:
        """The event times of today's definition."""
        return TOPIC[self.told]


@dataclass(frozen=True)
class Rules:
    """``at_cut``: certificates use the watermark of their cut; ``asks``: idle lanes are read to the broker's end.

    ``keeps``: the watermark never falls. ``counts``: rows read are compared with the ledger's. ``anew``: that of
    another column counts for nothing. ``own``: each lane has the bound of its source.
    """

    at_cut: bool = True
    asks: bool = True
    keeps: bool = True
    counts: bool = True
    anew: bool = True
    own: bool = True
    loses: bool = False


def moves(log: Log, rules: Rules) -> Iterator[tuple[str, Log]]:
    """Let records come, time go by, epochs read, and a build be certified at any epoch."""
    if log.told == "due":
        yield "the event time is another column", log._replace(told="placed", certified=-1)
    for lane in (0, 1):
        if log.there[lane] < len(log.topic[lane]):
            yield f"a record comes to {lane}", log._replace(there=with_(log.there, lane, log.there[lane] + 1))
    if log.clock < 3:
        yield "an hour goes by", log._replace(clock=log.clock + 1)
    if len(log.epochs) < 2:
        last = log.epochs[-1] if log.epochs else Epoch((0, 0), (0, 0), (None, None), None)
        for first in range(last.ends[0], log.there[0] + 1):
            for second in range(last.ends[1], log.there[1] + 1):
                yield f"epoch to {first}, {second}", read(log, last, (first, second), rules)
    for cut in range(len(log.epochs)):
        if log.certified < cut and certified(log, cut, rules):
            yield f"the day is certified at {cut}", log._replace(certified=cut)


def with_(pair: tuple[int, int], at: int, value: int) -> tuple[int, int]:
    """Replace one of two."""
    return (value, pair[1]) if at == 0 else (pair[0], value)


def read(log: Log, last: Epoch, ends: tuple[int, int], rules: Rules) -> Log:
    """Read up to some ends; the watermark follows from what was seen and from which lanes are idle."""
    heard = tuple(
        log.clock if end > old else at for end, old, at in zip(ends, last.ends, log.heard, strict=True)
    )
    own = [each for each in log.epochs if not rules.anew or told_by(log).is_of_clock(each)]  # type: ignore[arg-type]
    new = [log.topic[lane][old:end] for lane, (old, end) in enumerate(zip(last.ends, ends, strict=True))]
    known = own[-1].largest if own else (None, None)
    largest = tuple(
        max([*times, *([] if known[lane] is None else [known[lane]])], default=None)
        for lane, times in enumerate(new)
    )
    ends_there = log.there if rules.asks else (0, 0)
    idle = idle_lanes(
        dict(zip(LANES, ends, strict=True)),
        dict(zip(LANES, ends_there, strict=True)),
        {lane: START + at * HOUR for lane, at in zip(LANES, heard, strict=True)},
        now=START + log.clock * HOUR,
        after=POLICY.idle_of,
    )
    seen = {lane: START + at * HOUR for lane, at in zip(LANES, largest, strict=True) if at is not None}
    before = own[-1].watermark if own else None
    policy = POLICY if rules.own else POLICY.by_topic["t"]
    watermark = advance_watermark(before if rules.keeps else None, LANES, seen, idle, policy)
    if before and (watermark is None or watermark < before):
        raise Violation(f"the watermark falls from {before} to {watermark}")
    for lane in set(LANES) - idle if watermark and watermark != before else ():
        if lane not in seen or watermark > seen[lane] - POLICY.bound_of(lane):
            raise Violation(f"the watermark at {watermark} passes what {lane} has yet to show")
    epoch = Epoch(log.there, ends, largest, watermark, log.told, log.told)  # type: ignore[arg-type]
    return log._replace(heard=heard, epochs=(*log.epochs, epoch))  # type: ignore[arg-type]


def told_by(log: Log) -> Timed:
    """Return by what today's definition tells event times."""
    return Timed(log.told, log.told)


@cache
def certified(log: Log, cut: int, rules: Rules) -> bool:
    """Ask the shipped judgement about a build of the day at a cut."""
    rows = sum(at < 24 for lane in (0, 1) for at in log.topic[lane][: log.epochs[cut].ends[lane]])
    found = rows - 1 if rules.loses and rows else rows
    epoch = log.epochs[cut if rules.at_cut else -1]
    evidence = Evidence(
        interval=DAY,
        cut=cut,
        cut_is_edge=True,
        watermark=told_by(log).watermark_at(epoch) if rules.anew else epoch.watermark,  # type: ignore[arg-type]
        contiguous=True,
        holes=0,
        ledger_rows=rows if rules.counts else found,
        rows_read=found,
        duplicates=0,
        not_selected=0,
        state_rows=found,
    )
    passed = all(check.passed for check in validate_evidence(evidence))
    if passed and found != rows:
        raise Violation(f"the day is certified with {found} of {rows} rows")
    return passed


def check(log: Log) -> None:
    """Hold a certified day against the topic."""
    if log.certified < 0:
        return
    cut = log.epochs[log.certified]
    reached = [at for lane in (0, 1) for at in log.topic[lane][: cut.ends[lane]]]
    if max(reached, default=0) < 25:
        raise Violation("the day is certified, and no event by this column is so late")
    before = log.epochs[log.certified - 1].watermark if log.certified else None
    for lane in (0, 1):
        seen = cut.largest[lane]
        for place in range(cut.ends[lane], log.there[lane]):
            at = log.topic[lane][place]
            if before and START + at * HOUR < before:
                # It came when the lane had been silent for so long that the day was over without it.
                continue
            if at < 24 and place < cut.there[lane] and (seen is None or at >= seen):
                raise Violation(f"the day is certified over a backlog: {at} waits in lane {lane}")
            if at < 24 and (cut.watermark is None or START + at * HOUR >= cut.watermark):
                raise Violation(f"the day is certified without {at} of lane {lane}, which is not late")


def search(rules: Rules) -> Found:
    """Visit all that can happen."""
    return explore(Log(), lambda log: moves(log, rules), check)


def test_a_certified_day_lacks_only_what_is_late() -> None:
    """If this fails, a day is called complete that is not."""
    found = search(Rules())
    assert not found.violation, str(found)
    assert found.states > 5_000
    assert any(label.startswith("the day is certified") for label in found.done)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Rules(at_cut=False), "certified"),
        (Rules(asks=False), "over a backlog"),
        (Rules(keeps=False), "the watermark falls"),
        (Rules(anew=False), "no event by this column"),
        (Rules(counts=False, loses=True), "of 1 rows"),
        (Rules(own=False), "has yet to show"),
    ],
    ids=["H1-at-cut", "H1-idle", "H1-falls", "T1", "H4", "S2"],
)
def test_a_rule_that_is_turned_off_is_missed(rules: Rules, words: str) -> None:
    """The certificate of an earlier draft: today's watermark, a lane that is throttled, counts of one read."""
    found = search(rules)
    assert words in found.violation, str(found)


def test_rows_that_a_build_lost_turn_its_certificate_red() -> None:
    """Its own count says nothing: the ledger's does."""
    assert not search(Rules(loses=True)).violation


def test_a_lane_with_a_backlog_is_not_idle() -> None:
    """Its leader is down, or it is throttled: what waits there may be of the day that is about to close."""
    facts = {"last_seen": dict.fromkeys(LANES, START), "now": START + SILENCE, "after": POLICY.idle_of}
    read_to = {LANES[0]: 5, LANES[1]: 3}
    assert idle_lanes(read_to, {LANES[0]: 5, LANES[1]: 4}, **facts) == {LANES[0]}
    assert idle_lanes(read_to, {}, **facts) == frozenset()
