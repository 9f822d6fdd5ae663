"""Topics in numbers: how near what is not read is to its end in Kafka."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from seamline.lake.storage.layout import locate_tables
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.plan.stream.topic_expiry import TopicExpiry
from seamline.supervisor.metrics.metric_families import Family
from seamline.supervisor.metrics.paced_reading import PacedReader
from seamline.supervisor.sources.topic_expiry import read_topic_expiries


@dataclass(frozen=True)
class PipelineTopics:
    """The topics of a pipeline."""

    pipeline: str
    """The pipeline's name."""
    topics: Mapping[str, TopicExpiry]
    """How near the oldest unread record of each topic is to its end."""


TOPIC_FAMILIES: tuple[Family[PipelineTopics], ...] = (
    Family(
        "seamline_kafka_expiry_ratio",
        "The share of what a topic keeps, by time and by bytes, that its oldest unread record has used up: at 1 Kafka "
        "may delete it. Absent where all is kept.",
        lambda found: (
            ((topic, by), share)
            for topic, each in sorted(found.topics.items())
            for by, share in (("time", each.time), ("bytes", each.bytes))
        ),
        ("topic", "by"),
    ),
)


@dataclass(eq=False)
class TopicReader(PacedReader[PipelineTopics]):
    """Asks Kafka about the topics of pipelines; one cluster that is away is waited for once a scrape."""

    budget: ClassVar[float] = 1.0

    def look(self, name: str, pipeline: CompiledPipeline) -> PipelineTopics:
        return PipelineTopics(name, read_topic_expiries(pipeline, locate_tables(name), os.environ))
