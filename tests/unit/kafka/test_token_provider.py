"""Tokens are asked for as seldom as they can be, and what goes wrong is said without a secret."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest

from seamline.kafka.quiet_logins import hush_logins
from seamline.kafka.token_endpoint import TokenEndpoint
from seamline.kafka.token_provider import TokenFailed, TokenProvider, find_lifetime

SECRET = "s3cr3t"


class Endpoint:
    """What it answers, and what it was asked."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, b"", {}
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.port = 0

    def give(self, **answer: object) -> None:
        """Answer with that from now on."""
        self.status, self.body = 200, json.dumps(answer).encode()

    @property
    def place(self) -> TokenEndpoint:
        """It, as a connection names it."""
        return TokenEndpoint(f"http://127.0.0.1:{self.port}/tokens?k=hidden", scope="read")


@contextmanager
def serve(endpoint: Endpoint) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            endpoint.asked.append((self.headers["Authorization"], form))
            self.send_response(endpoint.status)
            for name, value in endpoint.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(endpoint.body)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    endpoint.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A server of this test's."""
    made = Endpoint()
    with serve(made):
        yield made


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_token_is_kept_until_it_is_nearly_old(endpoint: Endpoint) -> None:
    """A token that is still valid is better than none."""
    clock = Clock()
    provider = TokenProvider(endpoint.place, "me", SECRET, clock=clock)
    endpoint.give(access_token="one", expires_in=100)
    assert provider.token() == "one"
    login = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert endpoint.asked == [(f"Basic {login}", {"grant_type": ["client_credentials"], "scope": ["read"]})]
    endpoint.give(access_token="two", expires_in=100)
    clock.now = 79.0
    assert provider.token() == "one" and len(endpoint.asked) == 1
    endpoint.status = 503
    clock.now = 81.0
    assert provider.token() == "one" and len(endpoint.asked) == 2
    clock.now = 101.0
    with pytest.raises(TokenFailed):
        provider.token()
    endpoint.give(access_token="two", expires_in=100)
    assert provider.token() == "two"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"error": "invalid_client", "error_description": "not s3cr3t"}', "HTTP 401 invalid_client"),
        (400, b'{"error": "invalid_scope"}', "refuses client 'me': HTTP 400 invalid_scope"),
        (400, b'{"error": "no, s3cr3t is wrong"}', "HTTP 400"),
        (500, b"s3cr3t", "HTTP 500"),
        (302, b"", "HTTP 302"),
        (200, b"<html>s3cr3t", "answers without an access_token"),
        (200, b'{"access_token": 3}', "answers without an access_token"),
        (200, b"[]", "answers without an access_token"),
    ],
)
def test_what_is_no_token_is_said(endpoint: Endpoint, status: int, body: bytes, said: str) -> None:
    """With the place and the client, and no word of a secret; a redirection gets none either."""
    endpoint.status, endpoint.body = status, body
    if status == 302:
        endpoint.headers = {"Location": f"http://127.0.0.1:{endpoint.port}/elsewhere"}
    with pytest.raises(TokenFailed, match=said) as caught:
        TokenProvider(endpoint.place, "me", SECRET).token()
    assert f"the token endpoint http://127.0.0.1:{endpoint.port}/tokens " in str(caught.value)
    assert SECRET not in repr(caught.value) and "hidden" not in str(caught.value)
    assert len(endpoint.asked) == 1


def test_an_endpoint_that_is_not_there_is_said() -> None:
    """As what keeps a client out."""
    with pytest.raises(TokenFailed, match="http://127.0.0.1:9/t does not answer"):
        TokenProvider(TokenEndpoint("http://127.0.0.1:9/t"), "me", SECRET).token()


def encoded(claims: dict[str, Any]) -> str:
    """Write a token with these claims."""
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.x"


@pytest.mark.parametrize(
    ("answer", "life"),
    [
        ({"access_token": "x", "expires_in": "60"}, 60.0),
        ({"access_token": encoded({"exp": 130}), "expires_in": 60}, 60.0),
        ({"access_token": encoded({"exp": 130})}, 30.0),
        ({"access_token": encoded({"exp": 90})}, 0.0),
        ({"access_token": encoded({})}, 0.0),
        ({"access_token": "opaque"}, 0.0),
        ({"access_token": "a.!.c"}, 0.0),
    ],
)
def test_the_life_of_a_token_is_told_by_the_answer_or_by_itself(answer: dict[str, Any], life: float) -> None:
    """What nobody tells is used once."""
    assert find_lifetime(answer, now=100.0) == life


def test_logins_are_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Where kafka-python says each byte, at its lowest level; other requests are said as before."""
    caplog.set_level(logging.DEBUG)
    hush_logins()
    hush_logins()

    class SaslAuthenticateRequest:
        def __repr__(self) -> str:
            return SECRET

    wire, requests = logging.getLogger("kafka.protocol.parser"), logging.getLogger("kafka.net.connection")
    wire.debug("%s Send: %r", "me", SECRET)
    wire.debug("%s Sending request %d %s", "me", 1, SaslAuthenticateRequest())
    requests.debug("%s Request %d: %s", "me", 1, SaslAuthenticateRequest())
    requests.debug("%s Request %d: %s", "me", 2, "MetadataRequest")
    requests.warning("%s: it failed", "me")
    assert [record.getMessage() for record in caplog.records] == [
        "me Request 2: MetadataRequest",
        "me: it failed",
    ]


@pytest.mark.parametrize("life", [float("nan"), float("inf"), 10**400, None, "soon"])
def test_a_lifetime_that_is_none_is_used_once(life: object) -> None:
    """Compared with NaN no instant is later: such a token would never be renewed."""
    assert find_lifetime({"access_token": "opaque", "expires_in": life}, 0.0) == 0.0
