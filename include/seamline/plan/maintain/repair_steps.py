"""What a start does about tables that cannot have been committed together, decided from their words alone.

A power cut leaves of each table any part of what was not synced; a restore brings one back older, or newer. A *line*
is a history of the master without such a loss: it is named by the token of the start that began it, and a table of
another line is not believed. The master says first that a line begins, synced, with all numbers that were taken; the
other tables follow, and a start that dies between finds lines that differ, and begins another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from seamline.model.protocol.condensed import LEAP
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Manifest, Statement
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.seam import NOTHING
from seamline.plan.maintain.slice_upkeep import KnownNumbers


@dataclass(frozen=True)
class TableState:
    """What a table states."""

    epoch: int = NOTHING
    """The newest number in it."""
    line: int | None = None
    """The line it is of, None where it never was of any."""
    crosses: bool = False
    """Of slices: whether some were merged from epochs that the master has and others beyond E."""


@dataclass(frozen=True)
class MasterState:
    """What the master states."""

    epoch: int = NOTHING
    """E."""
    line: int | None = None
    """Its line, None where it never was of any."""
    boot: int | None = None
    """The machine's run at the last statement, None where there was none."""
    taken: int = NOTHING
    """The numbers that were taken by then."""
    aside: int = NOTHING
    """The newest number among what was set aside."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """The newest number of each view's slices."""
    frontiers: Mapping[str, int] = field(default_factory=dict)
    """W of each view."""


@dataclass(frozen=True)
class Acceptance:
    """A person's decision that the master stands for what there is."""

    actor: str
    """Who decided."""
    reason: str
    """Why."""


@dataclass(frozen=True)
class Stop:
    """What no power cut can have done: a person decides."""

    why: str
    """What contradicts what, in a sentence."""


@dataclass(frozen=True)
class SyncedState:
    """One synced commit of the master, with which a line begins."""

    line: int
    """The line."""
    boot: int
    """The machine's run."""
    taken: int
    """The numbers that are taken."""
    frontiers: Mapping[str, int]
    """W of each view."""


@dataclass(frozen=True)
class Trim:
    """One synced commit of the ledger that removes rows."""

    above: int
    """Rows above this epoch go."""
    line: int
    """The line it is of from then on."""
    named: bool
    """Whether rows go too that the next one does not name."""


@dataclass(frozen=True)
class Bring:
    """Bring a table, or a view's slices, to the line."""

    table: str
    """The table, or the view's id."""
    line: int
    """The line."""


@dataclass(frozen=True)
class Go:
    """Commit epochs."""

    number: int
    """The last number that was given out."""
    frontiers: Mapping[str, int]
    """W of each view."""


Step = Stop | SyncedState | Trim | Bring | Go


def plan_repair_steps(
    master: MasterState,
    quarantine: TableState,
    ledger: TableState,
    slices: Mapping[str, TableState],
    *,
    boot: int,
    token: int,
    published: int = NOTHING,
    named: int = NOTHING,
    accepted: bool = False,
) -> list[Step]:
    """List what a start does before it commits an epoch; ``published`` is the highest cut that is served.

    ``named`` is the newest number that someone names who has no part in the line: it means what it meant. Where a
    person has ``accepted`` what was lost, a line begins, whatever others say of more.
    """
    others = {"quarantine": quarantine, "ledger": ledger, **slices}
    if not accepted and (why := next(find_master_losses(master, others, published), "")):
        return [Stop(why)]
    short = {view for view, word in slices.items() if word.epoch < master.marks.get(view, NOTHING)}
    frontiers = {
        view: min(frontier, slices[view].epoch) if view in short and view in slices else frontier
        for view, frontier in master.frontiers.items()
    }
    seen = max(named, master.epoch, master.taken, master.aside, *(word.epoch for word in others.values()))
    fresh = {name for name, word in others.items() if word == TableState() and name not in short}
    strange = {name for name, word in others.items() if name not in fresh and word.line != master.line}
    least = max(master.epoch, master.taken)
    lost = short or strange or ledger.epoch > least or master.aside > least
    if master.line is not None and master.boot == boot and not (lost or accepted):
        return [*(Bring(name, master.line) for name in sorted(fresh)), Go(seen, frontiers)]
    if master.line is not None or seen != NOTHING:
        seen += LEAP
    bounded = {view: min(frontier, max(master.epoch, NOTHING)) for view, frontier in frontiers.items()}
    return [
        SyncedState(token, boot, seen, bounded),
        Trim(master.epoch, token, named="ledger" in strange),
        *(Bring(name, token) for name in sorted(others) if name != "ledger"),
        Go(seen, bounded),
    ]


