"""The builds table: what each attempt to build a view's interval read, left out and wrote."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.model.protocol.seam import NOTHING
from seamline.plan.batch.estimates import REMEMBERED, Attempt

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("view", pa.string()),
        ("interval", pa.string()),
        ("generation", pa.string()),
        ("cut", pa.int64()),
        ("rows", pa.int64()),
        ("state_rows", pa.int64()),
        ("rows_read", pa.int64()),
        ("duplicates", pa.int64()),
        ("not_selected", pa.int64()),
        ("expected", pa.string()),
        ("seconds", pa.float64()),
        ("reason", pa.string()),
        ("at", INSTANT),
        ("exploded", pa.int64()),
        ("restated", pa.int64()),
        ("planned", pa.int64()),
        ("copies", pa.int64()),
        ("copied", pa.string()),
        ("unanswered", pa.int64()),
    ]
)
LATER = {"exploded": 0, "restated": 0, "planned": NOTHING, "copies": 0, "copied": "", "unanswered": 0}
"""Columns that earlier releases did not write, and what they meant."""


@dataclass(frozen=True)
class BuildRow:
    """One view's interval in one attempt."""

    run: str
    """The id of the Airflow run, or of the command, that built it."""
    view: str
    """The id of the version: ``name/fingerprint``."""
    interval: str
    """The interval's id."""
    generation: str
    """The attempt's name, which all intervals of the attempt share."""
    cut: int
    """The last epoch that was read."""
    rows: int
    """Rows of the generation in its table."""
    state_rows: int
    """Records counted in those rows: the sum of their ``rows`` column."""
    rows_read: int
    """Rows of the interval that were read from the master."""
    duplicates: int
    """Rows left out because an earlier row has their event id."""
    not_selected: int
    """Rows left out by the view's filter."""
    expected: str
    """The generation that was published when the attempt began; empty for none."""
    seconds: float
    """Duration of the whole attempt, not of this interval."""
    reason: str
    """Why the run was asked for."""
    at: datetime
    """When the attempt ended."""
    exploded: int = 0
    """By how many the view's input rows exceed the records from which they were made."""
    restated: int = 0
    """How many restatements the attempt knew."""
    planned: int = NOTHING
    """The manifest's version that the plan was made from; -1 if unknown."""
    copies: int = 0
    """Of a view of a join: rows in reach that repeat an event id and are joined all the same."""
    copied: str = ""
    """Where the first of them is: ``topic/partition@offset``."""
    unanswered: int = 0
    """Of a view of answered rows: rows that were asked about, or are to be, and have no record of an answer."""


class Builds:
    """Append-only; writers do not disturb each other."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> Builds:
        """Open the builds; create them if missing."""
        return cls(Table.ensure(layout.table("builds"), SCHEMA).widen(SCHEMA))

    def append(self, rows: Iterable[BuildRow]) -> None:
        """Add the rows of one attempt in one commit."""
        written = pa.Table.from_pylist([vars(row) for row in rows], schema=SCHEMA)
        if written.num_rows:
            name = f"{uuid.uuid4().hex}.parquet"
            self.table.append([data_files.write_data_file(written, self.table.root, name)])

    def of(self, run: str) -> list[BuildRow]:
        """List what the last attempt of a run has built, in order; an earlier one may have had another plan."""
        return keep_newest_attempt(self._rows(pc.field("run") == run))

    @property
    def newest_cut(self) -> int:
        """Return the highest cut of all attempts, by the files' statistics; NOTHING if there is none."""
        found = Files.of(self.table)
        known = found.high("cut").to_pylist() if found.actions.num_rows else []
        if None in known:
            known = self.table.read(["cut"])["cut"].to_pylist()
        return max(known, default=NOTHING)

    def newest(self) -> BuildRow | None:
        """Return a row of the attempt that ended last, by the files' statistics; None if there is none."""
        since = Files.of(self.table).find_bound("at", 1)
        if since is None:
            since = max(self.table.read(["at"])["at"].to_pylist(), default=None)
        rows = self._rows(pc.field("at") >= pa.scalar(since, INSTANT)) if since else []
        return max(rows, key=lambda row: row.at, default=None)

    def about(self, interval: str) -> list[BuildRow]:
        """List every attempt at an interval, oldest first."""
        return sorted(self._rows(pc.field("interval") == interval), key=lambda row: row.at)

    def of_intervals(self, intervals: Collection[str]) -> list[BuildRow]:
        """List every attempt at some intervals."""
        named = pc.field("interval")
        # Files are left out by bounds alone, not by lists.
        bounded = (named >= min(intervals)) & (named <= max(intervals))
        return self._rows(bounded & named.isin([*intervals]))

    def all(self) -> list[BuildRow]:
        """List every attempt."""
        return self._rows(None)

    def _rows(self, condition: pc.Expression | None) -> list[BuildRow]:
        found = self.table.refresh().handle.to_pyarrow_dataset().to_table(filter=condition)
        return [
            BuildRow(**row | {name: none for name, none in LATER.items() if row[name] is None})
            for row in found.select([name for name in SCHEMA.names if name in found.column_names]).to_pylist()
        ]

    def attempts(self) -> list[Attempt]:
        """List the newest attempts in their order, whatever became of them: rows read of the master, and seconds."""
        columns = ["generation", "interval", "rows_read", "seconds", "at"]
        rows = self.table.refresh().read(columns)
        once = rows.group_by(["generation", "interval"]).aggregate(
            [("rows_read", "max"), ("seconds", "max"), ("at", "max")]
        )
        sums = once.group_by("generation").aggregate(
            [("rows_read_max", "sum"), ("seconds_max", "max"), ("at_max", "max")]
        )
        newest = sums.sort_by("at_max_max").select(["rows_read_max_sum", "seconds_max_max"])
        found = zip(*(column.to_pylist()[-REMEMBERED:] for column in newest.columns), strict=True)
        return [Attempt(read, seconds) for read, seconds in found]


def keep_newest_attempt(rows: Sequence[BuildRow]) -> list[BuildRow]:
    """Keep the rows of the newest attempt, by view and interval."""
    newest = max(rows, key=lambda row: (row.at, row.generation), default=None)
    mine = [row for row in rows if newest and row.generation == newest.generation]
    return sorted(mine, key=lambda row: (row.view, row.interval))


def read_newest_build(layout: Layout) -> BuildRow | None:
    """Return a row of the attempt that ended last; None if there is none, or no table, which is not made for it."""
    return Builds.ensure(layout).newest() if Table.exists(layout.table("builds")) else None
