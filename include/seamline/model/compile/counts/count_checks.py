"""What is wrong with what a source says of its producers' counts."""

from __future__ import annotations

from collections import Counter
from functools import partial

from seamline.model.compile.problems import Problems, format_known_columns
from seamline.model.compile.record_rules import PROCESSING_TIME, TOPIC
from seamline.model.definition.counts import Counts
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sources import Source
from seamline.model.time.intervals import parse_duration
from seamline.model.types.schema import Schema


def check_source_counts(source: Source, schema: Schema, problems: Problems) -> None:
    """Note what a source cannot say of its producers; ``schema`` has the columns of its rows."""
    if (counts := source.counts) is None:
        return
    if not TOPIC.fullmatch(counts.topic):
        problems.note(
            "source.counts.topic",
            counts.origin,
            f"{counts.topic!r} is not the name of a topic.",
            "Kafka's names have letters, digits, dots, underscores and dashes, 249 at most.",
        )
    if source.event_time == PROCESSING_TIME:
        problems.note(
            "source.counts",
            counts.origin,
            "The event time is when a record is read, which producers cannot know.",
            "use an event_time that producers know, or leave counts= out.",
        )
    check_producers(counts, schema, problems)
    for name in ("grace", "remember"):
        given: str = getattr(counts, name)
        if given or name == "remember":
            problems.attempt(f"source.counts.{name}", counts.origin, partial(parse_duration, given))
    if counts.grace and not counts.required:
        problems.note(
            "source.counts.grace",
            counts.origin,
            "No interval waits for statements.",
            "write required=True too, or leave grace= out.",
        )


def check_producers(counts: Counts, schema: Schema, problems: Problems) -> None:
    """Note a column that there is not, or that names nobody, and names that are empty or there twice."""
    column = schema.field(counts.producer) if counts.producer else None
    if counts.producer and column is None:
        problems.note(
            "source.counts.producer",
            counts.origin,
            f"There is no column {counts.producer!r}.",
            format_known_columns(schema, counts.producer),
        )
    elif column and column.type.spark not in ("STRING", "INT", "BIGINT"):
        problems.note(
            "source.counts.producer",
            counts.origin,
            f"{counts.producer} is {column.type}, which cannot hold the name of a producer.",
            "name a column that is STRING, INT or BIGINT.",
        )
    if not all(counts.producers) or len(set(counts.producers)) < len(counts.producers):
        problems.note(
            "source.counts.producers",
            counts.origin,
            f"{list(counts.producers)!r} has an empty name, or a name twice.",
            "name each producer once, as it names itself in its statements.",
        )


def check_count_topics(pipeline: Pipeline, problems: Problems) -> None:
    """Note a topic of statements that is another one's too, or has records."""
    declared = [each.counts for each in pipeline.sources if each.counts]
    used = Counter([*(each.topic for each in declared), *pipeline.kafka_topics])
    for each in declared:
        if used[each.topic] > 1:
            problems.note(
                "source.counts.topic",
                each.origin,
                f"Topic {each.topic!r} is also read for records, or for the statements of another source.",
                "give each source a topic of statements of its own.",
            )
