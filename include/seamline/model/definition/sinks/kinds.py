"""The kinds of sinks that there are."""

from __future__ import annotations

from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.file_sink import FileSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.sinks.sink_base import AnySink

SINKS: tuple[type[AnySink], ...] = (KafkaSink, PostgresSink, RedisSink, FileSink, DeadLetterSink)
"""Each class that a definition may use."""
