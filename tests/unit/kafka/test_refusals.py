"""What is made of the words of a client that is not let in."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.refusals import MANAGER, find_reason, note_refusals

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
        ("IP address mismatch, certificate is not valid for '127.0.0.1'", LOGIN, "of another host"),
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


def test_only_what_is_said_meanwhile_is_noted() -> None:
    """By threads that were there before, of other clients, nothing is taken; the most telling is."""
    heard, done = threading.Event(), threading.Event()

    def other() -> None:
        heard.wait(10)
        MANAGER.warning("Bootstrap connection to %s failed: %s", "b", "of another client")
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(ValueError, match="no broker") as error:
        fail_meanwhile(heard, done)
    thread.join()
    assert error.value.__notes__ == ["Bootstrap connection to b failed: certificate has expired"]
    assert not [each for each in MANAGER.handlers if not isinstance(each, logging.NullHandler)]


def fail_meanwhile(heard: threading.Event, done: threading.Event) -> None:
    """Fail as a client does that finds no broker, once another has said something too."""
    with note_refusals():
        heard.set()
        assert done.wait(10)
        MANAGER.warning("Bootstrap connection to %s failed: %s", "b", "certificate has expired")
        MANAGER.warning("Bootstrap connection to %s failed: %s", "b", "socket disconnected")
        MANAGER.warning("Bootstrap failed: %s", "no time left")
        raise ValueError("no broker")
