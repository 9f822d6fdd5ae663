"""The versions of a Delta table that others append to: what each of them brings, and which cannot be read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from seamline.lake.imports.delta_history import (
    describe_appended_files,
    find_delta_history,
    locate_commit,
    read_table_commit,
    read_written_times,
)
from seamline.lake.imports.import_options import ImportOptions
from seamline.lake.imports.import_plans import ImportPlan
from seamline.lake.store.locations import Location, parse_location
from seamline.model.definition.sources import DeltaSource
from seamline.model.errors import BadRange, NotFound, TopicRecreated
from seamline.model.protocol.imported.table_rows import DONE, TableRow
from seamline.model.protocol.offsets import OF_TABLE, Lane
from seamline.model.time.intervals import EPOCH
from seamline.model.types.schema import Schema
from seamline.plan.stream.import_plan import HistoryFile, PlannedFile, TakenFiles
from seamline.plan.stream.table_plan import Brought, begin_at, find_last_end, find_next_rows
from seamline.runtime.storage_failures import store_failed

LONG = 600.0
"""Seconds without a look, after which the whole log is read to find the newest version."""


@dataclass(frozen=True)
class TableNews:
    """What there is of a table from some offset on."""

    beginning: int
    """The first offset of what is there; above the one that was asked for where what comes next cannot be read."""
    end: int
    """The end of the version that is read next; of a table without news the beginning."""
    plan: ImportPlan | None = None
    """The rows of that version; None where there is nothing new, or it cannot be read."""
    lost: str = ""
    """Why it cannot be read."""
    passed: int = -1
    """All versions up to this one are read, or bring no rows."""


class TableVersions:
    """The versions of one Delta table, in the order in which they are read.

    Making one raises NotFound without a table, BadRange for one that cannot be read or lacks a column that is named,
    and StoreUnavailable.
    """

    def __init__(self, source: DeltaSource, options: ImportOptions, staging: Location) -> None:
        self.source, self.options, self.staging = source, options, staging
        self.place = parse_location(source.table)
        try:
            table = DeltaTable(str(self.place))
        except TableNotFoundError:
            raise NotFound(
                f"There is no Delta table at {source.table!r}.",
                hint="create it, or correct table= of the source.",
            ) from None
        except DeltaError as error:
            if failed := store_failed(error):
                raise failed from None
            raise BadRange(
                f"The Delta table at {source.table!r} cannot be read: {str(error).splitlines()[0]}.",
                hint="check the table by its own engine.",
            ) from None
        self.id = str(table.metadata().id)
        self.lane = Lane(f"{OF_TABLE}{self.id}", 0)
        self.passed: tuple[int, int] = (-1, -1)
        self.known, self.looked = table.version(), time.monotonic()
        schema = pa.schema(table.schema().to_arrow())
        self.types = {name: schema.field(name).type for name in table.metadata().partition_columns}
        require_source_columns(source, schema)
        require_plain_names(source.table, table)
        self.plan_version = lru_cache(2)(self._plan_version)

    def find_newest(self) -> int:
        """Return the newest version, by a look for the log entry of the next one.

        Who has not looked for long may not find that one, because the table's log was cleaned up since.
        """
        now = time.monotonic()
        if now - self.looked > LONG:
            self.known = DeltaTable(str(self.place)).version()
        self.looked = now
        while locate_commit(self.place, self.known + 1).exists():
            self.known += 1
        return self.known

    def look(self, position: int | None) -> TableNews:
        """Look at what is read next after an offset; with None at all rows of the newest version.

        StoreUnavailable where the table's store does not answer, TopicRecreated where another table is there now.
        """
        if position is None:
            position = begin_at(self.find_newest())
        known = self.passed[1] if self.passed[0] == position else -1
        found = find_next_rows(position, self.find_newest(), self.look_at, passed=known)
        self.passed = position, found.passed
        plan = self.plan_version(found.version, found.whole) if found.version >= 0 else None
        return TableNews(found.beginning, found.end, plan, found.lost, found.passed)

    def find_last_end(self, position: int | None) -> int:
        """Find the offset at which all is read that the table has now; StoreUnavailable."""
        newest = self.find_newest()
        return find_last_end(begin_at(newest) if position is None else position, newest, self.look_at)

    def look_at(self, version: int, whole: bool) -> Brought:
        """Look at what a version brings."""
        try:
            plan = self.plan_version(version, whole)
        except BadRange as error:
            return Brought(lost=error.message)
        return Brought(plan.rows - TableRow(version, 0, whole).offset if plan.files else 0)

    def _plan_version(self, version: int, whole: bool) -> ImportPlan:
        if whole:
            return self.plan_whole(version)
        commit = read_table_commit(self.place, version)
        self.require_same_table()
        if commit is None:
            raise BadRange(
                f"The log of {self.source.table!r} no longer has version {version}.", hint="accept the hole."
            )
        if commit.rewrites:
            raise BadRange(
                f"Version {version} of {self.source.table!r} rewrites or deletes rows.",
                hint="accept the hole.",
            )
        files = describe_appended_files(self.source.table, self.place, commit.appended, self.types)
        return self.make_plan(version, files, commit.at)

    def require_same_table(self) -> None:
        """Raise TopicRecreated if another table is where this one was, BadRange if its columns have other names now."""
        table = DeltaTable(str(self.place))
        if str(table.metadata().id) != self.id:
            raise TopicRecreated(
                f"The Delta table at {self.source.table!r} had id {self.id} and now has {table.metadata().id}.",
                hint="it was created again while it was read: restart the stream, which says what is missing.",
            )
        require_plain_names(self.source.table, table)

    def plan_whole(self, version: int) -> ImportPlan:
        """Plan all rows of a version, files in the order in which they were written."""
        text = self.source.table
        history = find_delta_history(text, self.place, self.staging, "", version, TakenFiles(), {})
        written = read_written_times(self.place, version)
        files = sorted(history.files, key=lambda each: (written[each.name], each.name))
        return self.make_plan(version, files, max(written.values(), default=None), whole=True)

    def make_plan(
        self, version: int, files: Sequence[HistoryFile], at: datetime | None, *, whole: bool = False
    ) -> ImportPlan:
        """Make the plan of what a version brings; ``at`` is when it was committed."""
        placed = tuple(place_files(files, version, whole))
        if placed and placed[-1].end >= TableRow(version, DONE, whole).offset:
            raise BadRange(
                f"Version {version} of {self.source.table!r} has {DONE:,} rows or more.",
                hint="accept the hole.",
            )
        return ImportPlan(f"{self.lane.topic_id}@{version}", self.options, placed, at or EPOCH)


def place_files(files: Sequence[HistoryFile], version: int, whole: bool) -> list[PlannedFile]:
    """Give the rows of files their offsets, one after the other; those of files without rows are nowhere."""
    placed, at = [], TableRow(version, 0, whole).offset
    for file in (each for each in files if each.rows):
        placed.append(PlannedFile(file, 0, at))
        at += file.rows
    return placed


def require_plain_names(text: str, table: DeltaTable) -> None:
    """Raise BadRange for a table whose columns have other names in its files."""
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        raise BadRange(
            f"{text!r} is a Delta table with column mapping, which cannot be read.",
            hint="read a copy of it without column mapping.",
        )


def require_source_columns(source: DeltaSource, schema: pa.Schema) -> None:
    """Raise BadRange where a column that is named is not there, or a field would come from two."""
    known = ", ".join(sorted(schema.names))
    for ours, theirs in source.columns.items():
        if theirs not in schema.names:
            raise BadRange(
                f"{source.table!r} has no column {theirs!r}, which columns= takes {ours!r} from.",
                hint=f"its columns are {known}.",
            )
        if ours in schema.names and ours not in source.columns.values():
            raise BadRange(
                f"{source.table!r} has a column {ours!r}, and columns= takes {ours!r} from {theirs!r}.",
                hint=f'give that column another name too: columns={{..., "other": "{ours}"}}.',
            )
    fields = [each.name for each in Schema.parse(source.schema).fields]
    named = source.columns.get(source.event_time, source.event_time)
    if source.event_time in fields and named not in schema.names and "_value" not in source.columns:
        raise BadRange(
            f"{source.table!r} has no column {named!r}, which is the event time.",
            hint=f"its columns are {known}.",
        )
