"""Where a server is and how to log in, by the name of an Airflow connection."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from seamline.model.errors import ConnectionMissing

EXAMPLE = (
    '{{"conn_type": "{kind}", "host": "host", "login": "user", "password": "...", "schema": "{schema}"}}'
)


@dataclass(frozen=True)
class ServerConnection:
    """A connection in Airflow's own fields."""

    name: str
    """Its id."""
    kind: str
    """Its type in Airflow, or the scheme of its URI."""
    host: str
    """The host; for PostgreSQL several with commas between."""
    port: int | None = None
    """The port; None for the usual one."""
    login: str = ""
    """The user; empty for none."""
    password: str = field(default="", repr=False)
    """The user's password; empty for none."""
    schema: str = ""
    """The database; empty for the usual one."""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What else the connection says, in the words of its client."""

    @property
    def called(self) -> str:
        """What it is in a message: the address and the connection's name, nothing that is secret."""
        where = f"{self.host}:{self.port}" if self.port else self.host
        return f"{where} (connection {self.name!r})"

    def hide_secrets(self, text: str) -> str:
        """Return a text of the server's or its client's without the password."""
        return text.replace(self.password, "***") if self.password else text


def read_server_connection(
    name: str, kind: str, schema: str, env: Mapping[str, str] = os.environ
) -> ServerConnection:
    """Read ``AIRFLOW_CONN_<NAME>`` in Airflow's JSON or URI form, or raise ConnectionMissing.

    ``kind`` and ``schema`` are those of an example in messages.
    """
    variable = f"AIRFLOW_CONN_{name.upper()}"
    example = EXAMPLE.format(kind=kind, schema=schema)
    text = env.get(variable, "").strip()
    if not text:
        raise ConnectionMissing(
            f"There is no connection named {name!r}, by which a sink writes.",
            hint=f"add it to Airflow, or set {variable}='{example}'.",
        )
    try:
        return make_server_connection(name, json.loads(text) if text.startswith("{") else read_uri(text))
    except (ValueError, TypeError, AttributeError, KeyError):
        # The cause would show the text, and with it the password.
        raise ConnectionMissing(
            f"{variable} is neither a connection in JSON nor a URI, or names no host.",
            hint=f"write {example} or {kind}://user:password@host/{schema}.",
        ) from None


def make_server_connection(name: str, parts: Mapping[str, Any]) -> ServerConnection:
    """Make a connection of Airflow's own fields; ValueError and the like where they are none."""
    extra = parts.get("extra") or {}
    extra = json.loads(extra) if isinstance(extra, str) else extra
    if not parts["host"]:
        raise ValueError("no host")
    return ServerConnection(
        name=name,
        kind=str(parts.get("conn_type") or ""),
        host=str(parts["host"]),
        port=int(parts["port"]) if parts.get("port") else None,
        login=str(parts.get("login") or ""),
        password=str(parts.get("password") or ""),
        schema=str(parts.get("schema") or ""),
        extra=dict(extra),
    )


def read_uri(text: str) -> dict[str, Any]:
    """Read Airflow's URI form; ValueError where it is none."""
    uri = urlsplit(text)
    query = dict(parse_qsl(uri.query))
    extra = json.loads(query.pop("__extra__", "{}"))
    return {
        "conn_type": uri.scheme,
        "host": unquote(uri.hostname or ""),
        "port": uri.port,
        "login": unquote(uri.username or ""),
        "password": unquote(uri.password or ""),
        "schema": unquote(uri.path.strip("/")),
        "extra": {**query, **extra},
    }
