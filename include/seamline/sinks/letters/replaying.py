"""Dead letters produced again, each once, as the records that they were: to the topics they came from, or another."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from seamline.kafka.connections import read_airflow_connection
from seamline.kafka.row_topic import POSITION
from seamline.kafka.sending.replay_topic import ReplayTopic, Stored
from seamline.kafka.sending.transactional_writer import BY_KEY, Outgoing
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.errors import BadRange
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.sinks.dead_letters import REJECTED
from seamline.model.protocol.sinks.letter_headers import Cause, split_headers
from seamline.model.protocol.sinks.replays import Replayed
from seamline.runtime.failpoints import hit_failpoint

AT_ONCE, AT_ONCE_BYTES = 10_000, 32 << 20
"""Dead letters that are looked at for one transaction, and their bytes but for the last one's."""
PRODUCED, UNREAD, ELSEWHERE = "produced again", "without their bytes", "of no topic that is read"


class Replaying(Protocol):
    """A topic that is replayed (``ReplayTopic``)."""

    def read_replayed(self) -> bytes | None:
        """Read how far it has been replayed; None for not at all."""

    def list_partitions(self, topic: str) -> set[int]:
        """List the partitions of a topic."""

    def read_from(self, starts: Mapping[int, int]) -> Iterator[Stored]:
        """Read its records from given offsets on."""

    def write(self, records: Iterable[Outgoing], replayed: bytes) -> None:
        """Produce records, and write how far that has got, in one transaction."""


@dataclass(frozen=True)
class Request:
    """What is to be produced again."""

    topics: Collection[str]
    """The topics to which records may go back; those of others stay."""
    reasons: Collection[str] = ()
    """The reasons of the records; none for all."""
    to: str = ""
    """Another topic that takes all; empty for the one that each was read from."""
    again: bool = False
    """Whether those are produced that were produced before."""


def replay_letters(
    pipeline: Pipeline,
    sink: DeadLetterSink,
    *,
    reasons: Collection[str] = (),
    to: str = "",
    again: bool = False,
    env: Mapping[str, str] = os.environ,
) -> Counter[str]:
    """Produce what a topic of dead letters has, and what was not produced again before; count what became of it."""
    require_target(pipeline, sink, to)
    connection = read_airflow_connection(sink.connection, env)
    with closing(ReplayTopic(connection, sink.topic)) as topic:
        return replay_topic(topic, Request(pipeline.kafka_topics, reasons, to, again))


def require_target(pipeline: Pipeline, sink: DeadLetterSink, to: str) -> None:
    """Raise BadRange where records would be counted twice, or cannot be written in the transaction of the position."""
    own = {name for each in pipeline.sinks if (name := getattr(each, "topic", ""))}
    if to in {*own, *(f"{each}{POSITION}" for each in own)}:
        raise BadRange(
            f"Topic {to!r} is kept by a sink of {pipeline.name}.", hint="name a topic that no sink writes to."
        )
    if sink.of != REJECTED and (not to or to in pipeline.kafka_topics):
        raise BadRange(
            f"The records of {sink.id} were accepted: {pipeline.name} would count them a second time.",
            hint="name a topic that it does not read: --to TOPIC.",
        )
    if not to and sink.connection != pipeline.connection:
        raise BadRange(
            f"{sink.id} writes to {sink.connection}, and {pipeline.name} reads {pipeline.connection}: no transaction "
            "reaches over two clusters.",
            hint="name a topic beside the dead letters: --to TOPIC.",
        )


def replay_topic(topic: Replaying, request: Request) -> Counter[str]:
    """Go through the dead letters that are due, a transaction at a time."""
    told, counts = topic.read_replayed(), Counter[str]()
    # What was produced of other reasons stays so where one reason is produced again.
    forgets = request.again and not request.reasons
    done = Replayed() if told is None or forgets else Replayed.from_json(told)
    passed = Replayed() if request.again else done
    places = {name: topic.list_partitions(name) for name in ([request.to] if request.to else request.topics)}
    starts = {part: passed.find_start(request.reasons, part) for part in list_known_partitions(passed)}
    for some in gather_messages(topic.read_from(starts)):
        records, ends = [], dict[int, int]()
        for letter in some:
            read, cause = split_headers(letter.headers)
            ends[letter.partition] = letter.offset
            if not passed.is_due(request.reasons, cause.reason, letter.partition, letter.offset):
                continue
            verdict = judge_letter(cause, request)
            counts[verdict] += 1
            if verdict == PRODUCED:
                name = request.to or cause.topic
                own = cause.partition if not request.to and cause.partition in places[name] else BY_KEY
                records.append(Outgoing(name, letter.key, letter.value, own, read, cause.timestamp))
        for part, offset in ends.items():
            done = done.pass_by(request.reasons, part, offset)
        hit_failpoint("letters_read")
        topic.write(records, done.to_json().encode())
        hit_failpoint("letters_replayed")
    return counts


def list_known_partitions(done: Replayed) -> set[int]:
    """List the partitions of which anything was replayed."""
    return {part for each in done.ends.values() for part in each}


def judge_letter(cause: Cause, request: Request) -> str:
    """Say what becomes of a dead letter that is due."""
    if cause.unread:
        return UNREAD
    lane = Lane(cause.topic_id, cause.partition)
    # Such a row names the topic as whose records it was judged, which has never had it.
    foreign = lane.imported or lane.of_table
    return PRODUCED if not foreign and (request.to or cause.topic in request.topics) else ELSEWHERE


def gather_messages(found: Iterable[Stored]) -> Iterator[list[Stored]]:
    """Gather records into what one transaction takes."""
    some: list[Stored] = []
    held = 0
    for each in found:
        some.append(each)
        held += len(each.value or b"") + len(each.key or b"")
        if len(some) == AT_ONCE or held >= AT_ONCE_BYTES:
            yield some
            some, held = [], 0
    if some:
        yield some
