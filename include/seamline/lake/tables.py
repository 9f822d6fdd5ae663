"""One Delta table and its commits, fenced or conditional.

A commit is *fenced* when it carries the writer's token as a ``txn`` action on a version whose token is the
writer's own: it is refused once a newer token has landed (rule 4). It is *conditional* when it carries an app id of
its own on the version that was decided on: whoever decided too refuses it (rule 5).

What an epoch costs is here: the log is followed and appended to commit by commit (``delta_log``), whatever the table
has grown to; deltalake opens tables, makes and changes their schema, reads rows, and writes checkpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from seamline.lake import delta_log, live_files
from seamline.lake.delta_log import Commit
from seamline.lake.files import DataFile
from seamline.model.errors import Conflict, FenceLost, NotFound, ProtocolError

TOKEN = "seamline.token"
EPOCH = "seamline.epoch"
SETTINGS = {"delta.checkpointInterval": "50", "delta.dataSkippingNumIndexedCols": "-1"}
"""Statistics of every column: by itself Delta has those of the first 32, and readers prune by the last ones."""
OVERTAKEN = ("concurrent", "changed since")
"""What deltalake says of a commit that another has overtaken; a full disk says neither."""
UNDERSTOOD = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""What a table may ask of its writers beyond what every table does; the rest is left to deltalake."""
CHECKPOINT_EVERY = "delta.checkpointInterval"
REMEMBERED = 1000
"""Commits to go through at most where the live files are asked for: after more they are listed anew."""

log = logging.getLogger("seamline.lake")


