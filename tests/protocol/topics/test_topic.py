"""What befalls a topic: a small model of its incarnations, its retention and its holes, over the shipped decisions.

Records come, are deleted unread, or vanish with their topic, which is made again under its name; a person accepts what
is gone; a driver reads, and fills holes with what is there after all. Searched exhaustively: every offset below a
lane's end was read, once, from that very topic, or is in a hole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import pytest
from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import NOW, Violation

from seamline.model.errors import OffsetGap
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import (
    AcceptedGap,
    Gap,
    find_gaps,
    is_ledger_contiguous,
    list_end_offsets,
    list_fillable_ranges,
    list_missing_ranges,
    list_undecided_gaps,
    to_register,
)
from seamline.model.protocol.offsets import Lane, OffsetRange, advance_vector

SIZE = 3
CONTROL = 1
"""The offset of a mark that a transaction leaves: no record is there, in either topic."""


class Entry(NamedTuple):
    """An epoch: its range of a lane, and the records that were in truth read: (topic, offset)."""

    kind: EpochKind
    topic: int
    start: int
    end: int
    rows: tuple[tuple[int, int], ...] = ()


class World(NamedTuple):
    """The topic that is there, from ``first`` to ``end``; the log; a driver and where it reads; what was accepted."""

    topic: int = 0
    first: int = 0
    end: int = 0
    log: tuple[Entry, ...] = ()
    driver: tuple[int, int] | None = None
    accepted: tuple[tuple[int, int, int | None], ...] = ()


@dataclass(frozen=True)
class Rules:
    """``asserts_id``: a driver reads the topic that it began with. ``stops_at_loss``: Spark fails where some is gone.

    ``plans``: an epoch's range is what was planned, and not from its first record to its last.
    """

    asserts_id: bool = True
    stops_at_loss: bool = True
    plans: bool = True


def lane(topic: int) -> Lane:
    """Return the one lane of an incarnation."""
    return Lane(f"id{topic}", 0)


@cache
def ledger(log: tuple[Entry, ...]) -> list[Epoch]:
    """Return the log as the ledger tells it."""
    return [
        Epoch(
            number, 1, NOW, "v", kind=each.kind, ranges=(OffsetRange(lane(each.topic), each.start, each.end),)
        )
        for number, each in enumerate(log)
    ]


@cache
def decisions(accepted: tuple[tuple[int, int, int | None], ...]) -> list[AcceptedGap]:
    """Return what a person has decided."""
    return [AcceptedGap(Gap(lane(topic), start, end), "ada", "gone", NOW) for topic, start, end in accepted]


def moves(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Return what may happen next."""
    if world.end < SIZE:
        yield "a record comes", world._replace(end=world.end + 1)
    if world.first < world.end:
        yield "the oldest record is deleted", world._replace(first=world.first + 1)
    if world.topic == 0:
        yield "the topic is made again", world._replace(topic=1, first=0, end=0)
    if world.driver:
        yield "the driver dies", world._replace(driver=None)
        yield from reads(world, rules)
    else:
        yield from starts(world)


def starts(world: World) -> Iterator[tuple[str, World]]:
    """Compare the topic with the log, and register what a person has accepted, or ask one."""
    found = find_gaps(ledger(world.log), {lane(world.topic): world.first})
    if open_ := list_undecided_gaps(found, decisions(world.accepted)):
        more = tuple((int(gap.lane.topic_id[2:]), gap.start, gap.end) for gap in open_)
        if len(world.accepted) < 2:
            yield "a person accepts", world._replace(accepted=(*world.accepted, *more))
        return
    here = list_end_offsets(ledger(world.log)).get(lane(world.topic), world.first)
    if not world.accepted and here < world.end:
        over = (world.topic, here, world.end)
        yield "a person passes over what is unread", world._replace(accepted=(*world.accepted, over))
    log = world.log
    for each in to_register(ledger(log), decisions(world.accepted)):
        part = each.gap.range
        log = (*log, Entry(EpochKind.HOLE, int(part.lane.topic_id[2:]), part.start, part.end))
    at = list_end_offsets(ledger(log)).get(lane(world.topic), world.first)
    yield "a driver starts", world._replace(log=log, driver=(world.topic, at))


