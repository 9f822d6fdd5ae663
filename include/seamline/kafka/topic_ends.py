"""Where topics begin and end now, asked in a moment or not at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType

import kafka.errors as errors
from kafka import TopicPartition

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.consumers import open_consumer
from seamline.kafka.explained_errors import explain_kafka_error
from seamline.kafka.record_places import NO_TIMESTAMP, read_timestamp, without_contents
from seamline.model.errors import KafkaUnavailable
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import EPOCH

SHORT = 2.0
EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class TopicEnds:
    """Where every lane began and ended at an instant."""

    at: datetime
    """When the broker was asked, UTC."""
    names: Mapping[str, str]
    """Each topic's name, by its id."""
    beginnings: Mapping[Lane, int]
    """The first offset of each lane."""
    ends: Mapping[Lane, int]
    """The exclusive end offset of each lane."""


AskEnds = Callable[[KafkaConnection, Collection[str]], TopicEnds]
"""Asks a broker where some topics begin and end."""


def ends_of(connection: KafkaConnection, topics: Collection[str], *, timeout: float = SHORT) -> TopicEnds:
    """Ask the broker; KafkaUnavailable when it takes longer than ``timeout`` seconds to answer, TopicMissing."""
    with TopicAdmin(connection, timeout=timeout) as admin:
        return fetch_ends(admin, topics)


def fetch_ends(admin: TopicAdmin, topics: Collection[str]) -> TopicEnds:
    """Ask over an open connection; KafkaUnavailable and TopicMissing."""
    names: dict[str, str] = {}
    beginnings: dict[Lane, int] = {}
    ends: dict[Lane, int] = {}
    for name in topics:
        id = admin.topic_id(name)
        names[id] = name
        beginnings |= {Lane(id, part): at for part, at in admin.beginning_offsets(name).items()}
        ends |= {Lane(id, part): at for part, at in admin.end_offsets(name).items()}
    return TopicEnds(datetime.now(UTC), names, beginnings, ends)


class SharedEnds:
    """Asks each cluster over one connection, whoever asks, from any thread, one after the other.

    A cluster that cannot be connected to is not waited for again, and one that has twice in a row not answered
    neither. Use it in a ``with``.
    """

    def __init__(self, *, timeout: float = SHORT) -> None:
        self.timeout = timeout
        self._alone = threading.Lock()
        self._locks: dict[KafkaConnection, threading.Lock] = {}
        self._admins: dict[KafkaConnection, TopicAdmin | KafkaUnavailable] = {}
        self._silent: set[KafkaConnection] = set()

    def __call__(self, connection: KafkaConnection, topics: Collection[str]) -> TopicEnds:
        """Ask a cluster; KafkaUnavailable, also where it could not be connected to before, TopicMissing."""
        with self._alone:
            lock = self._locks.setdefault(connection, threading.Lock())
        with lock:
            admin = self._connect(connection)
            try:
                found = fetch_ends(admin, topics)
            except KafkaUnavailable as problem:
                # Perhaps one partition has no leader, perhaps the cluster is gone: a new connection tells.
                del self._admins[connection]
                admin.close()
                if connection in self._silent:
                    self._admins[connection] = problem
                self._silent.add(connection)
                raise
            self._silent.discard(connection)
            return found

    def _connect(self, connection: KafkaConnection) -> TopicAdmin:
        if connection not in self._admins:
            try:
                self._admins[connection] = TopicAdmin(connection, timeout=self.timeout)
            except KafkaUnavailable as problem:
                self._admins[connection] = problem
        found = self._admins[connection]
        if isinstance(found, KafkaUnavailable):
            raise found
        return found

    def __enter__(self) -> SharedEnds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections; who asks later, from a thread that is still there, has no answer."""
        for connection in list(self._locks):
            with self._locks[connection]:
                if (admin := self._admins.get(connection)) and not isinstance(admin, KafkaUnavailable):
                    admin.close()
                self._admins[connection] = KafkaUnavailable("Nobody asks any more.", hint="ask anew.")


def oldest_from(
    connection: KafkaConnection, places: Mapping[tuple[str, int], int], *, timeout: float = SHORT
) -> datetime | None:
    """Return the least of the Kafka timestamps of the first records at or after some offsets by topic and partition.

    None where there is none, where not all have answered within ``timeout`` seconds, and where one has no timestamp:
    then it is not known. Of a record that 64 MB of its batch come before, the batch's first timestamp stands; of one
    that Python has no instant for, the nearest that it has.
    """
    waiting = {TopicPartition(topic, part): at for (topic, part), at in places.items()}
    found: list[int] = []
    until = time.monotonic() + timeout
    try:
        with open_consumer(
            connection, "seamline-lag", timeout=timeout, max_partition_fetch_bytes=4096, fetch_max_wait_ms=100
        ) as consumer:
            without_contents(consumer, timed=True)
            consumer.assign(list(waiting))
            for place, at in waiting.items():
                consumer.seek(place, at)
            while waiting and time.monotonic() < until:
                for place, records in consumer.poll(100, max_records=1).items():
                    if waiting.pop(place, None) is not None:
                        found.append(read_timestamp(records[0]))
                        consumer.pause(place)
    except errors.KafkaError as problem:
        raise explain_kafka_error(problem, connection) from problem
    return to_nearest_instant(min(found)) if found and not waiting and NO_TIMESTAMP not in found else None


def to_nearest_instant(millis: int) -> datetime:
    """Return the instant at so many milliseconds since 1970, or the nearest; producers may send any 64 bits."""
    try:
        return EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return LATEST if millis > 0 else EARLIEST
