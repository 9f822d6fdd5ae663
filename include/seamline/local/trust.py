"""Lets a Java of ours trust the certificate authorities that this machine trusts, a company's own among them."""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

PASSWORD = "changeit"  # Java's customary one: a list of public certificates has no secret.
MAGIC, VERSION, TRUSTED = 0xFEEDFEED, 2, 2


def trust_options(place: Path) -> list[str]:
    """Write Python's certificate authorities to ``place`` and return Java's options for them; none if it has none."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    place.write_bytes(key_store(certificates))
    return [f"-Djavax.net.ssl.trustStore={place}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]


def key_store(certificates: Sequence[bytes]) -> bytes:
    """Return a Java key store (JKS) of X.509 certificates in DER form."""
    entries = b"".join(
        struct.pack(">i", TRUSTED) + _text(f"authority {i}") + bytes(8) + _text("X.509") + _sized(der)
        for i, der in enumerate(certificates)
    )
    body = struct.pack(">III", MAGIC, VERSION, len(certificates)) + entries
    return body + hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded


def _sized(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
