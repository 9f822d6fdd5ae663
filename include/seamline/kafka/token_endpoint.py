"""Where a client gets its tokens for OAUTHBEARER, as a Kafka connection states it: the grant of client credentials."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from seamline.model.errors import ConnectionMissing

LOGIN_HANDLER = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
ANSWERS_WITHIN_MS = 5000
"""Java's client would wait for an answer for ever."""
EXTENSION = re.compile(r"(?!auth=)[A-Za-z]+=[\x21-\x7e \t\r\n]+")
"""A name of letters, of which "auth" is taken, and a printable value: RFC 7628."""

ONLY = {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.grant.type": "client_credentials"}
"""Fields that have one value with which both clients work."""


@dataclass(frozen=True)
class TokenEndpoint:
    """A server that gives a token for a client's id and secret."""

    url: str
    """Where tokens are asked for, by HTTPS or HTTP."""
    scope: str = ""
    """What the token is asked for; empty for what the server gives without."""
    extensions: tuple[str, ...] = ()
    """What the broker is told beside the token, each as ``name=value``."""
    ca_file: str = ""
    """The certificates that the server's is checked with, in PEM; empty for the system's."""

    @property
    def place(self) -> str:
        """The address without what may be secret in it, as it may be shown."""
        return re.split(r"[?#]", self.url)[0]

    def list_problems(self) -> Iterator[str]:
        """Say what of it cannot be used, by the names of a connection's fields."""
        if not self.url:
            yield "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url"
        elif urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            yield "sasl.oauthbearer.token.endpoint.url is no address by http or https"
        elif urlsplit(self.url).username is not None:
            yield "sasl.oauthbearer.token.endpoint.url has a login of its own"
        for each in self.extensions:
            if not EXTENSION.fullmatch(each):
                yield "sasl.oauthbearer.extensions are not name=value with commas between, names of letters"

    def jaas_options(self) -> dict[str, str]:
        """Return what Java's login needs of it beside the client's id and secret."""
        options = {"scope": self.scope} if self.scope else {}
        for name, _, value in (each.partition("=") for each in self.extensions):
            options[f"extension_{name}"] = value
        if self.ca_file:
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        return options

    def spark_options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source by which Java asks for tokens."""
        return {
            "kafka.sasl.login.callback.handler.class": LOGIN_HANDLER,
            "kafka.sasl.oauthbearer.token.endpoint.url": self.url,
            "kafka.sasl.login.connect.timeout.ms": str(ANSWERS_WITHIN_MS),
            "kafka.sasl.login.read.timeout.ms": str(ANSWERS_WITHIN_MS),
        }


def read_token_endpoint(first: Callable[..., str]) -> TokenEndpoint:
    """Read it from a connection's fields, of which ``first`` returns the first that is there, else an empty text.

    Raises ConnectionMissing for a way to tokens that is not by a client's id and secret.
    """
    for name, only in ONLY.items():
        if (asked := first(name, default=only).lower()) != only:
            raise ConnectionMissing(f"This Kafka connection cannot be used: {name} {asked!r} is not {only}.")
    listed = first("sasl.oauthbearer.extensions")
    return TokenEndpoint(
        url=first("sasl.oauthbearer.token.endpoint.url"),
        scope=first("sasl.oauthbearer.scope"),
        extensions=tuple(each.strip() for each in listed.split(",")) if listed else (),
        ca_file=first("https.ca.location"),
    )
