"""Any split into epochs, any cut, any order of backfills, any lateness, a crash at any step: the oracle holds.

The kernel, the writer, the tables, publishing, upkeep and the read are the shipped ones; only Spark and Kafka
are left out. The oracle is a list of what was committed, and the plain-Python measures.
"""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.windowing import format_grouping_set
from seamline.lake.log.master import Master
from seamline.lake.maintain.upkeep import Upkeep, maintain_tables
from seamline.lake.publish.planning import plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read import merged_read, serving_table
from seamline.lake.storage.arrow_types import generations_schema, partial_schema
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Cumulating, Global, Session, Sliding, Tumbling
from seamline.model.errors import FenceLost
from seamline.model.measures import Measure, avg, count, max, sum
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side, windows_over
from seamline.model.time.intervals import Interval
from seamline.serve.explain import explain_number
from seamline.spark.stream.epoch_writer import Writer

START = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 3
TOPIC = "topic"
PHASES = ("files", "slices", "quarantine", "master", "ledger")
MEASURES: dict[str, Measure] = {
    "orders": count(),
    "spent": sum("amount"),
    "mean": avg("amount"),
    "most": max("amount"),
}
PIPELINE = compile_pipeline(
    Pipeline(
        name="shop",
        source=KafkaSource(
            topic="orders",
            schema="id INT NOT NULL, customer STRING, amount INT, placed_at TIMESTAMP",
            event_time="placed_at",
            event_id=["id"],
        ),
        views=[
            View("by_customer", keys=["customer"], window=Tumbling("6 hours"), measures=MEASURES),
            View("by_day", keys=[], window=Tumbling("2 days"), measures=MEASURES),
            View(
                "local",
                keys=["customer"],
                window=Tumbling("1 day", offset="6 hours", zone="America/New_York"),
                measures=MEASURES,
            ),
            View(
                "sliding",
                keys=["customer", "amount"],
                grouping_sets=[["customer"], ["amount"], []],
                window=Sliding("36 hours", "4 hours"),
                measures=MEASURES,
            ),
            View("growing", keys=["customer"], window=Cumulating("2 days", "8 hours"), measures=MEASURES),
            View("ever", keys=["customer"], window=Global(), measures=MEASURES),
            View("visits", keys=["customer"], window=Session("5 hours"), measures=MEASURES),
            View(
                "shop_open",
                keys=["customer", "amount"],
                grouping_sets=[["customer", "amount"], []],
                window=Session("40 minutes"),
                measures=MEASURES,
            ),
        ],
        batch=Batch("1 day", "2024-01-01"),
    )
)


class Crash(Exception):
    """The process is gone."""


class FragileWriter(Writer):
    """A writer that ends after a phase."""

    dies_after = ""

    def end_phase(self, phase: str) -> None:
        super().end_phase(phase)
        if phase == self.dies_after:
            raise Crash(phase)


@dataclass(frozen=True)
class Row:
    """One accepted record that the master holds."""

    epoch: int
    lane: int
    offset: int
    id: int
    customer: str | None
    amount: int | None
    at: datetime

    @property
    def interval(self) -> str:
        return PIPELINE.grid.of(self.at).id


