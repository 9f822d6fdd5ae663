"""Imports: rows of files that a person lets into the log, beside what is read of topics.

An import has a lane of its own, whose offsets are places in the rows of its files. An epoch of kind hole registers the
lane whole before anything of it is read, so that no interval that it may touch is complete; epochs of kind import read
it piece by piece, each place once. What is left of one that is cancelled is closed by an epoch of kind amend that
reads nothing: from there on its rows may be imported by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from seamline.model.errors import BadRange, Conflict, NotFound
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import list_missing_ranges
from seamline.model.protocol.offsets import IMPORTED, Lane, OffsetRange
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


@dataclass(frozen=True)
class Import:
    """A person's decision to import rows of files."""

    id: str
    """The hash of what is imported: the same files with the same options are the same import."""
    topic: str
    """The topic as whose records the rows are validated."""
    origin: str
    """Where the files are, as it was named."""
    end: int
    """The number of its rows, and the end of its lane."""
    actor: str
    """Who decided it."""
    reason: str
    """Why, in that person's words."""
    at: datetime
    """When, UTC."""
    bounds: Interval | None = None
    """The event times that its rows can have, None for any."""
    border: str = ""
    """How the rows that the topic has too are told from the others, for people."""
    until: datetime | None = None
    """Where these are told by time alone, the event time from which on rows are left to the topic; else None."""
    cancelled: str = ""
    """Who has cancelled it and why; empty while it is wanted."""

    @property
    def lane(self) -> Lane:
        """Return the lane of its rows."""
        return Lane(f"{IMPORTED}{self.id}", 0)

    @property
    def range(self) -> OffsetRange:
        """Return all of its places."""
        return OffsetRange(self.lane, 0, self.end)

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts."""
        return {
            **vars(self),
            "at": format_utc_instant(self.at),
            "until": format_utc_instant(self.until) if self.until else None,
            "bounds": str(self.bounds) if self.bounds else None,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Import:
        """Read what ``to_row`` wrote."""
        bounds = Interval.parse(row["bounds"]) if row["bounds"] else None
        until = parse_moment(row["until"]) if row["until"] else None
        return cls(**{**row, "at": parse_moment(row["at"]), "bounds": bounds, "until": until})


def list_registered_imports(ledger: Iterable[Epoch]) -> dict[Lane, Epoch]:
    """Return the epoch that registered each import, by its lane, in their order."""
    holes = (epoch for epoch in ledger if epoch.kind is EpochKind.HOLE)
    return {part.lane: epoch for epoch in holes for part in epoch.ranges if part.lane.imported}


def list_imports_to_register(ledger: Iterable[Epoch], asked: Iterable[Import]) -> list[Import]:
    """List the imports that no epoch registers yet, in the order in which they were asked for.

    Cancelled ones too: an older driver may register and read what it has not seen cancelled, until they are closed.
    """
    known = list_registered_imports(ledger)
    return [each for each in asked if each.lane not in known]


def list_missing_places(ledger: Iterable[Epoch]) -> dict[Lane, OffsetRange]:
    """Return what is still to be read of each import that is registered; pieces are read in order, so it is one run."""
    missing = (part for parts in list_missing_ranges(ledger).values() for part in parts)
    return {part.lane: part for part in missing if part.lane.imported}


def list_importable_ranges(ledger: Iterable[Epoch], asked: Iterable[Import]) -> list[OffsetRange]:
    """List what is to be read next: the rest of each import that is registered and not cancelled, the oldest first."""
    missing = list_missing_places(ledger)
    return [missing[each.lane] for each in asked if each.lane in missing and not each.cancelled]


def list_ranges_to_close(
    ledger: Iterable[Epoch], asked: Iterable[Import]
) -> list[tuple[Import, OffsetRange]]:
    """List the cancelled imports of which something is still missing, with what that is."""
    missing = list_missing_places(ledger)
    return [(each, missing[each.lane]) for each in asked if each.cancelled and each.lane in missing]


def list_open_imports(ledger: Sequence[Epoch], asked: Iterable[Import]) -> list[Import]:
    """List the imports of which something is to be registered, read or closed."""
    known, missing = list_registered_imports(ledger), list_missing_places(ledger)
    return [each for each in asked if each.lane in missing or each.lane not in known]


def find_closed_places(ledger: Iterable[Epoch]) -> dict[Lane, int]:
    """Return the first offset that was not read, for each import that was cancelled and closed."""
    amends = (epoch for epoch in ledger if epoch.kind is EpochKind.AMEND)
    return {part.lane: part.start for epoch in amends for part in epoch.ranges if part.lane.imported}


def find_taken_places(ledger: Sequence[Epoch], asked: Sequence[Import]) -> dict[str, int]:
    """Return how many places of each import, by its id, are read or will be: no other import may read their rows.

    BadRange while a cancelled one is not closed: nobody knows how much of it will have been read.
    """
    known, closed = list_registered_imports(ledger), find_closed_places(ledger)
    wanted = {each.lane: each.end for each in asked if not each.cancelled}
    if unclosed := [each for each in list_open_imports(ledger, asked) if each.cancelled]:
        raise BadRange(
            f"Import {unclosed[0].id} is being cancelled: until then it is unknown which rows it will have read.",
            hint="wait until `seamline imports list` says 'cancelled': a running stream gets there within seconds.",
        )
    ends = {lane: part.end for lane, epoch in known.items() for part in epoch.ranges if part.lane == lane}
    taken = {lane: closed.get(lane, end) for lane, end in {**wanted, **ends}.items()}
    return {lane.topic_id.removeprefix(IMPORTED): count for lane, count in taken.items()}


def count_imported_places(ledger: Sequence[Epoch], asked: Iterable[Import]) -> dict[str, int]:
    """Return how many places of each import were read or closed, by its id; 0 for one that is not registered."""
    known, missing = list_registered_imports(ledger), list_missing_places(ledger)
    done = {}
    for each in asked:
        left = missing.get(each.lane)
        done[each.id] = 0 if each.lane not in known else each.end if left is None else left.start
    return done


KEPT = 50
"""Imports that are done and still listed; of older ones the log and the plans tell."""


def add_import(
    asked: Sequence[Import], new: Import, known: Sequence[Import], done: Sequence[str]
) -> tuple[Import, ...]:
    """Add an import that was planned when there were ``known`` ones; old ones that are ``done``, by id, are forgotten.

    Conflict if others were asked for or cancelled since: both may have planned the same rows.
    """
    if [*asked] != [*known]:
        raise Conflict(
            "Another import was requested or cancelled while this one was being planned.",
            hint="run the command again.",
        )
    if any(each.id == new.id for each in asked):
        raise Conflict(f"Import {new.id} was asked for before.", hint="see `seamline imports list`.")
    spare = max(len(done) - KEPT, 0)
    gone = {*[each.id for each in asked if each.id in done][:spare]}
    return (*(each for each in asked if each.id not in gone), new)


def cancel_import(asked: Sequence[Import], ledger: Sequence[Epoch], id: str, why: str) -> tuple[Import, ...]:
    """Cancel an import; what of it was read stays.

    NotFound if there is none of that id, Conflict if nothing of it is left, or it was cancelled before.
    """
    found = next((each for each in asked if each.id == id), None)
    if found is None:
        raise NotFound(f"There is no import {id!r}.", hint="`seamline imports list` names them.")
    if found.cancelled:
        raise Conflict(
            f"Import {id} was already cancelled by {found.cancelled}.", hint="nothing is left to be done."
        )
    if found not in list_open_imports(ledger, asked):
        raise Conflict(f"Import {id} is done: there is nothing to cancel.", hint="its rows stay in the log.")
    return tuple(replace(each, cancelled=why) if each is found else each for each in asked)
