"""How many events each key has that a view counts: count windows are numbered by the driver, which sees all in order.

The order is that of the master: (epoch, partition, offset, topic).
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from seamline.kernel.marks import PLACE, marks_schema
from seamline.kernel.survey import (
    survey_columns_sql,
    survey_schema,
    view_flag_column,
)
from seamline.kernel.validation import REPEATED
from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import record_version_sql
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.log.log_files import files_of
from seamline.lake.storage.arrow_types import master_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.record_rules import SELECTED
from seamline.model.time.intervals import EPOCH, Interval

MICROSECOND = timedelta(microseconds=1)
NEVER = 2**62
ORDER = ("_partition", "_offset", "_topic")
CELLS = 400
"""Intervals of which the register is kept; above it is made again from the master as it is asked."""
ADDED_UP_EVERY = 64


class Register:
    """Kept in DuckDB, in the driver; an interval is read from the master when its first record comes.

    ``number`` finds the windows of an epoch's events, ``commit`` keeps what it found once the master contains the
    epoch, ``forget`` drops all after a failure. It has a table for each view, of the events of each interval and key,
    in as many rows as they came in; ``surveyed`` has the records of the last epoch.
    """

    def __init__(self, pipeline: CompiledPipeline, layout: Layout) -> None:
        self.pipeline, self.layout = pipeline, layout
        self.views = [view for view in pipeline.views if view.counts]
        self.con = open_duckdb()
        self.forget()

    def forget(self) -> None:
        """Forget everything: the master is read again, and what was not committed is dropped."""
        self.cells: set[int] = set()
        self.held = 0
        self.load_survey(survey_schema(self.pipeline).empty_table(), PLACE.empty_table())
        for view in self.views:
            self.con.execute(
                f"CREATE OR REPLACE TABLE {table_of(view)} AS SELECT {keys_of(view)}, 0::BIGINT AS n FROM surveyed"
            )

    def number(self, found: pa.Table, repeated: pa.Table) -> pa.Table:
        """Number the events of one survey (``survey_schema``) without those that are ``repeated`` (``PLACE``).

        Returns ``marks_schema``, a row for each record of the survey.
        """
        self.load_survey(found, repeated)
        for (start,) in self.con.execute("SELECT DISTINCT _cell FROM surveyed").fetchall():
            if start not in self.cells:
                self.load(start)
        self.decided = True
        query, places = "SELECT * FROM surveyed", ", ".join(PLACE.names)
        for view in self.views:
            query = f"SELECT * FROM ({query}) LEFT JOIN ({self.places_sql(view)}) USING ({places})"
        schema = marks_schema(self.pipeline)
        return self.con.sql(query).to_arrow_table().select(schema.names).cast(schema)

    def load_survey(self, found: pa.Table, repeated: pa.Table) -> None:
        """Put the records of a survey into their table, with the start of their interval."""
        self.decided = False
        cell = interval_start_sql("_event_time", self.pipeline.grid.length)
        same = " AND ".join(f"repeated.{name} = found.{name}" for name in PLACE.names)
        self.con.register("found", found)
        self.con.register("repeated", repeated)
        self.con.execute(
            f"CREATE OR REPLACE TABLE surveyed AS SELECT *, {cell} AS _cell, "
            f"EXISTS (SELECT 1 FROM repeated WHERE {same}) AS {REPEATED} FROM found"
        )
        self.con.unregister("found")
        self.con.unregister("repeated")

    def places_sql(self, view: CompiledView) -> str:
        """Write the places of the records that a view counts, with their windows."""
        names = ["_cell", *(quote_identifier(key.name) for key in view.ordered_by)]
        equal = " AND ".join(f"now.{each} IS NOT DISTINCT FROM before.{each}" for each in names)
        groups, order = (", ".join(f"now.{each}" for each in some) for some in (names, ORDER))
        place = f"row_number() OVER (PARTITION BY {groups} ORDER BY {order})"
        here = "_cell IN (SELECT _cell FROM surveyed)"
        return (
            f"SELECT {', '.join(f'now.{name}' for name in PLACE.names)}, "
            f"(coalesce(before.n, 0) + {place} - 1) // {view.counts} + 1 AS {quote_identifier(view.numbered)} "
            f"FROM surveyed now LEFT JOIN ({event_totals_sql(view, here)}) before ON {equal} WHERE {new_of(view)}"
        )

    def commit(self) -> None:
        """Keep what the last survey decided, if there was one since: its epoch is committed."""
        if self.decided:
            self.add_rows(f"SELECT * FROM surveyed WHERE NOT {REPEATED}")
        self.load_survey(survey_schema(self.pipeline).empty_table(), PLACE.empty_table())
        self.held += 1
        if len(self.cells) > CELLS:
            self.forget()
        elif self.held % ADDED_UP_EVERY == 0:
            self.add_up()

    def add_rows(self, rows: str) -> None:
        """Add rows that count, of a survey or of the master."""
        for view in self.views:
            columns = keys_of(view)
            self.con.execute(
                f"INSERT INTO {table_of(view)} SELECT {columns}, count(*) FROM ({rows}) "
                f"WHERE {quote_identifier(view_flag_column(view))} GROUP BY {columns}"
            )

    def add_up(self) -> None:
        """Add up the counts."""
        for view in self.views:
            self.con.execute(f"CREATE OR REPLACE TABLE {table_of(view)} AS {event_totals_sql(view)}")

    def load(self, start: int) -> None:
        """Load the master's rows of the interval that starts at so many microseconds since 1970."""
        self.cells.add(start)
        files = read_cached_table(self.layout.table("master"), "files", Files.of)
        begins = EPOCH + start * MICROSECOND
        interval = Interval(begins, begins + self.pipeline.grid.length)
        paths = files_of(files, interval, NEVER) if files else []
        if not paths:
            return
        # A column that no file has yet comes from here.
        self.con.register("blank", master_schema(self.pipeline).empty_table())
        cell = interval_start_sql("_event_time", self.pipeline.grid.length)
        chosen = f"{record_version_sql(self.pipeline.record_version)} AND {cell} = {start}"
        if self.pipeline.record.selective:
            chosen += f" AND {SELECTED}"
        rows = f"SELECT * FROM blank UNION ALL BY NAME SELECT * FROM {read_parquet_sql(paths, uneven=True)}"
        columns = ", ".join([f"{cell} AS _cell", *survey_columns_sql(self.pipeline)])
        self.add_rows(f"SELECT {columns} FROM ({rows}) WHERE {chosen}")
        self.con.unregister("blank")


def table_of(view: CompiledView) -> str:
    """Name the register's table of a view."""
    return f"counts_{view.fingerprint}"


def keys_of(view: CompiledView) -> str:
    """Write the interval and the keys within which a view counts events."""
    return ", ".join(["_cell", *(quote_identifier(key.name) for key in view.ordered_by)])


def event_totals_sql(view: CompiledView, where: str = "true") -> str:
    """Write the query for the committed events of each interval and key."""
    columns = keys_of(view)
    return f"SELECT {columns}, sum(n)::BIGINT AS n FROM {table_of(view)} WHERE {where} GROUP BY {columns}"


def new_of(view: CompiledView) -> str:
    """Write whether a view counts a record of the survey."""
    return f"{quote_identifier(view_flag_column(view))} AND NOT {REPEATED}"


def interval_start_sql(column: str, size: timedelta) -> str:
    """Write the start, in microseconds since 1970, of the interval that contains an instant."""
    return f"epoch_us({states.floor_sql(column, size)})"
