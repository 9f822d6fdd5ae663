"""Which target a sink has: each kind of sink opens its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module

from seamline.kafka.connections import read_airflow_connection
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.definition.sinks.file_sink import FileSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.errors import SetupError
from seamline.sinks.files.target import FileTarget
from seamline.sinks.kafka_target import KafkaTarget
from seamline.sinks.server_connections import read_server_connection
from seamline.sinks.target import Target


def open_target(sink: Sink, view: CompiledView, env: Mapping[str, str] = os.environ) -> Target:
    """Open the target of a sink for a version of its view; ConnectionMissing without its connection."""
    assert view.name == sink.view
    if isinstance(sink, KafkaSink):
        return KafkaTarget(sink, view, read_airflow_connection(sink.connection, env))
    if isinstance(sink, PostgresSink):
        connection = read_server_connection(sink.connection, "postgres", "database", env)
        return load_class("seamline.sinks.postgres.target", "PostgresTarget")(sink, view, connection)
    if isinstance(sink, RedisSink):
        connection = read_server_connection(sink.connection, "redis", "0", env)
        return load_class("seamline.sinks.redis.target", "RedisTarget")(sink, view, connection)
    if isinstance(sink, FileSink):
        return FileTarget(sink, view)
    raise TypeError(f"{type(sink).__name__} has no target")


def load_class(module: str, name: str) -> Callable[..., Target]:
    """Import a target, whose client is an extra's; SetupError where that is not installed."""
    try:
        found: Callable[..., Target] = getattr(import_module(module), name)
        return found
    except ModuleNotFoundError as error:
        raise SetupError(
            f"{error.name} is not installed, by which this sink writes.",
            hint="pip install 'seamline[sinks]', then start the sinks again.",
        ) from error
