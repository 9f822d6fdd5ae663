"""A topic as the target of a sink: its records and the position are one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice

import pyarrow as pa

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic_reader import RowTopicReader
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.kafka_reading import CLEARING, EMPTY, KafkaReading
from seamline.sinks.kafka_rows import encode_changes, encode_rows
from seamline.sinks.row_shape import RowShape
from seamline.sinks.target import ChangeBatch
from seamline.sinks.topic_target import TopicTarget, pass_half

AT_ONCE = 10_000
"""Tombstones of one transaction."""


class KafkaTarget(TopicTarget):
    """The topic of a KafkaSink."""

    def __init__(self, sink: KafkaSink, view: CompiledView, connection: KafkaConnection) -> None:
        super().__init__(sink, view.pipeline, connection)
        self.sink, self.places = sink, RowShape.of(view).identity

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
