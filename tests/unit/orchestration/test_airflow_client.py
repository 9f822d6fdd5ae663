"""The client of Airflow's API, against a server that answers from a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from tests.ports import free_ports

from seamline.model.errors import AirflowFailed, AirflowUnavailable, NotFound
from seamline.orchestration import airflow_client
from seamline.orchestration.airflow_client import AirflowClient


class Airflow(ThreadingHTTPServer):
    """Gives a token for each login; of those calls with the newest alone are let in."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tokens = 0
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.first: list[tuple[int, bytes]] = []
        """What is answered before all that."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Airflow

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        if self.path == "/auth/token":
            good = body == {"username": "ada", "password": "secret"}
            self.server.tokens += good
            return self.answer(
                201 if good else 401, json.dumps({"access_token": f"t{self.server.tokens}"}).encode()
            )
        if self.headers["Authorization"] != f"Bearer t{self.server.tokens}":
            return self.answer(401, b'{"detail": "Token Expired"}')
        self.server.asked.append((self.command, self.path, body))
        if self.server.first:
            return self.answer(*self.server.first.pop(0))
        return self.answer(*self.server.answers.get(self.path, (200, b'{"good": true}')))

    do_GET = do_PUT = do_PATCH = do_POST  # noqa: N815 - as the standard library calls them

    def answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def airflow() -> Iterator[Airflow]:
    """Serve while a test runs."""
    with Airflow() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_it_logs_in_once_and_again_when_its_token_has_expired(airflow: Airflow) -> None:
    """A supervisor calls for weeks; tokens are good for a day."""
    client = AirflowClient(airflow.url, "ada", "secret")
    assert client.call("GET", "/dags") == {"good": True}
    assert client.call("PATCH", "/dags/shop", {"is_paused": False}) == {"good": True}
    assert airflow.tokens == 1
    airflow.tokens = 5
    assert client.call("GET", "/dags") == {"good": True}
    assert client.token == "t6"
    assert airflow.asked[1] == ("PATCH", "/api/v2/dags/shop", {"is_paused": False})


def test_a_wrong_login_says_so(airflow: Airflow) -> None:
    """It is the first thing that goes wrong."""
    with pytest.raises(AirflowUnavailable, match="refuses the login of 'bob'"):
        AirflowClient(airflow.url, "bob", "secret").call("GET", "/dags")


def test_a_login_that_fails_is_no_wrong_password(airflow: Airflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is locked has nothing against anybody."""
    monkeypatch.setattr(Handler, "do_POST", lambda self: self.answer(503, b'{"detail": "locked"}'))
    with pytest.raises(AirflowFailed, match=r"failed at a login \(503\): locked"):
        AirflowClient(airflow.url, "ada", "secret").call("GET", "/dags")


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ((404, b'{"detail": "no such DAG"}'), NotFound, "Airflow: no such DAG"),
        ((422, b'{"detail": [{"loc": ["body"]}]}'), AirflowUnavailable, r"\(422\): .*body"),
        ((503, b"<html>away</html>"), AirflowFailed, r"failed at GET /dags \(503\): <html>away"),
        ((500, b""), AirflowFailed, "status 500"),
        ((200, b"<html>log in here</html>"), AirflowUnavailable, "does not answer"),
    ],
)
def test_what_is_no_answer_is_an_error(
    airflow: Airflow, answer: tuple[int, bytes], error: type[Exception], says: str
) -> None:
    """A proxy's page is nobody's JSON."""
    airflow.answers["/api/v2/dags?limit=1"] = answer
    with pytest.raises(error, match=says):
        AirflowClient(airflow.url, "ada", "secret").call("GET", "/dags?limit=1")


def test_a_server_that_is_not_there_is_named() -> None:
    """Its address is what is wrong most of the time."""
    port = free_ports(1)
    for url in (f"http://127.0.0.1:{port}", "nowhere", "http://[bad"):
        with pytest.raises(AirflowUnavailable, match="does not answer") as caught:
            AirflowClient(url, "ada", "secret").call("GET", "/dags")
        assert url in caught.value.message and "SEAMLINE_AIRFLOW_URL" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"), [("ALL_PROXY", "socks5://127.0.0.1:1"), ("ALL_PROXY", "nothing://x")]
)
def test_a_proxy_that_cannot_be_used_is_no_traceback(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Its address is one of the environment's, which nobody remembers."""
    monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(AirflowUnavailable, match="does not answer"):
        AirflowClient(airflow.url, "ada", "secret").call("GET", "/dags")


REFUSED = json.dumps(
    {"detail": {"reason": "Database error", "statement": "hidden", "message": "Serious"}}
).encode()


def test_a_write_that_the_database_refuses_is_asked_for_again(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite lets one write at a time, and Airflow's server may wait for itself; what is refused is undone."""
    monkeypatch.setattr(airflow_client, "PAUSES", (0.0, 0.0))
    client = AirflowClient(airflow.url, "ada", "secret")
    airflow.first = [(500, REFUSED), (500, REFUSED)]
    assert client.call("PATCH", "/dags/shop", {"is_paused": False}) == {"good": True}
    assert airflow.asked == [("PATCH", "/api/v2/dags/shop", {"is_paused": False})] * 3
    airflow.first = [(500, REFUSED)] * 3
    with pytest.raises(AirflowFailed, match="Database error"):
        client.call("PATCH", "/dags/shop", {"is_paused": False})
    airflow.asked, airflow.first = [], [(500, b"oops")]
    with pytest.raises(AirflowFailed, match="oops"):
        client.call("POST", "/dags/shop/dagRuns", {})
    airflow.first = [(500, REFUSED)]
    with pytest.raises(AirflowFailed, match="Database error"):
        client.call("POST", "/backfills", {}, whole=False)
    assert [path for _, path, _ in airflow.asked] == ["/api/v2/dags/shop/dagRuns", "/api/v2/backfills"]
