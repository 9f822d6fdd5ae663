"""A model of sinks: a serving table that moves on, two runners that die and take over, a target, and upkeep.

A version of the serving table has rows of a few keys, each in a file of its own, which a version replaces where it
changes the row, or rewrites as it was. A runner takes over, looks at the target's position, and writes the difference
of two versions a few changes at a time. The shipped decisions say what is to be done, and which versions are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.model.protocol.sinks.steps import (
    NOTHING,
    SinkStep,
    begin_way,
    find_needed_version,
    find_range_due,
    plan_step,
)

Row = tuple[int, bool] | None
"""What a version shows for a key, and whether it is certified; None for nothing."""
Change = tuple[int, Row]
"""A key, and what the target holds for it from now on."""


@dataclass(frozen=True)
class Rules:
    """What sinks keep to; each default is the rule.

    ``together``: changes and position are one transaction. ``fenced``: a transaction is refused if another runner has
    taken over. ``from_target``: a start goes by the target's position, not by the copy in the warehouse. ``ordered``:
    a difference has one order, whoever computes it. ``to_the_end``: a way that was begun is gone to its end.
    ``deletes``: what is no longer there is deleted. ``by_version``: rows are compared with what the position's version
    showed, not with the last version that this runner saw. ``interlock``: upkeep leaves what a position needs.
    ``behind``: the copy is never ahead of the target. ``copied_first``: before a first row is written the copy says on
    the way to which version. ``looks_again``: after that the version is still the newest one. ``marked``: before a
    target is cleared its position is taken back. ``created``: that first copy replaces none that is there. ``begun``:
    before changes are written one by one, the position says that the target is on the way with none of them.

    Of a range that is sent again: ``counted``: the position says how far that is. ``standing``: it is sent at a
    version, not on the way to one. ``again_first``: the target goes on once it was sent. ``strays``: what the target
    has in it and the version has not is deleted. ``asked_by_owner``: who asks for it has fenced off all others.
    """

    together: bool = True
    fenced: bool = True
    from_target: bool = True
    ordered: bool = True
    to_the_end: bool = True
    deletes: bool = True
    by_version: bool = True
    interlock: bool = True
    behind: bool = True
    copied_first: bool = True
    looks_again: bool = True
    marked: bool = True
    created: bool = True
    begun: bool = True
    counted: bool = True
    standing: bool = True
    again_first: bool = True
    strays: bool = True
    asked_by_owner: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes."""

    versions: tuple[tuple[Row, ...], ...] = (
        ((1, False), None),
        ((2, True), (5, False)),
        (None, (5, True)),
        ((2, False), (6, True)),
    )
    certified: bool = False
    """Whether only certified rows are sent."""
    runners: int = 2
    deaths: int = 2
    """Deaths of runners, and replies that are lost."""
    chunk: int = 1
    """Changes of one transaction."""
    parts: bool = False
    """Whether those changes are written one by one, and the position with the last of them."""
    upkeeps: int = 1
    clears: int = 0
    asks: int = 0
    """How often somebody asks for all keys again."""
    harms: int = 0
    """Rows of the target that somebody changes, deletes or adds before that."""


class Target(NamedTuple):
    """What the target holds; every field changes in transactions."""

    rows: tuple[Row, ...]
    position: SinkPosition | None = None
    token: int = 0
    clearing: bool = False


class Runner(NamedTuple):
    """A runner: what it has read, and what it is about to write."""

    at: str = "idle"
    token: int = 0
    position: SinkPosition | None = None
    step: SinkStep | None = None
    left: tuple[Change, ...] | None = None
    done: int = 0
    part: int = 0
    """How many changes of a transaction are written, where that is done one by one."""


