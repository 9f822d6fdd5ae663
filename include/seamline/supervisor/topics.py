"""The log beside its topics as they are now: what is missing already, and what Kafka may delete unread soon."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import resolve
from seamline.lake.layout import Layout
from seamline.lake.log import known_epochs
from seamline.model.compiled import CompiledPipeline
from seamline.model.errors import SeamlineError
from seamline.model.holes import Gap, gaps
from seamline.model.offsets import Lane


def missing(compiled: CompiledPipeline, layout: Layout) -> Sequence[Gap]:
    """Compare the log with the topic as it is now."""
    source = compiled.definition.source
    with TopicAdmin(resolve(source.connection)) as admin:
        beginnings = {
            Lane(admin.topic_id(name), partition): at
            for name in source.topics
            for partition, at in admin.beginning_offsets(name).items()
        }
    return gaps(known_epochs(layout), beginnings)


def ageing(
    compiled: CompiledPipeline, layout: Layout, *, now: datetime, env: Mapping[str, str] = os.environ
) -> list[Gap]:
    """List what is not read and older than half of the time that its topic keeps records."""
    source = compiled.definition.source
    half: dict[Lane, int] = {}
    first: dict[Lane, int] = {}
    with TopicAdmin(resolve(source.connection, env)) as admin:
        for name in source.topics:
            id, keeps, begins = admin.topic_id(name), admin.retention(name), admin.beginning_offsets(name)
            old = admin.offsets_at(name, now - keeps / 2) if keeps else begins
            half |= {Lane(id, partition): at for partition, at in old.items()}
            first |= {Lane(id, partition): at for partition, at in begins.items()}
    found = gaps(known_epochs(layout), half)
    return [
        replace(gap, start=max(gap.start, first[gap.lane]))
        for gap in found
        if gap.end is not None and gap.end > first[gap.lane]
    ]


def soon(gap: Gap) -> str:
    """Say that Kafka may delete something before it was read."""
    return f"soon: {gap}: unread, and older than half of what the topic keeps; is the stream up?"


def warnings(
    compiled: CompiledPipeline, layout: Layout, *, now: datetime, env: Mapping[str, str] = os.environ
) -> list[str]:
    """Say what Kafka may delete unread soon, or why that is not known, in a line each."""
    try:
        return [soon(gap) for gap in ageing(compiled, layout, now=now, env=env)]
    except SeamlineError as error:
        return [f"not known: whether Kafka deletes what was not read: {error.message}"]
