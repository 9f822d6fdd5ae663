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
from kafka import KafkaAdminClient

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.clients import find_out_why
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.refusals import MANAGER, find_reason, note_refusals
from seamline.kafka.token_endpoint import TokenEndpoint
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


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (["alert certificate", "socket disconnected", "Request timed out after 275 ms"], "alert certificate"),
        (["socket disconnected", "Request timed out after 275 ms"], "socket disconnected"),
        (["Request timed out after 275 ms"], "Request timed out after 275 ms"),
    ],
)
def test_an_attempt_that_was_cut_off_hides_no_reason(said: list[str], kept: str) -> None:
    """The last one may be made when the time is nearly over."""
    own = threading.get_ident()

    def fail() -> None:
        with note_refusals(lambda thread: thread == own):
            for each in said:
                MANAGER.warning("Bootstrap connection to %s failed: %s", "b", each)
            raise ValueError("no broker")

    with pytest.raises(ValueError, match="no broker") as error:
        fail()
    assert error.value.__notes__ == [f"Bootstrap connection to b failed: {kept}"]


def test_a_token_that_is_not_had_is_said_in_the_words_of_its_provider() -> None:
    """Whether the endpoint gives none, or the broker takes none."""
    login = replace(
        LOGIN, sasl_mechanism="OAUTHBEARER", tokens=TokenEndpoint("https://h/t", ca_file="/nowhere.pem")
    )
    assert find_reason(["x"], login)[0] == "https.ca.location names no file that can be read: /nowhere.pem"
    login = replace(login, tokens=TokenEndpoint("https://h/t"))
    why = "the token endpoint https://h/t refuses client 'ada': HTTP 401 invalid_client"
    said = f"Bootstrap connection to b failed: TokenFailed: {why} (backoff 0.24 secs)"
    assert find_reason([said], login)[0] == why
    for said, meant in {
        "SaslAuthenticationFailedError": "refuses",
        "disconnected": "ends each connection at",
    }.items():
        found = find_reason([f"socket {said}"], login)[0]
        assert found == f"the broker {meant} the token of client 'ada'"


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
        told = find_out_why(KafkaAdminClient, **connection.for_client())
        assert any("disconnected" in each or "reset" in each for each in told)
        listening.shutdown(socket.SHUT_RDWR)
    # Where nobody listens there is nobody to say why.
    assert find_out_why(KafkaAdminClient, **connection.for_client()) == []
