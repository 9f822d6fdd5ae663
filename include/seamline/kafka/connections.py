"""Where a Kafka cluster is and how to log in, by the name of an Airflow connection."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from seamline.kafka.private_keys import read_private_key
from seamline.kafka.quiet_logins import hush_logins
from seamline.kafka.token_endpoint import TokenEndpoint, read_token_endpoint
from seamline.model.errors import ConnectionMissing

OAUTH = "OAUTHBEARER"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTH: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
CLIENT_ID = ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id")
CLIENT_SECRET = ("sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret")
EXAMPLE = '{"conn_type": "kafka", "extra": {"bootstrap.servers": "host:9092"}}'
ISOLATION_LEVELS = ("read_committed", "read_uncommitted")


@dataclass(frozen=True)
class KafkaConnection:
    """How to reach one cluster; files are PEM.

    Raises ConnectionMissing when the parts do not fit together.
    """

    brokers: str
    """``host:port``, several with commas between."""
    security_protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    sasl_mechanism: str = ""
    """The mechanism of SASL; empty without SASL."""
    username: str = ""
    """The user of SASL, with OAUTHBEARER the client's id."""
    password: str = field(default="", repr=False)
    """The password of SASL, with OAUTHBEARER the client's secret."""
    ca_file: str = ""
    """The certificates that the brokers' are checked with; empty for the system's."""
    cert_file: str = ""
    """The client's certificate; empty for none."""
    key_file: str = ""
    """The client's key; empty for none."""
    key_password: str = field(default="", repr=False)
    """The passphrase of the client's key; empty for a key without one."""
    isolation_level: str = "read_committed"
    """Whether records of open transactions are read: read_committed or read_uncommitted."""
    tokens: TokenEndpoint | None = None
    """Where OAUTHBEARER has its tokens from; None for another mechanism."""
    name: str = field(default="", compare=False)
    """The name of the Airflow connection; empty for none."""

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ConnectionMissing(f"This Kafka connection cannot be used: {problem}.")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def called(self) -> str:
        """What it is in a message: the brokers, and the connection's name where it has one."""
        return f"{self.brokers} (connection {self.name!r})" if self.name else self.brokers

    def for_client(self) -> dict[str, object]:
        """Return the arguments every kafka-python client takes."""
        hush_logins()
        options: dict[str, object] = {
            "bootstrap_servers": self.brokers.split(","),
            "security_protocol": self.security_protocol,
        }
        if self.uses_sasl:
            options["sasl_mechanism"] = self.sasl_mechanism
        if self.tokens:
            # kafka-python is slow to import, and who reads a definition needs none of it.
            from seamline.kafka.token_provider import share_provider

            provider = share_provider(self.tokens, self.username, self.password)
            options["sasl_oauth_token_provider"] = provider
        elif self.uses_sasl:
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        if self.uses_tls:
            given = {
                "ssl_cafile": self.ca_file,
                "ssl_certfile": self.cert_file,
                "ssl_keyfile": self.key_file,
            }
            options.update({name: value for name, value in given.items() if value})
            if self.cert_file:
                # An empty one too: without any, OpenSSL would ask who sits at the terminal.
                options["ssl_password"] = self.key_password
        return options

    def for_spark(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source; reads the key file where there is one."""
        options = {
            "kafka.bootstrap.servers": self.brokers,
            "kafka.security.protocol": self.security_protocol,
            "kafka.isolation.level": self.isolation_level,
        }
        if self.uses_sasl:
            options["kafka.sasl.mechanism"] = self.sasl_mechanism
            options["kafka.sasl.jaas.config"] = self._jaas()
        if self.tokens:
            options |= self.tokens.spark_options()
        if self.uses_tls and self.ca_file:
            options["kafka.ssl.truststore.type"] = "PEM"
            options["kafka.ssl.truststore.location"] = self.ca_file
        if self.uses_tls and self.cert_file:
            options["kafka.ssl.keystore.type"] = "PEM"
            options["kafka.ssl.keystore.certificate.chain"] = Path(self.cert_file).read_text()
            key = read_private_key(self.key_file or self.cert_file, self.key_password)
            options["kafka.ssl.keystore.key"] = key
        return options

    def _jaas(self) -> str:
        if self.tokens:
            login = {"clientId": self.username, "clientSecret": self.password, **self.tokens.jaas_options()}
        else:
            login = {"username": self.username, "password": self.password}
        options = " ".join(f'{name}="{_quoted(value)}"' for name, value in login.items())
        return f"{LOGIN_MODULES[self.sasl_mechanism]} required {options};"

    def _problems(self) -> list[str]:
        known = ", ".join(LOGIN_MODULES)
        wrong = {
            "it names no broker (bootstrap.servers)": not self.brokers,
            f"security.protocol {self.security_protocol!r} is none of {', '.join(PROTOCOLS)}": (
                self.security_protocol not in PROTOCOLS
            ),
            f"isolation.level {self.isolation_level!r} is none of {', '.join(ISOLATION_LEVELS)}": (
                self.isolation_level not in ISOLATION_LEVELS
            ),
            f"sasl.mechanism {self.sasl_mechanism!r} is none of {known}": (
                self.uses_sasl and self.sasl_mechanism not in LOGIN_MODULES
            ),
            f"it has a login, but security.protocol {self.security_protocol} sends none": bool(
                not self.uses_sasl and (self.username or self.sasl_mechanism)
            ),
        }
        oauth = self.uses_sasl and self.sasl_mechanism == OAUTH
        wrong |= {
            f"sasl.mechanism {OAUTH} needs sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret": (
                oauth and not (self.username and self.password)
            ),
            f"sasl.mechanism {OAUTH} needs sasl.oauthbearer.token.endpoint.url": oauth and not self.tokens,
        }
        found = [problem for problem, is_so in wrong.items() if is_so]
        return [*found, *(self.tokens.list_problems() if self.tokens else ())]


def read_airflow_connection(name: str, env: Mapping[str, str] = os.environ) -> KafkaConnection:
    """Read ``AIRFLOW_CONN_<NAME>`` in Airflow's JSON or URI form, or raise ConnectionMissing."""
    variable = f"AIRFLOW_CONN_{name.upper()}"
    text = env.get(variable, "").strip()
    if not text:
        raise ConnectionMissing(
            f"There is no connection named {name!r}.",
            hint=f"set {variable}='{EXAMPLE}'.",
        )
    try:
        return _connection(name, _from_json(text) if text.startswith("{") else _from_uri(text))
    except (ValueError, TypeError, AttributeError):
        # The cause would show the text, and with it the password.
        raise ConnectionMissing(
            f"{variable} is neither a connection in JSON nor a URI.",
            hint=f"write {EXAMPLE} or kafka://user:password@host:9092/?security.protocol=...",
        ) from None
    except ConnectionMissing as wrong:
        raise ConnectionMissing(wrong.message, hint=f"correct {variable}.") from None


def _connection(name: str, parts: Mapping[str, str]) -> KafkaConnection:
    """Choose from Airflow's own fields and librdkafka's names in ``extra``, which win."""

    def first(*names: str, default: str = "") -> str:
        return next((parts[name] for name in names if parts.get(name)), default)

    mechanism = first("sasl.mechanism", "sasl.mechanisms").upper()
    oauth = mechanism == OAUTH
    return KafkaConnection(
        name=name,
        brokers=first("bootstrap.servers", "host").replace(" ", ""),
        security_protocol=first("security.protocol", default="PLAINTEXT").upper(),
        sasl_mechanism=mechanism,
        username=first(*(CLIENT_ID if oauth else ()), "sasl.username", "login"),
        password=first(*(CLIENT_SECRET if oauth else ()), "sasl.password", "password"),
        tokens=read_token_endpoint(first) if oauth else None,
        ca_file=first("ssl.ca.location", "ssl.cafile"),
        cert_file=first("ssl.certificate.location", "ssl.certfile"),
        key_file=first("ssl.key.location", "ssl.keyfile"),
        key_password=first("ssl.key.password", "ssl.password"),
        isolation_level=first("isolation.level", default="read_committed"),
    )


def _from_json(text: str) -> dict[str, str]:
    fields = json.loads(text)
    extra = fields.pop("extra", None) or {}
    if isinstance(extra, str):
        extra = json.loads(extra)
    host, port = fields.pop("host", None), fields.pop("port", None)
    return _dotted({**fields, "host": _with_port(host, port) if host else "", **extra})


def _from_uri(text: str) -> dict[str, str]:
    uri = urlsplit(text)
    if not uri.scheme or "://" not in text:
        raise ValueError("not a URI")
    login, _, hosts = uri.netloc.rpartition("@")
    username, _, password = login.partition(":")
    query = dict(parse_qsl(uri.query))
    extra = json.loads(query.pop("__extra__", "{}"))
    host = ",".join(_with_port(one, None) for one in unquote(hosts).split(",") if one)
    return _dotted(
        {"host": host, "login": unquote(username), "password": unquote(password), **query, **extra}
    )


def _with_port(hosts: str, port: object) -> str:
    return ",".join(one if ":" in one else f"{one}:{port or 9092}" for one in hosts.split(","))


def _dotted(fields: Mapping[str, object]) -> dict[str, str]:
    return {name.replace("_", "."): str(value) for name, value in fields.items() if value not in (None, "")}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
