"""A model of power cuts and partial restores: tables that lose what was not synced, and starts that repair them.

Each table is the states it went through since it was last synced, the oldest first, so that a cut leaves any of them.
An entry that is not whole ends its log, so that damage is a shorter log. One driver runs at a time: what fencing does
is in the model beside this one. Offsets are of one lane; there is one view, whose answers cover one interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

NONE = -1
LEAP = 10
"""By how much numbers jump where a line begins: more than a cut can lose."""
TABLES = ("master", "quarantine", "ledger", "slices")


@dataclass(frozen=True)
class Rules:
    """What the processes keep to; each default is the rule.

    ``marks``: the master says what slices and quarantine held, and whoever finds less goes by it. ``cuts_back``: a
    start takes epochs out of the master whose refused records the quarantine has lost. ``trims``: it takes rows above
    E out of the ledger before it holds another epoch, and those that the next row does not name (``named``), and
    syncs that (``syncs_trimmed``). ``lines``: readers believe tables of the master's line alone.
    ``leaps``: numbers jump where a line begins. ``states``: a start says what it found, synced, before it changes
    other tables. ``syncs_first``: what is built, published or merged was synced before; ``syncs_refused``: with the
    quarantine. ``recognises``: a catch-up sees by the slices' newest number what they hold. ``stops``: a start stops
    where something published is above E, or a table is of a newer line. ``held_cut``: a publish looks for its cut in
    the master. ``looks_everywhere``: a number is above those of all tables, ``looks_at_builds``: and above those that
    builds name. ``waits``: builds and upkeep leave the tables alone until a start has repaired them.
    ``withdraws``: a person who lets
    the master stand withdraws what is published above E, and ``raises_floor`` where slices were merged beyond it, or
    are of a later line. ``merged_too``: what was merged up to an epoch that the log has lost is dead.
    ``begins_anew``: where a start has taken epochs out of the master, a line begins.
    """

    marks: bool = True
    cuts_back: bool = True
    trims: bool = True
    named: bool = True
    syncs_trimmed: bool = True
    lines: bool = True
    leaps: bool = True
    states: bool = True
    syncs_first: bool = True
    syncs_refused: bool = True
    recognises: bool = True
    stops: bool = True
    held_cut: bool = True
    looks_everywhere: bool = True
    looks_at_builds: bool = True
    waits: bool = True
    withdraws: bool = True
    raises_floor: bool = True
    merged_too: bool = True
    begins_anew: bool = True


@dataclass(frozen=True)
class Bounds:
    """How often something may happen; ``topic`` tells which records are accepted."""

    topic: tuple[bool, ...] = (True, False, True)
    epochs: int = 3
    cuts: int = 1
    crashes: int = 1
    mishaps: int = 0
    builds: int = 0
    merges: int = 0
    restores: int = 0
    reads: int = 0
    fsync: bool = False

    def rows(self, start: int, end: int) -> tuple[int, ...]:
        """Return the accepted offsets of ``[start, end)``."""
        return tuple(at for at in range(start, end) if self.topic[at])

    def refused(self, start: int, end: int) -> tuple[int, ...]:
        """Return the refused ones."""
        return tuple(at for at in range(start, end) if not self.topic[at])


class Held(NamedTuple):
    """An epoch of the master, W at it, and the newest numbers of quarantine and slices when it was held."""

    number: int
    start: int
    end: int
    frontier: int
    refused: int
    sliced: int


class Master(NamedTuple):
    """The master: its epochs, and the last statement, made at E = ``base``, with all numbers ``taken`` by then.

    ``aside`` is the newest of what was set aside, which stays for a while.
    """

    epochs: tuple[Held, ...] = ()
    base: int = NONE
    stated: int = NONE
    sliced: int = NONE
    line: int = 0
    boot: int = 0
    taken: int = NONE
    aside: int = NONE

    @property
    def number(self) -> int:
        """E."""
        return self.epochs[-1].number if self.epochs else NONE

    @property
    def end(self) -> int:
        """The end offset."""
        return self.epochs[-1].end if self.epochs else 0

    @property
    def frontier(self) -> int:
        """W."""
        return self.epochs[-1].frontier if self.number > self.base else self.stated

    @property
    def mark(self) -> int:
        """The newest number of the slices that it knows of."""
        return self.epochs[-1].sliced if self.number > self.base else self.sliced


class Quarantine(NamedTuple):
    """The refused offsets by epoch."""

    files: tuple[tuple[int, tuple[int, ...]], ...] = ()
    number: int = NONE
    line: int = 0


class Ledger(NamedTuple):
    """The epochs that the ledger has rows of."""

    numbers: tuple[int, ...] = ()
    number: int = NONE
    line: int = 0


class Slices(NamedTuple):
    """The slices: (first epoch, last epoch, rows) each."""

    pieces: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    number: int = NONE
    line: int = 0


class Plan(NamedTuple):
    """An epoch on its way: the commits still to do, and whether its slices are there."""

    number: int
    start: int
    end: int
    todo: tuple[str, ...]
    fine: bool


class Driver(NamedTuple):
    """The driver, between two commits; ``strange`` tells that it found a ledger of another line.

    ``accepted`` tells that a person lets the master stand.
    """

    at: str = "off"
    number: int = NONE
    frontier: int = NONE
    plan: Plan | None = None
    line: int = 0
    strange: bool = False
    accepted: bool = False


class Reader(NamedTuple):
    """A reader between its pins."""

    step: int = 0
    master: Master = Master()
    ledger: Ledger = Ledger()
    slices: Slices = Slices()


class Built(NamedTuple):
    """A generation: its cut and rows; where it is published, what the floor is."""

    cut: int = NONE
    rows: tuple[int, ...] = ()


class Spent(NamedTuple):
    """How often what is bounded has happened."""

    epochs: int = 0
    cuts: int = 0
    crashes: int = 0
    mishaps: int = 0
    builds: int = 0
    merges: int = 0
    restores: int = 0
    reads: int = 0


class State(NamedTuple):
    """All tables, each as the states that a cut may leave, and all processes.

    What is built and published is always synced. ``told`` are the epochs that were ever held, with ranges and lines.
    ``hurt`` is set once a table was restored: what a power cut alone cannot do. Below ``floor`` slices may be gone, and
    ``given_up`` are refused records that a person has let go.
    """

    master: tuple[Master, ...] = (Master(),)
    quarantine: tuple[Quarantine, ...] = (Quarantine(),)
    ledger: tuple[Ledger, ...] = (Ledger(),)
    slices: tuple[Slices, ...] = (Slices(),)
    built: Built = Built()
    published: Built = Built()
    driver: Driver = Driver()
    reader: Reader = Reader()
    boot: int = 1
    token: int = 0
    told: tuple[tuple[int, int, int, int], ...] = ()
    backup: tuple[Master, Quarantine, Ledger, Slices, Built] | None = None
    hurt: bool = False
    floor: int = NONE
    given_up: bool = False
    spent: Spent = Spent()


Moves = Iterator[tuple[str, State]]


def spend(state: State, what: str) -> State:
    """Count something that is bounded."""
    return state._replace(spent=state.spent._replace(**{what: getattr(state.spent, what) + 1}))


def commit(state: State, table: str, new: object, *, synced: bool = False) -> State:
    """Add a state to a table; what is synced takes all before it along."""
    return state._replace(**{table: (new,) if synced else (*getattr(state, table), new)})


def sync(state: State, *tables: str) -> State:
    """Sync tables as they are."""
    return state._replace(**{table: getattr(state, table)[-1:] for table in tables})


def now(state: State) -> tuple[Master, Quarantine, Ledger, Slices]:
    """Return the tables as they are seen."""
    return state.master[-1], state.quarantine[-1], state.ledger[-1], state.slices[-1]


def moves(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Return what may happen next."""
    yield from cuts(state, bounds)
    yield from drives(state, rules, bounds)
    yield from builds(state, rules, bounds)
    yield from merges(state, rules, bounds)
    yield from restores(state, bounds)
    yield from reads(state, rules, bounds)


