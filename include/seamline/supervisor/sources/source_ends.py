"""Where topics and tables begin and end now, for those who compare them with the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from seamline.kafka.connections import read_airflow_connection
from seamline.kafka.topic_ends import AskEnds, TopicEnds
from seamline.lake.imports.table_sources import TableSources
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import find_connection
from seamline.model.definition.pipeline import Pipeline
from seamline.model.protocol.offsets import Lane, Vector


def ask_source_ends(definition: Pipeline, layout: Layout, env: Mapping[str, str], ask: AskEnds) -> TopicEnds:
    """Ask Kafka, and look at the tables.

    A table begins where what was read of it ends, or after it if the next version cannot be read, and ends with that
    version. KafkaUnavailable, TopicMissing, NotFound without a table, BadRange, StoreUnavailable.
    """
    said = TopicEnds(datetime.now(UTC), {}, {}, {})
    if definition.kafka_topics:
        name = find_connection(definition.connection, layout)
        said = ask(read_airflow_connection(name, env), definition.kafka_topics)
    if not definition.tables:
        return said
    tables = TableSources(definition, layout)
    news = tables.look(find_held_offsets(layout, tables.versions))
    return TopicEnds(
        said.at,
        {**said.names, **{id: name for name, id in tables.ids.items()}},
        {**said.beginnings, **{lane: each.beginning for lane, each in news.items()}},
        {**said.ends, **{lane: each.end for lane, each in news.items()}},
    )


def find_held_offsets(layout: Layout, lanes: Mapping[Lane, object]) -> Vector:
    """Find where what the log has of lanes ends; those of which it has nothing are left out."""
    return Master.open(layout).position(tuple(lanes)) if Master.exists(layout) else {}
