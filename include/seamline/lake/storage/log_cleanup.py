"""Entries of a log that nobody needs any more: deleted here and by nobody else, the oldest first, so many in a turn.

What is kept can be opened at each of its versions: the oldest that stays is a whole checkpoint, which is on disk before
anything goes. A turn that is cut short leaves a log that begins later, and the next goes on.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from seamline.lake.storage import durability, log_store
from seamline.lake.storage.log_wholeness import all_whole, find_whole_checkpoint, list_checkpoints
from seamline.lake.store.locations import Location, delete_files, list_names

TURN = 250_000
"""Files that go in a turn of upkeep: some seconds. Logs of millions, which earlier releases kept, take several."""
NUMBERED = re.compile(r"\.?(\d{20})\.")
"""A file of a version: its entry, its checkpoint, and the check sums that other engines put beside them."""
BEATS = frozenset({"control", "claims"})
"""Tables that get an entry every few seconds, also where no upkeep comes: their logs are short after a checkpoint."""


def delete_old_entries(
    root: Location, kept: timedelta, *, now: datetime, most: int = TURN, needed: int | None = None
) -> int:
    """Delete the files of the oldest versions of a log that were followed longer ago than it is ``kept``; count them.

    Nothing is deleted at or above the newest whole checkpoint of that age that is not above the version that somebody
    needs: without one, nothing at all.
    """
    found = find_log_start(root, now - kept, needed)
    if found is None:
        return 0
    first, files = found
    gone = heapq.nsmallest(most, list_files_below(root, first))
    if gone:
        durability.sync_files(files)
        durability.sync_folder(root / log_store.FOLDER)
    delete_files(root / log_store.FOLDER / name for _, name in gone)
    return len(gone)


def find_log_start(
    root: Location, instant: datetime, needed: int | None = None
) -> tuple[int, list[Location]] | None:
    """Find the newest whole checkpoint that was there at an instant, and is not above a version; None without one."""
    newest = find_whole_checkpoint(root)
    newest = newest if needed is None else min(newest, needed)
    for version, files in sorted(list_checkpoints(root).items(), reverse=True):
        if version <= newest and checkpoint_written_at(files) < instant and all_whole(files):
            return version, files
    return None


def checkpoint_written_at(files: list[Location]) -> datetime:
    """Return when the last file of a checkpoint was written."""
    return datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC)


def list_files_below(root: Location, first: int) -> Iterator[tuple[int, str]]:
    """List the files of all versions below one."""
    for name in list_names(root / log_store.FOLDER):
        if (match := NUMBERED.match(name)) and (version := int(match[1])) < first:
            yield version, name
