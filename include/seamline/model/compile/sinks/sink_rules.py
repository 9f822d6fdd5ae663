"""What is wrong with the sinks of a definition."""

from __future__ import annotations

from collections import Counter

from seamline.model.compile.problems import Problems
from seamline.model.compile.record_rules import TOPIC
from seamline.model.compile.sinks.database_rules import (
    check_connection,
    check_postgres_sink,
    check_redis_sink,
)
from seamline.model.compile.sinks.file_rules import check_file_sink
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.file_sink import FileSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.kinds import SINKS
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.sinks.sink_base import CHANGE, WHEN, AnySink, Sink
from seamline.model.protocol.sinks.dead_letters import LATE, REJECTED

POSITION = ".position"
"""What the name of the topic ends with that keeps a sink's position, beside the topic of its rows."""
LONGEST = 249 - len(POSITION)


def check_sinks(pipeline: Pipeline, problems: Problems) -> None:
    """Note sinks of views that there are not, that share a name or a place, or whose settings cannot be."""
    names = Counter(sink.id for sink in pipeline.sinks)
    places = Counter(sink.place for sink in pipeline.sinks if type(sink) in SINKS)
    for sink in pipeline.sinks:
        if type(sink) not in SINKS:
            known = ", ".join(each.__name__ for each in SINKS)
            told = f"{type(sink).__name__} is not one of the sinks."
            problems.note("sinks", sink.origin, told, f"use one of {known}.")
            continue
        check_common(sink, problems)
        field = f"sinks[{sink.id}]"
        if names[sink.id] > 1:
            problems.note(
                f"{field}.name", sink.origin, f"{sink.id!r} is declared twice.", "give one of them a name=."
            )
        if places[sink.place] > 1:
            problems.note(
                field,
                sink.origin,
                f"Another sink writes to {sink.place} too.",
                "give each sink a place of its own: they would overwrite each other's rows.",
            )
        if isinstance(sink, Sink):
            check_view(pipeline, sink, problems)
        check_own_fields(pipeline, sink, problems)


def check_own_fields(pipeline: Pipeline, sink: AnySink, problems: Problems) -> None:
    """Note what may be wrong with a sink of one kind."""
    if isinstance(sink, KafkaSink):
        check_kafka_sink(pipeline, sink, problems)
    elif isinstance(sink, DeadLetterSink):
        check_dead_letters(pipeline, sink, problems)
    elif isinstance(sink, PostgresSink):
        check_postgres_sink(pipeline, sink, problems)
    elif isinstance(sink, RedisSink):
        check_redis_sink(pipeline, sink, problems)
    elif isinstance(sink, FileSink):
        check_file_sink(pipeline, sink, problems)


def check_common(sink: AnySink, problems: Problems) -> None:
    """Note what may be wrong with a sink of any kind."""
    if sink.name:
        problems.check_name(f"sinks[{sink.id}].name", sink.origin, sink.name)


def check_view(pipeline: Pipeline, sink: Sink, problems: Problems) -> None:
    """Note a view that there is not, and rows of it that nobody can choose."""
    field = f"sinks[{sink.id}]"
    views = [view.name for view in pipeline.views]
    if sink.view not in views:
        told = f"{sink.view!r} is not a view."
        problems.note(f"{field}.view", sink.origin, told, f"the pipeline has {', '.join(views)}.")
    if sink.when not in WHEN:
        problems.note(
            f"{field}.when",
            sink.origin,
            f"{sink.when!r} is not one of {', '.join(WHEN)}.",
            f'write when="{CHANGE}" for every change, or leave it out.',
        )


def check_kafka_sink(pipeline: Pipeline, sink: KafkaSink, problems: Problems) -> None:
    """Note a topic that there cannot be, and what cannot be sent."""
    check_topic(pipeline, sink, problems)
    if sink.changes and sink.when != CHANGE:
        problems.note(
            f"sinks[{sink.id}].changes",
            sink.origin,
            f'What a row was before cannot be told with when="{sink.when}": it may never have been sent.',
            f'write when="{CHANGE}", or leave changes= out.',
        )


def check_dead_letters(pipeline: Pipeline, sink: DeadLetterSink, problems: Problems) -> None:
    """Note a topic that there cannot be, and a side that there is not, or whose name says something else."""
    check_topic(pipeline, sink, problems)
    sides = sorted({*pipeline.side, *(name for source in pipeline.sources for name in source.side)})
    field = f"sinks[{sink.id}].of"
    if sink.of in (REJECTED, LATE) and sink.of in sides:
        told = f"{sink.of!r} is a side too: it is not clear which of both is sent."
        problems.note(field, sink.origin, told, "give the side another name.")
    elif sink.of not in (REJECTED, LATE, *sides):
        has = f"the pipeline has {', '.join(sides) or 'none'}"
        told = f"{sink.of!r} is not a side."
        problems.note(
            field, sink.origin, told, f'write "{REJECTED}", "{LATE}", or the name of a side: {has}.'
        )


def check_topic(pipeline: Pipeline, sink: KafkaSink | DeadLetterSink, problems: Problems) -> None:
    """Note a topic that there cannot be, that the pipeline reads, or that is another sink's position."""
    field = f"sinks[{sink.id}]"
    read = {*pipeline.kafka_topics, *(each.counts.topic for each in pipeline.sources if each.counts)}
    kept = {
        f"{each.topic}{POSITION}" for each in pipeline.sinks if isinstance(each, KafkaSink | DeadLetterSink)
    }
    if not TOPIC.fullmatch(sink.topic) or len(sink.topic) > LONGEST:
        problems.note(
            f"{field}.topic",
            sink.origin,
            f"{sink.topic!r} is not the name of a topic of rows.",
            f"such a name has letters, digits, dots, underscores and dashes, {LONGEST} at most.",
        )
    elif taken := {sink.topic, f"{sink.topic}{POSITION}"} & read:
        problems.note(
            f"{field}.topic",
            sink.origin,
            f"Topic {min(taken)!r} is one that the pipeline reads.",
            "name a topic of its own.",
        )
    elif sink.topic in kept:
        problems.note(
            f"{field}.topic",
            sink.origin,
            f"Topic {sink.topic!r} keeps the position of another sink.",
            "name a topic of its own.",
        )
    check_connection(sink, problems)
