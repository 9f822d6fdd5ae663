"""A Kafka broker, the demo's, which ends with who has started it."""

from __future__ import annotations

from pathlib import Path

from tests.services.server import Server, ServiceBroken, tie

from seamline.local.broker import Broker
from seamline.model.errors import SetupError


class TiedBroker(Broker):
    """A broker that does not outlive its parent."""

    def _command(self, main_class: str, heap: str) -> list[str]:
        return [*tie(), *super()._command(main_class, heap)]


def start(home: Path, data: Path, port: int, controller_port: int) -> Server:
    """Start a broker without topics."""
    (home / "data").symlink_to(data)
    broker = TiedBroker(home, port, controller_port)
    try:
        broker.start()
    except SetupError as error:
        raise ServiceBroken(str(error)) from None
    assert broker.pid
    return Server(broker.pid, {"brokers": broker.connection.brokers}, broker.log)
