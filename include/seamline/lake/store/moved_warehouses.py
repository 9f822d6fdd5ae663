"""Small files at the root of a warehouse: where it has moved, where it came from, and what was decided of that move.

The first keeps new pipelines from beginning in the old place; those that are there have the same mark in their control
table. Whether a move is opened or given up is decided once, for the whole warehouse, by whoever is first.
"""

from __future__ import annotations

import json
from typing import Any

from seamline.lake.store.locations import Location, create_file, replace_file
from seamline.model.errors import SetupError
from seamline.model.protocol.moving import Moved, MoveOrigin

MOVED_TO = "_moved_to.json"
MOVED_FROM = "_moved_from.json"
DECIDED = "_move-{id}.json"


def read_moved(warehouse: Location) -> Moved | None:
    """Read where a warehouse has moved; None if it is here."""
    row = read_mark_row(warehouse / MOVED_TO)
    return Moved.from_row(row) if row else None


def is_closed_for(warehouse: Location, moved: Moved) -> bool:
    """Return whether a warehouse is closed for a move, and not for another one, or open."""
    found = read_moved(warehouse)
    return found is not None and found.id == moved.id


def write_moved(warehouse: Location, moved: Moved) -> None:
    """Say at the old place where its warehouse is."""
    replace_file(warehouse / MOVED_TO, json.dumps(moved.to_row()).encode())


def delete_moved(warehouse: Location) -> None:
    """Let pipelines begin here again."""
    (warehouse / MOVED_TO).unlink(missing_ok=True)


def read_origin(warehouse: Location) -> MoveOrigin | None:
    """Read which warehouse moves, or has moved, into a place, and what was decided of it; None if none does."""
    row = read_mark_row(warehouse / MOVED_FROM)
    if row is None:
        return None
    opened = read_decision(warehouse, row["id"])
    return MoveOrigin(**row, arrived=opened is True, given_up=opened is False)


def begin_origin(warehouse: Location, origin: MoveOrigin, *, anew: bool) -> MoveOrigin:
    """Say which warehouse moves into a place, ``anew`` after a move that was given up.

    Returns what is said there, which may be another's.
    """
    file, row = warehouse / MOVED_FROM, json.dumps(origin.to_row()).encode()
    if anew:
        replace_file(file, row)
    else:
        create_or_leave(file, row)
    found = read_origin(warehouse)
    assert found is not None
    return found


def decide_move(warehouse: Location, id: str, *, opened: bool) -> bool:
    """Decide whether a move into a place is opened, or given up; return what is so, which another may have decided."""
    create_or_leave(warehouse / DECIDED.format(id=id), json.dumps({"opened": opened}).encode())
    return read_decision(warehouse, id) is True


def read_decision(warehouse: Location, id: str) -> bool | None:
    """Read whether a move was opened; None if that is not decided."""
    row = read_mark_row(warehouse / DECIDED.format(id=id))
    return None if row is None else bool(row["opened"])


def create_or_leave(place: Location, data: bytes) -> None:
    """Create a file, or leave the one that is there; OSError if there is none in the end."""
    try:
        create_file(place, data)
    except OSError:
        # What is there counts, whatever the store said of it.
        if read_mark_row(place) is None:
            raise


def read_mark_row(place: Location) -> dict[str, Any] | None:
    """Read a mark; None if there is none, SetupError if it is no mark of ours."""
    try:
        found = json.loads(place.read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise SetupError(
            f"{place.parent} is a file.", hint="name a folder, or a place in a bucket."
        ) from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SetupError(
            f"{place} is no mark of a move.", hint="restore it, or delete it if nothing was moved."
        )
    return found
