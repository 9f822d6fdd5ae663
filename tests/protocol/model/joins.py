"""A model of views of joined rows: one driver with a cache of rows, its deaths, catch-ups, builds, and decisions.

What an answer is, what planning takes for dirty and certificates for green is in joined_answers, and joined_pasts has
answers as of an earlier epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.protocol.model.joined_rows import (
    NONE,
    Epoch,
    Item,
    Items,
    Join,
    Log,
    Row,
    named,
    rows_at,
)

Moves = Iterator[tuple[str, "State"]]


@dataclass(frozen=True)
class Rules:
    """What the processes keep to; each default is the rule.

    Of cuts: ``own_cut``: a build reads neighbours up to its own cut, whatever theirs is; ``own_slices``: slices of an
    interval count above its own cut, whatever its neighbours' are; ``own_floor``: and are deleted up to its own floor.
    Of the cache: ``stamped``: it is used if it stands at the master's E, whose commit it names (``names_commit``) with
    the decisions its rows show (``names_decisions``); ``one_transaction``: stamp and rows are written at once;
    ``own_path``: no other driver writes it; ``takes_held``: it takes in what the master holds; ``below``: older rows
    than its horizon come from the master, and only older ones (``strictly``); ``from_birth_on``: a version's first
    slice has the rows of the whole master to join with.
    Of catch-up: ``to_b``: rows up to the block's end; ``to_edge``: which is no further than the next edge;
    ``by_larger``, ``once``: see ``caught``; ``twice``: see ``near``; ``recognises``: a start sees the blocks there are.
    Of dirt: ``derived``: what the view's rows changed counts, not its own rows; ``apart``: what came and what went;
    ``reach_behind``: rows above W count in the reach; ``dirty_decisions``: decisions do; ``closes``: so does closing.
    Of green: ``reach_ahead``: the watermark is past the reach; ``holes``: none that meets the reach (``hole_reach``),
    up to E (``holes_to_e``); ``copies``: nor a copy that was not flagged.
    Of decisions: ``named_at_cut``: a build uses those its cut names; ``names_used``: an epoch names those it used;
    ``caps``: slices from s on wait for a build, in the whole reach (``cap_reach``); ``ends_before``: no block or
    compaction reaches over s. Of decisions that are ``gated``: ``steps_back``: no view takes the epoch
    that names them; ``waits``: slices go on where a build above s has replaced each interval that has rows, in the
    whole reach (``waits_in_reach``) and is ever built (``waits_as_judged``); ``keeps_decided``: none is rolled back to
    one that does not know them; ``fits_past``: as of an epoch of the past slices count up to what fits the generations
    of then; ``floor_for_lost``: where one that knows them is lost, its interval waits for a build.
    Of copies: ``both_layers``: a build removes nothing that slices have; ``flags_count``: nor keeps what they drop;
    ``in_order``: what is validated again is flagged where it repeats an earlier record, and never for a later one.
    ``birth_floor``: intervals that had rows are answered once they are built.
    Of as-of joins: ``by_time``: the latest version is so by event time, whenever it came; ``touches``: a late one is
    for the lefts that are there, too; ``withdraws``: and takes away what they had; ``subtracts_before``: a block is
    what is shown at its end less what was shown before it.
    """

    own_cut: bool = True
    own_slices: bool = True
    own_floor: bool = True
    stamped: bool = True
    names_commit: bool = True
    names_decisions: bool = True
    one_transaction: bool = True
    own_path: bool = True
    takes_held: bool = True
    below: bool = True
    strictly: bool = True
    from_birth_on: bool = True
    to_b: bool = True
    to_edge: bool = True
    by_larger: bool = True
    once: bool = True
    twice: bool = True
    recognises: bool = True
    derived: bool = True
    apart: bool = True
    reach_behind: bool = True
    dirty_decisions: bool = True
    closes: bool = True
    reach_ahead: bool = True
    holes: bool = True
    hole_reach: bool = True
    holes_to_e: bool = True
    copies: bool = True
    named_at_cut: bool = True
    names_used: bool = True
    caps: bool = True
    cap_reach: bool = True
    ends_before: bool = True
    steps_back: bool = True
    waits: bool = True
    waits_in_reach: bool = True
    waits_as_judged: bool = True
    keeps_decided: bool = True
    fits_past: bool = True
    floor_for_lost: bool = True
    both_layers: bool = True
    flags_count: bool = True
    in_order: bool = True
    birth_floor: bool = True
    by_time: bool = True
    touches: bool = True
    withdraws: bool = True
    subtracts_before: bool = True


@dataclass(frozen=True)
class Bounds:
    """What may come and how often each thing may happen.

    ``edges`` and ``clocks`` are what epochs may be and record; ``stepwise`` lets others in between an epoch's commits;
    ``lost`` is a row that Kafka may lose; ``subtracts`` is whether every measure can take rows back, and if not
    ``gated``, whether a view waits for builds in the place of its readers. There may be
    ``machines``, each with a cache; planning may be held to be ``frugal``, so that it has nothing built in vain;
    ``foreign``: what was read before a version is born is of another record version, and is validated again later;
    it accepts none of the rows that it ``refuses``. ``past``: each epoch is asked for once it is past.
    ``withdrawals``: generations may be lost, and a person accepts it.
    """

    join: Join = field(default_factory=lambda: Join(()))
    epochs: int = 3
    builds: int = 0
    rollbacks: int = 0
    withdrawals: int = 0
    floors: int = 0
    fails: int = 0
    deaths: int = 0
    sleeps: int = 0
    losses: int = 0
    prunes: int = 0
    merges: int = 0
    restores: int = 0
    edges: tuple[bool, ...] = (True,)
    clocks: tuple[int, ...] = (9,)
    stepwise: bool = False
    lost: int = NONE
    born: bool = False
    foreign: bool = False
    refuses: tuple[int, ...] = ()
    past: bool = False
    subtracts: bool = True
    gated: bool = False
    machines: bool = False
    frugal: bool = True


class Piece(NamedTuple):
    """Rows that epochs first to last added to each interval, and took away; ``block`` if a catch-up wrote it."""

    first: int
    last: int
    added: Items
    gone: Items
    block: bool = False


class Built(NamedTuple):
    """A generation: its cut, its rows, whether it was certified, and the E that was looked at for holes."""

    cut: int
    rows: tuple[Item, ...]
    green: bool
    seen: int


class Cache(NamedTuple):
    """Rows as a driver knows them: up to an epoch of a line, with some decisions, not below a horizon."""

    stamp: tuple[int, int, frozenset[int]]
    rows: tuple[Row, ...]
    horizon: int = NONE


class Driver(NamedTuple):
    """The one driver that is not fenced off: where it is in its epoch, up to which W it knows, and its plan."""

    at: str = "ready"
    frontier: int = NONE
    plan: Epoch | None = None
    fine: bool = True


class Spent(NamedTuple):
    """How often each thing has happened."""

    builds: int = 0
    rollbacks: int = 0
    withdrawals: int = 0
    floors: int = 0
    fails: int = 0
    deaths: int = 0
    sleeps: int = 0
    losses: int = 0
    prunes: int = 0
    merges: int = 0
    restores: int = 0


class State(NamedTuple):
    """The tables, caches, the driver, what one that sleeps will write to its cache, and a backup.

    ``history`` has what was published of each interval, oldest first, where the past is asked for.
    """

    log: Log = ()
    pieces: tuple[Piece, ...] = ()
    served: tuple[Built | None, ...] = ()
    older: tuple[Built | None, ...] = ()
    history: tuple[tuple[Built, ...], ...] = ()
    floors: tuple[int, ...] = ()
    decided: tuple[int, ...] = ()
    cache: Cache | None = None
    elsewhere: Cache | None = None
    driver: Driver = Driver()
    asleep: Cache | None = None
    born: bool = True
    judged: bool = True
    backup: State | None = None
    spent: Spent = Spent()

    @property
    def e(self) -> int:
        """Return E."""
        return self.log[-1].number if self.log else NONE

    @property
    def w(self) -> int:
        """Return W as the master states it."""
        return self.log[-1].frontier if self.log else NONE

    def cut(self, interval: int) -> int:
        """Return the cut of an interval; -1 if it has no generation."""
        served = self.served[interval]
        return served.cut if served else NONE


def spend(state: State, name: str) -> State:
    """Count one more of something."""
    return state._replace(spent=state.spent._replace(**{name: getattr(state.spent, name) + 1}))


def left_of(state: State, bounds: Bounds, name: str) -> bool:
    """Return whether something may happen once more."""
    return getattr(state.spent, name) < getattr(bounds, name)


def put(some: tuple, at: int, value: object) -> tuple:  # type: ignore[type-arg]
    """Replace one of several."""
    return (*some[:at], value, *some[at + 1 :])


def first(bounds: Bounds) -> State:
    """Return the state before the first epoch."""
    none = (None,) * bounds.join.intervals
    floors = (NONE,) * bounds.join.intervals
    return State(
        served=none,
        older=none,
        history=((),) * bounds.join.intervals,
        floors=floors,
        born=not bounds.born,
        judged=not bounds.foreign,
    )


def stamp(state: State) -> tuple[int, int, frozenset[int]]:
    """Return what a cache has to name: E, its commit, and the decisions up to it."""
    line = state.log[-1].line if state.log else 0
    return state.e, line, named(state.log, state.e)


def usable(cache: Cache | None, state: State, rules: Rules) -> bool:
    """Return whether a cache stands where the master does."""
    if cache is None or not rules.stamped:
        return cache is not None
    (e, line, decisions), wanted = cache.stamp, stamp(state)
    fits = line == wanted[1] or not rules.names_commit
    return e == wanted[0] and fits and (decisions == wanted[2] or not rules.names_decisions)


def known(state: State, rules: Rules, bounds: Bounds) -> list[Row]:
    """Return the rows that a new epoch is joined with: the cache's, and below its horizon the master's."""
    cache = state.cache
    assert cache
    rows = rows_at(state.log, bounds.join, state.e)
    until = cache.horizon if rules.strictly else cache.horizon + 1
    return [*cache.rows, *(each for each in rows if each.at < until and rules.below)]


def restated(rows: list[Row], names: tuple[int, ...], join: Join) -> list[Row]:
    """Return rows as decisions have them."""
    changes = {join.decisions[each].id: join.decisions[each].to for each in names}
    return [row for each in rows if (row := changes.get(each.id, each)) is not None]