class World:
    """A topic, a writer, and the list of what the master must hold."""

    def __init__(self, home: Path, seed: int, pipeline: CompiledPipeline = PIPELINE) -> None:
        self.pipeline = pipeline
        self.dice = random.Random(seed)
        self.layout = Layout(home, "shop")
        self.topic: dict[int, list[bytes]] = {0: [], 1: []}
        self.rows: list[Row] = []
        self.refused = 0
        self.token = 0
        self.crashes: list[str] = []
        self.upkeep = Upkeep()
        self.ids = 0
        self.restart()

    def restart(self) -> None:
        """Start a writer under a new token, as a new process would."""
        self.token += 1
        self.writer = FragileWriter(self.layout, self.pipeline, self.token)
        self.writer.repair_ledger()
        lanes = [Lane(TOPIC, part) for part in self.topic]
        self.vector = {lane: self.writer.master.position([lane]).get(lane, 0) for lane in lanes}

    def produce(self) -> None:
        """Add records: in order, late, duplicate and bad ones."""
        for _ in range(self.dice.randint(1, 12)):
            lane = self.topic[self.dice.randint(0, 1)]
            self.ids += self.dice.random() < 0.8
            record: dict[str, Any] = {
                "id": self.ids,
                "customer": self.dice.choice(["ada", "bob", None]),
                "amount": self.dice.choice([None, 1, 2, 50]),
                # An id stands for one event: its copies carry the same event time. The order is as good as random.
                "placed_at": (START + timedelta(minutes=self.ids * 1297 % (DAYS * 24 * 60))).isoformat(),
            }
            lane.append(b"{bad" if self.dice.random() < 0.1 else json.dumps(record).encode())

    def epoch(self, dies_after: str = "") -> None:
        """Commit one epoch over some of what is there; perhaps die after a phase."""
        ends = {
            lane: self.dice.randint(start, len(self.topic[lane.partition]))
            for lane, start in self.vector.items()
        }
        ranges = tuple(
            OffsetRange(lane, self.vector[lane], end) for lane, end in ends.items() if end > self.vector[lane]
        )
        writer = self.writer
        writer.dies_after = dies_after
        number, views = writer.take_number(), writer.current
        result = self.kernel(number, ranges, views)
        edge = self.dice.random() < 0.3
        epoch = Epoch(
            number=number,
            token=self.token,
            committed_at=START,
            record_version=self.pipeline.record_version,
            edge=edge,
            ranges=ranges,
            accepted=dict(result.accepted),
            refused=dict(result.refused),
            watermark=START + timedelta(days=DAYS + 1),
        )
        try:
            writer.end_phase("files")
            writer.commit(epoch, result, views)
        except Crash as crash:
            self.crashes.append(str(crash))
        if Master.open(self.layout).epoch == number:
            self.hold(number, ranges)
            self.vector = {**self.vector, **{part.lane: part.end for part in ranges}}
        if dies_after:
            self.restart()

    def kernel(self, number: int, ranges: tuple[OffsetRange, ...], views: frozenset[str]) -> KernelResult:
        """Run the shipped kernel over the records of the ranges."""
        records = [
            {
                "key": None,
                "value": self.topic[part.lane.partition][offset],
                "headers": None,
                "topic": "orders",
                "partition": part.lane.partition,
                "offset": offset,
                "timestamp": START + timedelta(days=DAYS),
            }
            for part in ranges
            for offset in range(part.start, part.end)
        ]
        config = KernelConfig(
            pipeline=self.writer.pipeline,
            topic_ids={"orders": TOPIC},
            token=self.token,
            epoch=number,
            committed=self.vector,
            views=views,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
        )
        schema = pa.schema(
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
        return run(pa.Table.from_pylist(records, schema=schema).to_batches(), config)

    def hold(self, number: int, ranges: tuple[OffsetRange, ...]) -> None:
        """Note what the master holds now."""
        for part in ranges:
            for offset in range(part.start, part.end):
                try:
                    found = json.loads(self.topic[part.lane.partition][offset])
                except ValueError:
                    self.refused += 1
                    continue
                at = datetime.fromisoformat(found["placed_at"])
                row = Row(
                    number, part.lane.partition, offset, found["id"], found["customer"], found["amount"], at
                )
                self.rows.append(row)

    def backfill(self) -> None:
        """Build one day or all dirty ones to the newest edge, and publish."""
        day = START + timedelta(days=self.dice.randint(0, DAYS - 1))
        asked = Interval(day, day + timedelta(days=1)) if self.dice.random() < 0.7 else None
        plan = plan_run(self.pipeline, self.layout, asked=asked, dirty=asked is None)
        if plan.builds:
            build(self.pipeline, self.layout, [each.interval for each in plan.builds], plan.cut)

    def stale(self) -> None:
        """Let a writer that was replaced wake up: it must commit nothing."""
        old = self.writer
        self.produce()
        self.restart()
        before = Master.open(self.layout).table.version
        epoch = Epoch(old.take_number(), old.token, START, self.pipeline.record_version)
        with pytest.raises(FenceLost):
            old.commit(epoch, KernelResult(), [view.id for view in self.pipeline.views])
        assert Master.open(self.layout).table.version == before

    def step(self) -> None:
        """Do one thing."""
        match self.dice.choices(
            ["produce", "epoch", "crash", "backfill", "stale", "upkeep"], [4, 5, 3, 3, 0.5, 2]
        )[0]:
            case "produce":
                self.produce()
            case "epoch":
                self.epoch()
            case "crash":
                self.epoch(self.dice.choice(PHASES))
            case "backfill":
                self.backfill()
            case "stale":
                self.stale()
            case _:
                self.clean()

    def clean(self) -> None:
        """Do the upkeep; nobody else is there to refuse it anything."""
        done = maintain_tables(self.pipeline, self.layout)
        assert not done.refused
        self.upkeep = self.upkeep.plus(done)


def build(pipeline: CompiledPipeline, layout: Layout, intervals: list[Interval], cut: int) -> None:
    """Build, certify and publish the plain way: the first row of each id by (epoch, partition, offset)."""
    master = Master.open(layout).table.read()
    master = master.filter(pc.less_equal(master["_epoch"], cut))
    ordered = master.sort_by([(name, "ascending") for name in ("_epoch", "_partition", "_offset")])
    name, now = uuid.uuid4().hex[:8], datetime.now(UTC)
    expected = {(each.view, each.interval): each.generation for each in published(layout)}
    rows, certificates = [], []
    for view in add_live_versions(pipeline, layout).views:
        generations = Generations.ensure(layout, view)
        written = []
        for interval in intervals:
            inside = [
                row for row in range(ordered.num_rows) if ordered["_event_time"][row].as_py() in interval
            ]
            first: dict[int, int] = {}
            for row in inside:
                first.setdefault(ordered["id"][row].as_py(), row)
            kept = ordered.take(pa.array(sorted(first.values()), pa.int64()))
            with open_duckdb() as con:
                con.register("kept", kept)
                partials = (
                    states.compute_row_states(con, view, "kept")
                    if kept.num_rows
                    else partial_schema(view).empty_table()
                )
            if partials.num_rows:
                whole = partials.append_column(
                    "generation", pa.array([name] * partials.num_rows, pa.string())
                )
                fields = generations_schema(view).names[:-1]
                path = f"{name}/{interval.id[:10]}.parquet"
                write_data_file(whole.select(fields), generations.table.root, path)
                written.append((generations.table.root / path, interval))
            counted = partials.num_rows, pc.sum(partials["rows"]).as_py() or 0
            published_before = expected.get((view.id, interval.id), "")
            rows.append(
                BuildRow(
                    name,
                    view.id,
                    interval.id,
                    name,
                    cut,
                    *counted,
                    len(inside),
                    0,
                    0,
                    published_before,
                    0.0,
                    "",
                    now,
                )
            )
            certificates.append(
                Certificate(view.name, view.fingerprint, name, interval, cut, name, "", now, checks=())
            )
        generations.append(written)
    Builds.ensure(layout).append(rows)
    Certificates.ensure(layout).append(certificates)
    publish_run(pipeline, layout, name)


def published(layout: Layout) -> list[Any]:
    """List what the manifest publishes now."""
    from seamline.lake.tables.manifest_table import ManifestTable

    return list(ManifestTable.ensure(layout).read().published.values())


def expected(
    world: World, view: CompiledView, cuts: dict[str, int], until: int, side: Side
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Answer from the list: per interval, ids once up to the cut, rows as they are above it."""
    counted: list[Row] = []
    seen: set[int] = set()
    for row in sorted(world.rows, key=lambda each: (each.epoch, each.lane, each.offset)):
        below = row.epoch <= cuts.get(row.interval, -1) and side is not Side.SPEED
        if (side is Side.BATCH and not below) or (not below and row.epoch > until):
            continue
        if below and row.id in seen:
            continue
        if below:
            seen.add(row.id)
        counted.append(row)
    found = {}
    for keys in view.sets:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in counted:
            groups.setdefault(tuple(getattr(row, key) for key in keys), []).append(row)
        for values, rows in groups.items():
            named = dict(zip(keys, values, strict=True))
            place = (format_grouping_set(keys), *(named.get(key.name) for key in view.keys))
            instants = [to_unix_micros(row.at) for row in rows]
            for (start, end), places in windows_over(view.windows, instants).items():
                found[(*place, start, end)] = tuple(
                    measure.present(
                        measure.fold([rows[at].amount if measure.of else rows[at].id for at in places])
                    )
                    for measure in (each.measure for each in view.measures)
                )
    return found


def check(world: World) -> None:
    """Compare every view and side with the list."""
    until = Master.open(world.layout).epoch
    cuts = {(each.view, each.interval): each.epoch for each in published(world.layout)}
    for view in PIPELINE.views:
        mine = {interval: cut for (name, interval), cut in cuts.items() if name == view.id}
        for side in Side:
            found = merged_read.read_merged_answer(PIPELINE, view, world.layout, ReadRequest(side=side))
            assert rows_of(view, found.table) == expected(world, view, mine, until, side), (view.name, side)
            parts = sum_of(found.table["batch_part"]) + sum_of(found.table["speed_part"])
            assert parts == sum_of(found.table["orders"])


def rows_of(view: CompiledView, table: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return presented rows by grouping set, keys and window, each once."""
    rows = table.to_pylist()
    columns = [*(key.name for key in view.keys), "window_start", "window_end"]
    found = {
        (
            row.get("grouping", format_grouping_set(view.sets[0])),
            *(
                to_unix_micros(row[name]) if isinstance(row[name], datetime) else row[name]
                for name in columns
            ),
        ): tuple(row[name] for name in MEASURES)
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def check_served(world: World) -> None:
    """Refresh what is behind, which the tables tell by themselves, and compare them with whole answers."""
    for view in PIPELINE.views:
        serving_table.refresh_serving_table(PIPELINE, world.layout, view)
        answer = merged_read.read_merged_answer(PIPELINE, view, world.layout)
        table = serving_table.ensure_serving_table(world.layout, view).read()
        assert rows_of(view, table) == rows_of(view, answer.table), view.name


def check_bounds(world: World) -> None:
    """Cut the windows by their start: neighbouring ranges share no row and miss none."""
    for view in PIPELINE.views:
        whole = rows_of(view, merged_read.read_merged_answer(PIPELINE, view, world.layout).table)
        middle = START + timedelta(minutes=world.dice.randrange(DAYS * 24 * 60))
        below, above = (
            rows_of(
                view,
                merged_read.read_merged_answer(PIPELINE, view, world.layout, ReadRequest(**bounds)).table,
            )  # type: ignore[arg-type]
            for bounds in ({"end": middle}, {"start": middle})
        )
        assert below == {place: row for place, row in whole.items() if place[-2] < to_unix_micros(middle)}, (
            view.name
        )
        assert above == {place: row for place, row in whole.items() if place[-2] >= to_unix_micros(middle)}, (
            view.name
        )


def check_explained(world: World) -> None:
    """Take some rows of every view apart: they are the rows of the master that belong in them."""
    for view in PIPELINE.views:
        rows = merged_read.read_merged_answer(PIPELINE, view, world.layout).table.to_pylist()
        for row in world.dice.sample(rows, min(4, len(rows))):
            sets = [
                names
                for names in view.sets
                if format_grouping_set(names) == row.get("grouping", format_grouping_set(view.sets[0]))
            ]
            key = {name: None if row[name] is None else str(row[name]) for name in sets[0]}
            found = explain_number(
                PIPELINE, view, world.layout, key, (row["window_start"], row["window_end"])
            )  # type: ignore[arg-type]
            assert found.proven, (view.name, row, found.proofs)
            assert found.row == row


def sum_of(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.faults) for each in (1, 2))])
def test_every_answer_is_the_list(tmp_path: Path, seed: int) -> None:
    """If this fails, somebody's number is wrong: replay it with the seed."""
    world = World(tmp_path, seed)
    world.produce()
    for step in range(16):
        world.clean() if step % 8 == 7 else world.step()
        if step % 4 == 3 and Master.open(world.layout).epoch >= 0:
            check(world)
        if step % 5 == 4 and Master.open(world.layout).epoch >= 0:
            check_served(world)
    for _ in range(40):
        if world.upkeep.merged:
            break
        world.produce()
        world.epoch()
        world.clean()
    check(world)
    check_served(world)
    check_bounds(world)
    check_explained(world)
    assert world.upkeep.merged
    stored = Master.open(world.layout).table.read(["_partition", "_offset"])
    assert stored.num_rows == len(world.rows) == len(set(zip(*stored.to_pydict().values(), strict=True)))


def test_the_world_crashes_everywhere(tmp_path: Path) -> None:
    """A simulation in which a fault never fires tests nothing."""
    world = World(tmp_path, 1)
    for phase in PHASES:
        world.produce()
        world.produce()
        world.epoch(phase)
    assert world.crashes == list(PHASES)
    assert world.token == 1 + len(PHASES)
    check(world)
