"""A topic read back: records by key, the newest of each, and the position beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa

from seamline.kafka.row_topic_reader import PlacedRecord, RowTopicReader
from seamline.lake.read.sinks.row_comparison import HELD, HELD_AT_ONCE
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.json_values import read_starts

CLEARING, EMPTY = b"clearing", b"empty"
"""What stands in the position's place while the topic is cleared, and once it is."""
BEFORE, AFTER = '{"before": ', ', "after": '


class KafkaReading:
    """A topic that is read."""

    def __init__(self, topic: RowTopicReader, *, changes: bool) -> None:
        self._topic, self._changes = topic, changes

    def find_position(self) -> SinkPosition | None:
        """Read the position; None while there is none, or the topic is being cleared."""
        found = self._topic.read_position()
        return None if found in (None, EMPTY, CLEARING) else SinkPosition.from_json(found)

    def read_rows(self, span: StartRange) -> Iterator[pa.Table]:
        """Read the topic to its end; a tombstone says that a row is no longer there."""
        records = self._topic.read_records()
        while some := [*islice(records, HELD_AT_ONCE)]:
            yield self.make_rows(some)

    def read_row(self, row: pa.Table) -> pa.Table | None:
        """Return None: a topic cannot be asked for one key."""
        return None

    def make_rows(self, records: Iterable[PlacedRecord]) -> pa.Table:
        """Make rows of records."""
        keys, parts, values = [], [], []
        for key, partition, value in records:
            keys.append(key.decode(errors="backslashreplace"))
            parts.append(str(partition))
            values.append(None if value is None else value.decode(errors="backslashreplace"))
        places = pa.array(keys, pa.string())
        if self._changes:
            values = [take_after(each) for each in values]
        return pa.table(
            [places, pa.array(parts, pa.string()), read_starts(places), pa.array(values, pa.string())],
            schema=HELD,
        )


def take_after(value: str | None) -> str | None:
    """Return what a change has made of a row, None if it is gone."""
    if value is None:
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(value, len(BEFORE))
    except ValueError:
        return value
    if not value.startswith(BEFORE) or not value.startswith(AFTER, end):
        return value
    after = value[end + len(AFTER) : -1]
    return None if after == "null" else after
