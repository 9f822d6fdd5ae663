"""What the targets of sinks are called in lineage."""

from __future__ import annotations

import os
from collections.abc import Mapping

from seamline.kafka.connections import read_airflow_connection
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.file_sink import FileSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.plan.lineage.dataset_names import (
    DatasetName,
    name_place,
    name_postgres_table,
    name_redis_keys,
    name_topic,
)
from seamline.sinks.server_connections import read_server_connection

POSTGRES_PORT, REDIS_PORT = 5432, 6379


def name_target(sink: AnySink, pipeline: str, env: Mapping[str, str] = os.environ) -> DatasetName:
    """Name where a sink writes, by its connection; ConnectionMissing without it."""
    if isinstance(sink, KafkaSink | DeadLetterSink):
        return name_topic(read_airflow_connection(sink.connection, env).brokers, sink.topic)
    if isinstance(sink, PostgresSink):
        found = read_server_connection(sink.connection, "postgres", "database", env)
        # Without a database the server takes the one that is called as the user.
        database = found.schema or found.login or "postgres"
        return name_postgres_table(found.host, found.port or POSTGRES_PORT, database, sink.schema, sink.table)
    if isinstance(sink, RedisSink):
        found = read_server_connection(sink.connection, "redis", "0", env)
        database = str(found.extra.get("db") or found.schema or 0)
        keys = f"{sink.prefix}{{{pipeline}.{sink.id}}}"
        return name_redis_keys(found.host, found.port or REDIS_PORT, database, keys)
    assert isinstance(sink, FileSink)
    return name_place(sink.path.rstrip("/"))
