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
from seamline.model.errors import BadRange, NotFound
from seamline.model.protocol.imported.table_rows import DONE, TableRow, find_row
from seamline.model.protocol.offsets import OF_TABLE, Lane
from seamline.model.time.intervals import EPOCH
from seamline.plan.stream.import_plan import HistoryFile, PlannedFile, TakenFiles

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


class TableVersions:
    """Reads which versions a Delta table has, and the rows of one after another."""

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
            raise BadRange(
                f"The Delta table at {source.table!r} cannot be read: {str(error).splitlines()[0]}.",
                hint="check the table by its own engine.",
            ) from None
        self.lane = Lane(f"{OF_TABLE}{table.metadata().id}", 0)
        self.known, self.looked = table.version(), time.monotonic()
        schema = pa.schema(table.schema().to_arrow())
        self.types = {name: schema.field(name).type for name in table.metadata().partition_columns}
        self.plan_version = lru_cache(2)(self._plan_version)

    def find_newest(self) -> int:
        """Return the newest version: a look for the file of the next one.

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
        """Look at what comes from an offset on; with None at all rows of the newest version.

        StoreUnavailable where the table's store does not answer.
        """
        if position is None:
            position = TableRow(self.find_newest(), 0, whole=True).offset
        at = find_row(position)
        version = at.version
        if at.begun:
            news = self.try_version(version, position, whole=at.whole)
            if news.lost or news.plan:
                return news
        if at.begun or at.done:
            version += 1
        newest = self.find_newest()
        while version <= newest:
            news = self.try_version(version, position, whole=False)
            if news.lost or news.plan:
                return news
            version += 1
        return TableNews(position, position)

    def try_version(self, version: int, position: int, *, whole: bool) -> TableNews:
        """Look at what a version brings."""
        try:
            plan = self.plan_version(version, whole)
        except BadRange as error:
            return TableNews(TableRow(version + 1, 0).offset, position, lost=error.message)
        if not plan.files:
            return TableNews(position, position)
        rows = plan.rows - TableRow(version, 0, whole).offset
        return TableNews(position, TableRow(version, rows, whole, done=True).offset, plan)

    def _plan_version(self, version: int, whole: bool) -> ImportPlan:
        if whole:
            return self.plan_whole(version)
        commit = read_table_commit(self.place, version)
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
