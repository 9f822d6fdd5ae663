"""A Delta table's log, followed commit by commit from where deltalake has opened it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from seamline.lake.storage import foreign_commits, live_files, log_store, log_wholeness
from seamline.lake.storage.log_entries import Commit
from seamline.lake.storage.table_settings import CHECKPOINT_EVERY, HOUR, RETENTION, parse_log_retention
from seamline.lake.store.explained_errors import explain_errors
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free
from seamline.model.errors import NotWhole, StoreRefused, StoreUnavailable

UNDERSTOOD = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""What a table may ask of its writers beyond what every table does; the rest is left to deltalake."""
SHORTEST = parse_log_retention({RETENTION: HOUR})
"""For how long the logs that are kept least are kept: a table's settings may change while a process sleeps."""
REMEMBERED = 1000
"""Commits to go through at most where the live files are asked for: after more they are listed again."""


class Followed:
    """What a table says of itself at one version: its ``txn`` versions, its live files, what its commits say."""

    def __init__(self, root: Location, handle: DeltaTable, newest: Commit | None) -> None:
        self.root = root
        self._opened(handle, newest)

    def _opened(self, handle: DeltaTable, newest: Commit | None) -> None:
        """Start from what deltalake has read, and from nothing else."""
        metadata, protocol = handle.metadata(), handle.protocol()
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        self._handle = handle
        self.version = int(handle.version())
        """The version that is seen."""
        self.newest = newest.id if newest else ""
        """The id of the commit that made it; empty where it has none, or its entry is gone."""
        self._entry = self._identify(log_store.entry_path(self.root, self.version))
        self.id = str(metadata.id)
        """The table's own, whatever its place."""
        self._partition_by = list(metadata.partition_columns)
        self.settings: Mapping[str, str | None] = metadata.configuration
        self._checkpoint_every = int(self.settings.get(CHECKPOINT_EVERY) or 100)
        # Versions in between ask for features without naming them.
        self._appends = protocol.min_writer_version in (1, 2, 7) and features <= UNDERSTOOD
        self._txns: dict[str, int | None] = {}
        self._live: pa.Table | None = None
        self._since: list[Commit] = []
        self._last = newest
        self._checkpoint: tuple[int, int] | None = None
        self._looked = since_boot()
        self._change = foreign_commits.find_foreign_change(self.root, newest)
        self._strange = foreign_commits.list_unknown_features(protocol)

    def _marked(self) -> tuple[int, int] | None:
        """Distinguish the mark of one checkpoint from that of another."""
        return self._identify(self.root / log_store.FOLDER / log_store.LAST)

    def _identify(self, file: Location) -> tuple[int, int] | None:
        """Distinguish a file of the log from another in its place; in a bucket none is, and its store is not asked."""
        return file_identity(file) if is_asking_free(file) else (0, 0)

    @property
    def after(self) -> str:
        """The id of the commit that the newest was made after; empty where it does not say, or its entry is gone."""
        return self._last.after if self._last else ""

    @property
    def handle(self) -> DeltaTable:
        """deltalake's handle at the version that is seen."""
        if self._handle.version() != self.version:
            with explain_errors(self.root):
                # What came later may be broken.
                with suppress(DeltaError):
                    self._handle.update_incremental()
                if self._handle.version() != self.version:
                    self._handle.load_as_version(self.version)
        return self._handle

    def refresh(self) -> Self:
        """Move on to the newest version, or to the one before the first entry that is not whole.

        Versions follow each other without a gap, so no newer one is there without the next. Its file may be gone
        again only after a checkpoint, which leaves its mark. A commit that was made after another one than what was
        seen shows that what was seen is no longer in the log; so does another entry, or none, in the place of its
        newest, which a repair has set aside. ChangedByOthers if another writer has changed rows.
        """
        return self._moved_on().require_ours()

    def require_ours(self) -> Self:
        """Return the table; ChangedByOthers if another writer has changed rows, or what the table asks for."""
        if self._change is not None:
            raise self._change.refusal(self.root)
        if self._strange:
            raise foreign_commits.foreign_features_error(self.root, self._strange)
        return self

    def _moved_on(self) -> Self:
        entry = self._identify(log_store.entry_path(self.root, self.version))
        if self._outlived() or entry != self._entry:
            return self._anew()
        while (commit := self._next()) is not None:
            if commit.shape or not self._joins(commit):
                return self._anew()
            self._follow(commit)
        self._looked = since_boot()
        if (mark := self._marked()) != self._checkpoint:
            if log_store.read_last_checkpoint(self.root) > self.version:
                return self._anew()
            self._checkpoint = mark
        return self

    def move_on(self, commit: Commit) -> Self:
        """Move on by the next commit, which somebody has read, as ``refresh`` does."""
        if commit.shape or not self._joins(commit):
            self._anew()
        else:
            self._follow(commit)
        return self.require_ours()

    def stay(self, looked: float) -> None:
        """Note that there was no next commit after ``looked``."""
        self._looked = max(self._looked, looked)

    @property
    def is_outlived(self) -> bool:
        """Whether entries that came after the last look may have been cleaned away since: it must be looked anew."""
        return self._outlived()

    def _next(self) -> Commit | None:
        try:
            return log_store.read_commit(self.root, self.version + 1)
        except NotWhole:
            return None

    def _joins(self, commit: Commit) -> bool:
        """Return whether a commit comes after the newest one that was seen, as far as both say who they are."""
        return not (commit.after and self.newest) or commit.after == self.newest

    def _outlived(self) -> bool:
        """Return whether entries that came after the last look may have been cleaned away since."""
        return (
            since_boot() - self._looked
            > min(parse_log_retention(self.settings), SHORTEST).total_seconds() / 2
        )

    def _anew(self) -> Self:
        self._opened(*log_wholeness.open_whole_table(self.root))
        return self

    def _follow(self, commit: Commit) -> None:
        """Apply the next commit."""
        self.version, self.newest, self._last = commit.version, commit.id, commit
        self._entry = self._identify(log_store.entry_path(self.root, self.version))
        self._change = foreign_commits.apply_foreign_commit(self._change, commit)
        self._txns |= commit.txns
        if self._live is not None:
            self._since.append(commit)
            if len(self._since) > REMEMBERED:
                self._live, self._since = None, []

    def txn(self, app: str) -> int | None:
        """Return the version that the last ``txn`` action of an app id carries.

        What commits have said since deltalake has looked is known, so it need not look again: it lists the log.
        """
        if app not in self._txns:
            try:
                found = self._handle.transaction_version(app)
            except DeltaError:
                # Entries that deltalake has opened the table by may be cleaned away.
                found = self.handle.transaction_version(app)
            self._txns[app] = None if found is None else int(found)
        return self._txns[app]

    def read_commit(self, version: int) -> Commit | None:
        """Read a commit, as ``log_store.read_commit`` does; of a bucket the newest that was followed is remembered."""
        if self._last and self._last.version == version and not is_asking_free(self.root):
            return self._last
        return log_store.read_commit(self.root, version)

    def history(self, limit: int) -> list[Mapping[str, Any]]:
        """Return what the newest commits say of themselves, the newest first, as far as their files are there."""
        found = []
        for version in range(self.version, max(self.version - limit, -1), -1):
            if (commit := self.read_commit(version)) is None:
                break
            found.append(commit.info)
        return found

    def metadata(self) -> Mapping[str, Any]:
        """Return the newest commit's metadata."""
        found = self.history(1)
        return found[0] if found else {}

    def actions(self) -> pa.Table:
        """List the live files with their statistics, one row a file (``path``, ``num_records``, ``min.x``)."""
        if self._live is not None and self._since:
            try:
                self._live = live_files.update_live_files(self._live, self._since)
            except (pa.ArrowException, KeyError, ValueError):
                # What deltalake lists, this release may not know.
                self._live = None
        if self._live is None:
            with explain_errors(self.root):
                self._live = pa.table(self.handle.get_add_actions(flatten=True))
        self._since = []
        return self._live


def file_identity(file: Location) -> tuple[int, int] | None:
    """Distinguish a file from another that was later put in its place; None if there is none."""
    try:
        found = file.stat()
    except (StoreRefused, StoreUnavailable):
        raise
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def since_boot() -> float:
    """Return the seconds since the machine was started, also those that it slept; nobody sets this clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
