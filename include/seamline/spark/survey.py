"""The survey: a first pass over an epoch's records for what depends on the records before them.

A pipeline has one only where it asks for it: duplicates within a horizon, or windows of so many events. The tasks judge
the records and report ids and keys; the driver, which sees all of them in order, compares them with what the master
holds and gives the kernel its marks. The order is that of the master: (epoch, partition, offset, topic).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame

from seamline.lake import states
from seamline.lake.layout import Layout
from seamline.lake.originals import files_of
from seamline.lake.pins import Files, look
from seamline.lake.reads import scan
from seamline.lake.states import quoted
from seamline.lake.types import INSTANT, arrow_type, master_schema
from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.evolution import AND, earlier
from seamline.model.intervals import EPOCH, Interval
from seamline.model.record import SELECTED
from seamline.model.schema import Field
from seamline.spark.formats import reader_of
from seamline.spark.formats.reader import literal
from seamline.spark.judgement import REPEATED
from seamline.spark.kernel import KernelConfig, chunks, engine, fresh, judged
from seamline.spark.marks import PLACE, marked, marks_schema

MICROSECOND = timedelta(microseconds=1)
ORDER = "_partition, _offset, _topic"
CELLS = 400
"""Intervals of which the register is kept; above it is made anew from the master as it is asked."""
CLEANED_EVERY = 64


def survey_fields(pipeline: CompiledPipeline) -> tuple[Field, ...]:
    """List the columns of a row that a survey reports: the event id, and the keys of views that count."""
    ids = pipeline.definition.source.event_id if pipeline.record.dedup else ()
    keys = (key.name for view in pipeline.views if view.counts for key in view.ordered_by)
    names = dict.fromkeys([*ids, *keys])
    return tuple(field for name in names for field in pipeline.schema.fields if field.name == name)


def survey_schema(pipeline: CompiledPipeline) -> pa.Schema:
    """Give the columns of a survey: where a record is, when, its ids and keys, and in which views it is."""
    own = [pa.field(field.name, arrow_type(field.type.spark)) for field in survey_fields(pipeline)]
    counting = [pa.field(counted(view), pa.bool_()) for view in pipeline.views if view.counts]
    return pa.schema([("_topic", pa.string()), *PLACE, ("_event_time", INSTANT), *own, *counting])


def counted(view: CompiledView) -> str:
    """Name the column that says whether a view counts a record."""
    return f"_in_{view.fingerprint}"


def survey_task(config: KernelConfig) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function for ``mapInArrow`` over raw Kafka rows; it yields rows of ``survey_schema``."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        con = engine()
        for table in surveyed(con, batches, config):
            yield from table.to_batches()

    return task


def surveyed(
    con: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch], config: KernelConfig
) -> Iterator[pa.Table]:
    """Judge raw records as the kernel will, and report those that are accepted and selected."""
    pipeline, reader = config.pipeline, reader_of(config.pipeline)
    schema = survey_schema(pipeline)
    for raw in chunks(batches):
        rows = marked(con, fresh(raw, config), pipeline, None)
        if not rows.num_rows:
            continue
        accepted, _ = judged(con, rows, config, reader)
        con.register("accepted", accepted)
        found = con.sql(f"SELECT {', '.join(reported(pipeline))} FROM accepted{chosen(pipeline)}")
        yield found.to_arrow_table().select(schema.names).cast(schema)
        con.unregister("accepted")


def reported(pipeline: CompiledPipeline) -> Iterator[str]:
    """Write the columns of a survey over rows with coordinates."""
    yield from ("_topic", *PLACE.names, "_event_time")
    yield from (quoted(field.name) for field in survey_fields(pipeline))
    for view in pipeline.views:
        if view.counts:
            yield f"({view.where.duckdb if view.where else 'true'}) IS TRUE AS {quoted(counted(view))}"


def chosen(pipeline: CompiledPipeline) -> str:
    """Write the condition that keeps the rows that are in any view at all."""
    return f" WHERE {SELECTED}" if pipeline.record.selective else ""


class Register:
    """What the master holds of the intervals that records fall into: event ids, and events per key of each view.

    An interval is read from the master when its first record comes. ``marks`` decides on an epoch, ``hold`` keeps
    what it decided once the master holds the epoch, ``forget`` drops all after a failure.
    """

    def __init__(self, pipeline: CompiledPipeline, layout: Layout) -> None:
        self.pipeline, self.layout = pipeline, layout
        self.views = [view for view in pipeline.views if view.counts]
        self.ids = [quoted(name) for name in pipeline.definition.source.event_id]
        self.con = states.connection()
        self.forget()

    def forget(self) -> None:
        """Know nothing: the master is asked again."""
        self.cells: set[int] = set()
        self.horizon: datetime | None = None
        self.held = 0
        empty = survey_schema(self.pipeline).empty_table()
        self.con.register("empty", empty)
        columns = ", ".join(quoted(field.name) for field in survey_fields(self.pipeline))
        own = f", {columns}" if columns else ""
        self.con.execute(
            f"CREATE OR REPLACE TABLE ids AS SELECT 0::BIGINT AS _cell, _event_time{own} FROM empty"
        )
        for view in self.views:
            self.con.execute(
                f"CREATE OR REPLACE TABLE {table_of(view)} AS SELECT 0::BIGINT AS _cell, "
                f"{''.join(f'{each}, ' for each in keys_of(view))}0::BIGINT AS n FROM empty"
            )
        self.con.unregister("empty")

    def surveyed(self, frame: DataFrame, config: KernelConfig) -> KernelConfig:
        """Survey a micro-batch, and give the kernel its marks."""
        fields = [*survey_fields(self.pipeline)]
        own = "".join(f", `{field.name}` {field.type.spark}" for field in fields)
        inside = "".join(f", `{counted(view)}` BOOLEAN" for view in self.views)
        columns = "_topic STRING, _topic_id STRING, _partition INT, _offset BIGINT, _event_time TIMESTAMP"
        found = frame.mapInArrow(survey_task(config), columns + own + inside).toArrow()
        return replace(config, marks=self.marks(found, config.watermark))

    def marks(self, found: pa.Table, watermark: datetime | None) -> pa.Table:
        """Decide on the records of one survey; ``watermark`` is the pipeline's when the epoch begins.

        A record is repeated if an earlier one of its id in its interval is there, whose event time is not further
        than the horizon behind the watermark.
        """
        within = self.pipeline.dedup_within
        self.horizon = watermark - within if watermark and within is not None else None
        con = self.con
        con.register("survey", found)
        cell = floored("_event_time", self.pipeline.grid.length)
        con.execute(f"CREATE OR REPLACE TABLE found AS SELECT *, {cell} AS _cell FROM survey")
        con.unregister("survey")
        for (start,) in con.execute("SELECT DISTINCT _cell FROM found").fetchall():
            if start not in self.cells:
                self.load(start)
        con.execute(f"CREATE OR REPLACE TABLE first AS SELECT *, {self.repeated()} AS {REPEATED} FROM found")
        query = "SELECT * FROM first"
        for view in self.views:
            con.execute(f"CREATE OR REPLACE TABLE of_{table_of(view)} AS {self.numbers(view)}")
            places = ", ".join(PLACE.names)
            query = f"SELECT * FROM ({query}) LEFT JOIN of_{table_of(view)} USING ({places})"
        schema = marks_schema(self.pipeline)
        return con.sql(query).to_arrow_table().select(schema.names).cast(schema)

    def repeated(self) -> str:
        """Write whether a record of the survey is repeated."""
        if not self.pipeline.record.dedup:
            return "false"
        ids = ", ".join(["_cell", *self.ids])
        within, recent = f"(PARTITION BY {ids} ORDER BY {ORDER})", "true"
        if self.horizon:
            recent = f"epoch_us({{}}_event_time) >= {(self.horizon - EPOCH) // MICROSECOND}"
        equal = " AND ".join(f"ids.{each} = found.{each}" for each in ["_cell", *self.ids])
        first = recent.replace("{}_event_time", f"first_value(_event_time) OVER {within}")
        return (
            f"(row_number() OVER {within} > 1 AND {first}) OR "
            f"EXISTS (SELECT 1 FROM ids WHERE {equal} AND {recent.replace('{}', 'ids.')})"
        )

    def numbers(self, view: CompiledView) -> str:
        """Write the window of every record that a view counts."""
        keys = keys_of(view)
        equal = " AND ".join(f"now.{each} IS NOT DISTINCT FROM before.{each}" for each in ["_cell", *keys])
        own = ", ".join(["now._cell", *(f"now.{each}" for each in keys)])
        order = ", ".join(f"now.{each}" for each in ORDER.split(", "))
        place = f"row_number() OVER (PARTITION BY {own} ORDER BY {order})"
        return (
            f"SELECT {', '.join(f'now.{name}' for name in PLACE.names)}, "
            f"(coalesce(before.n, 0) + {place} - 1) // {view.counts} + 1 AS {quoted(view.numbered)} "
            f"FROM first now LEFT JOIN {table_of(view)} before ON {equal} "
            f"WHERE {quoted(counted(view))} AND NOT {REPEATED}"
        )

    def hold(self) -> None:
        """Keep what the last survey decided: its epoch is held."""
        con = self.con
        if self.pipeline.record.dedup:
            own = ", ".join(
                ["_cell", "_event_time", *(quoted(each.name) for each in survey_fields(self.pipeline))]
            )
            con.execute(f"INSERT INTO ids ({own}) SELECT {own} FROM first WHERE NOT {REPEATED}")
        for view in self.views:
            self.count(view, f"first WHERE {quoted(counted(view))} AND NOT {REPEATED}")
        con.execute("DELETE FROM first; DELETE FROM found")
        self.held += 1
        if len(self.cells) > CELLS:
            self.forget()
        elif self.held % CLEANED_EVERY == 0 and self.horizon:
            con.execute("DELETE FROM ids WHERE _event_time < ?", [self.horizon])

    def count(self, view: CompiledView, rows: str) -> None:
        """Add rows to the counts of a view."""
        table, keys = table_of(view), keys_of(view)
        columns = ", ".join(["_cell", *keys])
        self.con.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT {columns}, sum(n)::BIGINT AS n FROM ("
            f"SELECT * FROM {table} UNION ALL SELECT {columns}, count(*) FROM {rows} GROUP BY {columns}"
            f") GROUP BY {columns}"
        )

    def load(self, start: int) -> None:
        """Read what the master holds of the interval that starts at so many microseconds since 1970."""
        self.cells.add(start)
        files = look(self.layout.table("master"), "files", Files.of)
        begins = EPOCH + start * MICROSECOND
        interval = Interval(begins, begins + self.pipeline.grid.length)
        paths = files_of(files, interval, 2**62) if files else []
        if not paths:
            return
        con = self.con
        con.register("empty", master_schema(self.pipeline).empty_table())
        rows = f"SELECT * FROM empty UNION ALL BY NAME SELECT * FROM {scan(paths, uneven=True)}".replace(
            "{{", "{"
        ).replace("}}", "}")
        cell = floored("_event_time", self.pipeline.grid.length)
        ours = f"{fitting(self.pipeline.record_version)} AND {cell} = {start}"
        kept = f"SELECT *, {cell} AS _cell FROM ({rows}) WHERE {ours}"
        kept += f" AND {SELECTED}" if self.pipeline.record.selective else ""
        con.execute(
            f"CREATE OR REPLACE TABLE old AS SELECT {', '.join(['_cell', *reported(self.pipeline)])} FROM ({kept})"
        )
        con.unregister("empty")
        if self.pipeline.record.dedup:
            own = ", ".join(
                ["_cell", "_event_time", *(quoted(each.name) for each in survey_fields(self.pipeline))]
            )
            con.execute(f"INSERT INTO ids ({own}) SELECT {own} FROM old")
        for view in self.views:
            self.count(view, f"old WHERE {quoted(counted(view))}")
        con.execute("DROP TABLE old")


def fitting(version: str) -> str:
    """Write whether a row is of a record version that fits."""
    known = ", ".join(map(literal, earlier(version)))
    return f"(_record_version IN ({known}) OR starts_with(_record_version, {literal(version + AND)}))"


def table_of(view: CompiledView) -> str:
    """Name the register's table of a view."""
    return f"counts_{view.fingerprint}"


def keys_of(view: CompiledView) -> list[str]:
    """Write the keys within which a view counts events."""
    return [quoted(key.name) for key in view.ordered_by]


def floored(column: str, size: timedelta) -> str:
    """Write the start, in microseconds since 1970, of the interval that holds an instant."""
    return f"epoch_us({states.floor_sql(column, size)})"