class State(NamedTuple):
    """The serving table's newest version, what upkeep has deleted, the target, the copy, and the runners."""

    target: Target
    runners: tuple[Runner, ...]
    newest: int = 0
    gone: frozenset[tuple[int, int]] = frozenset()
    """Files by key and version."""
    copy: SinkPosition | None = None
    upkeep: tuple[int, int | None] | None = None
    """The version of which upkeep has listed what was removed, and the one from which on it leaves everything."""
    deaths: int = 0
    upkeeps: int = 0
    clears: int = 0
    asks: int = 0
    asker: tuple[int, SinkPosition] | None = None
    """The token of who has taken over to ask for a range again, and the position that was found."""
    harmed: tuple[int, ...] = ()
    """Keys whose rows in the target somebody has changed, and that are not yet known to be mended."""
    harms: int = 0
    due: bool = False
    """Whether a range that was asked for has not been sent yet."""
    again: tuple[int, ...] = ()
    """Keys that were sent again since the last time that somebody asked."""


def file_of(key: int, version: int, bounds: Bounds) -> tuple[int, int] | None:
    """Return the file with a key's row at a version: written where the row changed last; None without one."""
    if version == NOTHING or bounds.versions[version][key] is None:
        return None
    while version and bounds.versions[version - 1][key] == bounds.versions[version][key]:
        version -= 1
    return key, version


def show(key: int, version: int, bounds: Bounds) -> Row:
    """Return what a version shows for a key."""
    return None if version == NOTHING else bounds.versions[version][key]


def compare(step: SinkStep, bounds: Bounds, how: Rules, *, last: int, reverse: bool) -> tuple[Change, ...]:
    """Return the difference of two versions, as a list of changes in the order of keys."""
    start = step.start if how.by_version else last
    found: list[Change] = []
    for key in range(len(bounds.versions[0])):
        before, after = show(key, start, bounds), show(key, step.end, bounds)
        if after is None:
            if before is not None and how.deletes:
                found.append((key, None))
        elif not bounds.certified or after[1]:
            hidden = before is None or (bounds.certified and not before[1])
            if hidden or before != after:
                found.append((key, after))
    return tuple(reversed(found)) if reverse and not how.ordered else tuple(found)


def has_lost_files(state: State, step: SinkStep, bounds: Bounds) -> bool:
    """Return whether files that a step compares were deleted; one that both versions have is not read."""
    ends = [
        {file_of(key, version, bounds) for version in (step.start, step.end)}
        for key in range(len(bounds.versions[0]))
    ]
    return any(len(files) == 2 and files & state.gone for files in ends)


def take_over(state: State, number: int, how: Rules) -> tuple[Target, Runner]:
    """Fence all others and read where the target stands."""
    target = state.target._replace(token=state.target.token + 1)
    position = target.position if how.from_target else state.copy
    return target, Runner("clearing" if target.clearing else "planning", target.token, position)


def write(
    state: State, runner: Runner, bounds: Bounds, how: Rules
) -> tuple[Target, tuple[Change, ...], SinkPosition, bool]:
    """Return the target after one more transaction, what is left, the position that it leads to, and if it is whole."""
    assert runner.step is not None and runner.left is not None
    some, left = runner.left[: bounds.chunk], runner.left[bounds.chunk :]
    position = runner.step.reach("", "", runner.done + len(some), whole=not left)
    rows = list(state.target.rows)
    for key, value in some[runner.part :]:
        known = bounds.certified or bounds.parts or key in state.harmed
        if not known and rows[key] == value:
            raise Violation(f"the change of key {key} to {value} is sent twice")
        rows[key] = value
    return state.target._replace(rows=tuple(rows)), left, position, not left


def write_part(state: State, runner: Runner, bounds: Bounds, how: Rules) -> tuple[Runner, Target]:
    """Return runner and target after one more change that is not the last of a transaction."""
    assert runner.left
    key, value = runner.left[runner.part]
    rows = tuple(value if at == key else row for at, row in enumerate(state.target.rows))
    position = state.target.position
    if how.begun:
        position = begin_way(position, write(state, runner, bounds, how)[2])
    return runner._replace(part=runner.part + 1), state.target._replace(rows=rows, position=position)


