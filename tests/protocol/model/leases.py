"""A lease between processes that may stand still at any point, with clocks on their walls that say what they like.

How an observer judges and how long a holder believes is the shipped code's. Time is one for all: what a process may
ask is how much has passed, and its own wall clock, which is ``skew`` ahead. All have one host name and one process id,
as containers may; who is of one ``place`` sees whether another's process lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from seamline.runtime.processes import Life
from seamline.runtime.sightings import Sighting, Standing
from seamline.supervisor.belief import Belief

TTL = 2
NEVER = -99


class Found(NamedTuple):
    """The lease as it is read: ``told`` is until when its holder says that it has it, by its own wall clock."""

    token: int
    beat: int
    told: int
    holder: int = 0

    @property
    def mark(self) -> tuple[int, int]:
        return self.token, self.beat

    @property
    def process(self) -> str:
        return str(self.holder)


@dataclass(frozen=True)
class Rules:
    """Each may be turned off. ``by_beats``: an observer asks no wall clock. ``looks_again``: it takes by what it reads
    after the time has passed, not before. ``since_seen``: its time begins after it has read a beat, not before.
    ``since_sent``: a holder believes from before it sends, not from the reply. ``conditional``: a commit lands on the
    version that was read, and on no other. ``by_place``: whether a process lives is seen in its own place alone, not
    wherever the host has the same name. ``by_process``: a lease is one's own if one's process has it, not if its holder
    is called the same.
    """

    by_beats: bool = True
    looks_again: bool = True
    since_seen: bool = True
    since_sent: bool = True
    conditional: bool = True
    by_place: bool = True
    by_process: bool = True


class Process(NamedTuple):
    """What one process knows. ``asked``: when it began to look. ``sent``: a commit that is on its way, with its
    moment and what it was decided on. ``landed``: one whose reply is on its way.
    """

    skew: int = 0
    place: int = 0
    token: int = 0
    believes: int = NEVER
    dead: bool = False
    looked: bool = False
    mark: tuple[int, int] | None = None
    since: int = 0
    moved: bool = False
    asked: int = NEVER
    sent: tuple[int, int] | None = None
    landed: int = NEVER


class State(NamedTuple):
    """The table, the time, and the processes."""

    now: int
    version: int
    lease: Found | None
    processes: tuple[Process, ...]

    def put(self, at: int, process: Process) -> State:
        """Replace a process."""
        return self._replace(processes=(*self.processes[:at], process, *self.processes[at + 1 :]))


def believers(state: State) -> int:
    """Count those who let their driver run."""
    return sum(not each.dead and each.believes > state.now for each in state.processes)


def steps(state: State, rules: Rules, *, until: int, deaths: int) -> Iterator[tuple[str, State]]:
    """Return every next state."""
    if state.now < until:
        yield "time passes", state._replace(now=state.now + 1)
    for at, process in enumerate(state.processes):
        if process.dead:
            continue
        for name, after in acts(state, at, process, rules):
            yield f"{at} {name}", after
        if process.token and sum(each.dead for each in state.processes) < deaths:
            yield f"{at} dies", state.put(at, process._replace(dead=True))


def acts(state: State, at: int, process: Process, rules: Rules) -> Iterator[tuple[str, State]]:
    """Return what one process may do."""
    if process.landed != NEVER:
        begun = process.landed if rules.since_sent else state.now
        belief = Belief(lambda: state.now, TTL)
        belief.confirm(begun)
        yield "hears of it", state.put(at, process._replace(landed=NEVER, believes=int(belief.until)))
    elif process.sent is not None:
        yield "lands", land(state, at, process, rules)
    elif process.token:
        if state.lease is None or state.lease.token != process.token:
            yield "has lost", state.put(at, anew(process))
        else:
            yield "sends", state.put(at, process._replace(sent=(state.now, state.version)))
    elif process.asked == NEVER:
        yield "asks", state.put(at, process._replace(asked=state.now))
    else:
        yield "looks", look(state, at, process, rules)


def look(state: State, at: int, process: Process, rules: Rules) -> State:
    """Let an observer read and judge."""
    seen, standing = judged(state, at, process, rules)
    seen = seen._replace(asked=NEVER)
    if standing is Standing.HELD:
        # It is refused, and another attempt begins anew.
        return state.put(at, anew(process))
    if standing is Standing.UNSURE:
        return state.put(at, seen)
    return state.put(at, seen._replace(sent=(state.now, state.version)))


def anew(process: Process) -> Process:
    """Return a process that knows nothing any more."""
    return Process(skew=process.skew, place=process.place)


def life_seen(state: State, at: int, holder: int, rules: Rules) -> Life:
    """Return what a process sees of a holder: of another place it would see a process of the same id, or none."""
    near = state.processes[at].place == state.processes[holder].place
    if not near:
        return Life.UNKNOWN if rules.by_place else Life.GONE
    return Life.GONE if state.processes[holder].dead else Life.ALIVE


def judged(state: State, at: int, process: Process, rules: Rules) -> tuple[Process, Standing]:
    """Judge by the shipped code, or as a draft did."""
    lease = state.lease
    if lease and (lease.holder == at or not rules.by_process):
        return process, Standing.FREE
    if not rules.by_beats:
        held = lease is not None and lease.told > state.now + process.skew
        return process, Standing.HELD if held else Standing.FREE
    late = process.looked and state.now - process.since >= TTL
    if not rules.looks_again and late:
        return process, Standing.FREE
    times = iter([process.asked, state.now if rules.since_seen else process.asked])
    sighting = Sighting(
        TTL,
        lambda: next(times),
        process.looked,
        process.mark,
        process.since,
        process.moved,
        life=lambda holder: life_seen(state, at, int(holder), rules),
    )
    standing = sighting.look(lambda: lease)
    mark = sighting.mark
    assert mark is None or isinstance(mark, tuple)
    known = process._replace(
        looked=sighting.looked, mark=mark, since=int(sighting.since), moved=sighting.moved
    )
    return known, standing


def land(state: State, at: int, process: Process, rules: Rules) -> State:
    """Let a commit arrive: it takes or prolongs the lease, or is refused."""
    assert process.sent is not None
    sent, version = process.sent
    back = process._replace(sent=None)
    if process.token and (state.lease is None or state.lease.token != process.token):
        return state.put(at, anew(process))
    if rules.conditional and version != state.version:
        return state.put(at, back)
    told = sent + TTL + process.skew
    if process.token and state.lease:
        lease, mine = Found(process.token, state.lease.beat + 1, told, at), back
    else:
        lease, mine = Found(state.version + 1, 0, told, at), anew(process)._replace(token=state.version + 1)
    after = state._replace(version=state.version + 1, lease=lease)
    return after.put(at, mine._replace(landed=sent))


def search(
    rules: Rules,
    skews: tuple[int, ...],
    *,
    until: int,
    commits: int,
    deaths: int = 1,
    places: tuple[int, ...] = (0, 1),
) -> tuple[int, list[str] | None]:
    """Visit every state within bounds: how many, and the way to one in which two believe, if there is one."""
    first = State(0, 0, None, tuple(map(Process, skews, places)))
    before: dict[State, tuple[State, str] | None] = {first: None}
    level = [first]
    while level:
        found = []
        for state in level:
            for name, after in steps(state, rules, until=until, deaths=deaths):
                if after in before or after.version > commits:
                    continue
                before[after] = state, name
                if believers(after) > 1:
                    return len(before), way(before, after)
                found.append(after)
        level = found
    return len(before), None


def way(before: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    """Return how a state came about."""
    names: list[str] = []
    while (step := before[state]) is not None:
        state, name = step
        names.insert(0, name)
    return names


def waited(rules: Rules, skews: tuple[int, int], places: tuple[int, int] = (0, 1)) -> int:
    """Let a holder die after its first renewal, and give the time until the other has the lease; 99 for never."""
    state = State(0, 0, None, tuple(map(Process, skews, places)))
    for name in ("asks", "looks", "lands", "hears of it"):
        state = dict(acts(state, 0, state.processes[0], rules))[name]
    state = state.put(0, state.processes[0]._replace(dead=True))
    for _ in range(99):
        for _ in range(3):
            other = state.processes[1]
            if other.token:
                return state.now
            [(_, state)] = acts(state, 1, other, rules)
        state = state._replace(now=state.now + 1)
    return 99