def find_master_losses(
    master: MasterState, others: Mapping[str, TableState], published: int
) -> Iterator[str]:
    """Say what of others cannot be without the master's having more."""
    if published > master.epoch:
        yield f"a generation is served at epoch {published}, but the master ends at {master.epoch}"
    for name, word in sorted(others.items()):
        if (word.line or 0) > (master.line or 0):
            yield f"{name} is of line {word.line}, but the master of line {master.line or 'none'}"
        if word.crosses:
            yield f"slices of {name} were merged beyond epoch {master.epoch}, where the master ends"


def plan_withdrawals(
    manifest: Manifest,
    unsure: Mapping[str, Collection[str]],
    *,
    held: KnownNumbers,
    absent: Collection[tuple[str, str, str]] = (),
    taken: int,
    restated: Restated,
    acceptance: Acceptance,
    now: datetime,
) -> list[Statement]:
    """Return the statements of one commit after which no answer uses anything above E that the master does not contain.

    Generations up to epochs that are not ``held`` are withdrawn, and those that are ``absent``, by view, interval and
    name: rows of them are not in their table, and those that are made with more decisions than there are. Slices answer
    for their intervals, and whoever plans next has these built. Intervals whose slices are ``unsure``, by view, wait
    for a build above ``taken``, the last number that was ever assigned: slices that were merged beyond E cannot be
    divided, and those of another line than the master may have lost what it relies on. So do those whose joined rows
    were ``restated`` before what is withdrawn was built: of their slices some were made before, and others since.
    """
    by, said = acceptance.actor, acceptance.reason
    gone = [
        Statement(
            Act.WITHDRAW, view, interval=interval, generation=name, epoch=cut, actor=by, reason=said, at=now
        )
        for (view, interval), some in sorted(manifest.history.items())
        for name, (cut, known) in sorted(
            {each.generation: (each.epoch, each.restated) for each in some}.items()
        )
        if (view, interval, name) not in manifest.forgotten
        and (
            (cut > NOTHING and cut not in held)
            or (view, interval, name) in absent
            or known > len(restated.decisions)
        )
    ]
    waiting = {(view, interval) for view, intervals in unsure.items() for interval in intervals}
    for each in gone:
        served = manifest.published.get(place := (each.view, each.interval))
        if served and served.generation == each.generation:
            waiting |= (
                {place} if restated.list_joined_between(*place, NOTHING + 1, served.restated) else set()
            )
    return gone + [
        Statement(Act.FLOOR, view, interval=interval, epoch=taken, actor=by, reason=said, at=now)
        for view, interval in sorted(waiting)
    ]


def list_unchained_epochs(rows: Sequence[Epoch]) -> set[int]:
    """List the epochs of a ledger that are out of the chain: the next that is in it names another before it.

    ``rows`` are in order, and the last is of E. A row that does not name any is of an older release, and believed.
    """
    gone: set[int] = set()
    wanted: int | None = None
    for row in reversed(rows):
        if wanted is not None and row.number > wanted:
            gone.add(row.number)
        else:
            wanted = row.before
    return gone


def has_unaccounted_gap(end: int, following: int) -> bool:
    """Return whether a line has begun between two committed numbers, and others were assigned before it.

    Numbers leap where a line begins: what of the gap is no leap was assigned, and is dead or lost.
    """
    gap = following - 1 - end
    return gap >= LEAP and gap % LEAP > 0
