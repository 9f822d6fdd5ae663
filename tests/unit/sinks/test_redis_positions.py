"""What a sink of Redis does with a position that nobody can read, windows before 1970, and flags in a URI."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
import redis
from tests.e2e.sinks.served_rows import make_view

from seamline import RedisSink
from seamline.model.errors import SetupError
from seamline.sinks.redis import target
from seamline.sinks.redis.clients import open_client
from seamline.sinks.redis.script_parts import spell_expiries
from seamline.sinks.redis.scripts import CLAIM, FORGET, UNLINK
from seamline.sinks.redis.target import RedisTarget
from seamline.sinks.server_connections import ServerConnection, read_server_connection


class Server:
    """A server that holds a position which is none."""

    def __init__(self) -> None:
        self.run: list[str] = []

    def info(self, _: str) -> dict[str, object]:
        """Throw nothing away."""
        return {"maxmemory": 0}

    def register_script(self, script: str) -> Callable[..., Any]:
        """Return what runs a script, which is noted."""
        self.run.append(script)
        return lambda *_: b"{" if script == CLAIM else b"OK"

    def scan_iter(self, **_: object) -> list[bytes]:
        """Find a row."""
        return [b"row"]

    def close(self) -> None:
        """Do nothing."""


def test_what_cannot_be_read_can_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names `seamline sinks resend`, which takes over and then clears."""
    server = Server()
    monkeypatch.setattr(target, "open_client", lambda _: server)
    view = make_view()
    keys = RedisTarget(RedisSink(view.name), view, ServerConnection("cache", "redis", "host"))
    with pytest.raises(SetupError, match="cannot be read"):
        keys.take_over()
    keys.clear()
    assert server.run == [CLAIM, FORGET, UNLINK]


def test_rows_that_ended_before_1970_have_expired() -> None:
    """A server refuses an instant at or before 1970, and with it the whole script, again and again."""
    ends = [datetime(1969, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
    rows = pa.chunked_array([pa.array(ends, pa.timestamp("us", "UTC"))])
    spelled = spell_expiries(rows, timedelta(seconds=2))
    assert [*spelled.cast("q")] == [1, 2000]


def test_a_connection_in_uri_form_may_say_false() -> None:
    """Its extra has texts alone, of which none is false."""
    env = {"AIRFLOW_CONN_CACHE": "redis://host/0?ssl=false&cluster=false"}
    with open_client(read_server_connection("cache", "redis", "0", env)) as client:
        assert type(client) is redis.Redis
        assert client.connection_pool.connection_class is redis.Connection
