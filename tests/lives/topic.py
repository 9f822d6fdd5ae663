"""Kafka topics of a few lanes in lists: what was sent, what of it is still there, and its administration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
from tests.lives.frames import Frame
from tests.lives.records import START, Record

from seamline.kafka.admin import TopicMark
from seamline.kafka.first_records import Place
from seamline.lake.imports.table_sources import TableSources
from seamline.model.definition.pipeline import Pipeline
from seamline.model.protocol.log_tail import Tail, hash_record_value
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.stream.read_topics import Topics
from seamline.testing.engine import RAW

IDS: Mapping[str, str] = {"events": "id of events", "archive": "of the archive", "more": "a third one"}
"""Topics with their ids, which are in another order than names."""
NAMES = {id: name for name, id in IDS.items()}
SENT_AT = START + timedelta(days=6)
"""Kafka's own time of every record."""


@dataclass
class Topic:
    """The lanes of one topic or of several; of each the records below ``first`` are gone."""

    lanes: dict[Lane, list[Record]]
    first: dict[Lane, int] = field(default_factory=dict)

    @classmethod
    def of(cls, partitions: int, topics: int = 1) -> Topic:
        """Make empty topics, with so many partitions together."""
        ids = [*NAMES][:topics]
        return cls({Lane(ids[number % topics], number // topics): [] for number in range(partitions)})

    def send(self, records: Iterable[Record]) -> None:
        """Add records, each to the lane that it names."""
        lanes = list(self.lanes)
        for record in records:
            self.lanes[lanes[record.lane % len(lanes)]].append(record)

    def read_to(self, ends: Mapping[Lane, int]) -> bool:
        """Return whether nothing is left to be read above these offsets."""
        return all(ends[lane] >= len(records) for lane, records in self.lanes.items())

    def raw(self, ranges: Iterable[OffsetRange]) -> Frame:
        """Return records as the stream reads them."""
        rows = [
            {
                "key": None,
                "value": self.lanes[part.lane][offset].value,
                "headers": None,
                "topic": NAMES[part.lane.topic_id],
                "partition": part.lane.partition,
                "offset": offset,
                "timestamp": SENT_AT,
            }
            for part in ranges
            for offset in range(part.start, part.end)
        ]
        return Frame(pa.Table.from_pylist(rows, schema=RAW))

    def identify(self, name: str) -> TopicMark:
        """Describe the id; the one leader stays."""
        return TopicMark(IDS[name], dict.fromkeys(self.beginning_offsets(name), 0))

    def beginning_offsets(self, name: str) -> dict[int, int]:
        """Describe the first offset of each partition."""
        return {lane.partition: self.first.get(lane, 0) for lane in self.lanes if lane.topic_id == IDS[name]}

    def end_offsets(self, name: str) -> dict[int, int]:
        """Describe the end of each partition."""
        return {
            lane.partition: len(records) for lane, records in self.lanes.items() if lane.topic_id == IDS[name]
        }

    def commit_group_offsets(self, *_: object) -> None:
        """Nobody reads them."""

    def close(self) -> None:
        """There is no connection."""


class Nobody:
    """Who reads no records by a client: there is no broker."""

    def read(self, _: object) -> None:
        """Leave them to others."""

    def close(self) -> None:
        """There is no client."""


class Read(Topics):
    """The shipped look at topics, which asks the list in the place of a broker."""

    def __init__(self, topic: Topic, definition: Pipeline, tables: TableSources, _: object) -> None:
        self.pipeline, self.names = definition.name, definition.topics
        self.admin: Topic = topic  # type: ignore[assignment]
        self.ids = self.kafka_ids = {name: IDS[name] for name in self.names}
        self.marks, self.led_anew = {name: topic.identify(name) for name in self.names}, False
        self.tables, self.open = tables, ExitStack()
        self.ranges = Nobody()  # type: ignore[assignment]

    def read_range(self, _: object, part: OffsetRange) -> Frame:  # type: ignore[override]
        """Read the raw records of one range."""
        return self.admin.raw([part])

    def fetch_first_records(self, places: Mapping[Place, int]) -> dict[Place, Tail]:
        """Return the first record at or after some offsets: a start that stops at one that it has read is wrong."""
        sent = {place: self.admin.lanes[Lane(IDS[place[0]], place[1])] for place in places}
        at = int(SENT_AT.timestamp() * 1000)
        return {
            place: Tail(offset, at, hash_record_value(sent[place][offset].value))
            for place, offset in places.items()
            if offset < len(sent[place])
        }
