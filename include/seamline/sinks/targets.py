"""Which target a sink has: each kind of sink opens its own."""

from __future__ import annotations

import os
from collections.abc import Mapping

from seamline.kafka.connections import read_airflow_connection
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.sink_base import Sink
from seamline.sinks.kafka_target import KafkaTarget
from seamline.sinks.target import Target


def open_target(sink: Sink, view: CompiledView, env: Mapping[str, str] = os.environ) -> Target:
    """Open the target of a sink for a version of its view; ConnectionMissing without its connection."""
    assert view.name == sink.view
    if isinstance(sink, KafkaSink):
        return KafkaTarget(sink, read_airflow_connection(sink.connection, env))
    raise TypeError(f"{type(sink).__name__} has no target")
