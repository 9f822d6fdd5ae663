"""Where a test finds its part of a server, and how it logs in."""

from __future__ import annotations

from dataclasses import dataclass, field

from seamline.kafka.connections import KafkaConnection

__all__ = ["Bucket", "KafkaConnection", "Postgres", "Valkey"]


@dataclass(frozen=True)
class Postgres:
    """A database of a test's own, by a user who owns it and may make others."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str

    @property
    def url(self) -> str:
        """The address in one, as libpq, psycopg and SQLAlchemy take it."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"


@dataclass(frozen=True)
class Valkey:
    """A numbered database of a test's own, which is empty at first."""

    host: str
    port: int
    password: str = field(repr=False)
    database: int

    @property
    def url(self) -> str:
        """The address in one, by the name that clients of Redis know too."""
        return f"redis://:{self.password}@{self.host}:{self.port}/{self.database}"


@dataclass(frozen=True)
class Bucket:
    """An empty bucket of a test's own, on a server that speaks S3."""

    endpoint: str
    name: str
    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"

    @property
    def url(self) -> str:
        """The root of the bucket."""
        return f"s3://{self.name}"
