"""Whose watermark policy a lane has: that of the source whose topic it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seamline.model.definition.pipeline import KafkaSource
from seamline.model.protocol.watermark import SourceWatermarks


def build_watermark_policy(sources: Sequence[KafkaSource], topic_ids: Mapping[str, str]) -> SourceWatermarks:
    """Return the policies of all sources by the ids of their topics, which are given by name."""
    return SourceWatermarks(
        {topic_ids[topic]: source.watermark for source in sources for topic in source.topics}
    )