def cuts(state: State, bounds: Bounds) -> Moves:
    """Lose power: every process ends, and each table any part of what it has not synced."""
    if state.spent.crashes < bounds.crashes and state.driver.at != "off":
        yield "the driver dies", spend(state._replace(driver=Driver()), "crashes")
    if state.spent.cuts >= bounds.cuts:
        return
    dark = spend(state._replace(driver=Driver(), reader=Reader(), boot=state.boot + 1), "cuts")
    for kept in product(*(range(1, len(getattr(state, table)) + 1) for table in TABLES)):
        left = {table: (getattr(state, table)[count - 1],) for table, count in zip(TABLES, kept, strict=True)}
        yield f"power is lost: {dict(zip(TABLES, kept, strict=True))}", dark._replace(**left)


def drives(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Go on with a start, an epoch or a catch-up."""
    match state.driver.at:
        case "off":
            yield from cuts_back(state, rules)
        case "state":
            yield from says(state, rules)
        case "accepts":
            yield from accepts(state, rules)
        case "ledger" | "quarantine" | "slices":
            yield from brings(state, rules)
        case "ready":
            yield from begins(state, rules, bounds)
        case "commit":
            yield from commits(state, bounds)


def cuts_back(state: State, rules: Rules) -> Moves:
    """Start: take out of the master what the quarantine cannot match, or stop."""
    master, quarantine, _, _ = now(state)
    kept = tuple(each for each in master.epochs if each.refused <= quarantine.number)
    if rules.cuts_back and len(kept) < len(master.epochs) and not state.given_up:
        cut = master._replace(epochs=kept, aside=max(master.number, master.aside))
        if cut.number < master.base or cut.number < state.published.cut:
            yield from stopped(state, "the quarantine lacks what the master has synced")
            return
        # Set aside from the newest down: a start that dies half-way finds the rest.
        state = state._replace(master=(cut,))
    if rules.stops and (why := beyond(state)):
        yield from stopped(state, why)
        return
    yield "a driver starts", state._replace(driver=Driver("state"), token=state.token + 1)


def beyond(state: State) -> str:
    """Say what a power cut cannot have done; empty if there is nothing."""
    master, *others = now(state)
    if state.published.cut > master.number:
        return "a published cut is above E"
    if any(each.line > master.line for each in others):
        return "a table is of a newer line than the master"
    if merged_beyond(state):
        return "slices were merged beyond E"
    return ""


def merged_beyond(state: State) -> bool:
    """Return whether slices reach over E, and not only to numbers that were taken when the line began."""
    end, taken = state.master[-1].number, state.master[-1].taken
    return any(first <= end and last > max(end, taken) for first, last, _ in state.slices[-1].pieces)


def stopped(state: State, why: str) -> Moves:
    """Wait for a person, who lets the master stand for what there is; wrong after cuts alone."""
    if not state.hurt:
        raise Violation(f"a start stops after nothing but power cuts: {why}")
    yield f"somebody accepts: {why}", state._replace(driver=Driver("accepts"), token=state.token + 1)


def accepts(state: State, rules: Rules) -> Moves:
    """Withdraw what the master does not hold, in one synced commit; the line begins after that."""
    master, quarantine, _, slices = now(state)
    number = taken(state, rules) + LEAP
    published = Built() if rules.withdraws and state.published.cut > master.number else state.published
    merged = any(first <= master.number < last for first, last, _ in slices.pieces)
    unsure = merged or slices.line > master.line
    lost = any(each.refused > quarantine.number for each in master.epochs) or quarantine.line != master.line
    yield (
        "withdraws what the master does not hold",
        state._replace(
            published=published,
            floor=number if rules.raises_floor and unsure else state.floor,
            given_up=state.given_up or lost,
            driver=Driver("state", accepted=True),
        ),
    )


def taken(state: State, rules: Rules) -> int:
    """Return the newest number that means anything."""
    master, *others = now(state)
    number = max(master.number, master.taken, state.floor)
    if rules.looks_everywhere:
        number = max(number, master.aside, *(each.number for each in others))
    if rules.looks_at_builds:
        number = max(number, state.built.cut)
    return number


def says(state: State, rules: Rules) -> Moves:
    """State what was found, in the master, where a line begins; else go on."""
    master, _, ledger, slices = now(state)
    number = taken(state, rules)
    short = slices.number < master.mark if rules.marks else False
    ahead = ledger.number > max(master.number, master.taken)
    strange = len({each.line for each in now(state)}) > 1
    out = rules.begins_anew and master.aside > max(master.number, master.taken)
    new = master.boot != state.boot or strange or short or ahead or out or state.driver.accepted
    frontier = min(master.frontier, master.number, slices.number if short else master.frontier)
    if not new:
        ready = Driver("ready", number, frontier, line=master.line)
        yield "goes on with the line", repaired(state._replace(driver=ready))
        return
    if rules.leaps and (number != NONE or master.line):
        number += LEAP
    said = Master(master.epochs, master.number, frontier, slices.number, state.token, state.boot, number)
    if rules.states:
        state = sync(commit(state, "master", said), "quarantine", "master")
    begun = Driver("ledger", number, frontier, None, state.token, ledger.line != master.line)
    yield "states a new line", state._replace(driver=begun)


def brings(state: State, rules: Rules) -> Moves:
    """Bring the next table to the master's line."""
    master, quarantine, ledger, slices = now(state)
    driver = state.driver
    line = driver.line
    match driver.at:
        case "ledger":
            numbers = ledger.numbers
            if rules.trims:
                numbers = tuple(each for each in numbers if each <= master.number)
            if rules.named and driver.strange:
                named = {each.number for each in master.epochs}
                numbers = tuple(each for each in numbers if each in named)
            after = commit(state, "ledger", Ledger(numbers, ledger.number, line), synced=rules.syncs_trimmed)
            yield "trims the ledger", after._replace(driver=driver._replace(at="quarantine"))
        case "quarantine":
            after = commit(state, "quarantine", quarantine._replace(line=line))
            yield "brings the quarantine", after._replace(driver=driver._replace(at="slices"))
        case _:
            after = commit(state, "slices", slices._replace(line=line))
            ready = driver._replace(at="ready")
            yield "brings the slices", repaired(after._replace(driver=ready))


def repaired(state: State) -> State:
    """Add to the ledger what the master holds above the ledger's last."""
    master, _, ledger, _ = now(state)
    last = max((each for each in ledger.numbers if each <= master.number), default=NONE)
    missing = tuple(each.number for each in master.epochs if each.number > last)
    if not missing:
        return state
    numbers = tuple(sorted({*ledger.numbers, *missing}))
    return commit(state, "ledger", Ledger(numbers, numbers[-1], ledger.line))


def begins(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Catch the view up, or begin an epoch."""
    master, _, _, slices = now(state)
    driver = state.driver
    if driver.frontier < master.number:
        above = driver.frontier
        if rules.recognises:
            above = max([above, *(each.number for each in master.epochs if each.number <= slices.number)])
        late = [each for each in master.epochs if each.number > above]
        block = tuple(
            (each.number, each.number, bounds.rows(each.start, each.end))
            for each in late
            if bounds.rows(each.start, each.end)
        )
        new = slices._replace(
            pieces=tuple(sorted([*slices.pieces, *block])), number=max(slices.number, master.number)
        )
        caught = state._replace(driver=driver._replace(frontier=master.number))
        yield "catches up", commit(caught, "slices", new) if late else caught
    elif driver.frontier > master.frontier:
        yield "states W", commit(state, "master", stating(master, driver.frontier, slices.number))
    if state.spent.epochs >= bounds.epochs:
        return
    for end in range(master.end + 1, len(bounds.topic) + 1):
        current = driver.frontier == master.number
        todo = ["slices"] if current and bounds.rows(master.end, end) else []
        todo += ["quarantine"] if bounds.refused(master.end, end) else []
        plan = Plan(driver.number + 1, master.end, end, (*todo, "master", "ledger"), current)
        begun = driver._replace(at="commit", number=plan.number, plan=plan)
        yield from commits(spend(state._replace(driver=begun), "epochs"), bounds)


def stating(master: Master, frontier: int, sliced: int) -> Master:
    """State W without an epoch of records: an empty one, which is the last one here."""
    if master.number <= master.base:
        return master._replace(stated=frontier, sliced=sliced)
    last = master.epochs[-1]._replace(frontier=frontier, sliced=sliced)
    return master._replace(epochs=(*master.epochs[:-1], last))


def commits(state: State, bounds: Bounds) -> Moves:
    """Do the next commit of an epoch."""
    master, quarantine, ledger, slices = now(state)
    driver, plan = state.driver, state.driver.plan
    assert plan
    name = plan.todo[0]
    label = f"commits {plan.number} [{plan.start},{plan.end}) to {name}"
    rest = plan._replace(todo=plan.todo[1:])
    after = state._replace(driver=driver._replace(plan=rest))
    match name:
        case "slices":
            if state.spent.mishaps < bounds.mishaps:
                failed = driver._replace(plan=rest._replace(fine=False))
                yield f"{label} fails", spend(state._replace(driver=failed), "mishaps")
            piece = (plan.number, plan.number, bounds.rows(plan.start, plan.end))
            new = slices._replace(pieces=tuple(sorted([*slices.pieces, piece])), number=plan.number)
            yield label, commit(after, name, new)
        case "quarantine":
            files = (*quarantine.files, (plan.number, bounds.refused(plan.start, plan.end)))
            yield (
                label,
                commit(
                    after, name, quarantine._replace(files=files, number=plan.number), synced=bounds.fsync
                ),
            )
        case "master":
            frontier = plan.number if plan.fine else driver.frontier
            held = Held(plan.number, plan.start, plan.end, frontier, quarantine.number, slices.number)
            new = master._replace(epochs=(*master.epochs, held))
            told = (*after.told, (plan.number, plan.start, plan.end, master.line))
            if any(number == plan.number for number, *_ in after.told) and not state.hurt:
                raise Violation(f"epoch {plan.number} is held twice")
            going = rest._replace(fine=plan.fine)
            known = driver._replace(frontier=frontier, plan=going)
            yield label, commit(after._replace(driver=known, told=told), name, new, synced=bounds.fsync)
        case _:
            numbers = tuple(sorted({*ledger.numbers, plan.number}))
            ready = driver._replace(at="ready", plan=None)
            yield label, commit(after._replace(driver=ready), name, Ledger(numbers, plan.number, ledger.line))


def edge(master: Master) -> int:
    """Return the newest edge: odd numbers are."""
    return max((each.number for each in master.epochs if each.number % 2), default=NONE)


def unrepaired(state: State) -> bool:
    """Return whether the tables say of each other what a start has to mend first."""
    master, quarantine, ledger, slices = now(state)
    return (
        len({each.line for each in now(state)}) > 1
        or slices.number < master.mark
        or ledger.number > max(master.number, master.taken)
        or any(each.refused > quarantine.number for each in master.epochs)
    )


def builds(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Build at an edge, and publish what was built, perhaps after a cut: a run is tried again."""
    if rules.waits and unrepaired(state):
        return
    master, *_ = now(state)
    if state.spent.builds < bounds.builds and (cut := edge(master)) > state.published.cut:
        below = [each for each in master.epochs if each.number <= cut]
        rows = tuple(row for each in below for row in bounds.rows(each.start, each.end))
        ready = synced_first(state, rules)
        yield "builds", spend(ready._replace(built=Built(cut, rows)), "builds")
    if state.built.cut > state.published.cut:
        held = {each.number for each in master.epochs}
        if state.built.cut >= state.floor and (state.built.cut in held or not rules.held_cut):
            yield "publishes", state._replace(published=state.built)


def synced_first(state: State, rules: Rules) -> State:
    """Sync what is about to be named by something that is synced."""
    if not rules.syncs_first:
        return state
    return sync(state, *(["quarantine"] if rules.syncs_refused else []), "master")


def merges(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Merge the slices from one edge to the next: upkeep leaves alone what is short, ahead, or of another line."""
    master, _, _, slices = now(state)
    if state.spent.merges >= bounds.merges or (rules.waits and unrepaired(state)):
        return
    held = {each.number for each in master.epochs}
    edges = [NONE, *sorted(each for each in held if each % 2 and each <= master.frontier)]
    for before, until in pairwise(edges):
        inside = [each for each in slices.pieces if before < each[0] and each[1] <= until and each[1] in held]
        if len(inside) > 1:
            rows = tuple(row for each in inside for row in each[2])
            kept = [each for each in slices.pieces if each not in inside]
            new = slices._replace(pieces=tuple(sorted([*kept, (inside[0][0], until, rows)])))
            ready = spend(synced_first(state, rules), "merges")
            yield f"merges slices up to {until}", commit(ready, "slices", new)


def restores(state: State, bounds: Bounds) -> Moves:
    """Copy all tables, and bring some of them back later, while no driver runs."""
    if not bounds.restores or state.spent.restores >= bounds.restores:
        return
    if state.backup is None:
        if state.told:
            yield "a backup is made", state._replace(backup=(*now(state), state.published))
        return
    if state.driver.at not in ("off", "ready"):
        return
    old = dict(zip((*TABLES, "published"), state.backup, strict=True))
    new = dict(zip((*TABLES, "published"), (*now(state), state.published), strict=True))
    differ = [table for table in old if old[table] != new[table]]
    for some in (each for count in range(len(differ)) for each in combinations(differ, count + 1)):
        back = {table: old[table] if table == "published" else (old[table],) for table in some}
        stopped = state._replace(**back, driver=Driver(), reader=Reader(), hurt=True)
        if "master" in some:
            # It does not know of more; nobody else who does can be told.
            known = {each.number for each in old["master"].epochs}
            stopped = stopped._replace(told=tuple(each for each in state.told if each[0] in known))
        yield f"restored: {', '.join(some)}", spend(stopped, "restores")


def reads(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Pin the next table; with the last, answer."""
    reader = state.reader
    master, _, ledger, slices = now(state)
    match reader.step:
        case 0:
            if state.spent.reads < bounds.reads:
                begun = spend(state, "reads")
                yield "reader pins the master", begun._replace(reader=Reader(1, master))
        case 1:
            yield "reader pins the ledger", state._replace(reader=reader._replace(step=2, ledger=ledger))
        case 2:
            yield "reader pins the slices", state._replace(reader=reader._replace(step=3, slices=slices))
        case _:
            judge(state, reader.master, reader.ledger, reader.slices, rules, bounds, settled=False)
            yield "reader answers", state._replace(reader=Reader())


def judge(
    state: State,
    master: Master,
    ledger: Ledger,
    slices: Slices,
    rules: Rules,
    bounds: Bounds,
    *,
    settled: bool,
) -> None:
    """Compare an answer with what the master it was read from holds; no answer is never wrong."""
    cut = state.published.cut
    if cut < state.floor or (rules.lines and not master.line == ledger.line == slices.line):
        return
    until = min(master.number, master.frontier)
    if rules.marks and slices.number < master.mark:
        until = min(until, slices.number)
    written = [each for each in ledger.numbers if each <= master.number]
    last = max(written, default=NONE)
    held = {*written, *(each.number for each in master.epochs if each.number > last)}
    rows = list(state.published.rows)
    for first, last, own in slices.pieces:
        if last not in held and (first == last or (rules.merged_too and last <= until)):
            continue
        if last > cut and first <= until < last:
            if settled and not (state.hurt and min(state.driver.frontier, master.frontier) < master.number):
                raise Violation(f"slices {first}..{last} cross {until}: the view can never be read")
            return
        if cut < last <= until:
            rows += own
    claim = max(cut, until)
    epochs = [each for each in master.epochs if each.number <= claim]
    wanted = [row for each in epochs for row in bounds.rows(each.start, each.end)]
    if state.hurt and cut > master.number:
        # A master that was restored; what was built says what there was.
        wanted = list(state.published.rows)
    if sorted(rows) != wanted:
        raise Violation(f"answers {sorted(rows)} up to {claim}, and has {wanted}")


def check(state: State, rules: Rules, bounds: Bounds) -> None:
    """Check what must hold in every state."""
    master, quarantine, ledger, slices = now(state)
    end = 0
    for held in master.epochs:
        if held.start != end:
            raise Violation(f"epoch {held.number} begins at {held.start}, the last ended at {end}")
        end = held.end
    judge(state, master, ledger, slices, rules, bounds, settled=True)
    if state.driver.at in ("ready", "commit"):
        numbers = {each.number for each in master.epochs}
        lost = {number for number, *_, line in state.told if line == master.line == state.driver.line}
        if lost := lost - numbers:
            raise Violation(
                f"line {master.line} goes on without epochs {sorted(lost)}: its readers know of them"
            )
        kept = sorted(at for number, own in quarantine.files if number in numbers for at in own)
        if tuple(kept) != bounds.refused(0, end) and not state.given_up:
            raise Violation(f"the quarantine has {kept} of {bounds.refused(0, end)}")


def search(rules: Rules, bounds: Bounds, *, limit: int = 5_000_000) -> Found:
    """Search the rules for power cuts within some bounds."""
    return explore(
        State(),
        lambda state: moves(state, rules, bounds),
        lambda state: check(state, rules, bounds),
        limit=limit,
    )
