"""Why a broker does not let a client in, told by the fields of its connection."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from seamline.kafka.connections import KafkaConnection

MANAGER = logging.getLogger("kafka.net.manager")
FAILED = "Bootstrap connection to"
"""How kafka-python 3.0.12 begins to say that a connection has failed, and why."""
LOST = ("socket disconnected", "Connection reset", "Broken pipe")
"""What is said of a connection that the broker has ended, and of nothing else."""
CUT_OFF = "timed out after"
"""What is said of the last attempt where the time was over before it was."""
AUTHORITY = "set ssl.ca.location to the certificate of the authority that signed the broker's."
BROKERS_OWN = "renew it there, or ask who runs the broker."
OWN = (
    "set ssl.certificate.location and ssl.key.location to a certificate that the broker trusts, and its key."
)
OWN_KEY = "correct ssl.key.location and ssl.key.password of the connection."
HOST = "name a host of the certificate in bootstrap.servers."
PORT = "correct security.protocol of the connection, or the port."
UNTRUSTED = "the broker's certificate is not signed by an authority that the client trusts"
NO_TLS = "the broker does not speak TLS at this port"
REFUSED = "the broker refuses the client's certificate"
BROKEN_OFF = "the broker ended the TLS handshake: it may not speak TLS at this port"
TOKEN = re.compile(r"the token endpoint .*?(?= \(backoff|$)")
"""What token_provider.py says where there is no token."""
TOKENS = (
    "correct sasl.oauthbearer.token.endpoint.url, .client.id, .client.secret or .scope of the connection; "
    "https.ca.location names the authority of an endpoint by HTTPS."
)
REFUSED_TOKEN = (
    "compare issuer, audience and scope of the token with what the broker expects (its log says what is wrong), "
    "and sasl.oauthbearer.scope and .extensions of the connection."
)
REASONS = (
    ("certificate has expired", "the broker's certificate has expired", BROKERS_OWN),
    ("is not yet valid", "the broker's certificate is not valid yet", "compare the clocks of both machines."),
    ("Hostname mismatch", "the broker's certificate is of another host", HOST),
    ("IP address mismatch", "the broker's certificate is of another host", HOST),
    ("KEY_VALUES_MISMATCH", "the client's certificate and key do not belong together", OWN),
    ("PEM lib", "the client's key cannot be opened by ssl.key.password", OWN_KEY),
    ("unable to get local issuer", UNTRUSTED, AUTHORITY),
    ("self-signed certificate", UNTRUSTED, AUTHORITY),
    ("alert certificate", REFUSED, OWN),
    ("alert unknown ca", REFUSED, OWN),
    ("alert bad certificate", "the broker wants a certificate of the client", OWN),
    ("CERTIFICATE_REQUIRED", "the broker wants a certificate of the client", OWN),
    ("EOF occurred in violation", BROKEN_OFF, PORT),
    ("WRONG_VERSION_NUMBER", NO_TLS, PORT),
    ("Invalid frame length", "the broker speaks TLS at this port", PORT),
    (
        "UnsupportedSaslMechanism",
        "the broker does not take this sasl.mechanism",
        "ask for one that it takes.",
    ),
)
"""A part of what the client says, what it means, and the way out."""


class Refusals(logging.Handler):
    """What a client of kafka-python says of connections that failed, known by the threads that are its own."""

    def __init__(self, is_own: Callable[[int], bool]) -> None:
        super().__init__(logging.WARNING)
        self.is_own = is_own
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the error of a failed connection."""
        if record.thread and str(record.msg).startswith(FAILED) and self.is_own(record.thread):
            self.said.append(record.getMessage())

    @property
    def most_telling(self) -> str:
        """Return the newest that says more than that the connection is gone, else that; empty if there is none."""
        newest = reversed(self.said)
        return min(newest, key=lambda each: is_lost(each) + 2 * (CUT_OFF in each), default="")


@contextmanager
def note_refusals(is_own: Callable[[int], bool]) -> Iterator[None]:
    """Add to an error of the block why connections of a client failed: it only says that it has found no broker.

    ``is_own`` says of the number of a thread whether it is one of the client's.
    """
    seen = Refusals(is_own)
    MANAGER.addHandler(seen)
    try:
        yield
    except Exception as error:
        if seen.most_telling:
            error.add_note(seen.most_telling)
        raise
    finally:
        MANAGER.removeHandler(seen)


def list_notes(problem: Exception) -> list[str]:
    """Return what tells why a broker lets nobody in: what was noted, and the error itself where it is of a login."""
    said = str(problem)
    of_login = "SaslAuthenticationFailed" in said or TOKEN.search(said)
    return [*getattr(problem, "__notes__", ()), *([said] if of_login else ())]


def find_reason(notes: Sequence[str], connection: KafkaConnection) -> tuple[str, str]:
    """Return why a broker does not let a connection in, and the way out; two empty texts where nothing tells."""
    if not notes:
        return "", ""
    if missing := find_unreadable_file(connection):
        name, path = missing
        return f"{name} names no file that can be read: {path}", f"correct {name} of the connection."
    said = " ".join(notes)
    if token := TOKEN.search(said):
        return token[0], TOKENS
    for part, reason, hint in REASONS:
        if part in said:
            return reason, hint
    login = f"user {connection.username!r} by {connection.sasl_mechanism}"
    if connection.tokens and ("SaslAuthenticationFailed" in said or is_lost(said)):
        does = "ends each connection at" if is_lost(said) else "refuses"
        return f"the broker {does} the token of client {connection.username!r}", REFUSED_TOKEN
    if "SaslAuthenticationFailed" in said or "Invalid username or password" in said:
        return (
            f"the broker refuses the login of {login}",
            "correct sasl.username and sasl.password of the connection.",
        )
    if not is_lost(said):
        return "", ""
    if connection.uses_sasl:
        return (
            f"the broker ends each connection at the login of {login}",
            "correct sasl.username, sasl.password and sasl.mechanism of the connection, or security.protocol.",
        )
    return (
        "the broker ends each connection",
        "it may want TLS or a login: correct security.protocol, or the port.",
    )


def is_lost(said: str) -> bool:
    """Return whether all that is said is that a connection has ended."""
    return any(each in said for each in LOST)


def find_unreadable_file(connection: KafkaConnection) -> tuple[str, str] | None:
    """Return the first field of a connection that names no readable file, and the file; None for none."""
    named = {
        "ssl.ca.location": connection.ca_file,
        "ssl.certificate.location": connection.cert_file,
        "ssl.key.location": connection.key_file,
    }
    files = [*named.items()] if connection.uses_tls else []
    if connection.tokens:
        files.append(("https.ca.location", connection.tokens.ca_file))
    return next(((name, path) for name, path in files if path and not is_readable(path)), None)


def is_readable(path: str) -> bool:
    """Return whether there is a file of a name, and this process may read it."""
    return Path(path).is_file() and os.access(path, os.R_OK)
