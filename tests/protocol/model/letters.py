"""A model of dead letters: a log that grows by epochs, two runners that die and take over, a topic, and lost power.

An epoch is tried under a number: its records are in the quarantine before it is committed, and stay there if it dies. A
runner takes over, reads where the topic stands, and adds what later epochs have, a few records at a time. What is
committed may be lost with the power until it is on disk, and a person may restore an older state of all tables. The
shipped decisions say what is to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

from seamline.model.protocol.seam import NOTHING
from seamline.model.protocol.sinks.marks import split_marks
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.steps import SinkStep, plan_step


@dataclass(frozen=True)
class Rules:
    """What sinks of dead letters keep to; each default is the rule.

    ``together``: records and position are one transaction. ``fenced``: a transaction is refused if another runner has
    taken over. ``from_target``: a start goes by the topic's position, not by the copy in the warehouse. ``ordered``:
    the records of a way have one order, whoever reads them. ``committed``: only records of epochs that are committed
    are sent. ``settled``: what is sent is on disk before. ``named``: the position says which commit its epoch is, and
    another one of that number is not gone on from.
    """

    together: bool = True
    fenced: bool = True
    from_target: bool = True
    ordered: bool = True
    committed: bool = True
    settled: bool = True
    named: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes."""

    records: int = 4
    runners: int = 2
    deaths: int = 1
    """Deaths of runners, and replies that are lost."""
    failures: int = 1
    """Epochs that die."""
    cuts: int = 0
    """Losses of power."""
    restores: int = 0


class Epoch(NamedTuple):
    """A committed epoch."""

    number: int
    name: int
    """Which commit it is: none is used twice."""
    records: tuple[int, ...]


class Topic(NamedTuple):
    """The topic; every field changes in transactions."""

    sent: tuple[int, ...] = ()
    position: SinkPosition | None = None
    token: int = 0


class Runner(NamedTuple):
    """A runner: what it has read, and what it is about to add."""

    at: str = "idle"
    token: int = 0
    position: SinkPosition | None = None
    step: SinkStep | None = None
    marks: tuple[str, str] = ("", "")
    left: tuple[int, ...] = ()
    done: int = 0


class State(NamedTuple):
    """The tables, the topic, the copy of the position, and the runners."""

    topic: Topic
    runners: tuple[Runner, ...]
    log: tuple[Epoch, ...] = ()
    rows: tuple[tuple[int, int], ...] = ()
    """The quarantine: epoch and record."""
    tried: Epoch | None = None
    """The epoch that is about to be committed."""
    number: int = 0
    name: int = 0
    safe: int = 0
    """How many epochs of the log are on disk."""
    copy: SinkPosition | None = None
    deaths: int = 0
    failures: int = 0
    cuts: int = 0
    restores: int = 0

    @property
    def newest(self) -> int:
        """E."""
        return self.log[-1].number if self.log else NOTHING


def find_mark(log: tuple[Epoch, ...], number: int) -> str:
    """Name the commit of an epoch; nothing if there is none of that number."""
    return next((f"c{each.name}" for each in log if each.number == number), "")


def read_way(state: State, step: SinkStep, how: Rules, *, reverse: bool) -> tuple[int, ...]:
    """Read what is to be sent of the epochs of a way."""
    held = {each.number for each in state.log}
    found = [
        record
        for number, record in sorted(state.rows)
        if step.start < number <= step.end and (number in held or not how.committed)
    ]
    return tuple(reversed(found) if reverse and not how.ordered else found)[step.skip :]


Become = Callable[..., State]


