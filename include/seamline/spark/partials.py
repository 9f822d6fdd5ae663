"""A task of the fast path: partial states of a share of the master's files, by the kernel's own SQL."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake import states
from seamline.lake.rejudged import REASON, rows_schema
from seamline.lake.scans import aligned, literal, scan
from seamline.lake.states import quoted
from seamline.model.clock import MICROSECOND
from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.evolution import AND, earlier
from seamline.model.intervals import EPOCH, Interval, stamp
from seamline.model.record import SELECTED
from seamline.spark.arrow_states import NEEDED, read_by
from seamline.spark.kernel import engine
from seamline.spark.measures import ORDER
from seamline.spark.task import SCHEMA as REPORTED

CELL, SPARE = "_cell", "_spare"
COUNTS, STATES, PARTS = "counts", "states/", "parts/"


@dataclass(frozen=True)
class Share:
    """A task's part of the work: files of the master, and of rows judged again; ``turn`` of ``turns`` ids' hashes."""

    own: tuple[str, ...]
    again: tuple[str, ...]
    turn: int = 0
    turns: int = 1


@dataclass(frozen=True)
class Partials:
    """Makes partial states of shares in a Spark task; a view's that are more than ``most`` bytes go to its folder."""

    pipeline: CompiledPipeline
    shares: tuple[Share, ...]
    spans: tuple[Interval, ...]
    cut: int
    folders: Mapping[str, Path]
    most: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of REPORT for the shares whose numbers come in."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = [*self.of(self.shares[number])]
                yield pa.RecordBatch.from_pylist(rows, schema=REPORTED)

    def of(self, share: Share) -> Iterator[dict[str, object]]:
        """Report what one share holds."""
        con = engine()
        con.register("blank", rows_schema(self.pipeline).empty_table())
        held = "TEMP TABLE" if self.pipeline.definition.source.event_id else "TEMP VIEW"
        con.execute(f"CREATE OR REPLACE {held} fused_rows AS {self.rows(share)}")
        try:
            yield {"kind": COUNTS, "payload": json.dumps(self.counts(con)).encode()}
            for view in self.pipeline.views:
                relation = f"(SELECT * FROM fused_rows WHERE NOT {SPARE})"
                found = states.partial(con, view, relation, by=[CELL])
                if found.nbytes <= self.most:
                    yield {"kind": STATES + view.id, "payload": to_bytes(found)}
                else:
                    yield {"kind": PARTS + view.id, "payload": self.spill(found, view).encode()}
        finally:
            con.execute(f"DROP {held.removeprefix('TEMP ')} fused_rows")
            con.unregister("blank")

    def spill(self, found: pa.Table, view: CompiledView) -> str:
        """Write states to a file that is merged later, and give its path."""
        path = self.folders[view.id] / "parts" / f"{uuid.uuid4().hex}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            found.sort_by(CELL), path, compression="zstd", compression_level=1, row_group_size=100_000
        )
        return str(path)

    def rows(self, share: Share) -> str:
        """Spell the rows of a share: what fits, with the interval's start and whether another row has their id."""
        version = self.pipeline.record_version
        fits = ", ".join(map(literal, earlier(version)))
        fitting = f"(_record_version IN ({fits}) OR starts_with(_record_version, {literal(version + AND)}))"
        parts = ["SELECT * FROM blank"]
        if share.own:
            parts.append(f"SELECT * FROM {scan(share.own, uneven=True)} WHERE {fitting}")
        if share.again:
            parts.append(f"SELECT * FROM {scan(share.again, uneven=True)} WHERE {REASON} IS NULL")
        source = " UNION ALL BY NAME ".join(parts)
        where = f"_epoch <= {self.cut} AND ({' OR '.join(map(within, self.spans))})"
        ids = [quoted(name) for name in self.pipeline.definition.source.event_id]
        if ids and share.turns > 1:
            where += f" AND hash({', '.join(ids)}) % {share.turns} = {share.turn}"
        cell = aligned("epoch_us(_event_time)", self.pipeline.grid.length // MICROSECOND)
        columns = ", ".join(map(quoted, self.columns))
        chosen = f"SELECT {columns}, {cell} AS {CELL} FROM ({source}) WHERE {where}"
        if not ids:
            return f"SELECT *, FALSE AS {SPARE} FROM ({chosen})"
        selected = self.selected
        first = f"PARTITION BY {CELL}, {selected}, {', '.join(ids)} ORDER BY {', '.join(ORDER)}"
        return f"SELECT *, {selected} AND row_number() OVER ({first}) > 1 AS {SPARE} FROM ({chosen})"

    @property
    def selected(self) -> str:
        """The condition that a row is selected at all."""
        return quoted(SELECTED) if self.pipeline.record.selective else "TRUE"

    @property
    def columns(self) -> list[str]:
        """The columns that are read: those of views, and those that counting needs."""
        known = [each.name for each in (*self.pipeline.record.flags, *self.pipeline.schema.fields)]
        wanted = set(NEEDED).union(*map(read_by, self.pipeline.views))
        ids = self.pipeline.definition.source.event_id
        wanted |= {*ids, *ORDER} if ids else set()
        wanted |= {SELECTED} if self.pipeline.record.selective else set()
        return [name for name in (*dict.fromkeys((*NEEDED, *ORDER)), *known) if name in wanted]

    def counts(self, con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, object]]:
        """Count what was read, by interval id."""
        plain = [view for view in self.pipeline.views if view.where and not view.explode]
        left = [
            f"count(*) FILTER (NOT {SPARE} AND NOT coalesce({view.where.duckdb}, FALSE))"
            for view in plain
            if view.where
        ]
        taken = f"NOT {SPARE} AND {self.selected}"
        columns = [
            CELL,
            "count(*)",
            f"count(*) FILTER ({SPARE})",
            f"count(*) FILTER ({taken})",
            *left,
        ]
        found: dict[int, dict[str, object]] = {}
        for cell, read, spare, records, *numbers in con.execute(
            f"SELECT {', '.join(columns)} FROM fused_rows GROUP BY {CELL}"
        ).fetchall():
            found[cell] = {
                "read": read,
                "duplicates": spare,
                "not_selected": {view.id: number for view, number in zip(plain, numbers, strict=True)},
                "exploded": {},
                "taken": records,
            }
        for view in self.pipeline.views:
            if view.explode:
                self.count_items(con, view, found, f"(SELECT * FROM fused_rows WHERE {taken})")
        return {stamp(EPOCH + cell * MICROSECOND): counted for cell, counted in found.items()}

    def count_items(
        self,
        con: duckdb.DuckDBPyConnection,
        view: CompiledView,
        found: dict[int, dict[str, object]],
        taken: str,
    ) -> None:
        """Count how many more rows than records an exploding view has, and which of them it leaves out."""
        refused = f"NOT coalesce({view.where.duckdb}, FALSE)" if view.where else "FALSE"
        items = {
            cell: (count, left)
            for cell, count, left in con.execute(
                f"SELECT {CELL}, count(*), count(*) FILTER ({refused}) FROM {states.exploded(view, taken)} "
                f"GROUP BY {CELL}"
            ).fetchall()
        }
        for cell, counted in found.items():
            count, left = items.get(cell, (0, 0))
            read, spare, records = (int(str(counted[name])) for name in ("read", "duplicates", "taken"))
            counted["exploded"][view.id] = count - records  # type: ignore[index]
            if view.where:
                counted["not_selected"][view.id] = read - spare - records + left  # type: ignore[index]


def within(span: Interval) -> str:
    """Spell that an event is in a span."""
    return f"(_event_time >= {instant(span.start)} AND _event_time < {instant(span.end)})"


def instant(moment: object) -> str:
    """Write an instant for SQL."""
    return f"TIMESTAMPTZ {literal(str(moment))}"


def to_bytes(table: pa.Table) -> bytes:
    """Write a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found
