"""Whether a topic of statements is there, and may be read."""

from __future__ import annotations

import os
from collections.abc import Mapping

from seamline.kafka.connections import read_airflow_connection
from seamline.kafka.first_records import read_first_records
from seamline.kafka.topic_ends import ends_of

ANSWERS_WITHIN = 8.0


def describe_count_topic(connection: str, topic: str, env: Mapping[str, str] = os.environ) -> str:
    """Read a record of a topic, and say how many there are; TopicMissing, KafkaRefused, KafkaUnavailable."""
    found = read_airflow_connection(connection, env)
    ends = ends_of(found, [topic], timeout=ANSWERS_WITHIN)
    places = {
        (topic, lane.partition): start for lane, start in ends.beginnings.items() if start < ends.ends[lane]
    }
    # A right to read is missed by reading alone.
    read_first_records(found, dict([*places.items()][:1]))
    return f"{sum(ends.ends.values()) - sum(ends.beginnings.values())} offsets"
