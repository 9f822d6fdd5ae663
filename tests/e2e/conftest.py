"""One broker for all end-to-end tests of a run."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from seamline.kafka.connections import KafkaConnection
from seamline.local.broker import Broker


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    """Run a broker on free ports."""
    broker = Broker(tmp_path_factory.mktemp("kafka"), free_port(), free_port())
    broker.start()
    yield broker.connection
    broker.stop()


def free_port() -> int:
    """Ask the system for a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