def runner_moves(state: State, number: int, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what one runner may do next."""
    runner, name = state.runners[number], "ab"[number]

    def become(changed: Runner, **more: object) -> State:
        runners = tuple(changed if at == number else each for at, each in enumerate(state.runners))
        return state._replace(runners=runners, **more)  # type: ignore[arg-type]

    if runner.at == "idle":
        topic = state.topic._replace(token=state.topic.token + 1)
        if topic.token <= bounds.deaths + bounds.cuts + len(state.runners):
            position = topic.position if how.from_target else state.copy
            yield f"{name} takes over", become(Runner("planning", topic.token, position), topic=topic)
        return
    if state.deaths < bounds.deaths:
        yield f"{name} dies", become(Runner(), deaths=state.deaths + 1)
    yield from STEPS[runner.at](state, runner, name, become, bounds, how)


def planning(
    state: State, runner: Runner, name: str, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Look for the newest epoch, and read what is to be sent."""
    position = runner.position
    step = plan_step(position, state.newest) if state.newest > NOTHING else None
    if step is None:
        return
    marks = find_mark(state.log, step.start), find_mark(state.log, step.end)
    known = split_marks(position.fingerprint) if position else ("", "")
    if how.named and any(mark and mark != found for mark, found in zip(known, marks, strict=True)):
        if not state.restores:
            raise Violation("the topic has what the power has taken from the log")
        yield f"{name} is out of step", become(Runner())
        return
    safe = len(state.log) if how.settled else state.safe
    left = read_way(state, step, how, reverse=name == "b")
    yield (
        f"{name} reads",
        become(runner._replace(at="adding", step=step, marks=marks, left=left, done=0), safe=safe),
    )


def adding(
    state: State, runner: Runner, name: str, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Add a record and the position, for which there may be no reply."""
    if how.fenced and runner.token != state.topic.token:
        yield f"{name} is fenced off", become(Runner())
        return
    assert runner.step is not None
    some, left = runner.left[:1], runner.left[1:]
    for record in some:
        if record in state.topic.sent:
            raise Violation(f"record {record} is sent twice")
    done = runner.done + len(some)
    position = runner.step.reach(*runner.marks, done, whole=not left)
    after = runner._replace(at="adding" if left else "copying", left=left, done=done, position=position)
    topic = state.topic._replace(sent=(*state.topic.sent, *some))
    if not how.together:
        yield f"{name} adds records", become(after._replace(at="positioning"), topic=topic)
        return
    topic = topic._replace(position=position)
    yield f"{name} adds", become(after, topic=topic)
    if state.deaths < bounds.deaths:
        yield f"{name} gets no reply", become(Runner(), topic=topic, deaths=state.deaths + 1)


def positioning(
    state: State, runner: Runner, name: str, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Write the position after its records, where the two are not one transaction."""
    topic = state.topic._replace(position=runner.position)
    at = "adding" if runner.left else "copying"
    yield f"{name} writes its position", become(runner._replace(at=at), topic=topic)


def copying(
    state: State, runner: Runner, name: str, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Copy the position into the warehouse, or leave that to the next time."""
    yield f"{name} copies", become(runner._replace(at="planning"), copy=runner.position)
    yield f"{name} goes on", become(runner._replace(at="planning"))


STEPS = {"planning": planning, "adding": adding, "positioning": positioning, "copying": copying}


def log_moves(state: State, bounds: Bounds) -> Iterator[tuple[str, State]]:
    """Yield what the stream does, what the power does, and what a person does with a backup."""
    if state.tried is None:
        first = sum(len(each.records) for each in state.log)
        for count in (1, 2):
            records = tuple(range(first, first + count))
            if first + count <= bounds.records:
                yield "an epoch is tried", try_epoch(state, records)
    else:
        log = (*state.log, state.tried)
        yield "an epoch is committed", state._replace(log=log, tried=None)
        if state.failures < bounds.failures:
            yield "an epoch dies", state._replace(tried=None, failures=state.failures + 1)
    if state.cuts < bounds.cuts and state.safe < len(state.log):
        yield "the power fails", lose(state, state.safe)._replace(cuts=state.cuts + 1)
    if state.restores < bounds.restores and len(state.log) > 1:
        # Numbers are given out anew: nothing in the tables knows of those that were.
        back = lose(state, 1)
        yield "a backup is restored", back._replace(restores=state.restores + 1, number=back.newest + 1)


def try_epoch(state: State, records: tuple[int, ...]) -> State:
    """Write the records of an epoch that is not committed."""
    tried = Epoch(state.number, state.name, records)
    rows = (*state.rows, *((state.number, each) for each in records))
    return state._replace(tried=tried, rows=rows, number=state.number + 1, name=state.name + 1)


def lose(state: State, count: int) -> State:
    """Lose all epochs but so many, and every process."""
    log = state.log[:count]
    held = {each.number for each in log}
    rows = tuple(row for row in state.rows if row[0] in held)
    idle = (Runner(),) * len(state.runners)
    return state._replace(log=log, rows=rows, tried=None, safe=count, runners=idle)


def moves(state: State, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what may happen next."""
    for number in range(len(state.runners)):
        yield from runner_moves(state, number, bounds, how)
    yield from log_moves(state, bounds)


def check(state: State) -> None:
    """Hold the topic to what its position says: all records up to its epoch, and the first of the way."""
    position = state.topic.position
    if position is None or (position.version, position.toward) == (NOTHING, None):
        return
    first, second = split_marks(position.fingerprint)
    if first and find_mark(state.log, position.version) != first and state.restores and not second:
        # The log is another one: the next start says so, unless it has gone on already.
        return
    done = [record for each in state.log if each.number <= position.version for record in each.records]
    lacking = {*done} - {*state.topic.sent}
    if lacking:
        raise Violation(f"record {min(lacking)} is passed over at {position}")


def search(how: Rules, bounds: Bounds) -> Found:
    """Search every order of epochs, writes, deaths, takeovers, losses of power and backups."""
    start = State(Topic(), (Runner(),) * bounds.runners)
    return explore(start, lambda state: moves(state, bounds, how), check)
