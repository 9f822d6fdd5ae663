"""One Delta table and its commits, fenced or conditional.

A commit is *fenced* when it carries the writer's token as a ``txn`` action on a version whose token is the
writer's own: it is refused once a newer token has landed (rule 4). It is *conditional* when it carries an app id of
its own on the version that was decided on: whoever decided too refuses it (rule 5).

What an epoch costs is here: the log is followed (``followed``) and appended to (``delta_log``) commit by commit,
whatever the table has grown to; deltalake opens tables, makes and changes their schema, reads rows, and writes
checkpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from seamline.lake import delta_log
from seamline.lake.files import DataFile
from seamline.lake.followed import Followed
from seamline.model.errors import Conflict, FenceLost, NotFound, ProtocolError

TOKEN = "seamline.token"
EPOCH = "seamline.epoch"
SETTINGS = {"delta.checkpointInterval": "50", "delta.dataSkippingNumIndexedCols": "-1"}
"""Statistics of every column: by itself Delta has those of the first 32, and readers prune by the last ones."""
OVERTAKEN = ("concurrent", "changed since")
"""What deltalake says of a commit that another has overtaken; a full disk says neither."""
log = logging.getLogger("seamline.lake")


class Table(Followed):
    """One Delta table at one version; only ``refresh`` and its own commits move it on."""

    def __init__(self, root: Path, handle: DeltaTable, token: int | None = None) -> None:
        super().__init__(root, handle)
        self.token = token

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

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Read the whole table at this version."""
        return self.handle.to_pyarrow_dataset().to_table(columns=columns)


def properties(txns: Mapping[str, int], metadata: Mapping[str, str] | None = None) -> CommitProperties:
    """Give what goes with a commit."""
    return CommitProperties(
        custom_metadata=dict(metadata or {}) or None,
        app_transactions=[Transaction(app, version) for app, version in txns.items()] or None,
    )
