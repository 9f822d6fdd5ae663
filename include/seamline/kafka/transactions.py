"""Records that are written in transactions under a name: whoever opens it last is the only one who can write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle

import kafka.errors as errors
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.clients import open_client
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.explained_errors import explain_kafka_error
from seamline.model.errors import FenceLost, KafkaUnavailable, SeamlineError

FENCING = (
    errors.ProducerFencedError,
    errors.InvalidProducerEpochError,
    errors.TransactionCoordinatorFencedError,
)
LASTS = 60_000
"""Milliseconds after which the broker aborts a transaction that was begun and not ended."""
ENDS_WITHIN = 30.0
"""Seconds within which a topic is read to its end."""


class TransactionWriter:
    """Writes records to one topic, all of a call or none.

    Opening it ends what earlier writers of the same ``name`` have begun, and they can write no more: their next call
    raises FenceLost. After any error nobody knows whether the last records were written: whoever goes on opens anew,
    and reads the topic.
    """

    def __init__(self, connection: KafkaConnection, topic: str, name: str) -> None:
        self.connection, self.topic, self.name = connection, topic, name
        with TopicAdmin(connection) as admin:
            # A transaction ends with a mark in each partition that it has written to: one is enough.
            self.partitions = cycle(admin.partitions(topic))
        try:
            self.producer = open_client(
                KafkaProducer,
                **connection.for_client(),
                client_id="seamline-answers",
                transactional_id=name,
                transaction_timeout_ms=LASTS,
                acks="all",
                enable_idempotence=True,
                allow_auto_create_topics=False,
                linger_ms=0,
                max_block_ms=LASTS,
                metrics_enabled=False,
            )
            self.producer.init_transactions()
        except errors.KafkaError as problem:
            raise self.explain(problem) from problem

    def write(self, values: Sequence[bytes]) -> None:
        """Write records in one transaction; FenceLost, or KafkaUnavailable where nobody knows what became of it."""
        partition = next(self.partitions)
        try:
            self.producer.begin_transaction()
            sent = [self.producer.send(self.topic, value=value, partition=partition) for value in values]
            self.producer.commit_transaction()
            for each in sent:
                each.get(0)
        except errors.KafkaError as problem:
            raise self.explain(problem) from problem

    def explain(self, problem: errors.KafkaError) -> SeamlineError:
        """Return the error that it is."""
        if isinstance(problem, FENCING) or isinstance(self.find_last_error(), FENCING):
            return FenceLost(
                f"Another process writes to {self.topic} as {self.name}.",
                hint="it was started later, and goes on in the place of this one.",
            )
        return explain_kafka_error(problem, self.connection, self.topic)

    def find_last_error(self) -> Exception | None:
        """Return what the client's thread was told: its calls raise a KafkaError of no class of its own then."""
        producer: KafkaProducer | None = getattr(self, "producer", None)
        return producer._transaction_manager.last_error if producer else None  # noqa: SLF001 - nobody else has it

    def close(self) -> None:
        """Close the client; a transaction that was not ended is aborted by the broker."""
        self.producer.close(1.0)


def read_committed_tail(
    connection: KafkaConnection, topic: str, starts: Mapping[int, int], until: Mapping[int, int] | None = None
) -> Iterator[bytes]:
    """Read the values of a topic from some offsets of its partitions to where they end now; others from their first.

    With ``until`` some partitions alone are read, up to these offsets and perhaps a little further. Values of
    transactions that were aborted are passed over. KafkaUnavailable where the end is not reached: a transaction that is
    still open ends the reading before it.
    """
    # Where the topic ends beside a transaction that is open: records behind that one would be taken for none.
    with TopicAdmin(replace(connection, isolation_level="read_uncommitted")) as admin:
        first, ends = admin.beginning_offsets(topic), admin.end_offsets(topic)
    if until is not None:
        ends = {each: min(end, until[each]) for each, end in ends.items() if each in until}
    at = {partition: max(starts.get(partition, 0), first[partition]) for partition in ends}
    waiting = {TopicPartition(topic, each): end for each, end in ends.items() if at[each] < end}
    if not waiting:
        return
    try:
        consumer = open_client(
            KafkaConsumer,
            **connection.for_client(),
            client_id="seamline-answers",
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=100,
        )
        try:
            consumer.assign(list(waiting))
            for place in waiting:
                consumer.seek(place, at[place.partition])
            yield from read_until(consumer, waiting, topic)
        finally:
            consumer.close(autocommit=False)
    except errors.KafkaError as problem:
        raise explain_kafka_error(problem, connection, topic) from problem


def read_until(consumer: KafkaConsumer, waiting: dict[TopicPartition, int], topic: str) -> Iterator[bytes]:
    """Read until each partition is at its end; KafkaUnavailable where one stands still before it."""
    patience = ENDS_WITHIN
    while waiting:
        found = consumer.poll(100)
        for records in found.values():
            yield from (each.value for each in records if each.value is not None)
        before = len(waiting)
        waiting = {place: end for place, end in waiting.items() if consumer.position(place) < end}
        patience = ENDS_WITHIN if found or len(waiting) < before else patience - 0.1
        if waiting and patience <= 0:
            raise KafkaUnavailable(
                f"The end of topic {topic} was not reached: {len(waiting)} partitions have an open transaction.",
                hint="nobody else may write to a topic of answers.",
            )
