"""A client's private key, as Java's client takes it from whatever OpenSSL can read."""

from __future__ import annotations

from pathlib import Path

from seamline.model.errors import ConnectionMissing


def read_private_key(path: str, passphrase: str) -> str:
    """Return the key in PEM and PKCS #8; one with a passphrase is opened here.

    Java 17 does not know how most tools encrypt a key today, whatever passphrase it is given. Raises ConnectionMissing
    for a passphrase that does not fit,
    OSError for a file that cannot be read.
    """
    if not passphrase:
        return Path(path).read_text()
    # Whoever reads a definition needs none of it.
    from cryptography.hazmat.primitives import serialization

    try:
        key = serialization.load_pem_private_key(find_key(Path(path).read_bytes()), passphrase.encode())
    except (ValueError, TypeError):
        raise ConnectionMissing(
            f"The key in {path} cannot be opened by ssl.key.password.",
            hint="correct ssl.key.location and ssl.key.password of the connection.",
        ) from None
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def find_key(text: bytes) -> bytes:
    """Return the key of a file in PEM that may have certificates before it."""
    lines = text.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if b"PRIVATE KEY" in line), 0)
    return b"".join(lines[first:])
