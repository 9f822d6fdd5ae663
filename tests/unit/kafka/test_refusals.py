"""What is made of the words of a client that is not let in."""

from __future__ import annotations

import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.refusals import MANAGER, find_reason, note_refusals
from seamline.model.errors import KafkaUnavailable

PLAIN = KafkaConnection("h:9092")
LOGIN = KafkaConnection(
    "h:9092", security_protocol="SASL_SSL", sasl_mechanism="PLAIN", username="ada", password="secret"
)


@pytest.mark.parametrize(
    ("said", "connection", "reason"),
    [
        ("[Error 58] SaslAuthenticationFailedError: ...", LOGIN, "refuses the login of user 'ada' by PLAIN"),
        ("Invalid username or password", LOGIN, "refuses the login of user 'ada' by PLAIN"),
        (
            "KafkaConnectionError: socket disconnected",
            LOGIN,
            "ends each connection at the login of user 'ada'",
        ),
        ("KafkaConnectionError: socket disconnected", PLAIN, "the broker ends each connection"),
        ("[Errno 104] Connection reset by peer", PLAIN, "the broker ends each connection"),
        ("IP address mismatch, certificate is not valid for '127.0.0.1'", LOGIN, "of another host"),
        (
            "[X509: KEY_VALUES_MISMATCH] key values mismatch",
            LOGIN,
            "certificate and key do not belong together",
        ),
        ("tlsv1 alert unknown ca", LOGIN, "refuses the client's certificate"),
        ("something else", LOGIN, ""),
        ("", PLAIN, ""),
    ],
)
def test_a_refusal_is_said_by_the_connection(said: str, connection: KafkaConnection, reason: str) -> None:
    """Nothing is guessed where nothing tells, and no password is repeated."""
    found, hint = find_reason([said], connection)
    assert reason in found and bool(found) == bool(reason) == bool(hint)
    assert "secret" not in f"{found}{hint}"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Before whatever the client makes of it."""
    there = tmp_path / "ca.pem"
    there.touch()
    missing = replace(LOGIN, ca_file=str(there), cert_file=str(tmp_path / "me.pem"))
    assert find_reason(["socket disconnected"], missing)[0].startswith(
        "ssl.certificate.location names no file"
    )


def test_clients_that_are_made_at_once_hear_their_own_words() -> None:
    """The most telling of them; others are of threads that are not theirs."""
    together = threading.Barrier(2, timeout=10)

    def say(said: str) -> None:
        own = threading.get_ident()
        with note_refusals(lambda thread: thread == own):
            together.wait()
            MANAGER.warning("Bootstrap connection to %s failed: %s", "b", said)
            MANAGER.warning("Bootstrap connection to %s failed: %s", "b", "socket disconnected")
            MANAGER.warning("Bootstrap failed: %s", "no time left")
            together.wait()
            raise ValueError("no broker")

    def fail(said: str) -> list[str]:
        with pytest.raises(ValueError, match="no broker") as error:
            say(said)
        return error.value.__notes__

    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(fail, ("certificate has expired", "alert certificate"))]
    assert found == [
        ["Bootstrap connection to b failed: certificate has expired"],
        ["Bootstrap connection to b failed: alert certificate"],
    ]
    assert not [each for each in MANAGER.handlers if not isinstance(each, logging.NullHandler)]


def test_a_broker_that_ends_connections_is_heard_of() -> None:
    """By a real client, whose connections are made in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def end_each() -> None:
            with suppress(OSError):
                while True:
                    listening.accept()[0].close()

        threading.Thread(target=end_each, daemon=True).start()
        connection = KafkaConnection(f"127.0.0.1:{listening.getsockname()[1]}")
        with pytest.raises(KafkaUnavailable, match="the broker ends each connection"):
            TopicAdmin(connection, timeout=2.0)
        listening.shutdown(socket.SHUT_RDWR)
