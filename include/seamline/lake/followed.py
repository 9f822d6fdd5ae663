"""A Delta table's log, followed commit by commit from where deltalake has opened it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from deltalake import DeltaTable

from seamline.lake import delta_log, live_files
from seamline.lake.delta_log import Commit

UNDERSTOOD = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""What a table may ask of its writers beyond what every table does; the rest is left to deltalake."""
CHECKPOINT_EVERY = "delta.checkpointInterval"
REMEMBERED = 1000
"""Commits to go through at most where the live files are asked for: after more they are listed anew."""


class Followed:
    """What a table says of itself at one version: its ``txn`` versions, its live files, what its commits say."""

    def __init__(self, root: Path, handle: DeltaTable) -> None:
        self.root = root
        self._opened(handle)

    def _opened(self, handle: DeltaTable) -> None:
        """Go by what deltalake has read, and by nothing else."""
        metadata, protocol = handle.metadata(), handle.protocol()
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        self._handle = handle
        self.version = int(handle.version())
        """The version that is seen."""
        self.id = str(metadata.id)
        """The table's own, whatever its place."""
        self._partition_by = list(metadata.partition_columns)
        self._checkpoint_every = int(metadata.configuration.get(CHECKPOINT_EVERY) or 100)
        # Versions in between ask for features without naming them.
        self._appends = protocol.min_writer_version in (1, 2, 7) and features <= UNDERSTOOD
        self._txns: dict[str, int | None] = {}
        self._live: pa.Table | None = None
        self._since: list[Commit] = []
        self._checkpoint: tuple[int, int] | None = None

    def _marked(self) -> tuple[int, int] | None:
        """Tell the mark of one checkpoint from that of another."""
        try:
            found = (self.root / delta_log.FOLDER / "_last_checkpoint").stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    @property
    def handle(self) -> DeltaTable:
        """deltalake's handle at the version that is seen."""
        if self._handle.version() != self.version:
            self._handle.update_incremental()
        if self._handle.version() != self.version:
            self._handle.load_as_version(self.version)
        return self._handle

    def refresh(self) -> Self:
        """Move on to the newest version.

        Versions follow each other without a gap, so no newer one is there without the next. Its file may be gone
        again only after a checkpoint, which leaves its mark.
        """
        while (commit := delta_log.read(self.root, self.version + 1)) is not None:
            if commit.shape:
                return self._anew()
            self._follow(commit)
        if (mark := self._marked()) != self._checkpoint:
            if delta_log.checkpointed(self.root) > self.version:
                return self._anew()
            self._checkpoint = mark
        return self

    def _anew(self) -> Self:
        self._opened(DeltaTable(str(self.root)))
        return self

    def _follow(self, commit: Commit) -> None:
        """Take in the commit that comes next."""
        self.version = commit.version
        self._txns |= commit.txns
        if self._live is not None:
            self._since.append(commit)
            if len(self._since) > REMEMBERED:
                self._live, self._since = None, []

    def txn(self, app: str) -> int | None:
        """Give the version that the last ``txn`` action of an app id carries."""
        if app not in self._txns:
            found = self.handle.transaction_version(app)
            self._txns[app] = None if found is None else int(found)
        return self._txns[app]

    def history(self, limit: int) -> list[Mapping[str, Any]]:
        """Give what the newest commits say of themselves, the newest first, as far as their files are there."""
        found = []
        for version in range(self.version, max(self.version - limit, -1), -1):
            if (commit := delta_log.read(self.root, version)) is None:
                break
            found.append(commit.info)
        return found

    def metadata(self) -> Mapping[str, Any]:
        """Give the newest commit's metadata."""
        found = self.history(1)
        return found[0] if found else {}

    def actions(self) -> pa.Table:
        """List the live files with their statistics, one row a file (``path``, ``num_records``, ``min.x``)."""
        if self._live is not None and self._since:
            try:
                self._live = live_files.followed(self._live, self._since)
            except (pa.ArrowException, KeyError, ValueError):
                # What deltalake lists, this release may not know.
                self._live = None
        if self._live is None:
            self._live = pa.table(self.handle.get_add_actions(flatten=True))
        self._since = []
        return self._live
