"""A warehouse as a stream and its upkeep would leave it after so many epochs, without running them.

Thirty days of event time at any number of epochs: the last two days have the same epochs at each, the days before
share the others. Files are packed and compacted as upkeep leaves them, the newest epochs are single files, all days but
the last two are built and published, and each log has a checkpoint and as many entries as its retention leaves of an
epoch a second.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from seamline import Batch, KafkaSource, Tumbling, View, sum
from seamline import Pipeline as Definition
from seamline import count as counted
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.ledger_summaries import BLOCK, SCHEMA, write_ledger_blocks
from seamline.lake.log.master import EDGE, END, FRONTIER, PRUNES, ROW, Master
from seamline.lake.storage import data_files, log_store
from seamline.lake.storage.arrow_types import (
    QUARANTINE,
    generations_schema,
    master_schema,
    partial_schema,
    slices_schema,
)
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_wholeness import classic_checkpoint_path
from seamline.lake.storage.rewrites import upkeep_file_name
from seamline.lake.storage.table_settings import parse_log_retention, settings_of
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.slices import Slices
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.protocol.condensed import Summed, condense_epochs
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.plan.maintain.slice_upkeep import Block

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = 30
CLOSED, OPEN = 300, 90
"""Epochs of the last day but one, which is closed and not built, and of the last, which is open."""
TAIL = 60
"""The newest epochs, which upkeep has not packed yet."""
LINKS = 30_000
"""Names that a file is given; file systems have a bound."""
EDGE_EVERY, REFUSED_EVERY, PACKED = 30, 20, 200_000
LANE = Lane("t", 0)
REFUSED = json.dumps({"null": 1})
RUN = "measured"

PIPELINE = Definition(
    name="shop",
    source=KafkaSource(
        topic="sales",
        schema="id BIGINT NOT NULL, customer STRING, amount BIGINT, sold_at TIMESTAMP NOT NULL",
        event_time="sold_at",
    ),
    views=[
        View(
            "sales",
            keys=["customer"],
            window=Tumbling("1 hour"),
            measures={"n": counted(), "total": sum("amount")},
        )
    ],
    batch=Batch(interval="1 day", start="2026-01-01"),
)


@dataclass
class Past:
    """The tables of a pipeline whose stream has held ``epochs`` epochs of a record each; one in 20 is refused."""

    warehouse: Path
    epochs: int
    most: int = 1_000_000
    """Entries that a log keeps at most, where its retention leaves more."""
    compiled: CompiledPipeline = field(default_factory=lambda: compile_pipeline(PIPELINE))

    def __post_init__(self) -> None:
        self.layout = Layout(self.warehouse, "shop")
        self.view = self.compiled.views[0]
        self.version = self.compiled.record_version

    @cached_property
    def days(self) -> np.ndarray:
        """The day of each epoch."""
        before = self.epochs - CLOSED - OPEN
        early = np.arange(before) * (DAYS - 2) // before
        return np.concatenate([early, np.full(CLOSED, DAYS - 2), np.full(OPEN, DAYS - 1)])

    @cached_property
    def instants(self) -> np.ndarray:
        """The event time of each epoch's record in microseconds since 1970: even over its day."""
        firsts = np.searchsorted(self.days, np.arange(DAYS))
        sizes = np.diff(np.append(firsts, self.epochs))
        within = (np.arange(self.epochs) - firsts[self.days]) / sizes[self.days]
        start = int(BEGIN.timestamp()) * 1_000_000
        return start + ((self.days + within) * 86_400_000_000).astype(np.int64)

    @property
    def packed(self) -> int:
        """Epochs that upkeep has packed."""
        return (self.epochs - TAIL) // EDGE_EVERY * EDGE_EVERY

    @staticmethod
    def start(number: int) -> int:
        """Return the offset at which an epoch begins."""
        return number + -(-number // REFUSED_EVERY)

    def row(self, number: int) -> Epoch:
        """Return an epoch's row in the ledger."""
        at = self.instant(number)
        refused = number % REFUSED_EVERY == 0
        return Epoch(
            number=number,
            token=1,
            committed_at=at,
            record_version=self.version,
            edge=number % EDGE_EVERY == EDGE_EVERY - 1,
            ranges=(OffsetRange(LANE, self.start(number), self.start(number + 1)),),
            accepted={self.id(self.days[number]): 1},
            refused={"null": 1} if refused else {},
            max_event_time={LANE: at},
            watermark=at,
            frontiers={self.view.id: number},
            took={
                "planned": 0.01,
                "files": 0.2,
                "slices": 0.02,
                "quarantine": 0.01,
                "master": 0.02,
                "ledger": 0.01,
            },
            trigger={"addBatch": 0.3, "getBatch": 0.01, "latestOffset": 0.01, "rows_per_second": 100.0},
            before=number - 1,
        )

    def rows(self, numbers: np.ndarray) -> pa.Table:
        """Return the master's records of some epochs."""
        size = len(numbers)
        starts = numbers + -(-numbers // REFUSED_EVERY)
        instants = pa.array(self.instants[numbers], pa.timestamp("us", "UTC"))
        columns = {
            "_topic": pa.repeat(pa.scalar("sales"), size),
            "_topic_id": pa.repeat(pa.scalar("t"), size),
            "_partition": pa.array(np.zeros(size, np.int32)),
            "_offset": pa.array(starts),
            "_kafka_timestamp": instants,
            "_value": pa.repeat(pa.scalar(b'{"id": 1234567, "customer": "c1", "amount": 17}'), size),
            "_epoch": pa.array(numbers),
            "_record_version": pa.repeat(pa.scalar(self.version), size),
            "_event_time": instants,
            "id": pa.array(numbers),
            "customer": pa.array(np.char.add("c", (numbers % 10).astype(str))),
            "amount": pa.array(numbers % 100),
            "sold_at": instants,
        }
        schema = master_schema(self.compiled)
        found = [columns.get(each.name, pa.nulls(size, each.type)) for each in schema]
        return pa.table(
            [each.cast(kind.type) for each, kind in zip(found, schema, strict=True)], schema=schema
        )

    def make(self) -> Past:
        """Write everything."""
        manifest = ManifestTable.ensure(self.layout)
        self.state(manifest, [Statement(Act.BIRTH, self.view.id, 0), Statement(Act.FLIP, self.view.id, 0)])
        self.ledger = Ledger.ensure(self.layout)
        self.master = Master.ensure(self.layout, self.compiled)
        self.quarantine = Table.ensure(self.layout.table("quarantine"), QUARANTINE)
        self.slices = Slices.ensure(self.layout, self.view)
        numbers = np.arange(self.packed)
        self.write_slices(numbers)
        self.write_quarantine(numbers)
        self.write_master(numbers)
        self.write_ledger()
        for table in (self.master.table, self.quarantine, self.ledger.table, self.slices.table):
            self.lengthen(table)
        self.build(manifest)
        for number in range(self.packed, self.epochs):
            self.hold(number)
        return self

    def state(self, manifest: ManifestTable, statements: list[Statement]) -> None:
        """Write rows of the manifest."""
        manifest.read()
        manifest.commit(statements)

    def blocks(self, numbers: np.ndarray) -> Iterator[np.ndarray]:
        """Part epochs as packed files are."""
        for low in range(0, len(numbers), PACKED):
            yield numbers[low : low + PACKED]

    def partials(self, rows: pa.Table) -> pa.Table:
        """Merge rows into states, block by block of edges, which are compacted."""
        columns = rows.append_column("block", pa.array(rows["_epoch"].to_numpy() // EDGE_EVERY))
        with open_duckdb() as con:
            con.register("some_rows", columns)
            return states.compute_row_states(con, self.view, "some_rows", by=["block"])

    def write_slices(self, numbers: np.ndarray) -> None:
        """Write slices merged from edge to edge, side by side in files."""
        made = []
        for some in self.blocks(numbers):
            found = self.partials(self.rows(some))
            first = pa.array(found["block"].to_numpy() * EDGE_EVERY)
            last = pa.array(found["block"].to_numpy() * EDGE_EVERY + EDGE_EVERY - 1)
            whole = found.append_column("from_epoch", first).append_column("to_epoch", last)
            whole = (
                whole.select(slices_schema(self.view).names).cast(slices_schema(self.view)).sort_by("pane")
            )
            name = upkeep_file_name(self.slices.table, Block(int(some[0]), int(some[-1])))
            made.append(data_files.write_data_file(whole, self.slices.table.root, name, group=100_000))
        self.slices.table.append(made, txns={EPOCH: self.packed - 1})

    def write_quarantine(self, numbers: np.ndarray) -> None:
        """Write what was refused."""
        table = self.refused(numbers[numbers % REFUSED_EVERY == 0])
        file = data_files.write_data_file(
            table,
            self.quarantine.root,
            upkeep_file_name(self.quarantine, Block(0, self.packed)),
            group=100_000,
        )
        self.quarantine.append([file], txns={EPOCH: self.packed - 1})

    def refused(self, numbers: np.ndarray) -> pa.Table:
        """Return the refused records of some epochs."""
        rows = self.rows(numbers).append_column("_reason", pa.repeat(pa.scalar("null"), len(numbers)))
        rows = rows.append_column("_detail", pa.nulls(len(numbers), pa.string()))
        offsets = pa.array(rows["_offset"].to_numpy() + 1)
        at = rows.column_names.index("_offset")
        return rows.set_column(at, "_offset", offsets).select(QUARANTINE.names).cast(QUARANTINE)

    def write_master(self, numbers: np.ndarray) -> None:
        """Write the records, packed."""
        made = []
        for some in self.blocks(numbers):
            name = upkeep_file_name(self.master.table, Block(int(some[0]), int(some[-1])))
            made.append(
                data_files.write_data_file(
                    self.rows(some), self.master.table.root, name, stats=PRUNES, group=100_000
                )
            )
        last = self.packed - 1
        txns = {EPOCH: last, EDGE: last, f"{END}{LANE}": self.start(last + 1), FRONTIER + self.view.id: last}
        self.master.table.append(made, txns=txns, metadata={ROW: self.row(last).to_json()})

    def write_ledger(self) -> None:
        """Write the ledger, packed."""
        made = []
        for some in self.blocks(np.arange(self.packed)):
            name = upkeep_file_name(self.ledger.table, Block(int(some[0]), int(some[-1])))
            groups = (self.ledger_block(some[low : low + BLOCK]) for low in range(0, len(some), BLOCK))
            made.append(write_ledger_blocks(groups, self.ledger.table.root, name))
        self.ledger.table.append(made, txns={EPOCH: self.packed - 1})

    def ledger_block(self, numbers: np.ndarray) -> tuple[pa.Table, list[Epoch]]:
        """Return a row group of the ledger and its epochs condensed, without making each of them."""
        ends = {int(numbers[0]), int(numbers[-1]) + 1}
        ends |= {each + 1 for each in numbers.tolist() if each % EDGE_EVERY == EDGE_EVERY - 1}
        sums = condense_epochs(self.summed(first, after - 1) for first, after in pairwise(sorted(ends)))
        instants = pa.array(self.instants[numbers], pa.timestamp("us", "UTC"))
        size, refused = len(numbers), numbers % REFUSED_EVERY == 0
        columns = [
            pa.array(numbers),
            pa.repeat(pa.scalar("read"), size),
            pa.array(numbers % EDGE_EVERY == EDGE_EVERY - 1),
            pa.repeat(pa.scalar(1, pa.int64()), size),
            pa.array(refused.astype(np.int64)),
            instants,
            instants,
            pa.repeat(pa.scalar(1, pa.int64()), size),
            pa.array(self.texts(numbers)),
        ]
        return pa.table(columns, schema=SCHEMA), sums

    def summed(self, first: int, last: int) -> Epoch:
        """Return the sum of some epochs up to an edge, or to the end of a row group."""
        if first == last:
            return self.row(first)
        some = np.arange(first, last + 1)
        days, firsts, sizes = np.unique(self.days[some], return_index=True, return_counts=True)
        ids = [self.id(day) for day in days]
        turned = some[some % REFUSED_EVERY == 0]
        row, lasts = self.row(last), firsts + sizes - 1
        known = {"null": (int(turned[-1]), self.instant(int(turned[-1])))} if len(turned) else {}
        facts = {
            "ranges": (OffsetRange(LANE, self.start(first), self.start(last + 1)),),
            "accepted": dict(zip(ids, sizes.tolist(), strict=True)),
            "refused": {"null": len(turned)} if len(turned) else {},
            "took": {},
            "trigger": {},
            "before": first - 1,
            "count": len(some),
            "runs": ((first, last),),
            "arrived": {
                id: (first + int(a), first + int(b)) for id, a, b in zip(ids, firsts, lasts, strict=True)
            },
            "refusing": known,
        }
        return Summed(**{**vars(row), **facts})

    def texts(self, numbers: np.ndarray) -> list[str]:
        """Spell rows as the ledger has them."""
        row = json.loads(self.row(0).to_json())
        left = json.dumps({name: row[name] for name in ("took", "trigger", "late", "very_late", "lookups")})[
            1:-1
        ]
        rest = f'"kind": "read", "bounds": null, "reason": "", "token": 1, "record_version": "{self.version}", {left}'
        stamps = np.datetime_as_string(self.instants[numbers].astype("datetime64[us]"))
        ids = [self.id(day) for day in range(DAYS)]
        return [
            f'{{"number": {n}, "before": {n - 1}, "committed_at": "{at}Z", "watermark": "{at}Z", '
            f'"edge": {"true" if n % EDGE_EVERY == EDGE_EVERY - 1 else "false"}, "accepted": {{"{ids[day]}": 1}}, '
            f'"refused": {REFUSED if n % REFUSED_EVERY == 0 else "{}"}, "max_event_time": {{"{LANE}": "{at}Z"}}, '
            f'"ranges": [["{LANE}", {self.start(n)}, {self.start(n + 1)}]], "frontiers": {{"{self.view.id}": {n}}}, '
            f"{rest}}}"
            for n, at, day in zip(numbers.tolist(), stamps, self.days[numbers].tolist(), strict=True)
        ]

    @staticmethod
    def id(day: int) -> str:
        """Name a day."""
        return format_utc_instant(BEGIN + int(day) * DAY)

    def instant(self, number: int) -> datetime:
        """Return the instant of an epoch."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(self.instants[number]))

    def lengthen(self, table: Table) -> None:
        """Return a log as many entries as it keeps, and a checkpoint; the first are cleaned away."""
        line = json.dumps({"commitInfo": {"timestamp": 1, "operation": "WRITE", "padding": "x" * 900}}) + "\n"
        first = table.version + 1
        kept = int(parse_log_retention(settings_of(table.root.name)).total_seconds())
        last = first + min(kept, self.most, self.epochs) - 1
        source = log_store.entry_path(table.root, first)
        source.write_text(line)
        # What it says holds for the last entry too, since those between say nothing.
        table.refresh().handle.create_checkpoint()
        for version in range(first + 1, last + 1):
            file = log_store.entry_path(table.root, version)
            if (version - first) % LINKS:
                os.link(source, file)
            else:
                source = file
                source.write_text(line)
        classic_checkpoint_path(table.root, first).rename(classic_checkpoint_path(table.root, last))
        mark = table.root / log_store.FOLDER / log_store.LAST
        mark.write_text(json.dumps({**json.loads(mark.read_text()), "version": last}))
        for version in range(first):
            log_store.entry_path(table.root, version).unlink()
        table.refresh()

    def build(self, manifest: ManifestTable) -> None:
        """Build and publish the days but the last two; of the last but one there is a build to certify."""
        generations = Generations.ensure(self.layout, self.view)
        statements, built = [], []
        with open_duckdb() as con:
            for day in range(DAYS - 1):
                numbers = np.flatnonzero(self.days == day)
                con.register("some_rows", self.rows(numbers))
                found = states.compute_row_states(con, self.view, "some_rows").select(
                    partial_schema(self.view).names
                )
                interval, id = Interval(BEGIN + day * DAY, BEGIN + (day + 1) * DAY), f"g{day:03d}"
                whole = found.append_column("generation", pa.repeat(pa.scalar(id), found.num_rows))
                whole = whole.select(generations_schema(self.view).names[:-1])
                path = f"{id}/{day}.parquet"
                data_files.write_data_file(whole, generations.table.root, path)
                generations.append([(generations.table.root / path, interval)])
                cut = min(int(numbers[-1]) // EDGE_EVERY * EDGE_EVERY + 2 * EDGE_EVERY - 1, self.epochs - 1)
                cut -= (cut + 1) % EDGE_EVERY
                name, rows = RUN if day == DAYS - 2 else f"run-{day}", found.num_rows
                facts = (cut, rows, len(numbers), len(numbers), 0, 0, "", 1.0, "", interval.end)
                built.append(BuildRow(name, self.view.id, interval.id, id, *facts))
                if day < DAYS - 2:
                    told = {"interval": interval.id, "generation": id, "rows": rows, "at": interval.end}
                    statements.append(Statement(Act.PUBLISH, self.view.id, cut, certified=True, **told))
        Builds.ensure(self.layout).append(built)
        self.state(manifest, statements)

    def hold(self, number: int) -> None:
        """Commit an epoch as the stream does."""
        some = np.array([number])
        rows, row = self.rows(some), self.row(number)
        found = self.partials(rows).select(partial_schema(self.view).names)
        self.slices.append(found.cast(partial_schema(self.view)), from_epoch=number, to_epoch=number)
        if number % REFUSED_EVERY == 0:
            file = data_files.write_data_file(
                self.refused(some), self.quarantine.root, f"{number:012d}.parquet"
            )
            self.quarantine.append([file], txns={EPOCH: number})
        file = data_files.write_data_file(
            rows, self.master.table.root, f"{number:012d}.parquet", stats=PRUNES
        )
        self.master.commit(row, [file])
        self.ledger.append([row])
