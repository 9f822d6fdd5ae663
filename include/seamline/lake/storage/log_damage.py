"""What a power cut has left of a table's newest commits: where its log has to end.

A commit is whole if its entry is, and if each file that it adds, and that no later one removes, is there as large as
it was written. Looked at are the entries above the newest whole checkpoint and some before: a checkpoint that others
made may have been written out before what it sums up. It counts no more then, where the log can do without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seamline.lake.storage import log_store
from seamline.lake.storage.durability import ALWAYS
from seamline.lake.storage.log_entries import Commit, find_entry_flaw, parse_entry
from seamline.lake.storage.log_wholeness import MAGIC, all_whole, find_whole_checkpoint, list_checkpoints
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import may_be_torn

BACK = 200
"""Entries below the newest checkpoint that are looked at."""
AHEAD = 200
"""Versions that are looked for above the end of the log: entries without the one before are no log."""


@dataclass(frozen=True)
class Damage:
    """Where a table's log has to end, and why."""

    version: int
    """The first version that is not whole."""
    why: str
    """What is wrong with that version's entry, in words."""
    newest: int
    """The newest version that is there."""
    whole: int
    """How many versions from ``version`` on are whole nevertheless."""


def find_log_damage(root: Location) -> Damage | None:
    """Find where a table's log has to end; None if all of it is whole."""
    commits, end, why = read_whole_commits(root)
    first, newest = end, last(root, end) if why else end - 1
    while lost := find_missing_file(root, [each for each in commits if each.version < first]):
        first, why = lost
    if first > newest:
        return None
    later = [each for each in commits if each.version >= first]
    gone = {each.version for each in later if any(find_data_file_flaw(root, file) for file in each.adds)}
    return Damage(first, why, newest, len(later) - len(gone) + count_whole_entries(root, end, newest))


def read_whole_commits(root: Location) -> tuple[list[Commit], int, str]:
    """Read the entries that count, up to a version that is not there or not whole; say why the log ends there.

    Below the newest whole checkpoint one that log clean-up takes meanwhile only ends how far back files are looked
    for, and so does a broken one that the log cannot do without, or of a table that is synced as it is written.
    """
    base = find_whole_checkpoint(root)
    version = max(base + 1, 0)
    lowest = max(version - BACK, 0)
    while version > lowest and log_store.entry_path(root, version - 1).exists():
        version -= 1
    commits: list[Commit] = []
    while True:
        data = bytes_of(root, version)
        why = "" if data is None else find_entry_flaw(data)
        if version <= base and (data is None or (why and not is_outrun_by_checkpoint(root, version))):
            commits.clear()
        elif data is None:
            gap = last(root, version) > version
            return commits, version, "it is missing, but later ones exist" if gap else ""
        elif why:
            return commits, version, why
        else:
            commits.append(parse_entry(version, data))
        version += 1


def is_outrun_by_checkpoint(root: Location, version: int) -> bool:
    """Return whether a broken entry that a checkpoint sums up ends the log: the power went between the two."""
    return root.name not in ALWAYS and opens_below(root, version)


def opens_below(root: Location, version: int) -> bool:
    """Return whether a table can be opened without its entries from a version on."""
    whole = [at for at, files in list_checkpoints(root).items() if at < version and all_whole(files)]
    base = max(whole, default=-1)
    return all(log_store.entry_path(root, at).exists() for at in range(base + 1, version))


def bytes_of(root: Location, version: int) -> bytes | None:
    """Return the bytes of an entry; None if it is not there."""
    try:
        return log_store.entry_path(root, version).read_bytes()
    except FileNotFoundError:
        return None


def last(root: Location, version: int) -> int:
    """Return the newest version there is from one on, over gaps that are not too wide."""
    newest, at = version - 1, version
    while at <= newest + AHEAD:
        if log_store.entry_path(root, at).exists():
            newest = at
        at += 1
    return newest


def count_whole_entries(root: Location, first: int, newest: int) -> int:
    """Count the whole entries from a version on."""
    found = (bytes_of(root, version) for version in range(first, newest + 1))
    return sum(data is not None and not find_entry_flaw(data) for data in found)


def find_missing_file(root: Location, commits: Sequence[Commit]) -> tuple[int, str] | None:
    """Find the first commit that adds a file which is not there as it was written, and is not removed again."""
    live: dict[str, tuple[int, str]] = {}
    for commit in commits:
        for path in commit.removes:
            live.pop(path, None)
        for file in commit.adds:
            live[file["path"]] = (commit.version, find_data_file_flaw(root, file))
    return min((each for each in live.values() if each[1]), default=None)


def find_data_file_flaw(root: Location, file: Mapping[str, Any]) -> str:
    """Find how a data file differs from what its commit says of it; empty if it does not."""
    path = locate_table_file(root, file["path"])
    if not may_be_torn(path):
        return "" if path.is_file() else f"{path.name} is missing"
    try:
        size = path.stat().st_size
        if size != file["size"]:
            return f"{path.name} has {size} bytes, not {file['size']}"
        with path.open("rb") as opened:
            opened.seek(-min(size, len(MAGIC)), 2)
            return "" if opened.read() == MAGIC else f"the end of {path.name} is not what was written"
    except FileNotFoundError:
        return f"{path.name} is missing"
