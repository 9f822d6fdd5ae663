"""Certificates of a test's own: an authority, brokers and clients, also expired ones and of another host."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates; ``file`` has its own, in PEM."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder, self.name = folder, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} of a test")])
        self.file = folder / f"{name}.pem"
        own = self.build(self.subject, self.key.public_key(), timedelta(days=1))
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file.write_bytes(own.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def build(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, lives: timedelta
    ) -> x509.CertificateBuilder:
        """Begin a certificate that ends so long from now; what has ended began two days before."""
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, now + lives) - timedelta(days=2))
            .not_valid_after(now + lives)
        )

    def sign(
        self,
        name: str,
        *,
        host: str = "127.0.0.1",
        lives: timedelta = timedelta(days=1),
        passphrase: str = "",
    ) -> Path:
        """Write a certificate for a name and host, with its key; return the file, in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        other: x509.GeneralName
        try:
            other = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            other = x509.DNSName(host)
        made = self.build(subject, key.public_key(), lives).add_extension(
            x509.SubjectAlternativeName([other]), critical=False
        )
        text = made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        kept: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if passphrase:
            kept = serialization.BestAvailableEncryption(passphrase.encode())
        text += key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, kept)
        file = self.folder / f"{self.name}-{name}.pem"
        file.write_bytes(text)
        return file
