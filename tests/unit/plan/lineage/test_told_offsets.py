"""Every offset is told once, whatever dies and whoever does not answer: searched."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.lineage.lineage_events import RunState
from seamline.plan.lineage.told_offsets import Step, Told, plan_steps

ONE, TWO = Lane("topic", 0), Lane("topic", 1)
ENDS = {"stop": RunState.COMPLETE, "fail": RunState.FAIL}
MOVES = st.one_of(
    st.tuples(st.just("read"), st.integers(0, 1), st.integers(1, 4)),
    st.tuples(st.sampled_from(["tell", "away", "lost", "kill", "stop", "fail"])),
)


class World:
    """A stream, its drivers, and a server that may be away, or take an event and lose its answer."""

    def __init__(self) -> None:
        self.here = {ONE: 5, TWO: 0}
        self.kept = Told().to_json()
        self.taken: list[Step] = []
        self.away = self.loses = False
        self.runs = 0
        self.start()

    def start(self) -> None:
        """Start a driver, which knows what the one before has kept."""
        self.runs += 1
        self.run, self.began = f"run{self.runs}", dict(self.here)
        self.told = Told.from_json(self.kept)
        self.tell()

    def tell(self, ending: RunState | None = None) -> None:
        """Tell what is due, as far as it is taken."""
        for step in plan_steps(self.told, self.run, self.began, dict(self.here), ending, "why"):
            if self.away:
                return
            self.taken.append(step)
            if self.loses:
                self.loses = False
                return
            self.told = step.after
            self.kept = self.told.to_json()

    def move(self, move: tuple[str, int, int] | tuple[str]) -> None:
        """Let something happen."""
        match move:
            case ("read", lane, rows):
                self.here[(ONE, TWO)[lane]] += rows
            case ("tell",):
                self.tell()
            case ("away",):
                self.away = not self.away
            case ("lost",):
                self.loses = True
            case ("kill",):
                self.start()
            case (end,):
                self.tell(ENDS[str(end)])
                if self.told.run == self.run:
                    self.kept = Told(self.run, self.told.vector, ENDS[str(end)].value, "why").to_json()
                self.start()


def covered(taken: Sequence[Step], lane: Lane) -> list[tuple[int, int]]:
    """List the ranges of a lane that were told, in their order."""
    parts = (part for step in taken for part in step.ranges if part.lane == lane and len(part))
    return [(part.start, part.end) for part in parts]


@given(moves=st.lists(MOVES, max_size=25))
def test_every_offset_is_told(moves: list[tuple[str, int, int] | tuple[str]]) -> None:
    """One after the other, and again only what a lost answer has left in doubt."""
    world = World()
    for each in moves:
        world.move(each)
    world.away = world.loses = False
    world.tell(RunState.COMPLETE)
    lost = sum(each == ("lost",) for each in moves)
    for lane, first in ((ONE, 5), (TWO, 0)):
        at = None
        for start, end in covered(world.taken, lane):
            if at is None:
                at = start
            assert start <= at, f"nothing tells {at} to {start} of {lane}"
            assert lost or start == at, f"{start} to {at} of {lane} is told twice"
            at = max(at, end)
        if at is not None:
            assert at == world.here[lane]
        began = next(step.ranges for step in world.taken if step.state is RunState.START)
        known = next(part.start for part in began if part.lane == lane)
        told = covered(world.taken, lane)
        assert (told[0][0] if told else world.here[lane]) == known
        assert known >= first


@given(moves=st.lists(MOVES, max_size=25))
def test_runs_have_one_beginning_and_one_end(moves: list[tuple[str, int, int] | tuple[str]]) -> None:
    """The specification wants one START, and one end after it, of each run; a lost answer makes two of either."""
    world = World()
    for each in (each for each in moves if each != ("lost",)):
        world.move(each)
    world.away = False
    world.tell(RunState.COMPLETE)
    for run in {step.run for step in world.taken}:
        states = [step.state for step in world.taken if step.run == run]
        assert states[0] is RunState.START
        assert states[-1] in (RunState.COMPLETE, RunState.FAIL, RunState.ABORT)
        assert set(states[1:-1]) <= {RunState.RUNNING}


def test_a_dead_drivers_reading_is_told_with_its_end() -> None:
    """It was committed, and its driver cannot tell any more."""
    told = Told("first", {ONE: 10})
    new = Lane("again", 0)
    steps = list(plan_steps(told, "second", {ONE: 14, new: 3}, {ONE: 15, new: 3}))
    assert [(step.state, step.run, step.ranges) for step in steps] == [
        (RunState.ABORT, "first", (OffsetRange(ONE, 10, 14),)),
        (RunState.START, "second", (OffsetRange(new, 3, 3), OffsetRange(ONE, 14, 14))),
        (RunState.RUNNING, "second", (OffsetRange(ONE, 14, 15),)),
    ]


def test_nothing_is_told_of_a_stream_that_reads_nothing() -> None:
    """An idle stream costs a server nothing."""
    assert list(plan_steps(Told("run", {ONE: 10}), "run", {ONE: 5}, {ONE: 10})) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "null", json.dumps({"run": "a", "vector": {"x": "y"}})])
def test_what_cannot_be_read_is_nothing(text: str) -> None:
    """A file that a power cut has emptied is in the way of no start."""
    assert Told.from_json(text) == Told()


def test_what_is_kept_is_read_again() -> None:
    """The next driver knows what this one has told."""
    told = Told("run", {ONE: 10, TWO: 3}, "FAIL", "Boom: it failed")
    assert Told.from_json(told.to_json()) == told
