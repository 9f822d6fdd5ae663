"""What targets hold, as strangers see it: rows, the position, and whether anything has reached them at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
from confluent_kafka import Consumer, TopicPartition
from tests.e2e.joined_world import eventually
from tests.services.addresses import Postgres, Valkey
from valkey import Valkey as Client

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import RowTopic
from seamline.model.protocol.sinks.positions import SinkPosition

TOPIC, TABLE = "drill.sales", "sales_drilled"
COLUMNS = ("orders", "total", "largest", "certified", "complete", "phase")
Row = tuple[Any, ...]
Rows = dict[tuple[str | None, str], Row]
"""What is held of each customer and hour."""


def read_row(row: Mapping[str, Any]) -> tuple[tuple[str | None, str], Row]:
    """Return what tells a row from others, and what it says."""
    return (row["customer"], row["window_start"]), tuple(row[name] for name in COLUMNS)


class Place(Protocol):
    """One kind of target."""

    kind: str
    sink: str
    """How a definition declares it."""
    connection: dict[str, Any]
    """The Airflow connection of it."""

    def read(self) -> Rows:
        """Read the rows that others see."""

    def position(self) -> SinkPosition | None:
        """Read the position that others see."""

    def effects(self) -> str:
        """Return something that is another as soon as rows have reached the target, seen by others or not."""

    def check(self) -> None:
        """Check what is true of all that was ever written."""


@dataclass
class TopicPlace:
    """A topic."""

    kafka: KafkaConnection
    kind = "kafka"
    topic = TOPIC
    sink = f'KafkaSink("sales", topic="{TOPIC}", name="out")'

    @property
    def connection(self) -> dict[str, Any]:
        """The Airflow connection of it."""
        return {"conn_type": "kafka", "extra": {"bootstrap.servers": self.kafka.brokers}}

    def open(self) -> RowTopic:
        """Open the topic, made if it is not there, as who writes it does."""
        return RowTopic(self.kafka, self.topic, "shop.out")

    def read_records(self) -> Iterator[tuple[tuple[str | None, str], Row | None]]:
        """Read what a consumer of committed records sees."""
        with closing(self.open()) as topic:
            for message in topic.read_topic(self.topic):
                key, value = json.loads(message.key()), message.value()
                place = (key["customer"], key["window_start"])
                yield place, read_row(json.loads(value))[1] if value else None

    def read(self) -> Rows:
        """Read the newest row of each key."""
        held = dict(self.read_records())
        return {place: row for place, row in held.items() if row is not None}

    def position(self) -> SinkPosition | None:
        """Read the position; who asks fences the sink off, as any later process does."""
        with closing(self.open()) as topic:
            found = topic.read_position()
        return None if found in (None, b"empty", b"clearing") else SinkPosition.from_json(found)

    def effects(self) -> str:
        """Return where the topic ends, with what was not committed."""
        settings = {"bootstrap.servers": self.kafka.brokers, "group.id": "drill"}
        consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
        try:
            parts = consumer.list_topics(self.topic, 30).topics[self.topic].partitions
            return str(
                [
                    consumer.get_watermark_offsets(TopicPartition(self.topic, part), 30)
                    for part in sorted(parts)
                ]
            )
        finally:
            consumer.close()

    def check(self) -> None:
        """Each record must have changed what a consumer held."""
        held: dict[Any, Row | None] = {}
        for place, row in self.read_records():
            assert held.get(place) != row, (place, row)
            held[place] = row

    def forget(self) -> None:
        """Delete the topics."""
        with TopicAdmin(self.kafka) as admin:
            for name in {self.topic, f"{self.topic}.position"} & {*admin.topics()}:
                admin.delete_topic(name)


@dataclass
class TablePlace:
    """A table of PostgreSQL."""

    server: Postgres
    kind = "postgres"
    sink = f'PostgresSink("sales", table="{TABLE}", name="out")'

    @property
    def connection(self) -> dict[str, Any]:
        """The Airflow connection of it."""
        found = self.server
        return {
            "conn_type": "postgres",
            "host": found.host,
            "port": found.port,
            "login": found.user,
            "password": found.password,
            "schema": found.database,
        }

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Ask as a stranger; nothing where there is no table yet."""
        with psycopg.connect(self.server.url, autocommit=True) as session:
            session.execute("SET TIME ZONE 'UTC'")
            try:
                return session.execute(query).fetchall()
            except psycopg.errors.UndefinedTable:
                return []

    def read(self) -> Rows:
        """Read the rows."""
        names = ("customer", "window_start", *COLUMNS)
        rows = (
            dict(zip(names, row, strict=True)) for row in self.ask(f"SELECT {', '.join(names)} FROM {TABLE}")
        )
        return dict(
            read_row({**row, "window_start": f"{row['window_start']:%Y-%m-%dT%H:%M:%SZ}"}) for row in rows
        )

    def position(self) -> SinkPosition | None:
        """Read the position."""
        found = self.ask("SELECT position FROM seamline_positions WHERE position IS NOT NULL")
        return SinkPosition.from_json(found[0][0]) if found else None

    def effects(self) -> str:
        """Return how many rows were ever written and deleted, aborted or not, once no session of a sink is left."""
        mine = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        eventually(
            "the server to notice that the process is gone",
            lambda: not self.ask(f"SELECT pid FROM pg_stat_activity WHERE {mine}"),
        )
        counted = "n_tup_ins, n_tup_upd, n_tup_del"
        return str(self.ask(f"SELECT {counted} FROM pg_stat_user_tables WHERE relname = '{TABLE}'"))

    def check(self) -> None:
        """What a table was before, it does not tell."""

    def forget(self) -> None:
        """The database is dropped with the test."""


@dataclass
class KeysPlace:
    """Keys of Valkey."""

    server: Valkey
    kind = "redis"
    sink = 'RedisSink("sales", name="out", at_once=2)'
    own = "{shop.out}"

    @property
    def connection(self) -> dict[str, Any]:
        """The Airflow connection of it."""
        found = self.server
        return {
            "conn_type": "redis",
            "host": found.host,
            "port": found.port,
            "password": found.password,
            "extra": {"db": found.database},
        }

    @contextmanager
    def ask(self) -> Iterator[Client]:
        """Ask as a stranger."""
        with Client.from_url(self.server.url, decode_responses=True) as client:
            yield client

    def read(self) -> Rows:
        """Read the rows."""
        with self.ask() as client:
            keys = [each for each in client.scan_iter("*", count=1000) if each != self.own]
            return dict(read_row(json.loads(each)) for each in client.mget(keys)) if keys else {}

    def position(self) -> SinkPosition | None:
        """Read the position."""
        with self.ask() as client:
            found = client.hget(self.own, "position")
        return SinkPosition.from_json(found) if found else None

    def effects(self) -> str:
        """Return how many keys were ever set or looked at to be deleted, which may be what they were before."""
        with self.ask() as client:
            counted = client.info("commandstats")
        return str([counted.get(f"cmdstat_{name}", {}).get("calls") for name in ("set", "getrange")])

    def check(self) -> None:
        """What a key was before, it does not tell."""

    def forget(self) -> None:
        """The database is emptied with the test."""
