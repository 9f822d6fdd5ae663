"""One Delta table and its commits: all of them through deltalake, fenced or conditional.

A commit is *fenced* when it carries the writer's token as a ``txn`` action on a snapshot whose token is the
writer's own: deltalake then refuses it once a newer token has landed (rule 4). It is *conditional* when it
carries an app id of its own on the snapshot that was decided on: whoever decided too refuses it (rule 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from seamline.lake.files import DataFile
from seamline.model.errors import Conflict, FenceLost, NotFound, ProtocolError

TOKEN = "seamline.token"
EPOCH = "seamline.epoch"
SETTINGS = {"delta.checkpointInterval": "50", "delta.dataSkippingNumIndexedCols": "-1"}
"""Statistics of every column: by itself Delta has those of the first 32, and readers prune by the last ones."""
OVERTAKEN = ("concurrent", "changed since")
"""What deltalake says of a commit that another has overtaken; a full disk says neither."""


class Table:
    """A handle on one Delta table at one version; only ``refresh`` and its own commits move it on."""

    def __init__(self, root: Path, handle: DeltaTable, token: int | None = None) -> None:
        self.root = root
        self.handle = handle
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

    @property
    def version(self) -> int:
        """The version this handle sees."""
        return int(self.handle.version())

    def refresh(self) -> Table:
        """Move the handle to the newest version."""
        self.handle.update_incremental()
        return self

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
                self.refresh()
                if any(
                    field.name not in {each.name for each in self.handle.schema().fields} for field in missing
                ):
                    raise
        return self.refresh()

    def txn(self, app: str) -> int | None:
        """Give the version that the last ``txn`` action of an app id carries."""
        found = self.handle.transaction_version(app)
        return None if found is None else int(found)

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
        try:
            self.handle.create_write_transaction(
                actions,
                "append" if instead is None else "overwrite",
                self.handle.schema() if instead is None else deltalake.Schema.from_arrow(instead),
                partition_by=self.handle.metadata().partition_columns or None,
                commit_properties=properties(txns, metadata),
            )
        except CommitFailedError as error:
            words = str(error).lower()
            if fenced and "concurrent transaction" in words:
                raise self._lost() from error
            if fenced or not any(each in words for each in OVERTAKEN):
                raise
            raise Conflict(
                f"{self.root.name} changed since version {self.version} was read.",
                hint="read it again and decide again.",
            ) from error
        # deltalake leaves the handle where it was.
        self.handle.update_incremental()
        return self.version

    def _lost(self) -> FenceLost:
        newer = Table.open(self.root).txn(TOKEN)
        return FenceLost(
            f"{self.root.name}: token {newer} has replaced ours, {self.token}.",
            hint="a newer writer runs; this one exits and commits nothing more.",
        )

    def metadata(self) -> dict[str, Any]:
        """Give the newest commit's metadata."""
        found = self.handle.history(1)
        return dict(found[0]) if found else {}

    def actions(self) -> pa.Table:
        """List the live files with their statistics, one row a file (``path``, ``num_records``, ``min.x``)."""
        return pa.table(self.handle.get_add_actions(flatten=True))

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Read the whole table at this version."""
        return self.handle.to_pyarrow_dataset().to_table(columns=columns)


def properties(txns: Mapping[str, int], metadata: Mapping[str, str] | None = None) -> CommitProperties:
    """Give what goes with a commit."""
    return CommitProperties(
        custom_metadata=dict(metadata or {}) or None,
        app_transactions=[Transaction(app, version) for app, version in txns.items()] or None,
    )
