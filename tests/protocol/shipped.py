"""The shipped writer, tables, upkeep, publishing and read, and what must be answered, without Spark and Kafka.

Every record has a number, by which the view counts: an answer shows which records it counts, and how often.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.log.master import Master
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import log_store
from seamline.lake.storage.arrow_types import generations_schema, partial_schema, slices_schema
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_entries import Commit
from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.slices import Slices
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.measures import count
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.spark.stream import catch_up
from seamline.spark.stream.epoch_writer import Writer

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LANE = Lane("topic", 0)
RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
PHASES = ("files", "slices", "quarantine", "master", "ledger")
PIPELINE = compile_pipeline(
    Pipeline(
        name="shop",
        source=KafkaSource(topic="orders", schema="id INT NOT NULL, at TIMESTAMP NOT NULL", event_time="at"),
        views=[View("by_record", keys=["id"], window=Tumbling("1 day"), measures={"n": count()})],
        batch=Batch("1 day", "2024-01-01"),
    )
)
VIEW = PIPELINE.views[0]


class Died(Exception):
    """The process is gone."""


class Mortal(Writer):
    """A writer that dies after a phase."""

    dies_after = ""

    def end_phase(self, phase: str) -> None:
        super().end_phase(phase)
        if phase == self.dies_after:
            raise Died(phase)


@contextmanager
def unanswered(table: Table, *, landed: bool) -> Iterator[None]:
    """Let the table's next commit fail, or land without an answer; what insists finds out, else nothing is read."""
    real, read, hangs = table._put, log_store.read_commit, False

    def silent(draft: Path) -> bool:
        nonlocal hangs
        table._put = real  # type: ignore[method-assign]
        if not landed:
            raise OSError(errno.ENOSPC, "no answer")
        hangs = real(draft) and not table.insists
        raise OSError(errno.EIO, "no answer")

    def unread(root: Path, version: int) -> Commit | None:
        if hangs and root == table.root:
            raise OSError(errno.EIO, "no answer")
        return read(root, version)

    table._put = silent  # type: ignore[method-assign]
    with patch.object(log_store, "read_commit", unread), patch.object(log_store, "PATIENCE", (0.0,)):
        try:
            yield
        finally:
            table._put = real  # type: ignore[method-assign]


