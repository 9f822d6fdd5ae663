"""Names of datasets: https://openlineage.io/docs/spec/naming says how a topic, a file and an object are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class DatasetName:
    """What a dataset is called; both parts together are a URI."""

    namespace: str
    """Where it is: a broker, a bucket, or ``file``."""
    name: str
    """What it is called there."""


def name_topic(brokers: str, topic: str) -> DatasetName:
    """Name a topic by the first of the brokers, ``host:port`` with commas between."""
    return DatasetName(f"kafka://{brokers.partition(',')[0].strip()}", topic)


def name_place(place: str) -> DatasetName:
    """Name a folder or a file, a URL such as ``s3://bucket/key`` or a path of this machine."""
    scheme, found, rest = place.partition("://")
    if not found or scheme == "file":
        return DatasetName("file", rest if found else place)
    bucket, _, key = rest.partition("/")
    return DatasetName(f"{scheme}://{bucket}", key)


def name_postgres_table(host: str, port: int, database: str, schema: str, table: str) -> DatasetName:
    """Name a table of PostgreSQL; of several hosts the first."""
    return DatasetName(f"postgres://{host.partition(',')[0].strip()}:{port}", f"{database}.{schema}.{table}")


def name_redis_keys(host: str, port: int, database: str, keys: str) -> DatasetName:
    """Name keys of Redis by what they begin with; the specification has no names for them."""
    return DatasetName(f"redis://{host}:{port}", f"{database}.{keys}")


@dataclass(frozen=True)
class TableNames:
    """What a pipeline's tables are called."""

    master: DatasetName
    """The master."""
    quarantine: DatasetName
    """The quarantine."""
    slices: Mapping[str, DatasetName]
    """The slices of each view version, by ``name/fingerprint``."""
    generations: Mapping[str, DatasetName]
    """Its generations."""
    serving: Mapping[str, DatasetName]
    """The serving table of each view, by the view's name."""
    lookups: Mapping[str, DatasetName]
    """The tables of look-ups that are files or folders, by the look-up's name."""
