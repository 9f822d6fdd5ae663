"""The log beside its topics as they are now: what is missing already, and what Kafka may delete unread soon."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import read_airflow_connection
from seamline.lake.imports.table_sources import TableSources
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout, locate_tables
from seamline.lake.tables.decided import find_connection
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import SeamlineError
from seamline.model.protocol.holes import Gap, find_gaps, list_end_offsets
from seamline.model.protocol.offsets import Lane, Vector
from seamline.plan.stream.start_positions import From, StartOffsets, StartPlace, place_group, resolve_offsets
from seamline.supervisor.sources.source_ends import find_held_offsets


@dataclass(frozen=True)
class Offsets:
    """What Kafka has of each lane, in offsets."""

    beginnings: Vector
    """The first offset that is there."""
    ends: Vector
    """The offset after the last."""
    chosen: Vector
    """The first offset to read."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The topics by their ids; empty where nothing is said of them."""


def open_admin(definition: Pipeline, layout: Layout, env: Mapping[str, str] = os.environ) -> TopicAdmin:
    """Open the cluster that is read, by the connection in force."""
    return TopicAdmin(read_airflow_connection(find_connection(definition.connection, layout), env))


def by_lane(
    admin: TopicAdmin, definition: Pipeline, ask: Callable[[str], Mapping[int, int]]
) -> dict[Lane, int]:
    """Ask something of each topic of a pipeline, by lane."""
    return {
        Lane(admin.topic_id(name), partition): at
        for name in definition.kafka_topics
        for partition, at in ask(name).items()
    }


def offsets_now(
    compiled: CompiledPipeline, place: StartPlace | None = None, env: Mapping[str, str] = os.environ
) -> Offsets:
    """Find where each lane begins and ends, and which offset a place means in it; in a table it means none."""
    definition, place = compiled.definition, place or StartPlace()
    layout = locate_tables(definition.name)
    tables = TableSources(definition, layout)
    held = find_held_offsets(layout, tables.versions) if tables.sources else {}
    found = Offsets(
        tables.fetch_beginnings(held),
        tables.find_last_ends(held),
        {},
        {id: name for name, id in tables.ids.items()},
    )
    if not definition.kafka_topics:
        return found
    with open_admin(definition, layout, env) as admin:
        first = by_lane(admin, definition, admin.beginning_offsets)
        ends = by_lane(admin, definition, admin.end_offsets)
        chosen: Vector
        match place.kind:
            case From.LATEST:
                chosen = ends
            case From.EARLIEST:
                chosen = first
            case From.TIMESTAMP:
                chosen = by_lane(admin, definition, partial(at_or_after, admin, place))
            case From.OFFSETS:
                chosen = resolve_offsets(
                    place, {name: admin.topic_id(name) for name in definition.kafka_topics}
                )
            case From.GROUP:
                chosen = by_lane(admin, definition, partial(admin.group_offsets, place.group))
            case From.LEDGER:
                chosen = {}
        names = {admin.topic_id(name): name for name in definition.kafka_topics}
    return Offsets({**found.beginnings, **first}, {**found.ends, **ends}, chosen, {**found.names, **names})


def find_start_offsets(place: StartPlace, offsets: Offsets, held: Vector) -> StartOffsets:
    """Find the offset at which each lane shall be read; what was read already is not asked for again."""
    chosen = offsets.chosen
    if place.kind is From.GROUP:
        return place_group(place.group, chosen, held, offsets.beginnings, offsets.names)
    if place.kind is From.OFFSETS:
        return StartOffsets(chosen)
    return StartOffsets({lane: max(at, held.get(lane, at)) for lane, at in chosen.items()})


def at_or_after(admin: TopicAdmin, place: StartPlace, topic: str) -> Mapping[int, int]:
    """Return the offsets of a topic at an instant."""
    assert place.instant is not None
    return admin.offsets_at(topic, place.instant)


def find_topic_gaps(compiled: CompiledPipeline, layout: Layout) -> Sequence[Gap]:
    """Compare the log with the topic as it is now."""
    definition, log = compiled.definition, read_condensed_log(layout)
    first = TableSources(definition, layout).fetch_beginnings(list_end_offsets(log))
    if definition.kafka_topics:
        with open_admin(definition, layout) as admin:
            first |= by_lane(admin, definition, admin.beginning_offsets)
    return find_gaps(log, first)


def list_ageing_gaps(
    compiled: CompiledPipeline, layout: Layout, *, now: datetime, env: Mapping[str, str] = os.environ
) -> list[Gap]:
    """List what is not read and older than half of the time that its topic keeps records."""
    definition = compiled.definition
    half: dict[Lane, int] = {}
    first: dict[Lane, int] = {}
    if not definition.kafka_topics:
        return []
    with open_admin(definition, layout, env) as admin:
        for name in definition.kafka_topics:
            id, keeps, begins = admin.topic_id(name), admin.retention(name), admin.beginning_offsets(name)
            old = admin.offsets_at(name, now - keeps / 2) if keeps else begins
            half |= {Lane(id, partition): at for partition, at in old.items()}
            first |= {Lane(id, partition): at for partition, at in begins.items()}
    found = find_gaps(read_condensed_log(layout), half)
    return [
        replace(gap, start=max(gap.start, first[gap.lane]))
        for gap in found
        if gap.end is not None and gap.end > first[gap.lane]
    ]


def format_ageing_gap(gap: Gap) -> str:
    """Describe what Kafka may delete before it was read."""
    return f"soon: {gap}: unread, and older than half of what the topic keeps; is the stream up?"


def format_loss_warnings(
    compiled: CompiledPipeline, layout: Layout, *, now: datetime, env: Mapping[str, str] = os.environ
) -> list[str]:
    """Describe what Kafka may delete unread soon, or why that is not known, in a line each."""
    try:
        return [format_ageing_gap(gap) for gap in list_ageing_gaps(compiled, layout, now=now, env=env)]
    except SeamlineError as error:
        return [format_unknown_losses(error)]


def format_unknown_losses(error: SeamlineError) -> str:
    """Say why nobody knows what Kafka may delete."""
    return f"not known: whether Kafka deletes what was not read: {error.message}"
