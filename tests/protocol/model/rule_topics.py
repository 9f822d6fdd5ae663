"""A model of rules that come from a topic: one driver, its deaths, and the table that each epoch's events have met.

Rules are records of a lane of their own. An epoch reads a range of events and one of rules. Its table is that of the
epoch before with the rules of its own range on top, tombstones taken out; it is written under the hash of what it says
before the master's commit, which names it. Another definition reads every rule anew: of its own, those of even keys are
refused, so that tables made under two definitions differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

Table = tuple[tuple[int, int], ...]
"""Rules by their key, in its order."""
Rule = tuple[int, int | None]
"""A key with its rule; None for a tombstone."""


@dataclass(frozen=True)
class Rules:
    """What the driver keeps to; each default is the rule.

    ``named``: an epoch goes on from the table that the last epoch with records names, not from the newest that was
    written. ``forgets``: nor from what a failed attempt has left in memory. ``own_range``: the rules of an epoch's
    range are in its table. ``in_order``: of one key the last one holds. ``tombstones``: one without a value takes its
    key out. ``always_named``: an epoch that reads rules and no event names its table, too. ``one_definition``: what
    was named by another definition is made again of the log.
    """

    named: bool = True
    forgets: bool = True
    own_range: bool = True
    in_order: bool = True
    tombstones: bool = True
    always_named: bool = True
    one_definition: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes: what the lanes have, and how often what may befall."""

    events: int = 3
    rules: tuple[Rule, ...] = ((1, 1), (2, 2), (1, 3), (1, None))
    takes: int = 2
    """The most records of a lane that an epoch reads."""
    deaths: int = 2
    """Attempts that die with their table written, with the process or without it."""
    changes: int = 1
    """Starts with the other definition."""


class State(NamedTuple):
    """Where the master ends, what its epochs name, the newest table on disk, and what the driver goes on from."""

    events: int = 0
    rules: int = 0
    named: Table | None = None
    """The table that the last epoch that names one has named."""
    named_by: int = 0
    """The definition of that epoch."""
    written: Table = ()
    memory: Table = ()
    definition: int = 0
    deaths: int = 0
    changes: int = 0


def fold(table: Table, rules: tuple[Rule, ...], definition: int, how: Rules) -> Table:
    """Take rules into a table."""
    found = dict(table)
    for key, rule in rules if how.in_order else reversed(rules):
        if rule is None:
            if how.tombstones:
                found.pop(key, None)
        elif not definition or key % 2:
            found[key] = rule
    return tuple(sorted(found.items()))


def start(state: State, bounds: Bounds, how: Rules) -> State:
    """Let a driver start: it finds what it goes on from."""
    if not how.named:
        memory = state.written
    elif state.named is not None and (state.named_by == state.definition or not how.one_definition):
        memory = state.named
    else:
        memory = fold((), bounds.rules[: state.rules], state.definition, Rules())
    return state._replace(memory=memory)


def moves(state: State, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what may happen next; Violation where an event meets other rules than were read with it or before."""
    for more in range(min(bounds.takes, bounds.events - state.events) + 1):
        for ruled in range(min(bounds.takes, len(bounds.rules) - state.rules) + 1):
            if more + ruled:
                yield from attempts(state, more, ruled, bounds, how)
    if state.changes < bounds.changes:
        changed = state._replace(definition=1 - state.definition, changes=state.changes + 1)
        yield "starts with another definition", start(changed, bounds, how)


def attempts(state: State, more: int, ruled: int, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what becomes of an epoch of so many events and rules."""
    end = state.rules + ruled
    after = fold(state.memory, bounds.rules[state.rules : end], state.definition, how)
    right = fold((), bounds.rules[:end], state.definition, Rules())
    name = f"reads {more} events and {ruled} rules"
    tried = state._replace(written=after if ruled else state.written)
    if state.deaths < bounds.deaths:
        failed = tried._replace(deaths=state.deaths + 1)
        yield f"{name}, and fails", failed if how.forgets else failed._replace(memory=after)
        yield f"{name}, and dies", start(failed, bounds, how)
    met = after if how.own_range else state.memory
    if more and met != right:
        raise Violation(f"{name}: they meet {met}, not {right}")
    held = tried._replace(events=state.events + more, rules=end, memory=after)
    if more or how.always_named:
        held = held._replace(named=after, named_by=state.definition)
    yield name, held


def search(how: Rules, bounds: Bounds) -> Found:
    """Search every order of epochs, deaths and definitions."""
    return explore(State(), lambda state: moves(state, bounds, how), lambda _: None)