def runner_moves(state: State, number: int, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what one runner may do next."""
    runner, name = state.runners[number], "ab"[number]

    def become(changed: Runner, **more: object) -> State:
        runners = tuple(changed if at == number else each for at, each in enumerate(state.runners))
        return state._replace(runners=runners, **more)  # type: ignore[arg-type]

    fenced = how.fenced and runner.token != state.target.token
    if runner.at == "idle":
        target, taken = take_over(state, number, how)
        if target.token <= bounds.deaths + len(state.runners) + bounds.asks:
            yield f"{name} takes over", become(taken, target=target)
        return
    if state.deaths < bounds.deaths:
        yield f"{name} dies", become(Runner(), deaths=state.deaths + 1)
    yield from STEPS[runner.at](state, runner, name, fenced, become, bounds, how)


Become = Callable[..., State]


def planning(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Look for the newest version."""
    position = runner.position
    if find_range_due(position) or (position and position.again and not how.standing):
        yield f"{name} plans a range", become(runner._replace(at="ranging", left=None))
        if how.again_first:
            return
    if position is not None and position.toward is not None and not how.to_the_end:
        step: SinkStep | None = SinkStep(position.version, state.newest, position.rows)
    else:
        step = plan_step(position, state.newest)
    if step is None:
        return
    if not how.behind:
        ahead = step.reach("", "", 0, whole=True)
        yield f"{name} plans", become(runner._replace(at="reading", step=step), copy=ahead)
        return
    at = "telling" if position is None and how.copied_first else "reading"
    yield f"{name} plans", become(runner._replace(at=at, step=step))


def telling(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Say in the warehouse on the way to which version the target is, unless there is a copy."""
    assert runner.step is not None
    first = runner.step.reach("", "", 0, whole=False)
    copy = state.copy if how.created and state.copy else first
    yield f"{name} tells", become(runner._replace(at="reading"), copy=copy)


def reading(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Read both versions, and compare them."""
    step = runner.step
    assert step is not None
    if fenced and has_lost_files(state, step, bounds):
        yield f"{name} fails", become(Runner())
        return
    if runner.position is None and how.looks_again and state.newest != step.end:
        yield f"{name} looks again", become(runner._replace(at="planning", step=None))
        return
    if has_lost_files(state, step, bounds):
        raise Violation(f"the files between versions {step.start} and {step.end} are gone")
    found = compare(step, bounds, how, last=max(step.start, 0), reverse=name == "b")
    yield f"{name} compares", become(runner._replace(at="writing", left=found[step.skip :], done=0))


def writing(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Write some changes and the position, for which there may be no reply."""
    if fenced:
        yield f"{name} is fenced off", become(Runner())
        return
    if bounds.parts and runner.left and runner.part + 1 < len(runner.left[: bounds.chunk]):
        after, target = write_part(state, runner, bounds, how)
        yield f"{name} writes a part", become(after, target=target)
        return
    target, left, position, whole = write(state, runner, bounds, how)
    after = runner._replace(
        at="copying" if whole else "writing", left=left, done=runner.done + bounds.chunk, part=0
    )
    if whole:
        after = Runner("copying", runner.token, position)
    if not how.together:
        yield (
            f"{name} writes rows",
            become(after._replace(at="positioning", position=position), target=target),
        )
        return
    target = target._replace(position=position)
    yield f"{name} writes", become(after, target=target)
    if state.deaths < bounds.deaths:
        yield f"{name} gets no reply", become(Runner(), target=target, deaths=state.deaths + 1)


def positioning(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Write the position after its rows, where the two are not one transaction."""
    target = state.target._replace(position=runner.position)
    at = "writing" if runner.left else "copying"
    yield f"{name} writes its position", become(runner._replace(at=at), target=target)


def copying(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Copy the position into the warehouse, or leave that to the next time."""
    yield f"{name} copies", become(runner._replace(at="planning"), copy=runner.position)
    yield f"{name} goes on", become(runner._replace(at="planning"))


def clearing(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Take rows out of the target, a transaction for each."""
    if fenced:
        yield f"{name} is fenced off", become(Runner())
        return
    rows = list(state.target.rows)
    there = [key for key, value in enumerate(rows) if value is not None]
    if there:
        rows[there[0]] = None
        yield f"{name} clears", become(runner, target=state.target._replace(rows=tuple(rows)))
        return
    target = state.target._replace(position=None, clearing=False)
    yield f"{name} has cleared", become(runner._replace(at="planning", position=None), target=target)


def ranging(
    state: State, runner: Runner, name: str, fenced: bool, become: Become, bounds: Bounds, how: Rules
) -> Iterator[tuple[str, State]]:
    """Delete what no version shows, and write rows of the range again as the target's version has them."""
    if fenced:
        yield f"{name} is fenced off", become(Runner())
        return
    position = runner.position
    assert position is not None and position.again is not None
    version, keys = max(position.version, 0), range(len(bounds.versions[0]))
    if any(file_of(key, version, bounds) in state.gone for key in keys):
        raise Violation(f"a file of version {version} is gone")
    rows = list(state.target.rows)
    strays = [key for key in keys if rows[key] is not None and show(key, version, bounds) is None]
    if strays and how.strays:
        rows[strays[0]] = None
        yield f"{name} deletes a stray", become(runner, target=state.target._replace(rows=tuple(rows)))
        return
    there = [key for key in keys if (row := show(key, version, bounds)) and (row[1] or not bounds.certified)]
    some = there[position.again.done :][: bounds.chunk]
    if bounds.parts and len(some) > 1:
        # The first is written by itself; the rest and the position follow, and a start in between writes all again.
        rows[some[0]] = show(some[0], version, bounds)
        held = (
            begin_way(state.target.position, position.send_again(len(some), whole=False))
            if how.begun
            else position
        )
        target = state.target._replace(rows=tuple(rows), position=held)
        if target != state.target:
            yield f"{name} sends a part again", become(runner, target=target)
            return
    if twice := set(some) & set(state.again):
        raise Violation(f"keys {twice} are sent again twice")
    for key in some:
        rows[key] = show(key, version, bounds)
    whole = position.again.done + len(some) >= len(there)
    after = position.send_again(len(some) if how.counted else 0, whole=whole)
    again = () if whole else (*state.again, *some)
    if whole and not set(there) <= {*state.again, *some}:
        raise Violation(f"of keys {there} only {state.again} were sent again")
    told = {
        "target": state.target._replace(rows=tuple(rows), position=after),
        "again": again,
        "harmed": () if whole else state.harmed,
        "due": not whole,
    }
    yield (
        f"{name} sends again",
        become(Runner("copying" if whole else "ranging", runner.token, after), **told),
    )
    if state.deaths < bounds.deaths:
        yield f"{name} gets no reply", become(Runner(), **told, deaths=state.deaths + 1)


STEPS = {
    "ranging": ranging,
    "planning": planning,
    "telling": telling,
    "reading": reading,
    "writing": writing,
    "positioning": positioning,
    "copying": copying,
    "clearing": clearing,
}


def moves(state: State, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what may happen next."""
    for number in range(len(state.runners)):
        yield from runner_moves(state, number, bounds, how)
    if state.newest + 1 < len(bounds.versions):
        yield "the table is refreshed", state._replace(newest=state.newest + 1)
    yield from upkeep_moves(state, bounds, how)
    yield from asking_moves(state, bounds, how)
    if state.clears < bounds.clears and not state.target.clearing:
        target = state.target._replace(token=state.target.token + 1, clearing=True)
        if how.marked:
            target = target._replace(position=None)
        idle = (Runner("clearing", target.token), *state.runners[1:])
        yield "somebody resends", state._replace(target=target, runners=idle, clears=state.clears + 1)


def asking_moves(state: State, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what people do: they change a row of the target, and ask for all rows of it again."""
    target = state.target
    if state.harms < bounds.harms and target.position is not None and not state.asks:
        for key, row in enumerate(target.rows):
            for value in {None, (99, True)} - {row}:
                rows = (*target.rows[:key], value, *target.rows[key + 1 :])
                yield (
                    "somebody changes a row",
                    state._replace(target=target._replace(rows=rows), harmed=(key,), harms=state.harms + 1),
                )
    if state.asker is not None:
        token, position = state.asker
        if how.asked_by_owner and token != target.token:
            yield "who asks is fenced off", state._replace(asker=None, asks=state.asks - 1)
            return
        asked = target._replace(position=position.ask_again(RangeAgain("")))
        yield "somebody asks", state._replace(target=asked, asker=None, again=(), due=True)
    elif state.asks < bounds.asks and target.position is not None:
        taken = target._replace(token=target.token + 1)
        found = (taken.token, target.position)
        yield "somebody is to ask", state._replace(target=taken, asker=found, asks=state.asks + 1)


def upkeep_moves(state: State, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what upkeep does: it lists what was removed, looks what is needed, and deletes the rest."""
    if state.upkeep is not None:
        newest, needed = state.upkeep
        gone = set(state.gone)
        for key in range(len(bounds.versions[0])):
            files = [file_of(key, version, bounds) for version in range(newest + 1)]
            kept = {files[newest], *(() if needed is None else files[needed:])}
            gone |= {each for each in files if each is not None and each not in kept}
        yield "upkeep deletes", state._replace(gone=frozenset(gone), upkeep=None)
    elif state.upkeeps < bounds.upkeeps:
        needed = find_needed_version([state.copy] if state.copy and how.interlock else [])
        yield "upkeep looks", state._replace(upkeep=(state.newest, needed), upkeeps=state.upkeeps + 1)


def check(state: State, bounds: Bounds, how: Rules) -> None:
    """Hold the target to what its position says."""
    target, position = state.target, state.target.position
    if target.clearing and how.marked:
        return
    if state.due and position is not None and position.again is None:
        raise Violation(f"the range that was asked for is forgotten at {position}")
    if position is None:
        wanted: list[set[Row]] = [{None}] * len(target.rows)
    else:
        start, end = position.version, position.toward
        changes = compare(
            SinkStep(start, start if end is None else end), bounds, Rules(), last=start, reverse=False
        )
        done = dict(changes[: position.rows])
        wanted = [
            {done[key]} if key in done else list_allowed(key, start, bounds)
            for key in range(len(target.rows))
        ]
        if bounds.parts:
            for key, value in changes[position.rows : position.rows + bounds.chunk]:
                wanted[key] = wanted[key] | {value}
    if not how.together:
        return
    for key, (value, allowed) in enumerate(zip(target.rows, wanted, strict=True)):
        if value not in allowed and key not in state.harmed:
            raise Violation(f"the target holds {value} for key {key} at {position}")


def list_allowed(key: int, version: int, bounds: Bounds) -> set[Row]:
    """List what a target may hold for a key at a version: of a row that is not to be sent what was sent before."""
    row = show(key, version, bounds)
    if row is None or not bounds.certified or row[1]:
        return {row}
    earlier = (show(key, each, bounds) for each in range(version))
    return {None, *(each for each in earlier if each and each[1])}


def search(how: Rules, bounds: Bounds) -> Found:
    """Search every order of refreshes, writes, deaths, takeovers, upkeep and resendings."""
    rows = (None,) * len(bounds.versions[0])
    start = State(Target(rows), (Runner(),) * bounds.runners)
    return explore(start, lambda state: moves(state, bounds, how), lambda state: check(state, bounds, how))
