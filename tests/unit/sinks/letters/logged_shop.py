"""A shop whose log has refused, late and sided records, and a topic in memory to which they are added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from tests.unit.shop import DEFINITION, START, Shop, sales_pipeline

from seamline.kafka.row_topic import Letter
from seamline.lake.log.record_files import Sink
from seamline.lake.storage.arrow_types import QUARANTINE, master_schema
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.store.locations import Location
from seamline.model.errors import Fenced, KafkaUnavailable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.sinks.letter_headers import Cause, split_headers
from seamline.model.protocol.sinks.positions import SinkPosition

SIDED = DEFINITION.replace("    views=[", '    side={"big": "amount > 100"},\n    views=[')
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Read:
    """A record that an epoch reads."""

    reason: str = ""
    """Why it is refused; empty for one that is accepted."""
    at: datetime = START
    """Its event time."""
    side: str | None = None
    """The side that it is of."""
    key: bytes | None = b"k"
    """Its key."""
    value: bytes | None = b"{}"
    """Its value."""
    headers: tuple[tuple[str, bytes | None], ...] = (("trace", b"1"), ("empty", None))
    """Its headers."""


class LoggedShop:
    """The tables of a shop, and which of its records are dead letters."""

    def __init__(self, warehouse: Location) -> None:
        self.shop = Shop(warehouse, sales_pipeline(text=SIDED))
        self.compiled, self.layout = self.shop.compiled, self.shop.layout
        self.quarantine = Table.ensure(self.layout.table("quarantine"), QUARANTINE)
        self.number = self.offset = 0
        self.mark: datetime | None = None
        self.owed: list[Epoch] = []
        """What the ledger lacks until the next start."""
        self.letters: dict[str, list[tuple[int, int]]] = {"rejected": [], "late": [], "big": []}
        """By what is sent: partition and offset, in the order in which they were committed."""

    def epoch(
        self,
        records: Sequence[Read],
        *,
        watermark: datetime | None = None,
        dies: bool = False,
        ledger: bool = True,
        token: int = 0,
    ) -> None:
        """Read records; an epoch that dies leaves its refused ones in the quarantine, and they are read again."""
        self.shop.ledger.append(self.owed)
        self.owed = []
        number, self.number = self.number, self.number + 1
        refused = [(at, each) for at, each in enumerate(records) if each.reason]
        accepted = [(at, each) for at, each in enumerate(records) if not each.reason]
        if refused:
            self.quarantine.append(
                self.write("quarantine", QUARANTINE, refused, number), txns={EPOCH: number}
            )
        if dies:
            return
        late = [each for _, each in accepted if self.mark and each.at < self.mark]
        row = Epoch(
            number=number,
            token=token,
            committed_at=START + timedelta(seconds=number),
            record_version=self.compiled.record_version,
            edge=True,
            ranges=(OffsetRange(Lane("t", 0), self.offset, self.offset + len(records)),) if records else (),
            accepted=Counter(self.compiled.grid.of(each.at).id for _, each in accepted),
            refused=Counter(each.reason for _, each in refused),
            watermark=watermark or self.mark,
            late=Counter(self.compiled.grid.of(each.at).id for each in late),
            frontiers={self.shop.view.id: number},
        )
        files = self.write("master", master_schema(self.compiled), accepted, number) if accepted else []
        self.shop.master.commit(row, files)
        self.owed = [row]
        if ledger:
            self.shop.ledger.append(self.owed)
            self.owed = []
        for at, each in enumerate(records):
            for of in find_letters(each, self.mark):
                self.letters[of].append((0, self.offset + at))
        self.offset += len(records)
        self.mark = watermark or self.mark

    def write(
        self, table: str, schema: pa.Schema, records: Iterable[tuple[int, Read]], number: int
    ) -> list[DataFile]:
        """Write rows as the kernel does."""
        rows = [
            {
                "_topic": "sales",
                "_topic_id": "t",
                "_partition": 0,
                "_offset": self.offset + at,
                "_kafka_timestamp": START + HOUR,
                "_key": each.key,
                "_value": each.value,
                "_headers": [{"key": name, "value": value} for name, value in each.headers],
                "_epoch": number,
                "_record_version": self.compiled.record_version,
                "_reason": each.reason,
                "_detail": "why" if each.reason else None,
                "_event_time": each.at,
                "_selected": each.side is None,
                "_side": each.side,
            }
            for at, each in records
        ]
        made = Sink(self.layout.table(table), f"000000-{number:012d}-00000-{table}.parquet", schema)
        made.write(
            pa.Table.from_pylist(
                [{name: row.get(name) for name in schema.names} for row in rows], schema=schema
            )
        )
        return made.close()


def find_letters(record: Read, mark: datetime | None) -> Iterable[str]:
    """Find as what a record is sent."""
    if record.reason:
        yield "rejected"
        return
    if mark and record.at < mark:
        yield "late"
    if record.side:
        yield record.side


@dataclass
class MemoryTopic:
    """What a topic has, whoever writes to it."""

    letters: list[Letter] = field(default_factory=list)
    position: str | None = None
    token: int = 0
    fails: list[str] = field(default_factory=list)
    """What becomes of the next transactions: "before", "after" or "" for nothing."""
    transactions: int = 0

    @property
    def causes(self) -> list[Cause]:
        """Why each record is there."""
        return [split_headers(headers)[1] for _, _, headers in self.letters]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Where each record was read."""
        return [(each.partition, each.offset) for each in self.causes]


class MemoryLetters:
    """One writer of a topic in memory."""

    def __init__(self, topic: MemoryTopic) -> None:
        self.topic, self.token = topic, -1

    def take_over(self) -> SinkPosition | None:
        """Fence all others."""
        self.topic.token += 1
        self.token = self.topic.token
        return None if self.topic.position is None else SinkPosition.from_json(self.topic.position)

    def add(self, letters: Iterable[Letter], position: SinkPosition) -> None:
        """Add in one step, or fail as told."""
        given: list[Any] = [*letters]
        if self.token != self.topic.token:
            raise Fenced("another writes")
        fate = self.topic.fails.pop(0) if self.topic.fails else ""
        if fate == "before":
            raise KafkaUnavailable("no reply, and nothing is written")
        self.topic.letters += given
        self.topic.position = position.to_json()
        self.topic.transactions += 1
        if fate == "after":
            raise KafkaUnavailable("no reply, and it is written")

    def close(self) -> None:
        """Do nothing."""
