"""The rows of a task's share of the files, as SQL: which of them a build reads, and which repeat an event id."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.lake.engine.accepted_rows import READ_ORDER, record_version_sql, repeated_id_sql
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql, span_start_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.tables.reprocessed import REASON, rows_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.event_ids import list_id_expressions
from seamline.model.compile.record_rules import SELECTED
from seamline.model.memory import parse_memory
from seamline.model.time.intervals import Interval
from seamline.model.time.zone_clock import MICROSECOND
from seamline.spark.tasks.arrow_states import NEEDED, read_by

CELL, SPARE, PLACE = "_cell", "_spare", "_place"
ROW_NAMES = frozenset({"file_index", "file_row_number"})
"""What DuckDB calls a file's number in a scan and a row's in its file, unless a column is called so in any case."""
REPEATED = "repeated"
"""The name in DuckDB of the places of rows that repeat an id."""
ROW_BITS = 40
"""A row's place has its number in its file in so many bits, and above them the number of the file in its share."""
APART = 8
"""Intervals whose files are each read by a scan of their own; of more the rows say which they are of."""


@dataclass(frozen=True)
class Share:
    """A task's part of the work. Paths are absolute."""

    own: tuple[str, ...]
    """Files of the master."""
    again: tuple[str, ...]
    """Files of rows that were validated again."""
    known: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """More files of the master, of which every row counts, by interval start in microseconds since 1970."""
    alone: bool = False
    """Whether there is no other share, so that the task itself looks for event ids that are there twice."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, by their number in the share."""
        return (*self.own, *self.again, *(path for paths in self.known.values() for path in paths))


@dataclass(frozen=True)
class ShareTask:
    """What a task over one of several shares is given."""

    pipeline: CompiledPipeline
    """With the views that are built."""
    shares: tuple[Share, ...]
    """By task number."""
    spans: tuple[Interval, ...]
    """The event times that are built."""
    cut: int
    """The last epoch, inclusive."""

    def open_duckdb(self) -> duckdb.DuckDBPyConnection:
        """Open the worker's DuckDB, bounded as the worker is, with an empty table of all columns."""
        con = open_worker_duckdb()
        limit_duckdb_memory(con, self.pipeline.definition.stream.worker_memory)
        more = [pa.field(SPARE, pa.bool_()), pa.field(PLACE, pa.int64())]
        con.register("blank", pa.schema([*rows_schema(self.pipeline), *more]).empty_table())
        return con

    def rows_sql(self, share: Share, repeated: Collection[int] = ()) -> str:
        """Write the query for the rows of a share that fit, with the interval and whether the id is repeated.

        Those that repeat one are in the table REPEATED, of the files with the numbers ``repeated``; a share that is
        alone finds them itself.
        """
        looked = self.looked_sql(share, self.columns, repeated)
        if share.alone:
            found = repeated_id_sql(self.pipeline, CELL)
            return f"SELECT * EXCLUDE ({SPARE}, {PLACE}), {found} AS {SPARE} FROM ({looked})"
        known = self.known_rows_sql(share, self.columns, repeated)
        return " UNION ALL ".join([*([looked] if share.own or share.again or not known else []), *known])

    def looked_sql(
        self, share: Share, columns: Sequence[str], repeated: Collection[int] = (), where: str = "TRUE"
    ) -> str:
        """Write the query for the rows that fit of files of which each row must be looked at."""
        fitting = record_version_sql(self.pipeline.record_version)
        parts = ["SELECT * FROM blank"]
        for paths, first, condition in (
            (share.own, 0, fitting),
            (share.again, len(share.own), f"{REASON} IS NULL"),
        ):
            if paths:
                files = read_parquet_sql(paths, uneven=True)
                marks = marks_sql(first, len(paths), repeated)
                parts.append(f"SELECT *, {marks} FROM {files} WHERE {condition}")
        within = f"_epoch <= {self.cut} AND ({' OR '.join(map(in_span_sql, self.spans))})"
        chosen = ", ".join([*map(quote_identifier, columns), f"{self.cell} AS {CELL}"])
        source = " UNION ALL BY NAME ".join(parts)
        return f"SELECT {chosen}, {SPARE}, {PLACE} FROM ({source}) WHERE {within} AND {where}"

    def known_rows_sql(
        self, share: Share, columns: Sequence[str], repeated: Collection[int] = (), where: str = "TRUE"
    ) -> list[str]:
        """Write queries for the rows of files of which every row counts: nothing of them need be looked at for that.

        They are of this definition: the column of the event time is ``_event_time``, and is not read beside it.
        """
        timed = None if self.pipeline.alone else self.pipeline.source.event_time
        chosen = ", ".join(
            f"_event_time AS {quote_identifier(name)}" if name == timed else quote_identifier(name)
            for name in columns
        )
        groups = [(f"{at}::BIGINT", paths) for at, paths in share.known.items()]
        if len(groups) > APART:
            groups = [(self.cell, tuple(path for paths in share.known.values() for path in paths))]
        made, first = [], len(share.own) + len(share.again)
        for cell, paths in groups:
            marks = marks_sql(first, len(paths), repeated)
            made.append(
                f"SELECT {chosen}, {cell} AS {CELL}, {marks} FROM {read_parquet_sql(paths)} WHERE {where}"
            )
            first += len(paths)
        return made

    @property
    def cell(self) -> str:
        """The start of a row's interval, in microseconds."""
        return span_start_sql("epoch_us(_event_time)", self.pipeline.grid.length // MICROSECOND)

    @property
    def event_id(self) -> tuple[str, ...]:
        """The columns of the event id; empty if none is declared."""
        return self.pipeline.event_id

    @property
    def id_expressions(self) -> list[str]:
        """What together identifies an event, in DuckDB's SQL."""
        return list_id_expressions(self.pipeline, quote_identifier)

    @property
    def columns(self) -> list[str]:
        """The columns that are read: those of views, and those that counting needs."""
        known = [each.name for each in (*self.pipeline.record.flags, *self.pipeline.schema.fields)]
        wanted = set(NEEDED).union(*map(read_by, self.pipeline.views))
        wanted |= {*self.event_id, *READ_ORDER} if any(share.alone for share in self.shares) else set()
        wanted |= {SELECTED} if self.pipeline.record.selective else set()
        return [name for name in (*dict.fromkeys((*NEEDED, *READ_ORDER)), *known) if name in wanted]


def marks_sql(first: int, count: int, repeated: Collection[int]) -> str:
    """Write the columns that say whether a row's id is repeated, and where the row is.

    The ``count`` files of the scan have the numbers from ``first`` on in their share.
    """
    place = f"(({first} + file_index)::BIGINT << {ROW_BITS} | file_row_number)"
    found = any(first <= number < first + count for number in repeated)
    spare = f"{place} IN (FROM {REPEATED})" if found else "FALSE"
    return f"{spare} AS {SPARE}, {place} AS {PLACE}"


def limit_duckdb_memory(con: duckdb.DuckDBPyConnection, most: str) -> None:
    """Let DuckDB write what it has no room for to disk before a worker has taken ``most``: it would fail instead."""
    con.execute(f"SET memory_limit = '{parse_memory(most) // 2 >> 20}MiB'")


def in_span_sql(span: Interval) -> str:
    """Write the condition that an event is in a span."""
    return f"(_event_time >= {instant_sql(span.start)} AND _event_time < {instant_sql(span.end)})"


def instant_sql(moment: object) -> str:
    """Write an instant for SQL."""
    return f"TIMESTAMPTZ {quote_literal(str(moment))}"
