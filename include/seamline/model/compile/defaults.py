"""What a definition means where it says nothing, by the defaults that it names."""

from __future__ import annotations

from collections.abc import Mapping

from seamline.model.compile.record_rules import PROCESSING_TIME
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sources import DeltaSource

PAST: Mapping[str, str] = {"": "", "2026-11": "366 days"}
"""How far event times may be behind Kafka's timestamps, by the month of the defaults; "" is as old as may be."""

NEWEST = max(PAST)
"""What a new definition names."""


def past_of(pipeline: Pipeline) -> str:
    """Return the bound of the past, a duration or "" for none: what is said, else what the defaults say."""
    said = pipeline.only_source.max_past
    if said is None:
        return "" if by_arrival(pipeline) else PAST.get(pipeline.defaults, "")
    return said


def by_arrival(pipeline: Pipeline) -> bool:
    """Return whether event time is that of processing, which is as far from Kafka's as the reader is behind."""
    return pipeline.only_source.event_time == PROCESSING_TIME


def describe_time_bounds(pipeline: Pipeline) -> str:
    """Return which bounds of event times are in force, and why the past has the one that it has."""
    if by_arrival(pipeline):
        return "event times are those of processing"
    if pipeline.only_source.name in {ask.right for ask in pipeline.asks}:
        return "event times are those of the rows that are asked about"
    source = pipeline.only_source
    whose = "its rows'" if isinstance(source, DeltaSource) else "Kafka's"
    ahead = f"event times up to {source.max_future} ahead of {whose} timestamps"
    bound, said = past_of(pipeline), pipeline.only_source.max_past is not None
    if bound:
        return f"{ahead}, up to {bound} behind" + ("" if said else f' (defaults="{pipeline.defaults}")')
    if said:
        return f'{ahead}, as old as may be (max_past="")'
    return (
        f"{ahead}, as old as may be: it says neither max_past nor defaults "
        f'(defaults="{NEWEST}" is {PAST[NEWEST]}, max_past="" is no bound)'
    )
