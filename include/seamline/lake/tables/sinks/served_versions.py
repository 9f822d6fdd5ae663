"""The versions of one serving table: which files each has, and what it shows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from deltalake.exceptions import DeltaError

from seamline.lake.log.log_lines import VIEW_VERSION
from seamline.lake.storage import durability, log_entries
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.log_store import entry_path, read_commit
from seamline.lake.storage.log_wholeness import open_delta_handle
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.store.locations import Location
from seamline.model.errors import NotFound

KEPT = 4
"""Versions that are remembered."""
FURTHEST = 500
"""The most commits that are read one by one; further ones by deltalake, from a checkpoint."""


@dataclass(frozen=True)
class ServedVersion:
    """One version of a serving table."""

    root: Location
    """The table's folder."""
    number: int
    """The version."""
    files: Mapping[str, str]
    """The interval of each live file, by its path as the log spells it."""
    schema: pa.Schema
    """The columns."""
    view: str
    """The fingerprint of the view's version; empty before the first refresh."""
    commit: str
    """A hash of the commit."""

    def locate(self, path: str) -> str:
        """Return the absolute path of a file, or its URL."""
        return str(locate_table_file(self.root, path) if "%" in path else self.root / path)


def read_commit_time(root: Location, number: int) -> datetime | None:
    """Read when a version was committed; None if its entry is gone, or does not say so."""
    commit = read_commit(root, number)
    told = commit.info.get("timestamp") if commit else None
    return datetime.fromtimestamp(told / 1000, UTC) if isinstance(told, int) else None


class ServedVersions:
    """Reads versions of a table, each from an earlier one where that is known and near."""

    def __init__(self, root: Location) -> None:
        self.root, self.newest = root, -1
        self.known: dict[int, ServedVersion] = {}

    def find_newest(self) -> int:
        """Return the newest version; -1 without a table. After the first time it looks for the next entry alone."""
        if self.newest < 0:
            if not Table.exists(self.root):
                return -1
            self.newest = Table.open(self.root).version
        while entry_path(self.root, self.newest + 1).exists():
            self.newest += 1
        return self.newest

    def settle(self) -> None:
        """Have on disk what was read: what a target shows must not be lost with the power."""
        durability.sync_disk(self.root)

    def read(self, number: int) -> ServedVersion:
        """Read one version; NotFound if its log, or a part of it, is gone."""
        if number not in self.known:
            nearest = max((each for each in self.known if number - FURTHEST <= each < number), default=None)
            found = None if nearest is None else self.follow(self.known[nearest], number)
            self.known[number] = found or self.load(number)
            for old in sorted(self.known, key=lambda each: each == number)[:-KEPT]:
                del self.known[old]
        return self.known[number]

    def load(self, number: int) -> ServedVersion:
        """Read a version by deltalake."""
        try:
            handle = open_delta_handle(self.root, number)
            live = pa.table(handle.get_add_actions(flatten=True))
        except (DeltaError, FileNotFoundError) as error:
            raise NotFound(
                f"Version {number} of {self.root} is not in its log any more.",
                hint="its entries were deleted, or the table was made again.",
            ) from error
        files = dict(
            zip(live["path"].to_pylist(), live["partition.interval"].to_pylist(), strict=True)
            if live.num_rows
            else ()
        )
        schema = pa.schema(handle.schema().to_arrow())
        return ServedVersion(
            self.root, number, files, schema, self.find_view(number), self.hash_commit(number)
        )

    def follow(self, version: ServedVersion, number: int) -> ServedVersion | None:
        """Read the commits after a version up to another; None if that does not say all."""
        files, view = dict(version.files), version.view
        for each in range(version.number + 1, number + 1):
            commit = read_commit(self.root, each)
            if commit is None or commit.shape:
                return None
            for path in commit.removes:
                files.pop(path, None)
            files |= {add["path"]: add["partitionValues"]["interval"] for add in commit.adds}
            view = str(commit.info.get(VIEW_VERSION) or view)
        return ServedVersion(self.root, number, files, version.schema, view, self.hash_commit(number))

    def find_view(self, number: int) -> str:
        """Find which version of the view a version shows: of compactions that is what the commit before them says."""
        for each in range(number, max(number - FURTHEST, -1), -1):
            commit = read_commit(self.root, each)
            if commit is None:
                break
            if VIEW_VERSION in commit.info:
                return str(commit.info[VIEW_VERSION])
        return ""

    def hash_commit(self, number: int) -> str:
        """Return a hash of a version's commit; NotFound if it is gone."""
        try:
            data = entry_path(self.root, number).read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"The commit of version {number} of {self.root} is gone.") from error
        log_entries.parse_entry(number, data)
        return hashlib.sha256(data).hexdigest()[:8]

    def list_shown_since(self, number: int) -> set[str]:
        """List the files that any version from one on has had."""
        found = set(self.read(number).files)
        for each in range(number + 1, self.find_newest() + 1):
            if commit := read_commit(self.root, each):
                found.update(add["path"] for add in commit.adds)
        return found
