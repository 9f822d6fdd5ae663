"""Certificates, authorities and passwords that are replaced under a stream: it goes on, or says why it does not."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from kafka.admin import ACLOperation, ResourceType
from tests.e2e.joined_world import eventually
from tests.faults.rig.certificates import Authority
from tests.faults.rig.kept_orders import Kept, describe, send
from tests.faults.rig.processes import end_all, working_in
from tests.faults.rig.secured_broker import PASSWORD, SecuredBroker
from tests.ports import free_ports

from seamline.kafka.admin import TopicAdmin

pytestmark = pytest.mark.faults
BY_PASSWORD = "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms=5000"
"""Kafka asks for the password again every few seconds, which it does not by itself."""


class Rotated:
    """A broker and a client whose files are where they were, whatever is in them."""

    def __init__(self, home: Path) -> None:
        self.authorities = [Authority(home, name) for name in ("old", "new")]
        self.own, self.theirs = home / "client.pem", home / "broker.pem"
        self.trusted, self.trusting = home / "authorities.pem", home / "of-broker.pem"
        self.certify(self.authorities[0])
        self.trust(self.authorities[0])
        self.broker = SecuredBroker(
            home / "broker",
            [free_ports() for _ in range(4)],
            self.theirs,
            self.authorities[0],
            truststore=self.trusting,
            more=BY_PASSWORD,
        )

    def certify(self, by: Authority, lives: timedelta = timedelta(days=1)) -> None:
        """Replace both certificates and keys; ``lives`` is of the client's."""
        put(self.own, by.sign("client", lives=lives).read_text())
        put(self.theirs, by.sign("broker").read_text())

    def trust(self, *them: Authority) -> None:
        """Replace what both sides trust."""
        for file in (self.trusted, self.trusting):
            put(file, "".join(each.file.read_text() for each in them))

    def find_issuer(self) -> str:
        """Return who has signed the certificate that the broker shows to who comes now."""
        shown = ssl.get_server_certificate(("127.0.0.1", self.broker.sasl))
        return x509.load_pem_x509_certificate(shown.encode()).issuer.rfc4514_string()

    def drop_connections(self) -> None:
        """Restart the broker."""
        self.broker.stop()
        self.broker.start()


def put(file: Path, text: str) -> None:
    """Replace a file at once."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


@pytest.fixture
def rotated(tmp_path: Path) -> Iterator[Rotated]:
    """It, with a topic that `client` and `reader` may read."""
    made = Rotated(tmp_path)
    made.broker.start()
    made.broker.set_password(PASSWORD)
    with TopicAdmin(made.broker.connection) as admin:
        admin.create_topic("orders", 1)
    for user in ("reader", "client"):
        made.broker.allow(ResourceType.TOPIC, "orders", ACLOperation.READ, user=user)
    send(made.broker, 3)
    yield made
    end_all(tmp_path / "home")
    made.broker.stop()


def list_drivers(kept: Kept) -> set[int]:
    """Return the ids of the stream's processes."""
    return {each.pid for each in working_in(kept.home)}


def test_certificates_are_replaced_under_a_stream(rotated: Rotated, tmp_path: Path) -> None:
    """One driver reads on through all of it; where nobody can, it says why, and waits for the files."""
    (tmp_path / "home").mkdir()
    broker, (old, new) = rotated.broker, rotated.authorities
    login = describe(broker.certified(rotated.own))
    login["extra"]["ssl.ca.location"] = str(rotated.trusted)
    kept = Kept(tmp_path / "home", broker, login)
    kept.start()
    kept.await_all()
    drivers = list_drivers(kept)
    # Both are trusted, and the certificates are of the new one: the broker shows its own to who comes from now on.
    rotated.trust(old, new)
    rotated.certify(new)
    broker.reload()
    eventually("the new certificate to be shown", lambda: "new" in rotated.find_issuer())
    send(broker, 2)
    kept.await_all()
    # The old one is trusted no more, and all connections end: the stream reads its files again.
    rotated.trust(new)
    rotated.drop_connections()
    send(broker, 2)
    kept.await_all()
    # The client's certificate has expired: no connection can be made until there is another.
    rotated.certify(new, lives=-timedelta(hours=1))
    rotated.drop_connections()
    eventually(
        "the reason to be said",
        lambda: "refuses the client's certificate" in kept.seamline("stream", "list"),
    )
    rotated.certify(new)
    send(broker, 2)
    kept.await_all()
    assert drivers and drivers <= list_drivers(kept)
    kept.stop()


def test_a_password_is_replaced_under_a_stream(rotated: Rotated, tmp_path: Path) -> None:
    """The broker asks for it again: the stream waits, names the connection, and goes on with the new one."""
    (tmp_path / "home").mkdir()
    broker = rotated.broker
    kept = Kept(tmp_path / "home", broker, describe(broker.login()))
    kept.start()
    kept.await_all()
    other = "another of this test"
    broker.set_password(other)
    send(broker, 2)
    eventually("the reason to be logged", lambda: "the login of user 'reader' by SCRAM-SHA-512" in kept.log())
    assert "Kafka at" in kept.log() and "(connection 'kafka_default') lets nobody in" in kept.log()
    assert "the login of user 'reader' by SCRAM-SHA-512" in kept.seamline("stream", "list")
    kept.login["password"] = other
    kept.seamline("stream", "restart", "kept", "--here", "--reason", "a new password")
    kept.await_all()
    kept.stop()
    assert PASSWORD not in kept.log() and other not in kept.log()
