"""A failover: a small model of two clusters, of a person and of drivers, over the shipped decisions.

Records are produced and replicated, with other offsets; a cluster dies and comes back; drivers read one record at a
time, die, or are taken for dead and go on; the power fails; a person decides on failovers there and back, or against
one. Searched exhaustively: no record is read twice, and where one may be missing the log has a hole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import pytest
from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import NOW, Violation

from seamline.model.errors import OutOfStep
from seamline.model.protocol.clusters.failovers import (
    By,
    Failover,
    find_unregistered,
    list_kafka_ends,
    list_registered,
    require_fitting,
)
from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import is_ledger_contiguous, list_closed_lanes, list_open_holes
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.stream.failover_doubt import find_doubt
from seamline.plan.stream.failover_plan import FailoverRequest, LeftLane, ReadAgain

NAMES = "a", "b"
LANES = Lane("topic-a", 0), Lane("topic-b", 0)
SHIFT = 0, 1
"""Records of another pipeline that a cluster's topic begins with: the same record has other offsets."""
MOST_TOKENS = 5
MOST = 2
"""Records that are ever produced."""

Step = tuple[EpochKind, tuple[OffsetRange, ...], tuple[tuple[Lane, int], ...]]
Decision = tuple[int, tuple[tuple[Lane, int], ...], tuple[tuple[Lane, int], ...], bool]
"""To which cluster, where the log is left, where it is begun, and whether anything is in doubt."""


class Driver(NamedTuple):
    """A driver: its token, which cluster it reads, and the failover that it is to register first."""

    token: int
    cluster: int
    registers: Decision | None = None
    half: bool = False
    """Whether it has closed the lanes that are left, where that is a step of its own."""


class World(NamedTuple):
    """What each cluster has, which of them live, the log, the decisions, the newest token and the drivers."""

    topics: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    alive: tuple[bool, bool] = (True, True)
    log: tuple[Step, ...] = ()
    decided: tuple[Decision, ...] = ()
    token: int = 0
    drivers: tuple[Driver, ...] = ()
    wanted: bool = False
    whole: bool = True
    """Whether no power cut has taken the log's newest epoch; it happens once."""

    @property
    def produced(self) -> int:
        """Return how many records there are."""
        return len({*self.topics[0], *self.topics[1]})


@dataclass(frozen=True)
class Rules:
    """``fences``: who decides fences off all drivers before; ``whole``: one epoch registers it; ``states``: doubt is a
    hole."""

    fences: bool = True
    whole: bool = True
    states: bool = True


@cache
def ledger(log: tuple[Step, ...]) -> list[Epoch]:
    """Return the log as the ledger tells it."""
    return [
        Epoch(at, 1, NOW, "v", kind=kind, ranges=ranges, begun=dict(begun))
        for at, (kind, ranges, begun) in enumerate(log)
    ]


def failover(of: Decision) -> Failover:
    """Return a decision as the control table has it."""
    to, closed, begun, doubtful = of
    return Failover(
        NAMES[to], NAMES[1 - to], By.OFFSETS, dict(closed), dict(begun), doubtful, None, "", "me", "", NOW
    )


def end_of(world: World, cluster: int) -> int:
    """Return the end offset of a cluster's topic."""
    return SHIFT[cluster] + len(world.topics[cluster])


def list_read(world: World) -> list[int]:
    """List the records that were read, in order."""
    return [
        world.topics[LANES.index(part.lane)][at - SHIFT[LANES.index(part.lane)]]
        for kind, ranges, _ in world.log
        if kind is EpochKind.READ
        for part in ranges
        for at in range(part.start, part.end)
    ]


