"""Topics as the broker knows them: their ids, partitions and offsets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, TypeVar

import kafka.errors as errors
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.structs import OffsetAndMetadata

from seamline.kafka.clients import find_out_why, open_client
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.explained_errors import CONFIGS, explain_kafka_error
from seamline.model.errors import KafkaUnavailable

_COORDINATOR_ABSENT = (
    errors.CoordinatorNotAvailableError,
    errors.CoordinatorLoadInProgressError,
    errors.NotCoordinatorError,
)
T = TypeVar("T")


@dataclass(frozen=True)
class TopicMark:
    """By what a topic is known, and who has its partitions."""

    id: str
    """The id of this incarnation."""
    leaders: Mapping[int, int]
    """The epoch of each partition's leader: each new leader has a higher one."""


class TopicAdmin:
    """A connection to the cluster's administration; close it, or use it in a ``with``.

    Every call, the constructor included, raises KafkaUnavailable when no broker answers within
    ``timeout`` seconds, and TopicMissing when the topic it names does not exist.
    """

    def __init__(self, connection: KafkaConnection, *, timeout: float = 8.0) -> None:
        self.connection = connection
        self.timeout = timeout
        limit = int(timeout * 1000)
        _await_port(connection, timeout)
        with self._translated(""):
            self._client = open_client(
                KafkaAdminClient,
                **connection.for_client(),
                client_id="seamline-admin",
                bootstrap_timeout_ms=limit,
                request_timeout_ms=limit,
                reconnect_backoff_max_ms=1000,
            )

    def __enter__(self) -> TopicAdmin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        self._client.close()

    def topics(self) -> list[str]:
        """List the names of all topics, internal ones left out."""
        with self._translated(""):
            found = self._client.describe_topics()
        return sorted(topic["name"] for topic in found if not topic["is_internal"])

    def create_topic(
        self, name: str, partitions: int, *, config: Mapping[str, str] | None = None, replicas: int = -1
    ) -> bool:
        """Create a topic and wait until it can be written; return False if it existed already."""
        options = {
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": dict(config or {}),
        }
        with self._translated(name):
            try:
                self._client.create_topics({name: options})
            except errors.TopicAlreadyExistsError:
                return False
            self._client.wait_for_topics([name], timeout_ms=int(self.timeout * 1000))
        return True

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until the broker no longer knows it."""
        with self._translated(name):
            self._client.delete_topics([name])
        self._await(lambda: name not in self.topics(), f"Topic {name!r} is still there", "its deletion")

    def topic_id(self, name: str) -> str:
        """Return the id (a UUID) of this incarnation of the topic; a recreated topic has another."""
        return str(self._describe(name)["topic_id"])

    def partitions(self, name: str) -> list[int]:
        """List the partitions of a topic, ascending."""
        return sorted(part["partition_index"] for part in self._describe(name)["partitions"])

    def add_partitions(self, name: str, total: int) -> None:
        """Raise the number of partitions to ``total``, and wait until they are there; Kafka can never lower it."""
        with self._translated(name):
            self._client.create_partitions({name: total})
        # The controller answers before the brokers know of it.
        lacking = f"Topic {name!r} lacks partitions"
        self._await(lambda: len(self.partitions(name)) >= total, lacking, "they were added")
        with self._translated(name):
            self._client.wait_for_topics([name], timeout_ms=int(self.timeout * 1000))

    def _await(self, done: Callable[[], bool], still: str, since: str) -> None:
        """Ask until the broker says so; KafkaUnavailable where it does not in time."""
        deadline = time.monotonic() + self.timeout
        while not done():
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"{still} {self.timeout:g} s after {since}.")
            time.sleep(0.05)

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Delete each partition's records below an offset, for ever, as retention does."""
        places = {TopicPartition(name, part): at for part, at in before.items()}
        with self._translated(name):
            self._client.delete_records(places, timeout_ms=int(self.timeout * 1000))

    def beginning_offsets(self, name: str) -> dict[int, int]:
        """Return the first offset that each partition still has."""
        return self._offsets(name, OffsetSpec.EARLIEST)

    def end_offsets(self, name: str) -> dict[int, int]:
        """Return the exclusive end of each partition, as the connection's isolation level sees it."""
        return self._offsets(name, OffsetSpec.LATEST)

    def offsets_at(self, name: str, instant: datetime) -> dict[int, int]:
        """Return the first offset of each partition whose record is not older; its end where all are older."""
        # Numbers below 0 are words to Kafka: -1 is the end. And what comes meanwhile is behind the end.
        millis = max(int(instant.timestamp() * 1000), 0)
        ends, found = self.end_offsets(name), self._offsets(name, millis)
        return {part: ends[part] if at < 0 else at for part, at in found.items()}

    def retention(self, name: str) -> timedelta | None:
        """Return how long a topic keeps records by its ``retention.ms``; None for ever."""
        millis = int(self.setting(name, "retention.ms"))
        return None if millis < 0 else timedelta(milliseconds=millis)

    def retention_bytes(self, name: str) -> int | None:
        """Return how many bytes each partition of a topic keeps by its ``retention.bytes``; None for all."""
        size = int(self.setting(name, "retention.bytes"))
        return None if size < 0 else size

    def partition_sizes(self, name: str) -> dict[int, int]:
        """Return the bytes of each partition's largest replica; none without the right to describe the cluster."""
        with self._translated(name):
            told = self._client.describe_log_dirs([name])
        found: dict[int, int] = {}
        for place in (place for broker in told for place in broker["log_dirs"]):
            for part in (part for topic in place["topics"] for part in topic["partitions"]):
                number = int(part["partition_index"])
                found[number] = max(found.get(number, 0), int(part["partition_size"]))
        return found

    def setting(self, name: str, key: str) -> str:
        """Return a setting of a topic; KafkaRefused without the right to see it."""
        with self._translated(name):
            asked = [ConfigResource(ConfigResourceType.TOPIC, name)]
            told = self._client.describe_configs(asked, config_filter="all")
            # A broker leaves out what one has no right to see.
            if key not in told["topic"][name]:
                raise errors.TopicAuthorizationFailedError(CONFIGS)
        return str(told["topic"][name][key]["value"])

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        with self._translated(""):
            return str(self._client.describe_cluster()["cluster_id"])

    def identify(self, name: str) -> TopicMark:
        """Return by what this incarnation of a topic, and each leader of its partitions, is known."""
        found = self._describe(name)
        leaders = {part["partition_index"]: int(part["leader_epoch"]) for part in found["partitions"]}
        return TopicMark(str(found["topic_id"]), leaders)

    def commit_group_offsets(self, group: str, name: str, offsets: Mapping[int, int]) -> None:
        """Record the next offset per partition for a group without members, for other people's lag tools."""
        positions = {
            TopicPartition(name, part): OffsetAndMetadata(at, "", -1) for part, at in offsets.items()
        }

        def commit() -> None:
            for outcome in self._client.alter_group_offsets(group, positions).values():
                if outcome is not errors.NoError:
                    raise outcome

        self._with_coordinator(name, group, commit)

    def group_offsets(self, group: str, name: str) -> dict[int, int]:
        """Return the next offset per partition that a group has recorded; partitions without one are left out."""
        recorded = self._with_coordinator(
            name, group, lambda: self._client.list_group_offsets({group: None})[group]
        )
        return {
            place.partition: at.offset
            for place, at in recorded.items()
            if place.topic == name and at.offset >= 0
        }

    def _describe(self, name: str) -> dict[str, Any]:
        with self._translated(name):
            topic: dict[str, Any] = self._client.describe_topics([name])[0]
            failure = errors.for_code(topic["error_code"])
            if failure is not errors.NoError:
                raise failure
        return topic

    def _offsets(self, name: str, spec: OffsetSpec | int) -> dict[int, int]:
        places = {TopicPartition(name, part): spec for part in self.partitions(name)}
        with self._translated(name):
            found = self._client.list_partition_offsets(
                places, self.connection.isolation_level, timeout_ms=int(self.timeout * 1000)
            )
        return {place.partition: at.offset for place, at in sorted(found.items())}

    def _with_coordinator(self, topic: str, group: str, ask: Callable[[], T]) -> T:
        """Ask again while the cluster is choosing who keeps the group, as it always is for its first."""
        deadline = time.monotonic() + self.timeout
        with self._translated(topic, group):
            while True:
                try:
                    return ask()
                except _COORDINATOR_ABSENT:
                    if time.monotonic() > deadline:
                        raise
                time.sleep(0.1)

    @contextmanager
    def _translated(self, topic: str, group: str = "") -> Iterator[None]:
        try:
            yield
        except errors.KafkaError as problem:
            if isinstance(problem, errors.KafkaConnectionError) and hasattr(self, "_client"):
                # A client that has been in says nothing of why it no longer is.
                problem.__notes__ = find_out_why(KafkaAdminClient, **self.connection.for_client())
            raise explain_kafka_error(problem, self.connection, topic, group) from problem


def _await_port(connection: KafkaConnection, timeout: float) -> None:
    """Wait until one broker accepts a connection: kafka-python leaks a socket for each refused attempt."""
    deadline = time.monotonic() + timeout
    while True:
        for broker in connection.brokers.split(","):
            host, _, port = broker.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=timeout).close()
                return
            except OSError as problem:
                refused = problem
        if time.monotonic() > deadline:
            raise explain_kafka_error(errors.KafkaConnectionError(str(refused)), connection) from refused
        time.sleep(0.1)
