"""A task of the fast path: partial states of a share of the master's files, by the kernel's own SQL."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import READ_ORDER, record_version_sql, repeated_id_sql, selected_sql
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql, span_start_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.store.data_writing import DataTarget
from seamline.lake.store.locations import Location
from seamline.lake.tables.reprocessed import REASON, rows_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.record_rules import SELECTED
from seamline.model.memory import parse_memory
from seamline.model.time.intervals import EPOCH, Interval, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.work_shares import Counts
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.tasks.arrow_states import NEEDED, read_by
from seamline.spark.tasks.spread import Row

CELL, SPARE = "_cell", "_spare"
COUNTS, STATES, PARTS = "counts", "states/", "parts/"
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
    turn: int = 0
    """Which part of the event ids the task takes: their hash modulo ``turns``."""
    turns: int = 1
    """1 if the task takes all ids."""


@dataclass(frozen=True)
class Partials:
    """Computes the partial states of shares in a Spark task."""

    pipeline: CompiledPipeline
    """With the views that are built."""
    shares: tuple[Share, ...]
    """By task number."""
    spans: tuple[Interval, ...]
    """The event times that are built."""
    cut: int
    """The last epoch, inclusive."""
    folders: Mapping[str, Location]
    """The folder of each generation, where states are spilled, by version id."""
    most: int
    """Bytes of states of one view that are reported directly; more are spilled."""

    def __call__(self, number: int) -> Iterator[Row]:
        """Report the states and counts of one share."""
        con, share = open_worker_duckdb(), self.shares[number]
        limit_duckdb_memory(con, self.pipeline.definition.stream.worker_memory)
        con.register("blank", rows_schema(self.pipeline).empty_table())
        rows = f"({self.rows_sql(share)})"
        if once := bool(self.pipeline.definition.source.event_id):
            con.execute(f"CREATE OR REPLACE TEMP TABLE fused_rows AS {rows}")
            rows = "fused_rows"
        try:
            for counts in self.counted(con, share, rows):
                yield COUNTS, json.dumps(encode_counts(counts)).encode()
            for view in self.pipeline.views:
                found = states.compute_row_states(con, view, f"(SELECT * FROM {rows} WHERE NOT {SPARE})")
                hit_failpoint("partials")
                if found.nbytes <= self.most:
                    yield STATES + view.id, to_bytes(found)
                else:
                    yield PARTS + view.id, self.spill(found, view).encode()
        finally:
            if once:
                con.execute("DROP TABLE fused_rows")
            con.unregister("blank")

    def counted(self, con: duckdb.DuckDBPyConnection, share: Share, rows: str) -> Iterator[dict[str, Counts]]:
        """Count a share's ``rows`` by interval id: those that are known only as far as views leave some out."""
        if not share.known:
            yield self.count_read(con, rows)
            return
        if share.own or share.again:
            yield self.count_read(con, f"({self.rows_sql(replace(share, known={}))})")
        yield from self.count_taken(con, share.known)

    def spill(self, found: pa.Table, view: CompiledView) -> str:
        """Write states to a file that is merged later, and return its path."""
        target = DataTarget(self.folders[view.id] / "parts" / f"{uuid.uuid4().hex}.parquet")
        pq.write_table(
            add_cell_column(found, view),
            target.sink,
            compression="zstd",
            compression_level=1,
            row_group_size=100_000,
        )
        target.finish()
        return str(target.place)

    def rows_sql(self, share: Share) -> str:
        """Write the query for the rows of a share that fit, with the interval and whether the id is repeated."""
        fitting = record_version_sql(self.pipeline.record_version)
        parts = ["SELECT * FROM blank"]
        if share.own:
            parts.append(f"SELECT * FROM {read_parquet_sql(share.own, uneven=True)} WHERE {fitting}")
        if share.again:
            parts.append(f"SELECT * FROM {read_parquet_sql(share.again, uneven=True)} WHERE {REASON} IS NULL")
        source = " UNION ALL BY NAME ".join(parts)
        where = f"_epoch <= {self.cut} AND ({' OR '.join(map(in_span_sql, self.spans))})"
        ids = [quote_identifier(name) for name in self.pipeline.definition.source.event_id]
        if ids and share.turns > 1:
            where += f" AND hash({', '.join(ids)}) % {share.turns} = {share.turn}"
        columns = ", ".join(map(quote_identifier, self.columns))
        chosen = f"SELECT {columns}, {self.cell} AS {CELL} FROM ({source}) WHERE {where}"
        if not ids:
            every = [*([chosen] if share.own or share.again else []), *self.known_rows_sql(share.known)]
            return f"SELECT *, FALSE AS {SPARE} FROM ({' UNION ALL '.join(every or [chosen])})"
        return f"SELECT *, {repeated_id_sql(self.pipeline, CELL)} AS {SPARE} FROM ({chosen})"

    def known_rows_sql(self, files: Mapping[int, tuple[str, ...]]) -> list[str]:
        """Spell the rows of files of which every row counts: nothing of them need be looked at for that.

        They are of this definition: the column of the event time is ``_event_time``, and is not read beside it.
        """
        timed = self.pipeline.definition.source.event_time
        columns = ", ".join(
            f"_event_time AS {quote_identifier(name)}" if name == timed else quote_identifier(name)
            for name in self.columns
        )
        if len(files) > APART:
            every = [path for paths in files.values() for path in paths]
            return [f"SELECT {columns}, {self.cell} AS {CELL} FROM {read_parquet_sql(every)}"]
        return [
            f"SELECT {columns}, {at}::BIGINT AS {CELL} FROM {read_parquet_sql(paths)}"
            for at, paths in files.items()
        ]

    @property
    def cell(self) -> str:
        """The start of a row's interval, in microseconds."""
        return span_start_sql("epoch_us(_event_time)", self.pipeline.grid.length // MICROSECOND)

    @property
    def columns(self) -> list[str]:
        """The columns that are read: those of views, and those that counting needs."""
        known = [each.name for each in (*self.pipeline.record.flags, *self.pipeline.schema.fields)]
        wanted = set(NEEDED).union(*map(read_by, self.pipeline.views))
        ids = self.pipeline.definition.source.event_id
        wanted |= {*ids, *READ_ORDER} if ids else set()
        wanted |= {SELECTED} if self.pipeline.record.selective else set()
        return [name for name in (*dict.fromkeys((*NEEDED, *READ_ORDER)), *known) if name in wanted]

    def count_read(self, con: duckdb.DuckDBPyConnection, rows: str) -> dict[str, Counts]:
        """Count what was read, by interval id."""
        plain = [view for view in self.pipeline.views if view.where and not view.explode]
        exploding = [view for view in self.pipeline.views if view.explode]
        taken = f"NOT {SPARE} AND {selected_sql(self.pipeline)}"
        left = [f"count(*) FILTER (NOT {SPARE} AND {left_out_sql(view)})" for view in plain]
        columns = ", ".join(
            [CELL, "count(*)", f"count(*) FILTER ({SPARE})", f"count(*) FILTER ({taken})", *left]
        )
        items = {view.id: items_of(con, view, f"(SELECT * FROM {rows} WHERE {taken})") for view in exploding}
        found = {}
        for cell, read, spare, records, *numbers in con.execute(
            f"SELECT {columns} FROM {rows} GROUP BY {CELL}"
        ).fetchall():
            not_selected = dict(zip((view.id for view in plain), numbers, strict=True))
            exploded = {}
            for view in exploding:
                count, refusals = items[view.id].get(cell, (0, 0))
                exploded[view.id] = count - records
                if view.where:
                    not_selected[view.id] = read - spare - records + refusals
            found[format_utc_instant(EPOCH + cell * MICROSECOND)] = Counts(
                read, spare, not_selected, exploded
            )
        return found

    def count_taken(
        self, con: duckdb.DuckDBPyConnection, files: Mapping[int, tuple[str, ...]]
    ) -> Iterator[dict[str, Counts]]:
        """Count, for each view that leaves rows out, those that it takes of files of which every row counts.

        They are reported below zero, to be added to the rows that are known (``Gathered.know``).
        """
        for view in self.pipeline.views if files else ():
            if view.where:
                found = con.execute(self.counting_sql(view.where.duckdb, files)).fetchall()
                yield {
                    format_utc_instant(EPOCH + cell * MICROSECOND): Counts(0, 0, {view.id: -count}, {})
                    for cell, count in found
                }

    def counting_sql(self, where: str, files: Mapping[int, tuple[str, ...]]) -> str:
        """Spell how many rows of such files meet a condition, by interval.

        Of few intervals each is counted by itself, which takes a third of the time of filtering and grouping.
        """
        parts = self.known_rows_sql(files)
        if len(files) > APART:
            return f"SELECT {CELL}, count_if({where}) FROM ({' UNION ALL '.join(parts)}) GROUP BY {CELL}"
        return " UNION ALL ".join(
            f"SELECT {at}::BIGINT, count_if({where}) FROM ({rows})"
            for at, rows in zip(files, parts, strict=True)
        )


def limit_duckdb_memory(con: duckdb.DuckDBPyConnection, most: str) -> None:
    """Let DuckDB write what it has no room for to disk before a worker has taken ``most``: it would fail instead."""
    con.execute(f"SET memory_limit = '{parse_memory(most) // 2 >> 20}MiB'")


def add_cell_column(found: pa.Table, view: CompiledView) -> pa.Table:
    """Add the start of their interval to states, and sort by it: no pane crosses a border."""
    panes = found["pane"].cast(pa.int64()).to_numpy()
    starts = panes - panes % (view.interval // MICROSECOND)
    return found.append_column(CELL, pa.array(starts)).sort_by(CELL)


def encode_counts(counts: Mapping[str, Counts]) -> dict[str, object]:
    """Encode counts as they are reported."""
    return {interval: asdict(counted) for interval, counted in counts.items()}


def left_out_sql(view: CompiledView) -> str:
    """Write the condition that a view leaves a row out."""
    return f"NOT coalesce({view.where.duckdb}, FALSE)" if view.where else "FALSE"


def items_of(con: duckdb.DuckDBPyConnection, view: CompiledView, records: str) -> dict[int, tuple[int, int]]:
    """Count the rows that an exploding view makes of records, and which of them it leaves out, by cell."""
    rows = states.exploded_rows_sql(view, records)
    found = con.execute(
        f"SELECT {CELL}, count(*), count(*) FILTER ({left_out_sql(view)}) FROM {rows} GROUP BY {CELL}"
    )
    return {cell: (count, left) for cell, count, left in found.fetchall()}


def in_span_sql(span: Interval) -> str:
    """Write the condition that an event is in a span."""
    return f"(_event_time >= {instant_sql(span.start)} AND _event_time < {instant_sql(span.end)})"


def instant_sql(moment: object) -> str:
    """Write an instant for SQL."""
    return f"TIMESTAMPTZ {quote_literal(str(moment))}"


def to_bytes(table: pa.Table) -> bytes:
    """Write a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found
