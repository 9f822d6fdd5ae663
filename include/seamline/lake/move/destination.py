"""The place that a warehouse moves to, looked at before anything is written there."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from seamline.lake.storage.layout import Layout, list_warehouses, name_warehouse
from seamline.lake.store.file_copies import are_nested, find_free_bytes, list_found_files
from seamline.lake.store.locations import Location
from seamline.lake.store.moved_warehouses import begin_origin, read_moved, read_origin
from seamline.lake.store.store_probe import require_exclusive_creation
from seamline.lake.tables.occupied_places import find_tables_around, has_pipeline
from seamline.model.errors import BadRange, DiskFull, SetupError, StoreRefused, StoreUnavailable
from seamline.model.protocol.moving import Moved, MoveOrigin
from seamline.model.time.intervals import format_utc_instant

SPARE = 1 << 28
"""Bytes that shall be free on a disk once all is copied."""


def read_marks(place: Location, *, hint: str) -> tuple[Moved | None, MoveOrigin | None]:
    """Read where what was in a place has moved, and where what is there came from.

    SetupError if that cannot be read; StoreUnavailable if that may pass.
    """
    try:
        return read_moved(place), read_origin(place)
    except (StoreRefused, StoreUnavailable):
        raise
    except OSError as error:
        raise SetupError(f"{place} cannot be looked at: {error}.", hint=hint) from error


def require_same_move(source: Location, to: Location) -> Moved | None:
    """Return the mark of a move that has closed the warehouse; MovedAway if it went to another place.

    BadRange if what is here is the copy of a move that is not done.
    """
    onward, named = read_origin(source), name_warehouse(source)
    if onward is not None and not onward.arrived:
        raise BadRange(
            f"{source} is not a whole warehouse: {onward.source} has not moved into it to the end.",
            hint=f"{named.set_to(onward.source)}, and run `{named.migrate(f'--to {source}')}`.",
        )
    moved = read_moved(source)
    if moved is not None and moved.to != str(to):
        raise moved.refusal("The warehouse", named)
    return moved


def find_begun_move(source: Location, to: Location, moved: Moved | None) -> MoveOrigin | None:
    """Return what a place says of this move; BadRange if the warehouse ``moved`` there, and nothing of it is there.

    A folder that is not mounted looks like an empty one: a second copy would be an old one.
    """
    origin = check_destination(source, to)
    require_none_within(source)
    named = name_warehouse(source)
    if moved is not None and origin is None:
        raise BadRange(
            f"{source} was closed to move to {to}, where nothing of it is.",
            hint=f"mount {to}, or wait for it. If it is gone for good: `{named.migrate('--undo --lost')}`.",
        )
    if moved is not None and origin is not None and origin.given_up:
        hint = f"`{named.migrate('--undo')}` ends that."
        raise BadRange(f"The move to {to} is being taken back.", hint=hint)
    if moved is not None and origin is not None and origin.id != moved.id:
        raise BadRange(
            f"{source} was closed by move {moved.id}, but {to} belongs to move {origin.id}.",
            hint=f"two were begun at once. Open {source} again by `{named.migrate('--undo --lost')}`, and delete {to}.",
        )
    return origin


def check_destination(source: Location, to: Location) -> MoveOrigin | None:
    """Return what a place says of a move from the same warehouse into it, None if it is empty.

    BadRange if it has something else, or is not another place than the source; SetupError if it cannot be looked at.
    """
    if are_nested(source, to):
        raise BadRange(
            f"{to} and {source} are one place, or one is within the other.",
            hint=f"{name_warehouse(source).variables[0]} names the warehouse as it is, --to an empty place beside it.",
        )
    onward, origin = read_marks(to, hint="check its address, the credentials and the permissions.")
    if onward is not None:
        raise BadRange(
            f"{to} has the rest of a warehouse that was moved to {onward.to}.",
            hint=f"name another place, or delete {to} once nobody needs it.",
        )
    if origin is not None and origin.source != str(source):
        raise BadRange(
            f"{to} has a warehouse that came from {origin.source}, not from {source}.",
            hint="name another place.",
        )
    if origin is None:
        if found := list_found_files(to):
            raise BadRange(
                f"{to} is not empty: {min(found)} is there.",
                hint="name an empty place, or one to which this warehouse began to move.",
            )
        require_own_place(to)
    return origin


def require_none_within(source: Location) -> None:
    """Raise BadRange if another warehouse that is set is within the one that moves: it would be copied while in use."""
    for other in list_warehouses():
        if other != source and are_nested(source, other) and len(other.parts) > len(source.parts):
            named = name_warehouse(other)
            raise BadRange(
                f"The warehouse at {other} is within the one at {source}.",
                hint=f"move that one out first: `{named.migrate('--to')}` with a place outside.",
            )


def require_own_place(to: Location) -> None:
    """Raise BadRange if a place is inside of a Delta table, or of a pipeline's folder."""
    for table in find_tables_around(Layout(to, "_")):
        raise BadRange(
            f"{to} is inside of the Delta table {table}: what cleans that up would delete the warehouse.",
            hint="name a place that is no table and in none.",
        )
    for folder in (to, *to.parents):
        if has_pipeline(folder):
            raise BadRange(
                f"{to} is inside of {folder}, which has the tables of a pipeline.",
                hint="name a place outside of any warehouse.",
            )


def begin_destination(source: Location, to: Location, *, actor: str, anew: bool = False) -> MoveOrigin:
    """Say in an empty place, or ``anew`` in that of a move that was given up, that a warehouse moves into it.

    Returns what is said there.

    SetupError if the store does not keep two writers apart, or the place cannot be written.
    """
    require_exclusive_creation(to)
    ours = MoveOrigin(str(source), uuid.uuid4().hex[:12], actor, format_utc_instant(datetime.now(UTC)))
    try:
        found = begin_origin(to, ours, anew=anew)
    except (StoreRefused, StoreUnavailable):
        raise
    except OSError as error:
        raise SetupError(
            f"{to} cannot be written: {error}.", hint="let this user write there, or name another place."
        ) from error
    if found.source != ours.source:
        raise BadRange(
            f"Another warehouse, {found.source}, began to move to {to} just now.", hint="name another place."
        )
    return found


def require_space(to: Location, wanted: int) -> None:
    """Raise DiskFull if a folder's disk has no space for so many bytes."""
    free = find_free_bytes(to)
    if free is not None and free < wanted + SPARE:
        raise DiskFull(
            f"{to} has {free / 1e9:.1f} GB free, and {wanted / 1e9:.1f} GB are to be copied there.",
            hint="free some space, or name a place on another disk.",
        )