def reads(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Read up to any offset, by the topic's name, as Spark does; or fill a hole."""
    assert world.driver
    topic, at = world.driver
    if rules.asserts_id and topic != world.topic:
        return
    asked = [OffsetRange(lane(topic), 0, SIZE)]
    for part in list_fillable_ranges(ledger(world.log), asked, {lane(world.topic): world.first}):
        entry = taken(world, topic, part.start, part.end, EpochKind.AMEND)
        yield f"{part} is filled", world._replace(log=(*world.log, entry))
    for end in range(at + 1, world.end + 1):
        if at < world.first and rules.stops_at_loss:
            continue
        entry = taken(world, topic, at, end, EpochKind.READ)
        if not rules.plans:
            offsets = [offset for _, offset in entry.rows]
            entry = entry._replace(end=max(offsets, default=at - 1) + 1)
        known = {lane(topic): at} if not world.log else list_end_offsets(ledger(world.log))
        try:
            advance_vector(known, ledger((entry._replace(start=at),))[0].ranges)
        except OffsetGap as gap:
            raise Violation(str(gap)) from gap
        yield f"[{at},{end}) is read", world._replace(log=(*world.log, entry), driver=(topic, end))


def taken(world: World, topic: int, start: int, end: int, kind: EpochKind) -> Entry:
    """Return an epoch with what is in truth there."""
    rows = tuple((world.topic, at) for at in range(max(start, world.first), end) if at != CONTROL)
    return Entry(kind, topic, start, end, rows)


def check(world: World) -> None:
    """Hold the log against the truth."""
    log = ledger(world.log)
    if not is_ledger_contiguous(log):
        raise Violation("the ranges do not join")
    rows = [row for entry in world.log for row in entry.rows]
    if len(rows) != len(set(rows)):
        raise Violation(f"read twice: {rows}")
    for entry in world.log:
        if any(topic != entry.topic for topic, _ in entry.rows):
            raise Violation(f"records of another topic are in {entry}")
    missing = [part for parts in list_missing_ranges(log).values() for part in parts]
    begun: dict[int, int] = {}
    ends: dict[int, int] = {}
    for entry in world.log:
        begun.setdefault(entry.topic, entry.start)
        ends[entry.topic] = max(ends.get(entry.topic, 0), entry.end)
    for topic, end in ends.items():
        for at in range(begun[topic], end):
            held = (topic, at) in rows
            hole = any(part.lane == lane(topic) and part.start <= at < part.end for part in missing)
            if held == hole and at != CONTROL:
                raise Violation(
                    f"offset {at} of topic {topic} is {'read and in a hole' if held else 'lost silently'}"
                )


def search(rules: Rules) -> Found:
    """Visit all that can happen to a topic of three records that is made again once."""
    return explore(World(), lambda world: moves(world, rules), check, limit=300_000)


def test_no_offset_is_lost_or_taken_for_another() -> None:
    """If this fails, a loss is silent, or the records of one topic stand under another's offsets."""
    found = search(Rules())
    assert not found.violation, str(found)
    assert found.states > 1_000, str(found)
    for what in ("the topic is made again", "a person accepts", "the oldest record is deleted", "is filled"):
        assert any(what in label for label in found.done), what


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Rules(asserts_id=False), "of another topic"),
        (Rules(stops_at_loss=False), "lost silently"),
        (Rules(plans=False), "lost silently|do not join|the master ends at"),
    ],
    ids=["C12", "hole", "N2"],
)
def test_a_rule_that_is_turned_off_is_missed(rules: Rules, words: str) -> None:
    """The drafts that knew a topic by its name, and an epoch by its rows."""
    found = search(rules)
    assert any(word in found.violation for word in words.split("|")) and found.violation, str(found)


def test_a_decision_about_a_lane_that_was_closed_is_not_registered_again() -> None:
    """The master would refuse its hole at every start: the stream would be stopped for ever."""
    log = ledger(
        (Entry(EpochKind.READ, 0, 0, 1), Entry(EpochKind.HOLE, 0, 1, 2), Entry(EpochKind.HOLE, 0, 2, 2))
    )
    accepted = decisions(((0, 1, 2), (0, 2, None)))
    assert to_register(log, accepted) == []
    assert [each.gap for each in to_register(log[:2], accepted)] == [accepted[1].gap]
    assert [each.gap for each in to_register(log[:1], accepted)] == [each.gap for each in accepted]