@dataclass
class Stream:
    """A topic of one partition, its tables, and what the master holds of it: (epoch, offset) in order."""

    home: Location
    pipeline: CompiledPipeline = PIPELINE
    topic: list[int | None] = field(default_factory=list)
    held: list[tuple[int, int]] = field(default_factory=list)
    token: int = 0
    sent: datetime = START + 30 * DAY
    """The Kafka timestamp of every record."""

    def __post_init__(self) -> None:
        self.layout = Layout(self.home, "shop")

    def produce(self, *days: int | None) -> None:
        """Add a record of each day; None is one that is refused."""
        self.topic += days

    def start(self, acceptance: Acceptance | None = None) -> Mortal:
        """Start a driver under the next token, as the shipped one starts; or repair as a person does."""
        self.token += 1
        writer = Mortal(self.layout, self.pipeline, self.token, acceptance=acceptance)
        writer.repair_ledger()
        return writer

    def position(self, writer: Writer) -> int:
        """Return where a driver reads from."""
        return writer.master.position([LANE]).get(LANE, 0)

    def epoch(
        self,
        writer: Mortal,
        end: int | None = None,
        *,
        edge: bool = True,
        dies_after: str = "",
        watermark: datetime | None = None,
    ) -> Epoch | None:
        """Read up to ``end`` and commit; give the epoch, or None where the driver died."""
        start = self.position(writer)
        end = len(self.topic) if end is None else end
        number, views = writer.take_number(), writer.current
        result = self.judged(writer, number, start, end) if end > start else KernelResult()
        epoch = Epoch(
            number,
            writer.token,
            START,
            self.pipeline.record_version,
            edge=edge,
            ranges=(OffsetRange(LANE, start, end),) if end > start else (),
            accepted=dict(result.accepted),
            refused=dict(result.refused),
            watermark=watermark,
            clock=self.pipeline.clock,
        )
        writer.dies_after = dies_after
        try:
            writer.end_phase("files")
            return writer.commit(epoch, result, views)
        except Died:
            return None
        finally:
            self.note(number, start, end)

    def note(self, number: int, start: int, end: int) -> None:
        """Keep what the master holds, by its own word."""
        if number in {each.number for each in Master.open(self.layout).missing(-1)}:
            self.held += [(number, at) for at in range(start, end) if self.topic[at] is not None]

    def judged(self, writer: Writer, number: int, start: int, end: int) -> KernelResult:
        """Run the shipped kernel."""
        records = [
            {
                "key": None,
                "value": self.value(at),
                "headers": None,
                "topic": "orders",
                "partition": 0,
                "offset": at,
                "timestamp": self.sent,
            }
            for at in range(start, end)
        ]
        config = KernelConfig(
            pipeline=writer.pipeline,
            topic_ids={"orders": "topic"},
            token=writer.token,
            epoch=number,
            committed={LANE: start},
            views=writer.current,
            master=writer.master.table.root,
            quarantine=writer.quarantine.root,
        )
        return run(pa.Table.from_pylist(records, schema=RAW).to_batches(), config)

    def value(self, at: int) -> bytes:
        """Return a record's bytes."""
        day = self.topic[at]
        if day is None:
            return b"{bad"
        return json.dumps({"id": at, "at": (START + day * DAY).isoformat()}).encode()

    def build(self, day: int, cut: int, id: str, view: CompiledView = VIEW) -> None:
        """Build a day at a cut and leave what a run leaves before it publishes."""
        interval = Interval(START + day * DAY, START + (day + 1) * DAY)
        rows = Master.open(self.layout).table.read()
        rows = rows.filter(pc.less_equal(rows["_epoch"], cut))
        rows = rows.filter(
            pc.and_(
                pc.greater_equal(rows["_event_time"], interval.start),
                pc.less(rows["_event_time"], interval.end),
            )
        )
        found = partials(rows, view)
        generations = Generations.ensure(self.layout, view)
        files = []
        if found.num_rows:
            whole = found.append_column("generation", pa.array([id] * found.num_rows, pa.string()))
            path = f"{id}/{day}.parquet"
            write_data_file(whole.select(generations_schema(view).names[:-1]), generations.table.root, path)
            files.append((generations.table.root / path, interval))
        manifest = ManifestTable.ensure(self.layout).read()
        current = manifest.published.get((view.id, interval.id))
        expected = current.generation if current else ""
        number = found.num_rows
        row = BuildRow(
            id, view.id, interval.id, id, cut, number, number, number, 0, 0, expected, 0.0, "", START
        )
        generations.append(files)
        Builds.ensure(self.layout).append([row])
        Certificates.ensure(self.layout).append(
            [Certificate(view.name, view.fingerprint, id, interval, cut, id, "", START, checks=())]
        )

    def answered(self) -> dict[int, int]:
        """Return how often each record is counted."""
        found = read_merged_answer(self.pipeline, VIEW, self.layout).table
        return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))

    def wanted(self) -> dict[int, int]:
        """Return what must be counted: each record that the master holds, once."""
        return dict.fromkeys((at for _, at in self.held), 1)


def partials(rows: pa.Table, view: CompiledView = VIEW) -> pa.Table:
    """Make the states of some rows of the master."""
    if not rows.num_rows:
        return partial_schema(view).empty_table()
    with open_duckdb() as con:
        con.register("held_rows", rows)
        return states.compute_row_states(con, view, "held_rows")


def computed(spark: object, writer: Writer, slices: Slices, *, after: int, until: int) -> pa.Table:
    """Compute what a catch-up adds without Spark, epoch by epoch."""
    rows = writer.master.table.read()
    schema = slices_schema(slices.view)
    found = [schema.empty_table()]
    for number in sorted(set(rows["_epoch"].to_pylist())):
        if after < number <= until:
            own = partials(rows.filter(pc.equal(rows["_epoch"], number)))
            for name in ("from_epoch", "to_epoch"):
                own = own.append_column(name, pa.array([number] * own.num_rows, pa.int64()))
            found.append(own.select(schema.names).cast(schema))
    return pa.concat_tables(found)


def caught_up(writer: Writer, patch: Callable[..., None], *, most: int = catch_up.STEP) -> bool:
    """Catch the view up a step, as the shipped driver does."""
    patch(catch_up, "compute_missing_slices", computed)
    return catch_up.catch_up(None, writer, most=most)  # type: ignore[arg-type]
