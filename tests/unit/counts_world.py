"""A pipeline whose producers make statements: real records through the kernel into its tables, and statements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from seamline import Batch, Counts, KafkaSource, Pipeline, Rule, Tumbling, View, count
from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.refused_places import place_refused_records
from seamline.lake.audit.producer_counts import count_producers
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.storage.arrow_types import QUARANTINE
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.counts.statements_table import LaneState, StatementsTable
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.counts.comparison import SourceCounts
from seamline.model.protocol.counts.statement import SentCount, TakenStatement
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval, parse_moment

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
FIRST = Interval(START, START + DAY)
SAID = Lane("statements", 0)


def declare(counts: Counts, **changes: Any) -> Pipeline:
    """Declare orders of shops, with ids, a rule, and statements."""
    source = KafkaSource(
        topic="orders",
        schema="id BIGINT, shop STRING, amount BIGINT, at TIMESTAMP",
        event_time="at",
        event_id=changes.pop("event_id", ("id",)),
        counts=counts,
    )
    return Pipeline(
        name="orders",
        source=source,
        rules=[Rule("no gifts", "amount > 0")],
        views=[View("by_shop", keys=["shop"], window=Tumbling("1 hour"), measures={"n": count()})],
        batch=Batch("1 day", "2026-01-01"),
        defaults="2026-11",
        **changes,
    )


def order(id: int, at: str, shop: str | None = "eu", amount: int = 1) -> bytes:
    """Make an order of a shop at a time of the first day."""
    return json.dumps({"id": id, "shop": shop, "amount": amount, "at": f"2026-01-01T{at}:00Z"}).encode()


def says(producer: str, start: str, end: str, count: int) -> SentCount:
    """State how much a producer has sent from one time of the first day up to another."""
    bounds = (
        parse_moment(f"2026-01-01T{each}:00Z") if ":" in each else parse_moment(each) for each in (start, end)
    )
    return SentCount(producer, Interval(*bounds), count)


class Orders:
    """The tables of the pipeline."""

    def __init__(self, warehouse: Location, counts: Counts, **changes: Any) -> None:
        self.compiled = compile_pipeline(declare(counts, **changes))
        self.layout = Layout(warehouse, "orders")
        self.master = Master.ensure(self.layout, self.compiled)
        self.ledger = Ledger.ensure(self.layout)
        self.quarantine = Table.ensure(self.layout.table("quarantine"), QUARANTINE)
        self.offset = self.number = self.stated = 0

    def read(
        self,
        values: Sequence[bytes | None],
        *,
        at: datetime = START,
        watermark: datetime | None = None,
        other: str = "",
    ) -> int:
        """Read records as one epoch, which Kafka got at an instant; by a failover to ``other``, an id of the topic."""
        number, end = self.number, self.offset + len(values)
        rows = pa.RecordBatch.from_pydict(
            {
                "key": pa.nulls(len(values), pa.binary()),
                "value": pa.array(values, pa.binary()),
                "headers": pa.nulls(len(values), pa.string()),
                "topic": pa.array(["orders"] * len(values)),
                "partition": pa.array([0] * len(values), pa.int32()),
                "offset": pa.array(range(self.offset, end), pa.int64()),
                "timestamp": pa.array([at] * len(values), pa.timestamp("us", "UTC")),
            }
        )
        config = KernelConfig(
            pipeline=self.compiled,
            topic_ids={"orders": other or "t"},
            token=0,
            epoch=number,
            committed={},
            views=frozenset(),
            master=self.master.table.root,
            quarantine=self.quarantine.root,
        )
        made = run([rows], config)
        self.quarantine.append(made.quarantine, txns={EPOCH: number})
        epoch = Epoch(
            number,
            0,
            START,
            self.compiled.record_version,
            edge=True,
            ranges=(OffsetRange(Lane("t", 0), self.offset, end),) if values and not other else (),
            begun={Lane(other, 0): end} if other else {},
            accepted=dict(made.accepted),
            refused=dict(made.refused),
            watermark=watermark,
        )
        self.master.commit(epoch, made.master)
        self.ledger.append([epoch])
        self.number, self.offset = number + 1, end
        return number

    def state(self, *statements: SentCount) -> None:
        """Put statements into the table, as they are taken of a topic."""
        table = StatementsTable.ensure(self.layout)
        table.table.refresh()
        rows = [
            TakenStatement(SAID, self.stated + at, START + timedelta(seconds=self.stated + at), each)
            for at, each in enumerate(statements)
        ]
        self.stated += len(rows)
        table.append("", rows, {SAID: LaneState(self.stated, rows[-1].at)}, now=START)

    def counted(self, interval: Interval = FIRST, *, cut: int | None = None) -> SourceCounts:
        """Compare an interval with what was said of it."""
        return count_producers(
            self.compiled,
            self.layout,
            "",
            interval,
            self.number - 1 if cut is None else cut,
            read_reprocessed_log(self.compiled, self.layout),
            partial(place_refused_records, self.layout),
        )


def outcomes(found: SourceCounts) -> dict[str, str]:
    """Return what came of each producer."""
    return {", ".join(each.producers): each.outcome.value for each in found.counts}


def gaps(found: SourceCounts) -> Iterable[tuple[str, str, int, int]]:
    """List the gaps by name: producer, start of the span, sent, read."""
    return [
        (each.producers[0], one.window.id[11:16], one.said, one.read)
        for each in found.counts
        for one in each.gaps
    ]
