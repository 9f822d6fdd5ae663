"""A topic as the target of a sink: its records and the position are one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice

import pyarrow as pa

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import RowTopic
from seamline.kafka.row_topic_reader import RowTopicReader
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.kafka_reading import CLEARING, EMPTY, KafkaReading
from seamline.sinks.kafka_rows import Record, encode_changes, encode_rows
from seamline.sinks.row_shape import RowShape
from seamline.sinks.target import ChangeBatch

AT_ONCE = 10_000
"""Tombstones of one transaction."""


class KafkaTarget:
    """The topic of a KafkaSink."""

    def __init__(self, sink: KafkaSink, view: CompiledView, connection: KafkaConnection) -> None:
        self.sink, self.connection, self.owner = sink, connection, f"{view.pipeline}.{sink.id}"
        self.places = RowShape.of(view).identity
        self.opened: RowTopic | None = None

    @property
    def topic(self) -> RowTopic:
        """The topic, which is opened when it is first needed: that fences earlier writers."""
        if self.opened is None:
            self.opened = RowTopic(self.connection, self.sink.topic, self.owner)
        return self.opened

    def take_over(self) -> SinkPosition | None:
        """Fence earlier writers, end a clearing that was cut short, and return what the topic holds.

        SetupError where it has records of somebody else.
        """
        found = self.topic.read_position()
        if found == CLEARING:
            self.clear()
            return None
        if found is None and self.topic.has_rows():
            raise SetupError(
                f"Topic {self.sink.topic!r} has records, and no sink's position beside them.",
                hint="name an empty topic; or, if its records may all be deleted, run "
                f"`seamline sinks resend PIPELINE {self.sink.id}`.",
            )
        return None if found in (None, EMPTY) else SinkPosition.from_json(found)

    def write(self, batches: Iterable[ChangeBatch], position: SinkPosition) -> None:
        """Write changes and the position in one transaction."""
        records = chain.from_iterable(encode_changes(each, changes=self.sink.changes) for each in batches)
        hit_failpoint("sink_begun")
        self.topic.write(pass_half(records), position.to_json().encode())
        hit_failpoint("sink_written")

    def clear(self) -> None:
        """Write a tombstone beside each record; what was cleared to there is told by nothing but the topic's end."""
        self.topic.write((), CLEARING)
        places = self.topic.read_places()
        while some := [*islice(places, AT_ONCE)]:
            self.topic.delete(some, CLEARING)
            hit_failpoint("sink_clearing")
        self.topic.write((), EMPTY)

    @contextmanager
    def open_reading(self) -> Iterator[KafkaReading]:
        """Read the topic beside who writes it."""
        topic = RowTopicReader(self.connection, self.sink.topic, self.owner)
        yield KafkaReading(topic, changes=self.sink.changes)

    def spell_places(self, rows: pa.Table) -> pa.Array:
        """Write the keys of records."""
        return pa.array(encode_rows(rows.select(self.places)), pa.string())

    def spell_values(self, rows: pa.Table) -> pa.Array:
        """Write the values of records, without what a row was before."""
        return pa.array(encode_rows(rows), pa.string())

    def delete_held(self, held: pa.Table, position: SinkPosition) -> None:
        """Write tombstones beside records."""
        places = zip(held["place"].to_pylist(), held["handle"].to_pylist(), strict=True)
        told = ((place.encode(), int(partition)) for place, partition in places)
        self.topic.delete(told, position.to_json().encode())

    def close(self) -> None:
        """Let go of the connection."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None


def pass_half(records: Iterable[Record]) -> Iterator[Record]:
    """Pass records on; a test may end this process after the first."""
    rest = iter(records)
    yield from islice(rest, 1)
    hit_failpoint("sink_half")
    yield from rest
