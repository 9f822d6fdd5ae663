"""An idempotent writer that loses nothing silently: bounded buffer, acks from all, failures raised."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import kafka.errors as errors
from kafka import KafkaProducer

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.clients import open_client
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.explained_errors import explain_kafka_error
from seamline.model.errors import KafkaUnavailable

Delivered = Callable[[object, int, int], None]
"""Called with a record's token, its partition and its offset."""


class RecordWriter:
    """Write records to topics; leaving the ``with`` flushes.

    At most ``max_pending`` records wait for the broker; then ``send`` waits too, since the client's own
    buffer knows no bound. ``on_delivered`` runs in the caller's thread, inside ``send`` and ``flush``, in
    the order of the sends. Raises TopicMissing, KafkaUnavailable, or SeamlineError with Kafka's reason.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        *,
        on_delivered: Delivered | None = None,
        max_pending: int = 20_000,
        linger_ms: int = 10,
        max_record_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        self.connection = connection
        self._on_delivered = on_delivered
        self._max_pending = max_pending
        self._pending: deque[tuple[object, str, Any]] = deque()
        self._known: set[str] = set()
        self._admin = TopicAdmin(connection)
        try:
            self._producer = open_client(
                KafkaProducer,
                **connection.for_client(),
                client_id="seamline-writer",
                acks="all",
                enable_idempotence=True,
                allow_auto_create_topics=False,
                linger_ms=linger_ms,
                batch_size=128 * 1024,
                max_request_size=max_record_bytes,
                max_block_ms=10_000,
                metrics_enabled=False,
            )
        except BaseException as problem:
            self._admin.close()
            if isinstance(problem, errors.KafkaError):
                raise explain_kafka_error(problem, connection) from problem
            raise

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.flush()
        finally:
            self.close()

    def send(
        self,
        topic: str,
        *,
        key: bytes | None = None,
        value: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp_ms: int | None = None,
        token: object = None,
    ) -> None:
        """Hand one record to the client; raise what an earlier one failed with.

        ``timestamp_ms`` defaults to now; a tombstone (no value) needs a key.
        """
        if topic not in self._known:
            self._admin.partitions(topic)
            self._known.add(topic)
        if len(self._pending) >= self._max_pending:
            self._settle(self._max_pending // 2, wait=True)
        try:
            future = self._producer.send(
                topic,
                value=value,
                key=key,
                headers=list(headers),
                partition=partition,
                timestamp_ms=timestamp_ms,
            )
        except errors.KafkaError as problem:
            raise explain_kafka_error(problem, self.connection, topic) from problem
        self._pending.append((token, topic, future))
        if len(self._pending) & 0xFF == 0:
            self._settle(0, wait=False)

    def flush(self, timeout: float = 150.0) -> None:
        """Wait until every record is with the broker; raise on the first that is not."""
        try:
            self._producer.flush(timeout)
        except errors.KafkaTimeoutError as problem:
            raise KafkaUnavailable(
                f"{self.connection.brokers} has not acknowledged {len(self._pending)} records after {timeout:g} s.",
                hint="the records before them are in the topic; check the broker, then send the rest.",
            ) from problem
        self._settle(0, wait=True)

    def close(self, timeout: float = 5.0) -> None:
        """Close without the promise of ``flush``: what is not delivered in ``timeout`` seconds is dropped."""
        self._producer.close(timeout)
        self._admin.close()

    def _settle(self, down_to: int, *, wait: bool) -> None:
        """Take delivered records off the front of the queue."""
        pending, tell = self._pending, self._on_delivered
        while len(pending) > down_to and (wait or pending[0][2].is_done):
            token, topic, future = pending.popleft()
            try:
                place = future.get(150.0)
            except errors.KafkaError as problem:
                raise explain_kafka_error(problem, self.connection, topic) from problem
            if tell is not None:
                tell(token, place.partition, place.offset)
