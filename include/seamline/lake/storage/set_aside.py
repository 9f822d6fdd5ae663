"""Entries of a log that are set aside, with their checkpoints: kept for a while beside the log, and named.

They are moved from the newest down, so that a start that dies meanwhile leaves the rest for the next to find.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from seamline.lake.storage import log_store
from seamline.lake.storage.durability import sync_folder
from seamline.lake.store.locations import Location, delete_folder, list_places, move_file

FOLDER = "_aside"
KEPT = timedelta(days=7)
VERSION = re.compile(r"(\d{20})\.")
STAMP = "%Y%m%dT%H%M%S%fZ"
log = logging.getLogger("seamline.lake")


def set_aside(root: Location, first: int, why: str, *, now: datetime) -> list[str]:
    """Take every entry and checkpoint of a log from version ``first`` on out of it; return their names."""
    folder = root / log_store.FOLDER
    found = [
        each for each in folder.iterdir() if (at := parse_log_version(each.name)) is not None and at >= first
    ]
    place = root / FOLDER / f"{now.astimezone(UTC).strftime(STAMP)}-{first:020d}"
    place.mkdir(parents=True)
    mark = folder / "_last_checkpoint"
    gone = [*([mark] if mark.exists() else []), *sorted(found, key=last_first)]
    for each in gone:
        move_file(each, place / each.name)
    for each in (root, root / FOLDER, place, folder):
        sync_folder(each)
    names = [each.name for each in gone]
    log.warning(
        "%s now ends before version %s: %s. Set aside in %s: %s", root, first, why, place, ", ".join(names)
    )
    return names


def parse_log_version(name: str) -> int | None:
    """Return the version that a file of the log is of; None for another file."""
    match = VERSION.match(name)
    return int(match[1]) if match else None


def last_first(file: Location) -> tuple[bool, int]:
    """Order checkpoints before entries, and the newest first."""
    return file.suffix == ".json", -(parse_log_version(file.name) or 0)


def read_aside_actions(root: Location) -> Iterator[dict[str, Any]]:
    """Read the actions of what was set aside, as far as they can be read."""
    for file in list_places(root / FOLDER, "*/*.json"):
        for line in file.read_bytes().splitlines():
            try:
                action = json.loads(line)
            except ValueError:
                continue
            if isinstance(action, dict):
                yield action


def newest_aside_version(root: Location, app: str) -> int:
    """Return the greatest version of an app id in what was set aside, -1 for none."""
    found = (action["txn"] for action in read_aside_actions(root) if "txn" in action)
    return max((int(each["version"]) for each in found if each["appId"] == app), default=-1)


def list_aside_files(root: Location) -> set[str]:
    """List the data files of what was set aside, which stay as long as it does."""
    return {unquote(action["add"]["path"]) for action in read_aside_actions(root) if "add" in action}


def delete_expired_aside(root: Location, *, now: datetime) -> None:
    """Delete what was set aside longer ago than it is kept."""
    for place in list_places(root / FOLDER, "*Z-*"):
        at = datetime.strptime(place.name.partition("-")[0], STAMP).replace(tzinfo=UTC)
        if at < now - KEPT:
            delete_folder(place)
