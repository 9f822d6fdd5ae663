"""Consumers without a group, for whoever reads a few records of some partitions and commits nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer

from seamline.kafka.clients import open_client
from seamline.kafka.connections import KafkaConnection


@contextmanager
def open_consumer(
    connection: KafkaConnection, client_id: str, *, timeout: float, **options: Any
) -> Iterator[KafkaConsumer]:
    """Open a consumer for the block; without a broker it gives up after ``timeout`` seconds, with Kafka's error."""
    consumer = open_client(
        KafkaConsumer,
        **connection.for_client(),
        client_id=client_id,
        group_id=None,
        enable_auto_commit=False,
        isolation_level=connection.isolation_level,
        bootstrap_timeout_ms=int(timeout * 1000),
        request_timeout_ms=max(int(timeout * 1000), 1000),
        **options,
    )
    try:
        yield consumer
    finally:
        consumer.close(autocommit=False)
