"""Whose watermark policy a lane has: that of the source whose topic it is of."""

from __future__ import annotations

from collections.abc import Mapping

from seamline.model.definition.pipeline import Pipeline
from seamline.model.protocol.watermark import SourceWatermarks


def build_watermark_policy(pipeline: Pipeline, topic_ids: Mapping[str, str]) -> SourceWatermarks:
    """Return the policies of all sources by the ids of their topics, which are given by name.

    Answers do not count for the watermark: only the certificate of an interval waits for those of its rows.
    """
    answers = {ask.right for ask in pipeline.asks}
    policies = {topic_ids[topic]: each.watermark for each in pipeline.sources for topic in each.topics}
    apart = (topic_ids[topic] for each in pipeline.sources if each.name in answers for topic in each.topics)
    return SourceWatermarks(policies, frozenset(apart))
