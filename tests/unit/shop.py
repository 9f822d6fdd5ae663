"""A pipeline in a folder, without Spark or Kafka: epochs, slices and generations made from plain events."""

from __future__ import annotations

import builtins
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import PRUNES, Master
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import generations_schema, master_schema, partial_schema
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.slices import Slices
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.pipeline import Pipeline
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.seam import Slice
from seamline.model.time.intervals import Interval

DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count, max, sum

shop = Pipeline(
    name="shop",
    source=KafkaSource(
        topic="sales",
        schema="id BIGINT NOT NULL, customer STRING, amount BIGINT, sold_at TIMESTAMP NOT NULL",
        event_time="sold_at",
        event_id=["id"],
    ),
    views=[
        View(
            "sales",
            keys=["customer"],
            window=Tumbling("1 hour"),
            measures={"orders": count(), "total": sum("amount"), "largest": max("amount")},
        )
    ],
    batch=Batch(interval="1 day", start="2013-01-01"),
)
"""
START = datetime(2013, 1, 1, tzinfo=UTC)
ROOT_EXAMPLES = Path(__file__).resolve().parents[2] / "include" / "examples"
DAY = timedelta(days=1)


def sales_pipeline(window: str = "1 hour", text: str = DEFINITION) -> CompiledPipeline:
    """Declare shop.sales: orders, their total and the largest, per customer."""
    names: dict[str, Pipeline] = {}
    exec(text.replace("1 hour", window), names)
    return compile_pipeline(names["shop"])


@dataclass(frozen=True)
class Sale:
    """One event, so many minutes after START; its id is its offset if it has none."""

    minute: int
    customer: str | None = "a"
    amount: int = 1
    id: int | None = None
    sent_at: datetime | None = None

    @property
    def at(self) -> datetime:
        return START + timedelta(minutes=self.minute)


@dataclass
class Shop:
    """The tables of the pipeline, and a plain list of what they hold."""

    warehouse: Location
    compiled: CompiledPipeline = field(default_factory=sales_pipeline)
    born: int = 0
    events: dict[int, list[Sale]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.view = self.compiled.views[0]
        self.layout = Layout(self.warehouse, self.compiled.name)
        self.master = Master.ensure(self.layout, self.compiled)
        self.ledger = Ledger.ensure(self.layout)
        self.slices = Slices.ensure(self.layout, self.view)
        self.generations = Table.ensure(
            self.layout.generations(self.view), generations_schema(self.view), partition_by=["interval"]
        )
        self.manifest = ManifestTable.ensure(self.layout)
        self.numbers = itertools.count()
        self.offset = 0
        self.state(Act.BIRTH, epoch=self.born)
        self.state(Act.FLIP, epoch=self.born)

    def state(self, act: Act, *, epoch: int, **facts: object) -> None:
        """Write one manifest row."""
        self.manifest.read()
        self.manifest.commit([Statement(act, self.view.id, epoch=epoch, **facts)])  # type: ignore[arg-type]

    def interval(self, sale: Sale) -> Interval:
        """Return the interval of a sale."""
        return self.compiled.grid.of(sale.at)

    def pieces(self, sales: Iterable[Sale], epoch: int = 0) -> list[Slice]:
        """Make partial states the dull way."""
        groups: dict[tuple[str | None, datetime], list[int]] = {}
        for sale in sales:
            pane = sale.at - (sale.at - START) % self.view.pane
            groups.setdefault((sale.customer, pane), []).append(sale.amount)
        return [
            Slice(
                (customer,),
                pane,
                epoch,
                epoch,
                len(amounts),
                (len(amounts), builtins.sum(amounts), builtins.max(amounts)),
            )
            for (customer, pane), amounts in groups.items()
        ]

    def partials(self, sales: Iterable[Sale]) -> pa.Table:
        """Make the table of partial states."""
        names = ("orders__n", "total__sum", "largest__value")
        rows = [
            {
                "customer": each.key[0],
                "pane": each.pane,
                "rows": each.rows,
                **dict(zip(names, each.states, strict=True)),
            }
            for each in self.pieces(sales)
        ]
        return pa.Table.from_pylist(rows, schema=partial_schema(self.view))

    def epoch(
        self,
        sales: list[Sale],
        *,
        edge: bool = True,
        watermark: datetime | None = None,
        frontier: int | None = None,
        ledger: bool = True,
        number: int | None = None,
    ) -> int:
        """Commit one epoch by rule 1: slices (unless the view stays behind), master, ledger."""
        number = next(self.numbers) if number is None else number
        if frontier is None:
            self.slices.append(self.partials(sales), from_epoch=number, to_epoch=number)
        accepted: dict[str, int] = {}
        for sale in sales:
            accepted[self.interval(sale).id] = accepted.get(self.interval(sale).id, 0) + 1
        row = Epoch(
            number=number,
            token=0,
            committed_at=START + timedelta(seconds=number),
            record_version=self.compiled.record_version,
            edge=edge,
            ranges=(OffsetRange(Lane("t", 0), self.offset, self.offset + len(sales)),) if sales else (),
            accepted=accepted,
            watermark=watermark,
            frontiers={self.view.id: number if frontier is None else frontier},
        )
        self.master.commit(row, [self.records(sales, number)] if sales else [])
        if ledger:
            self.ledger.append([row])
        self.offset += len(sales)
        self.events[number] = sales
        return number

    def hole(self, count: int, *, bounds: Interval | None = None, fills: int = 0) -> int:
        """Register so many offsets as lost, or so many of those before as read after all."""
        number = next(self.numbers)
        start = self.offset - fills if fills else self.offset
        row = Epoch(
            number=number,
            token=0,
            committed_at=START + timedelta(seconds=number),
            record_version=self.compiled.record_version,
            kind=EpochKind.AMEND if fills else EpochKind.HOLE,
            edge=True,
            ranges=(OffsetRange(Lane("t", 0), start, start + (fills or count)),),
            frontiers={self.view.id: number},
            bounds=bounds,
        )
        self.master.commit(row, [])
        self.ledger.append([row])
        self.offset += 0 if fills else count
        self.events[number] = []
        return number

    def import_rows(
        self,
        sales: list[Sale],
        *,
        bounds: Interval | None = None,
        until: datetime | None = None,
        whole: int = 0,
    ) -> None:
        """Register an import of so many rows, all if 0, and read the first of them."""
        lane = Lane(f"import:{next(self.numbers)}", 0)
        first, second = next(self.numbers), next(self.numbers)
        self.slices.append(self.partials(sales), from_epoch=second, to_epoch=second)
        accepted = Counter(self.interval(sale).id for sale in sales)
        facts = {"token": 0, "record_version": self.compiled.record_version, "edge": True}
        rows = [
            Epoch(
                number=first, committed_at=START, kind=EpochKind.HOLE, bounds=bounds, until=until,
                ranges=(OffsetRange(lane, 0, whole or len(sales)),), frontiers={self.view.id: first}, **facts,
            ),
            Epoch(
                number=second, committed_at=START, kind=EpochKind.IMPORT, accepted=accepted,
                ranges=(OffsetRange(lane, 0, len(sales)),), frontiers={self.view.id: second}, **facts,
            ),
        ]  # fmt: skip
        for row, files in zip(rows, ([], [self.records(sales, second)]), strict=True):
            self.master.commit(row, files)
            self.ledger.append([row])
        self.events |= {first: [], second: sales}

    def records(self, sales: list[Sale], number: int) -> data_files.DataFile:
        """Write the master's rows of an epoch."""
        rows = [
            {
                "_topic": "sales",
                "_topic_id": "t",
                "_partition": 0,
                "_offset": self.offset + at,
                "_epoch": number,
                "_record_version": self.compiled.record_version,
                "_event_time": sale.at,
                "_kafka_timestamp": sale.sent_at,
                "_value": b"{}",
                "id": self.offset + at if sale.id is None else sale.id,
                "customer": sale.customer,
                "amount": sale.amount,
                "sold_at": sale.at,
            }
            for at, sale in enumerate(sales)
        ]
        table = pa.Table.from_pylist(rows, schema=master_schema(self.compiled))
        return data_files.write_data_file(
            table, self.master.table.root, f"{number:06d}.parquet", stats=PRUNES
        )

    def build(
        self,
        day: int,
        cut: int,
        id: str,
        *,
        short_of: int = 0,
        publish: bool = True,
        at: datetime | None = None,
        length: timedelta = DAY,
    ) -> Interval:
        """Build the generation of one day, or of another interval by its number, and publish it."""
        interval = Interval(START + day * length, START + (day + 1) * length)
        sales = [
            sale
            for number, some in self.events.items()
            if number <= cut
            for sale in some
            if self.interval(sale) == interval
        ]
        rows = self.partials(sales)
        if rows.num_rows:
            own = rows.append_column("generation", pa.array([id] * rows.num_rows))
            name = f"{day:03d}-{id}.parquet"
            written = data_files.write_data_file(
                own,
                self.generations.root,
                name,
                stats=["generation", "pane"],
                partition={"interval": interval.id},
            )
            self.generations.refresh().append([written])
        if publish:
            self.publish(interval, cut, id, rows.num_rows + short_of, at=at)
        return interval

    def publish(
        self, interval: Interval, cut: int, id: str, rows: int, *, at: datetime | None = None
    ) -> None:
        """Name a generation in the manifest."""
        self.state(
            Act.PUBLISH,
            epoch=cut,
            interval=interval.id,
            generation=id,
            rows=rows,
            certified=True,
            at=at or interval.end,
        )


def opened(folder: Path, monkeypatch: pytest.MonkeyPatch, warehouse: Location | None = None) -> Shop:
    """Make a shop whose definition and warehouse are where the commands look for them."""
    definitions = folder / "definitions"
    definitions.mkdir()
    (definitions / "shop.py").write_text(DEFINITION)
    place = warehouse or folder / "w"
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(definitions))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(place))
    return Shop(place)
