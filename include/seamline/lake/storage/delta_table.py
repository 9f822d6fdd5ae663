"""One Delta table: opened, made, given its columns and settings, and read; ``fenced_commits`` has its commits."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

import deltalake
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from seamline.lake.storage import durability, log_store, log_wholeness
from seamline.lake.storage.fenced_commits import Committed, build_commit_properties
from seamline.lake.storage.table_settings import settings_of
from seamline.lake.store.explained_errors import explain_errors
from seamline.lake.store.locations import Location, find_nearest_folder, list_names
from seamline.lake.store.promises import list_waits
from seamline.model.definition.layers import DURABILITY
from seamline.model.errors import ProtocolError, StoreRefused

EPOCH = "seamline.epoch"
log = logging.getLogger("seamline.lake")


class Table(Committed):
    """One Delta table at one version."""

    @classmethod
    def open(cls, root: Location) -> Table:
        """Open a table at its newest version, or before the first entry that is not whole.

        NotFound if there is none; NotWhole if nothing can be opened before what is broken. A commit after
        what is not whole is refused with NotWhole. ChangedByOthers if another writer has changed rows.
        """
        return cls(root, *log_wholeness.open_whole_table(root)).require_ours()

    @classmethod
    def ensure(
        cls,
        root: Location,
        schema: pa.Schema,
        *,
        partition_by: list[str] | None = None,
        txns: Mapping[str, int] | None = None,
    ) -> Table:
        """Open a table, made empty, with some ``txns``, if it is not there; two that make it at once both get it."""
        if not cls.exists(root):
            there = find_nearest_folder(root)
            root.mkdir(parents=True, exist_ok=True)
            for wait in (*list_waits(root), None):
                try:
                    with explain_errors(root):
                        DeltaTable.create(
                            str(root),
                            schema=deltalake.Schema.from_arrow(schema),
                            mode="error",
                            partition_by=partition_by,
                            configuration=dict(settings_of(root.name)),
                            commit_properties=build_commit_properties(txns or {}),
                        )
                    break
                except StoreRefused:
                    raise
                except (DeltaError, OSError):
                    # Another has made it, or it is there, and the reply that said so was lost; or a store was busy.
                    if cls.exists(root):
                        break
                    if wait is None:
                        raise
                    time.sleep(wait)
            if root.name in durability.ALWAYS:
                durability.sync_file(log_store.entry_path(root, 0))
                durability.sync_folders([root / log_store.FOLDER], above=there)
        return cls.open(root)

    @classmethod
    def exists(cls, root: Location) -> bool:
        """Return whether there is a table: by its first entry, and where log clean-up has taken that, by any other."""
        if log_store.entry_path(root, 0).is_file():
            return True
        try:
            return any(map(log_store.ENTRY.fullmatch, list_names(root / log_store.FOLDER)))
        except FileNotFoundError:
            return False

    def holding(self, schema: pa.Schema, *, late: Sequence[str] = ()) -> Table:
        """Return the table; ProtocolError if it lacks a column of states, or has it in another type.

        The ``late`` ones of them are added.
        """
        if late:
            self.widen(pa.schema([schema.field(name) for name in late]))
        held = {field.name: field.type for field in self.handle.schema().fields}
        for field in deltalake.Schema.from_arrow(schema).fields:
            if held.get(field.name) != field.type:
                raise ProtocolError(
                    f"Column {field.name!r} of {self.root} is {held.get(field.name, 'missing')}, but this "
                    f"release keeps a state of {field.type}.",
                    hint="the table was written by another release: rename the measure, which makes the view a new "
                    "version that is built from the master.",
                )
        return self

    def widen(self, schema: pa.Schema) -> Table:
        """Add the columns that the table lacks; ProtocolError if one is there with another type.

        Two that add the same at once both find it there.
        """
        wanted = deltalake.Schema.from_arrow(schema)
        held = {field.name: field.type for field in self.handle.schema().fields}
        for field in wanted.fields:
            if held.get(field.name, field.type) != field.type:
                raise ProtocolError(
                    f"Column {field.name!r} of {self.root.name} has type {held[field.name]}, but the definition "
                    f"makes it {field.type}.",
                    hint="rows keep the type they were written with: choose another name for the new column.",
                )
        if missing := [field for field in wanted.fields if field.name not in held]:
            try:
                with explain_errors(self.root):
                    self.handle.alter.add_columns(missing, commit_properties=build_commit_properties({}))
            except DeltaError:
                self._anew()
                if any(
                    field.name not in {each.name for each in self.handle.schema().fields} for field in missing
                ):
                    raise
            self._anew()
            if self.synced:
                self.sync()
        return self.refresh()

    def state_durability(self, level: str) -> None:
        """State whether each commit is synced from now on, with all that was there before; once is enough."""
        wanted = DURABILITY.index(level)
        if (self.txn(durability.DURABILITY) or 0) != wanted:
            durability.sync_disk(self.root)
            self._durable = self.version
            self.append([], txns={durability.DURABILITY: wanted}, sync=True)

    def settle(self) -> None:
        """State the settings that the table was made without; those that someone has given it stay as they are."""
        wanted = {
            name: each for name, each in settings_of(self.root.name).items() if name not in self.settings
        }
        if not wanted:
            return
        try:
            with explain_errors(self.root):
                self.handle.alter.set_table_properties(wanted, commit_properties=build_commit_properties({}))
        except DeltaError as error:
            # The table is as good as before; the next start tries again.
            log.warning("The settings of %s could not be set to %s: %s", self.root.name, wanted, error)
        self._anew()
        if self.synced:
            self.sync()

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Read the whole table at this version."""
        with explain_errors(self.root):
            return self.handle.to_pyarrow_dataset().to_table(columns=columns)
