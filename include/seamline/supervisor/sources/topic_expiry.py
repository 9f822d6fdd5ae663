"""What Kafka may delete before it is read, by the time and by the bytes that topics keep."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.kafka.topic_ends import SHORT, oldest_from
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import find_connection
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.topic_expiry import TopicExpiry, UnreadRange, find_topic_expiry
from seamline.supervisor.sources.source_ends import find_held_offsets

DELETED = "delete"
"""What ``cleanup.policy`` says of a topic that keeps records for a time, or up to a size."""


def read_topic_expiries(
    compiled: CompiledPipeline, layout: Layout, env: Mapping[str, str] = os.environ
) -> dict[str, TopicExpiry]:
    """Ask Kafka about each topic of a pipeline, for two seconds a question; KafkaUnavailable, KafkaRefused."""
    definition = compiled.definition
    if not definition.kafka_topics:
        return {}
    connection = read_airflow_connection(find_connection(definition.connection, layout), env)
    with TopicAdmin(connection, timeout=SHORT) as admin:
        return {name: read_topic_expiry(admin, connection, name, layout) for name in definition.kafka_topics}


def read_topic_expiry(
    admin: TopicAdmin, connection: KafkaConnection, topic: str, layout: Layout
) -> TopicExpiry:
    """Ask Kafka about a topic; of one that is compacted alone nothing expires."""
    if DELETED not in admin.setting(topic, "cleanup.policy"):
        return TopicExpiry(None, None)
    id, begins, ends = admin.topic_id(topic), admin.beginning_offsets(topic), admin.end_offsets(topic)
    held = find_held_offsets(layout, {Lane(id, part): 0 for part in ends})
    unread = {
        part: UnreadRange(begins.get(part, 0), held.get(Lane(id, part), begins.get(part, 0)), end)
        for part, end in ends.items()
    }
    time, size = admin.retention(topic), admin.retention_bytes(topic)
    places = {(topic, part): max(each.reads, each.begins) for part, each in unread.items() if each.share > 0}
    oldest = oldest_from(connection, places) if places and time is not None else None
    return find_topic_expiry(
        unread,
        age=max((datetime.now(UTC) - oldest).total_seconds(), 0.0) if oldest else None,
        seconds=None if time is None else time.total_seconds(),
        bytes=size,
        sizes=admin.partition_sizes(topic) if places and size is not None else {},
    )
