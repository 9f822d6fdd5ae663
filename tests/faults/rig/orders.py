"""Orders of one day that a stream of ``tests.e2e.test_operations`` has read before a build is tried elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tests.e2e.test_operations import DEFINITION

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.local.stack import StreamStack
from seamline.model.time.intervals import Interval

ORDERS = 300
DAY = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
"""The day of all orders."""


def define_orders(name: str, more: Mapping[str, str] | None = None) -> str:
    """Return the definition under another name, of the topic ``NAME.orders``, with ``more`` of its text replaced."""
    definition = DEFINITION
    own = {'"ops"': f'"{name}"', "ops.orders": f"{name}.orders", ', "ids": own("id", by="fragile:Total")': ""}
    for old, new in {**own, **(more or {})}.items():
        assert old in definition
        definition = definition.replace(old, new)
    return definition


def send_orders(kafka: KafkaConnection, topic: str) -> None:
    """Make a topic of two partitions, and send the orders."""
    with TopicAdmin(kafka) as admin, RecordWriter(kafka) as writer:
        admin.create_topic(topic, 2)
        for number in range(ORDERS):
            value = b'{"id": %d, "placed_at": "2024-01-01T00:00:00Z"}' % number
            writer.send(topic, value=value, partition=number % 2)


def drain_orders(stack: StreamStack, look: Callable[[], object] = int) -> None:
    """Let a stream read all orders, ``look`` while it is up, and stop it."""
    stack.start()
    try:
        stack.drain(ORDERS, timeout=300)
        look()
        assert stack.stop() == 0
    finally:
        stack.kill()
