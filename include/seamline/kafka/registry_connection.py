"""Where a schema registry is and how to log in, by the name of an Airflow connection."""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from seamline.model.errors import ConnectionMissing

EXAMPLE = '{"conn_type": "http", "schema": "https", "host": "registry", "port": 8081}'
SCHEMES = ("http", "https")


@dataclass(frozen=True)
class RegistryConnection:
    """How to reach one registry; files are PEM."""

    url: str
    """Where its API begins, as ``https://host:8081``, without a slash at the end."""
    username: str = ""
    """The user of a login by name; empty for none."""
    password: str = field(default="", repr=False)
    """The user's password."""
    token: str = field(default="", repr=False)
    """What is sent as a bearer's; empty for none."""
    ca_file: str = ""
    """The certificates that the registry's is checked with; empty for the system's."""
    cert_file: str = ""
    """The client's certificate; empty for none."""
    key_file: str = ""
    """The client's key; empty where it is in the certificate's file."""

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that log in."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if not self.username:
            return {}
        login = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {login}"}

    def open_context(self) -> ssl.SSLContext | None:
        """Return how TLS is spoken; None without TLS. OSError where a file cannot be read."""
        if not self.url.startswith("https:"):
            return None
        context = ssl.create_default_context(cafile=self.ca_file or None)
        if self.cert_file:
            context.load_cert_chain(self.cert_file, self.key_file or None)
        return context


def read_registry_connection(name: str, env: Mapping[str, str] = os.environ) -> RegistryConnection:
    """Read ``AIRFLOW_CONN_<NAME>`` in Airflow's JSON or URI form, or raise ConnectionMissing."""
    variable = f"AIRFLOW_CONN_{name.upper()}"
    text = env.get(variable, "").strip()
    if not text:
        raise ConnectionMissing(
            f"There is no connection named {name!r}, by which a schema registry is asked.",
            hint=f"set {variable}='{EXAMPLE}'.",
        )
    try:
        return make_connection(read_json(text) if text.startswith("{") else read_uri(text))
    except (ValueError, TypeError, AttributeError, KeyError):
        # The cause would show the text, and with it the password.
        raise ConnectionMissing(
            f"{variable} is no connection to a schema registry, in JSON or as a URI.",
            hint=f"write {EXAMPLE} or https://user:password@host:8081.",
        ) from None


def make_connection(parts: Mapping[str, str]) -> RegistryConnection:
    """Make a connection of Airflow's own fields and what ``extra`` adds."""
    host = parts["host"].rstrip("/")
    if "://" not in host:
        host = f"{parts.get('schema') or 'http'}://{host}"
    scheme, _, rest = host.partition("://")
    found = urlsplit(host := f"{scheme.lower()}://{rest}")
    if found.scheme not in SCHEMES or not found.hostname or found.username is not None or found.query:
        raise ValueError("no URL of a registry")
    if not found.port and parts.get("port"):
        host = f"{found.scheme}://{found.netloc}:{int(parts['port'])}{found.path}"
    return RegistryConnection(
        url=host + parts.get("path", "").rstrip("/"),
        username=parts.get("login", ""),
        password=parts.get("password", ""),
        token=parts.get("token", "").strip(),
        ca_file=parts.get("ssl.ca.location", ""),
        cert_file=parts.get("ssl.certificate.location", ""),
        key_file=parts.get("ssl.key.location", ""),
    )


def read_json(text: str) -> dict[str, str]:
    """Read Airflow's JSON form."""
    fields = json.loads(text)
    extra = fields.pop("extra", None) or {}
    extra = json.loads(extra) if isinstance(extra, str) else extra
    return {name: str(value) for name, value in {**fields, **extra}.items() if value not in (None, "")}


def read_uri(text: str) -> dict[str, str]:
    """Read a URI; a path of only ``http`` or ``https`` is how Airflow writes the scheme."""
    uri = urlsplit(text)
    if uri.scheme not in SCHEMES or not uri.hostname:
        raise ValueError("no URI of HTTP")
    path, scheme = uri.path.rstrip("/"), uri.scheme
    if path.lstrip("/") in SCHEMES:
        path, scheme = "", path.lstrip("/")
    query = dict(parse_qsl(uri.query))
    extra = json.loads(query.pop("__extra__", "{}"))
    port = {"port": str(uri.port)} if uri.port else {}
    host = f"[{uri.hostname}]" if ":" in uri.hostname else unquote(uri.hostname)
    login = {"login": unquote(uri.username or ""), "password": unquote(uri.password or "")}
    return {"host": f"{scheme}://{host}", "path": path, **port, **login, **query, **extra}
