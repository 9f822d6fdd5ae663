"""A warehouse that moves to another place, by attempts that may stand still or die at any point, and is taken back.

One pipeline, with a lease in either place. Whoever has a lease may sleep longer than it lasts, and go on all the same:
what is conditional on the lease is refused then. Records are counted: the new place must have what the old one has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

OPEN, ABSENT = "", "absent"
"""Of a control table: that it has no mark, and that there is none."""
OPENED, GIVEN_UP = "opened", "given up"


@dataclass(frozen=True)
class Rules:
    """Each may be turned off. ``last_copy``: what was written before the old place was closed is copied after that.
    ``under_lease``: the old place is closed by who has its lease. ``decides_once``: whether a move is opened or given
    up is decided by whoever is first. ``own_mark``: the mark by which a new place is closed is not that of the move.
    ``closes_all``: it is also put over the mark of the move. ``looks_before``: who takes a move back sees what the new
    place says of it, so that one that is not mounted is not taken for one that is gone. ``lost_decides``: who says
    that the new place is gone decides about the move all the same, if it is there. ``own_control``: an attempt takes
    away no control table of the new place but one that another move has closed.
    """

    last_copy: bool = True
    under_lease: bool = True
    decides_once: bool = True
    own_mark: bool = True
    closes_all: bool = True
    looks_before: bool = True
    lost_decides: bool = True
    own_control: bool = True


class Place(NamedTuple):
    """What one place has: the mark of its control table, who has its lease, and how many records."""

    mark: str = ABSENT
    lease: int = -1
    rows: int = 0


class State(NamedTuple):
    """Both places; what the new one says of the move, by its id; at which step each process is."""

    old: Place
    new: Place
    begun: str = ""
    decided: tuple[tuple[str, str], ...] = ()
    mounted: bool = True
    steps: tuple[int, ...] = ()

    def step(self, at: int, step: int) -> State:
        """Put a process to a step."""
        return self._replace(steps=(*self.steps[:at], step, *self.steps[at + 1 :]))

    def decision(self, id: str) -> str:
        """Return what was decided about a move; empty for nothing."""
        return dict(self.decided).get(id, "")

    def decide(self, id: str, what: str, *, once: bool) -> State:
        """Decide about a move, ``once`` or anew."""
        if once and self.decision(id):
            return self
        return self._replace(decided=tuple(sorted({**dict(self.decided), id: what}.items())))


DONE = -1
UNDOER = 2
"""The number of the process that takes a move back; those below are attempts at a move."""


def both_open(state: State) -> bool:
    """Return whether both places take writes."""
    return state.old.mark == OPEN and state.new.mark == OPEN


def headless(state: State) -> bool:
    """Return whether a place that was opened has no control table any more."""
    return state.new.mark == ABSENT and state.decision(state.begun) == OPENED


def lost(state: State) -> bool:
    """Return whether the new place is open without a record that the old one has."""
    return state.new.mark == OPEN and state.new.rows < state.old.rows


def moves(state: State, rules: Rules, *, records: int) -> Iterator[tuple[str, State]]:
    """Return every next state."""
    for at in range(UNDOER):
        yield from attempt(state, at, rules)
    yield from undo(state, rules)
    for at in (0, 1, 2):
        if state.old.lease == at:
            yield f"{at} sleeps too long in the old place", state._replace(old=state.old._replace(lease=-1))
        if state.new.lease == at:
            yield f"{at} sleeps too long in the new place", state._replace(new=state.new._replace(lease=-1))
    if state.old.mark == OPEN and state.old.lease < 0 and state.old.rows < records:
        yield (
            "a stream writes in the old place",
            state._replace(old=state.old._replace(rows=state.old.rows + 1)),
        )
    if state.new.mark == OPEN and state.new.lease < 0 and state.new.rows < records:
        yield (
            "a stream writes in the new place",
            state._replace(new=state.new._replace(rows=state.new.rows + 1)),
        )
    yield "the new place is mounted, or not", state._replace(mounted=not state.mounted)


def attempt(state: State, at: int, rules: Rules) -> Iterator[tuple[str, State]]:
    """Return what an attempt at the move may do; what it has read at its begin is the hundreds of its step."""
    step = state.steps[at]
    own, base = f"m{step // 100}", step // 100 * 100
    if step == 0:
        yield from begin(state, at)
    elif base and step % 100 < 4:
        yield from copy(state, at, rules, own, base)
    elif base:
        yield from arrive(state, at, rules, own, base)


def begin(state: State, at: int) -> Iterator[tuple[str, State]]:
    """Continue the move that was begun, or begin another if that was given up."""
    id = state.begun
    number = int(id[1:]) if id else 0
    if not id or state.decision(id) == GIVEN_UP:
        number += 1
    if state.mounted and number <= 2 and state.old.mark in (OPEN, f"m{number}"):
        yield f"{at} begins m{number}", state._replace(begun=f"m{number}").step(at, number * 100)


def copy(state: State, at: int, rules: Rules, own: str, base: int) -> Iterator[tuple[str, State]]:
    """Copy, close the old place, and copy to the end."""
    old, new, step = state.old, state.new, state.steps[at] - base
    goes_on = state.begun == own and not state.decision(own) and new.mark != OPEN
    if step == 0 and old.lease < 0 and old.mark in (OPEN, own):
        yield f"{at} takes the lease", state._replace(old=old._replace(lease=at)).step(at, base + 1)
    elif step == 1:
        # It does not look whether the move goes on: it had looked before it fell asleep.
        theirs = new.mark not in (ABSENT, OPEN, own, f"{own} back")
        if theirs or (new.mark != ABSENT and not rules.own_control):
            yield f"{at} takes a control table away", state._replace(new=new._replace(mark=ABSENT))
        if goes_on:
            yield f"{at} copies", state._replace(new=new._replace(rows=old.rows)).step(at, base + 2)
    elif step == 2 and (old.lease == at or not rules.under_lease) and old.mark in (OPEN, own):
        yield f"{at} closes the old place", state._replace(old=old._replace(mark=own)).step(at, base + 3)
    elif step == 3 and goes_on:
        rows = old.rows if rules.last_copy else new.rows
        after = state._replace(old=released(old, at), new=new._replace(rows=rows, mark=own))
        yield f"{at} copies to the end", after.step(at, base + 4)


def arrive(state: State, at: int, rules: Rules, own: str, base: int) -> Iterator[tuple[str, State]]:
    """Open the new place."""
    old, new, step = state.old, state.new, state.steps[at] - base
    if step == 4 and old.lease < 0 and old.mark == own:
        yield f"{at} takes the lease to open", state._replace(old=old._replace(lease=at)).step(at, base + 5)
    elif step == 5:
        after = state.decide(own, OPENED, once=rules.decides_once)
        opens = after.decision(own) == OPENED
        yield f"{at} decides to open", after.step(at, base + 6 if opens else DONE)
    elif step == 6:
        here = new._replace(mark=OPEN) if new.mark == own else new
        yield f"{at} opens the new place", state._replace(old=released(old, at), new=here).step(at, DONE)


def released(place: Place, at: int) -> Place:
    """Return a place without the lease of a process, if it has it."""
    return place._replace(lease=-1) if place.lease == at else place


def undo(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    """Return what a person may do who takes the move back."""
    at, old, new, step = UNDOER, state.old, state.new, state.steps[UNDOER]
    id = old.mark
    if step == 0 and old.lease < 0 and id not in (OPEN, ABSENT):
        number = int(id[1:]) * 100
        yield "undo takes the lease", state._replace(old=old._replace(lease=at)).step(at, number + 1)
        return
    own, base = f"m{step // 100}", step // 100 * 100
    back = f"{own} back" if rules.own_mark else own
    match step % 100 if step > 0 else DONE:
        case 1:
            if not (rules.lost_decides if state.mounted else rules.looks_before):
                yield "undo takes the new place for lost", state.step(at, base + 3)
            if not state.mounted:
                return
            after = state.decide(own, GIVEN_UP, once=True) if rules.decides_once else state
            if after.decision(own) == OPENED:
                if new.lease < 0:
                    yield (
                        "undo takes the new lease",
                        after._replace(new=new._replace(lease=at)).step(at, base + 2),
                    )
            else:
                yield "undo gives the move up", after.step(at, base + 3)
        case 2:
            # The comparison and the closing are one step: they are conditional on the lease of the new place.
            if new.lease == at and new.rows == old.rows and (new.mark == OPEN or new.mark == own):
                closed = back if new.mark == OPEN or rules.closes_all else new.mark
                yield (
                    "undo closes the new place",
                    state._replace(new=new._replace(mark=closed, lease=-1)).step(at, base + 3),
                )
        case 3:
            here = old._replace(mark=OPEN) if old.mark == own else old
            yield "undo opens the old place", state._replace(old=released(here, at)).step(at, DONE)


def search(rules: Rules, *, records: int = 1, limit: int = 2_000_000) -> tuple[int, list[str] | None]:
    """Visit every state within bounds: how many, and the way to one that must not be, if there is one."""
    first = State(Place(OPEN), Place(), steps=(0, 0, 0))
    before: dict[State, tuple[State, str] | None] = {first: None}
    level = [first]
    while level:
        found = []
        for state in level:
            for name, after in moves(state, rules, records=records):
                if after in before:
                    continue
                before[after] = state, name
                if len(before) > limit:
                    raise AssertionError("more states than the limit")
                if both_open(after) or lost(after) or headless(after):
                    return len(before), way(before, after)
                found.append(after)
        level = found
    return len(before), None


def way(before: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    """Return the steps that lead to a state."""
    found = []
    while (came := before[state]) is not None:
        state, name = came
        found.append(name)
    return found[::-1]
