"""Small JSON objects that machines at one bucket write in turns: each goes by what it has read of the others.

On disk there are none: what is not in a table is one machine's there, in files of SEAMLINE_HOME.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import StoreUnavailable

Row = Mapping[str, Any]
ATTEMPTS = 10
AGAIN = "try again; if the error persists, see what else writes there."
WRITE = "write"
"""The key under which a row names the attempt that wrote it."""


@dataclass(frozen=True)
class SharedObject:
    """One such object; there may be none yet."""

    place: ObjectPath
    """Where it is."""

    def read(self) -> tuple[Row | None, str]:
        """Return what is there, None for nothing or what is no object of JSON, and a tag by which to replace it."""
        try:
            data, tag = self.place.bucket.get_tagged(self.place.key)
        except FileNotFoundError:
            return None, ""
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        return (found if isinstance(found, dict) else None), tag

    def replace(self, row: Row, tag: str) -> str | None:
        """Put a row in place of what has a tag; return its own tag, None if another is there.

        StoreUnavailable if nobody knows.
        """
        return self.place.bucket.replace(self.place.key, json.dumps(row).encode(), tag)

    def change(self, change: Callable[[Row | None], Row]) -> None:
        """Replace what is there by what follows from it, again each time another was first.

        StoreUnavailable in the end. A reply that is lost is settled by what is read. Where nothing changes nothing is
        put.
        """
        mine, last = uuid.uuid4().hex, StoreUnavailable(f"{self.place}: others keep changing it.", hint=AGAIN)
        for _ in range(ATTEMPTS):
            found, tag = self.read()
            if found and found.get(WRITE) == mine:
                return
            fresh = change(found)
            if found is not None and {**fresh, WRITE: found.get(WRITE)} == found:
                return
            try:
                if self.replace({**fresh, WRITE: mine}, tag) is not None:
                    return
            except StoreUnavailable as error:
                last = error
        raise last

    def claim(self) -> bool:
        """Put something where nothing is; false if another has, StoreUnavailable if the store does not say."""
        mine, last = (
            uuid.uuid4().hex,
            StoreUnavailable(f"{self.place}: the store does not say who was first.", hint=AGAIN),
        )
        for _ in range(ATTEMPTS):
            found, tag = self.read()
            if found is not None or tag:
                return found is not None and found.get(WRITE) == mine
            try:
                if self.replace({WRITE: mine}, "") is not None:
                    return True
            except StoreUnavailable as error:
                last = error
        raise last


def claim_place(place: Location) -> bool:
    """Make a file where there is none, which one of several does; false if another has."""
    if isinstance(place, ObjectPath):
        return SharedObject(place).claim()
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def find_shared_object(place: Location) -> SharedObject | None:
    """Return the object of a place in a bucket; None on disk."""
    return SharedObject(place) if isinstance(place, ObjectPath) else None
