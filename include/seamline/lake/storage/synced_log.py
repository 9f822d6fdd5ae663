"""A Delta table's log on disk: up to which version it is known to be there, with its files."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from deltalake import DeltaTable

from seamline.lake.storage import durability, log_store, log_wholeness
from seamline.lake.storage.log_entries import Commit
from seamline.lake.storage.log_follower import Followed
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free, may_be_torn
from seamline.model.errors import NotWhole

BELOW = 200
"""Entries below a checkpoint of others that may have been made since the disk was last written out by itself."""


class Synced(Followed):
    """A table that is followed, and of which it is known what a power cut would leave."""

    def _opened(self, handle: DeltaTable, newest: Commit | None) -> None:
        super()._opened(handle, newest)
        self._durable = -1
        """The version up to which all is known to be on disk."""

    @property
    def synced(self) -> bool:
        """Return whether the table's commits are on disk before they are acknowledged, whoever makes them."""
        name = self.root.name
        return name in durability.ALWAYS or (
            name in durability.STATED and bool(self.txn(durability.DURABILITY))
        )

    def sync(self) -> None:
        """Have the version that is seen on disk: its commits that are not known to be, and the files they add.

        The newest checkpoint stands for most of the entries below it. The last of them may have been written just
        now, with the files that it names.
        """
        if self._durable == self.version or not may_be_torn(self.root):
            return
        base = log_wholeness.find_whole_checkpoint(self.root)
        if base > self._durable:
            durability.sync_files(log_wholeness.checkpoints_of(self.root, base))
        later = range(max(self._durable, base) + 1, self.version + 1)
        commits = [found for each in later if (found := log_store.read_commit(self.root, each)) is not None]
        below = range(max(self._durable, base - BELOW, -1) + 1, base + 1)
        summed = [found for each in below if (found := self._summed(each)) is not None]
        wanted = [*summed, *commits]
        self._sync_files(add["path"] for commit in wanted for add in commit.adds)
        durability.sync_files(log_store.entry_path(self.root, commit.version) for commit in wanted)
        durability.sync_folder(self.root / log_store.FOLDER)
        self._durable = self.version

    def _summed(self, version: int) -> Commit | None:
        """Read an entry that a checkpoint sums up; None if it is gone, or broken: nobody needs it."""
        try:
            return log_store.read_commit(self.root, version)
        except NotWhole:
            return None

    def _sync_files(self, paths: Iterable[str]) -> None:
        """Have files of the table and their folders on disk, as far as they are still there."""
        found = [path for name in paths if (path := locate_table_file(self.root, name)).exists()]
        durability.sync_files(found)
        durability.sync_folders({path.parent for path in found}, above=self.root)


def locate_table_file(root: Location, name: str) -> Location:
    """Locate a file of a table; the log may spell its path in URL form.

    A key in a bucket is what the log's spelling stands for: no request is made to find out.
    """
    path = root / name
    return path if "%" not in name or (is_asking_free(path) and path.exists()) else root / unquote(name)