def moves(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Return what may happen next."""
    yield from happens_to_clusters(world)
    yield from a_person_decides(world, rules)
    if world.wanted and len(world.drivers) < 2:
        yield from starts(world, rules)
    if world.log and world.whole:
        yield "the power fails", world._replace(log=world.log[:-1], drivers=(), whole=False)
    for driver in world.drivers:
        rest = tuple(each for each in world.drivers if each != driver)
        yield "a driver dies", world._replace(drivers=rest)
        if driver.token == world.token:
            yield from works(world, driver, rest, rules)


def happens_to_clusters(world: World) -> Iterator[tuple[str, World]]:
    """Produce to the cluster that is read, replicate to the other, let the first die and come back."""
    first, known = world.decided[-1][0] if world.decided else 0, ledger(world.log)
    pending = find_unregistered([failover(each) for each in world.decided], known)
    held = list_kafka_ends(known)
    here = None if pending or not all(world.alive) else int(LANES[1] in held)
    for cluster in (0, 1):
        topic, other = world.topics[cluster], world.topics[1 - cluster]
        if world.alive[cluster] and cluster == first and world.produced < MOST:
            yield "a record is produced", replaced(world, cluster, (*topic, world.produced))
        # A person ends replication before deciding, and turns it once the other cluster is read.
        lacks = [each for each in other if each not in topic] if here == 1 - cluster else []
        if lacks:
            yield "a record is replicated", replaced(world, cluster, (*topic, lacks[0]))
    yield (
        "the first cluster dies" if world.alive[0] else "the first cluster comes back",
        world._replace(alive=(not world.alive[0], True)),
    )


def replaced(world: World, cluster: int, topic: tuple[int, ...]) -> World:
    """Give a cluster another topic."""
    topics = (topic, world.topics[1]) if cluster == 0 else (world.topics[0], topic)
    return world._replace(topics=topics)


def a_person_decides(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Start and stop the stream, decide on a failover where it is stopped, or take one back."""
    if not world.wanted:
        yield "the stream is started", world._replace(wanted=True)
    else:
        # A driver that does not answer is taken for dead.
        yield "the stream is stopped", world._replace(wanted=False)
    known = ledger(world.log)
    registered = len(list_registered([failover(each) for each in world.decided], known))
    held, fence = list_kafka_ends(known), world.token + rules.fences
    if not world.wanted and held and registered < 2 and fence <= MOST_TOKENS:
        here = next((at for at, lane in enumerate(LANES) if lane in held), 0)
        there = 1 - here
        if world.alive[there]:
            decision = decide(world, here, there, held, rules)
            decided = (*world.decided[:registered], decision)
            yield "a failover is decided", world._replace(decided=decided, token=fence)
    # Once something was produced to the other cluster, going back is another failover.
    turned = registered < len(world.decided) and {*world.topics[world.decided[-1][0]]} - {
        *world.topics[1 - world.decided[-1][0]]
    }
    if not world.wanted and registered < len(world.decided) and not turned and fence <= MOST_TOKENS:
        decided = world.decided[:registered]
        yield "a failover is taken back", world._replace(decided=decided, token=fence)


def decide(world: World, here: int, there: int, held: dict[Lane, int], rules: Rules) -> Decision:
    """State the offset after the last record there that was read: what a translation of offsets gives."""
    read = {*list_read(world)}
    after = max((at + 1 for at, each in enumerate(world.topics[there]) if each in read), default=0)
    unread = end_of(world, here) - held[LANES[here]] if world.alive[here] else None
    left = LeftLane("t", held[LANES[here]], None, unread)
    doubt = find_doubt(FailoverRequest(NAMES[there], By.OFFSETS, "me", ""), [left], ReadAgain())
    closed, begun = tuple(sorted(held.items())), ((LANES[there], SHIFT[there] + after),)
    return there, closed, begun, doubt.doubtful and rules.states


def starts(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Fence all earlier drivers off; go on from the cluster in force, if the decision fits the log."""
    known, failovers = ledger(world.log), [failover(each) for each in world.decided]
    cluster, token = world.decided[-1][0] if world.decided else 0, world.token + 1
    if not world.alive[cluster] or token > MOST_TOKENS:
        return
    pending = find_unregistered(failovers, known)
    if not pending and (held := list_kafka_ends(known)) and LANES[cluster] not in held:
        yield "a driver refuses a topic that it does not know", world._replace(token=token)
        return
    if pending:
        try:
            require_fitting("p", pending, known, [LANES[cluster].topic_id])
        except OutOfStep:
            yield "a driver refuses a decision about another place", world._replace(token=token)
            return
    new = Driver(token, cluster, world.decided[-1] if pending else None)
    yield "a driver starts", world._replace(token=token, drivers=(*world.drivers, new))


def works(
    world: World, driver: Driver, rest: tuple[Driver, ...], rules: Rules
) -> Iterator[tuple[str, World]]:
    """Register the failover, or read a record."""
    if driver.registers:
        made = failover(driver.registers).epoch(
            len(world.log), 1, NOW, record_version="v", last=ledger(world.log)[-1]
        )
        closed = (made.kind, made.ranges, ())
        begun = (made.kind, (), tuple(made.begun.items()))
        if rules.whole:
            steps, after = [(made.kind, made.ranges, tuple(made.begun.items()))], Driver(*driver[:2])
        elif not driver.half:
            steps, after = [closed], driver._replace(half=True)
        else:
            steps, after = [begun], Driver(*driver[:2])
        yield (
            "a failover is registered",
            world._replace(log=(*world.log, *steps), drivers=(*rest, after)),
        )
        return
    lane = LANES[driver.cluster]
    # A topic of which the log has nothing is read from its first record of ours.
    at = list_kafka_ends(ledger(world.log)).get(lane, SHIFT[driver.cluster])
    if world.alive[driver.cluster] and at < end_of(world, driver.cluster):
        part = OffsetRange(lane, at, at + 1)
        yield "a record is read", world._replace(log=(*world.log, (EpochKind.READ, (part,), ())))


def check(world: World) -> None:
    """Hold the log against what was produced."""
    log = ledger(world.log)
    for told in (log, condense_epochs(log)):
        if not is_ledger_contiguous(told):
            raise Violation("the ranges do not join")
        if list_kafka_ends(told).keys() & list_closed_lanes(told):
            raise Violation("a lane that was left is read")
    read = list_read(world)
    if len(read) != len({*read}):
        raise Violation(f"read twice: {read}")
    if find_unregistered([failover(each) for each in world.decided], log):
        return
    held = list_kafka_ends(log)
    if not (any(epoch.begun for epoch in log)) or len(held) != 1 or list_open_holes(log):
        return
    # Without a hole all that the clusters had when they were left is read, or will be.
    here = next(at for at, lane in enumerate(LANES) if lane in held)
    passed = held[LANES[here]] - SHIFT[here]
    to_come = world.topics[here][passed:]
    if missing := {*world.topics[0], *world.topics[1]} - {*read, *to_come}:
        raise Violation(f"missing without a word: {missing}")


def search(rules: Rules) -> Found:
    """Visit all that can happen to two clusters and two records."""
    return explore(World(), lambda world: moves(world, rules), check, limit=4_000_000)


def test_no_record_is_read_twice_or_missing_without_a_word_over_failovers() -> None:
    """If this fails, a driver that is late, or a death between two commits, doubles or loses records."""
    found = search(Rules())
    assert not found.violation, str(found)
    assert found.states > 1_000, str(found)
    for what in (
        "registered",
        "taken back",
        "about another place",
        "power fails",
        "comes back",
        "record is read",
    ):
        assert any(what in label for label in found.done), what


@pytest.mark.parametrize("off", ["fences", "whole", "states"])
def test_a_rule_of_failovers_that_is_turned_off_is_missed(off: str) -> None:
    """A driver that was taken for dead; a decision that a death leaves half done; one that says nothing of a loss."""
    found = search(Rules(**{off: False}))
    assert "missing without a word" in found.violation, str(found)
