"""Why a broker lets a client not in, or not do what it asks: in the words of the connection's fields."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from seamline.kafka.connections import KafkaConnection

MANAGER = logging.getLogger("kafka.net.manager")
FAILED = "Bootstrap connection to"
"""How kafka-python 3.0.12 begins to say that a connection has failed, and why."""
LOST = "socket disconnected"
AUTHORITY = "ssl.ca.location must have the certificate of who signed the broker's."
BROKERS_OWN = "renew it there, or ask who runs the broker."
OWN = (
    "ssl.certificate.location and ssl.key.location must be a certificate that the broker trusts, and its key."
)
PORT = "correct security.protocol of the connection, or the port."
UNTRUSTED = "nobody whom the client trusts has signed the broker's certificate"
NO_TLS = "the broker does not speak TLS at this port"
REASONS = (
    ("certificate has expired", "the broker's certificate has expired", BROKERS_OWN),
    ("is not yet valid", "the broker's certificate is not valid yet", "compare the clocks of both machines."),
    ("mismatch", "the broker's certificate is of another host", "name a host of it in bootstrap.servers."),
    ("unable to get local issuer", UNTRUSTED, AUTHORITY),
    ("self-signed certificate", UNTRUSTED, AUTHORITY),
    ("alert certificate", "the broker refuses the client's certificate", OWN),
    ("alert bad certificate", "the broker wants a certificate of the client", OWN),
    ("CERTIFICATE_REQUIRED", "the broker wants a certificate of the client", OWN),
    ("EOF occurred in violation", NO_TLS, PORT),
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
    """What clients of kafka-python say of connections that failed, in threads that were begun since."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.before = {each.ident for each in threading.enumerate()} - {threading.get_ident()}
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the error of a failed connection."""
        if record.thread not in self.before and str(record.msg).startswith(FAILED):
            self.said.append(record.getMessage())

    @property
    def most_telling(self) -> str:
        """Return the newest that says more than that the connection is gone, else that; empty if there is none."""
        return next(
            (each for each in reversed(self.said) if LOST not in each), self.said[-1] if self.said else ""
        )


@contextmanager
def note_refusals() -> Iterator[None]:
    """Add to an error of the block why connections failed meanwhile: a client only says that it has found no broker."""
    seen = Refusals()
    MANAGER.addHandler(seen)
    try:
        yield
    except Exception as error:
        if seen.most_telling:
            error.add_note(seen.most_telling)
        raise
    finally:
        MANAGER.removeHandler(seen)


def find_reason(notes: Sequence[str], connection: KafkaConnection) -> tuple[str, str]:
    """Return why a broker lets nobody in by a connection, and the way out; two empty texts where nothing tells."""
    if missing := find_missing_file(connection):
        name, path = missing
        return f"{name} names no file: {path}", f"correct {name} of the connection."
    said = " ".join(notes)
    for part, reason, hint in REASONS:
        if part in said:
            return reason, hint
    login = f"user {connection.username!r} by {connection.sasl_mechanism}"
    if "SaslAuthenticationFailed" in said or "Invalid username or password" in said:
        return (
            f"the broker refuses the login of {login}",
            "correct sasl.username and sasl.password of the connection.",
        )
    if LOST not in said:
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


def find_missing_file(connection: KafkaConnection) -> tuple[str, str] | None:
    """Return the first field of a connection that names a file which cannot be read, and the file."""
    named = {
        "ssl.ca.location": connection.ca_file,
        "ssl.certificate.location": connection.cert_file,
        "ssl.key.location": connection.key_file,
    }
    return next(((name, path) for name, path in named.items() if path and not Path(path).is_file()), None)
