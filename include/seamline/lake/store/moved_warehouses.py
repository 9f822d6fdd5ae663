"""Two small files at the root of a warehouse: where it has moved, and where it came from.

The first keeps new pipelines from beginning in the old place; those that are there have the same mark in their control
table. The second says whether all has arrived, in one step for the whole warehouse.
"""

from __future__ import annotations

import json
from typing import Any

from seamline.lake.store.locations import Location, create_file, replace_file
from seamline.model.errors import SetupError
from seamline.model.protocol.moving import Moved, MoveOrigin

MOVED_TO = "_moved_to.json"
MOVED_FROM = "_moved_from.json"
MARKS = (MOVED_TO, MOVED_FROM)


def read_moved(warehouse: Location) -> Moved | None:
    """Read where a warehouse has moved; None if it is here."""
    row = read_mark_row(warehouse / MOVED_TO)
    return Moved.from_row(row) if row else None


def write_moved(warehouse: Location, moved: Moved) -> None:
    """Say at the old place where its warehouse is."""
    replace_file(warehouse / MOVED_TO, json.dumps(moved.to_row()).encode())


def delete_moved(warehouse: Location) -> None:
    """Let pipelines begin here again."""
    (warehouse / MOVED_TO).unlink(missing_ok=True)


def read_origin(warehouse: Location) -> MoveOrigin | None:
    """Read which warehouse moves, or has moved, into a place; None if none does."""
    row = read_mark_row(warehouse / MOVED_FROM)
    return MoveOrigin(**row) if row else None


def begin_origin(warehouse: Location, origin: MoveOrigin) -> MoveOrigin:
    """Say which warehouse moves into a place; return what is said there, which may be another's."""
    try:
        create_file(warehouse / MOVED_FROM, json.dumps(vars(origin)).encode())
    except OSError:
        # What is there counts, whatever the store said of it.
        if (found := read_origin(warehouse)) is None:
            raise
        return found
    return read_origin(warehouse) or origin


def write_origin(warehouse: Location, origin: MoveOrigin) -> None:
    """Say what has become of a move into a place."""
    replace_file(warehouse / MOVED_FROM, json.dumps(vars(origin)).encode())


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