class Table:
    """One Delta table at one version; only ``refresh`` and its own commits move it on."""

    def __init__(self, root: Path, handle: DeltaTable, token: int | None = None) -> None:
        self.root = root
        self.token = token
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

    @classmethod
    def open(cls, root: Path) -> Table:
        """Open a table at its newest version; NotFound where there is none."""
        try:
            return cls(root, DeltaTable(str(root)))
        except TableNotFoundError:
            raise NotFound(f"There is no table at {root}.", hint="has the stream ever run?") from None

    @classmethod
    def ensure(
        cls,
        root: Path,
        schema: pa.Schema,
        *,
        partition_by: list[str] | None = None,
        settings: Mapping[str, str] | None = None,
        txns: Mapping[str, int] | None = None,
    ) -> Table:
        """Open a table, made empty, with some ``txns``, if it is not there; two that make it at once both get it."""
        if not DeltaTable.is_deltatable(str(root)):
            root.mkdir(parents=True, exist_ok=True)
            try:
                DeltaTable.create(
                    str(root),
                    schema=deltalake.Schema.from_arrow(schema),
                    mode="error",
                    partition_by=partition_by,
                    configuration={**SETTINGS, **(settings or {})},
                    commit_properties=properties(txns or {}),
                )
            except DeltaError:
                if not DeltaTable.is_deltatable(str(root)):
                    raise
        return cls.open(root)

    @classmethod
    def exists(cls, root: Path) -> bool:
        """Tell whether there is a table."""
        return bool(DeltaTable.is_deltatable(str(root)))

    def refresh(self) -> Table:
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

    def _anew(self) -> Table:
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

    def holding(self, schema: pa.Schema) -> Table:
        """Give the table; ProtocolError where it lacks a column of states, or holds it in another type."""
        held = {field.name: field.type for field in self.handle.schema().fields}
        for field in deltalake.Schema.from_arrow(schema).fields:
            if held.get(field.name) != field.type:
                raise ProtocolError(
                    f"Column {field.name!r} of {self.root} is {held.get(field.name, 'not there')}, and this "
                    f"release keeps a state of {field.type}.",
                    hint="the table was written by another release: name the measure anew, and the view is another "
                    "version, which is built from the master.",
                )
        return self

    def widen(self, schema: pa.Schema) -> Table:
        """Add the columns that the table lacks; ProtocolError where one is there with another type.

        Two that add the same at once both find it there.
        """
        wanted = deltalake.Schema.from_arrow(schema)
        held = {field.name: field.type for field in self.handle.schema().fields}
        for field in wanted.fields:
            if held.get(field.name, field.type) != field.type:
                raise ProtocolError(
                    f"Column {field.name!r} of {self.root.name} holds {held[field.name]}, and the definition "
                    f"makes it {field.type}.",
                    hint="rows keep the type they were written with: give the new column another name.",
                )
        if missing := [field for field in wanted.fields if field.name not in held]:
            try:
                self.handle.alter.add_columns(missing)
            except DeltaError:
                self._anew()
                if any(
                    field.name not in {each.name for each in self.handle.schema().fields} for field in missing
                ):
                    raise
            self._anew()
        return self.refresh()

    def txn(self, app: str) -> int | None:
        """Give the version that the last ``txn`` action of an app id carries."""
        if app not in self._txns:
            found = self.handle.transaction_version(app)
            self._txns[app] = None if found is None else int(found)
        return self._txns[app]

    def fence(self, token: int) -> None:
        """Take the table over: from here on only commits under ``token`` succeed (rule 4)."""
        self.refresh()
        held = self.txn(TOKEN)
        if held is not None and held >= token:
            raise FenceLost(
                f"{self.root.name} already carries token {held}, ours is {token}.",
                hint="a newer writer runs; this one exits.",
            )
        self.token = token
        self._commit([], {TOKEN: token}, {}, fenced=True)

    def append(
        self,
        files: Iterable[DataFile],
        *,
        txns: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
        removes: Iterable[RemoveAction] = (),
        instead: pa.Schema | None = None,
    ) -> int:
        """Commit files (none is fine) and give the new version.

        With ``instead`` they replace all there is, and the table has that schema from then on.
        With a token the commit is fenced and raises FenceLost; without one it is conditional on its
        ``txns`` and raises Conflict.
        """
        now = datetime.now(UTC)
        written = list(files)
        for file in written:
            if not (self.root / file.path).is_file():
                raise FileNotFoundError(f"{self.root / file.path} vanished before its commit")
        actions: list[AddAction | RemoveAction] = [*removes, *(file.add(now) for file in written)]
        marks = dict(txns or {})
        if self.token is not None:
            if self.txn(TOKEN) != self.token:
                raise self._lost()
            marks[TOKEN] = self.token
        return self._commit(
            actions, marks, dict(metadata or {}), fenced=self.token is not None, instead=instead
        )

    def _commit(
        self,
        actions: list[AddAction | RemoveAction],
        txns: Mapping[str, int],
        metadata: Mapping[str, str],
        *,
        fenced: bool,
        instead: pa.Schema | None = None,
    ) -> int:
        if instead is not None or not self._appends:
            return self._commit_reshaped(actions, txns, metadata, fenced=fenced, instead=instead)
        lines = delta_log.actions(
            actions, txns, metadata, partition_by=self._partition_by, now=datetime.now(UTC)
        )
        ours = delta_log.parsed(self.version, lines)
        while not self._put(lines):
            first = delta_log.read(self.root, self.version + 1)
            if first is None or first.shape:
                raise self._overtaken()
            if not ours.txns.keys().isdisjoint(first.txns):
                raise self._lost() if fenced else self._overtaken()
            if ours.removes & first.removes:
                raise self._overtaken()
            self._follow(first)
        self._follow(replace(ours, version=self.version + 1))
        if self.version % self._checkpoint_every == 0:
            self._keep_short()
        return self.version

    def _put(self, lines: list[bytes]) -> bool:
        return delta_log.put(self.root, self.version + 1, lines)

    def _commit_reshaped(
        self,
        actions: list[AddAction | RemoveAction],
        txns: Mapping[str, int],
        metadata: Mapping[str, str],
        *,
        fenced: bool,
        instead: pa.Schema | None,
    ) -> int:
        """Commit through deltalake, which knows more of the protocol."""
        try:
            self.handle.create_write_transaction(
                actions,
                "append" if instead is None else "overwrite",
                self.handle.schema() if instead is None else deltalake.Schema.from_arrow(instead),
                partition_by=self._partition_by or None,
                commit_properties=properties(txns, metadata),
            )
        except CommitFailedError as error:
            words = str(error).lower()
            if fenced and "concurrent transaction" in words:
                raise self._lost() from error
            if fenced or not any(each in words for each in OVERTAKEN):
                raise
            raise self._overtaken() from error
        self._anew()
        return self.version

    def _keep_short(self) -> None:
        """Write a checkpoint, and let go of commits that are older than the table keeps them."""
        try:
            self.handle.create_checkpoint()
            self.handle.cleanup_metadata()
        except (DeltaError, OSError) as error:
            # The commit has landed; readers have more of them to go through until the next checkpoint.
            log.warning("%s got no checkpoint at version %s: %s", self.root.name, self.version, error)

    def _overtaken(self) -> Conflict:
        return Conflict(
            f"{self.root.name} changed since version {self.version} was read.",
            hint="read it again and decide again.",
        )

    def _lost(self) -> FenceLost:
        newer = Table.open(self.root).txn(TOKEN)
        return FenceLost(
            f"{self.root.name}: token {newer} has replaced ours, {self.token}.",
            hint="a newer writer runs; this one exits and commits nothing more.",
        )

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
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                self._live = None
        if self._live is None:
            self._live = pa.table(self.handle.get_add_actions(flatten=True))
        self._since = []
        return self._live

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Read the whole table at this version."""
        return self.handle.to_pyarrow_dataset().to_table(columns=columns)


def properties(txns: Mapping[str, int], metadata: Mapping[str, str] | None = None) -> CommitProperties:
    """Give what goes with a commit."""
    return CommitProperties(
        custom_metadata=dict(metadata or {}) or None,
        app_transactions=[Transaction(app, version) for app, version in txns.items()] or None,
    )
