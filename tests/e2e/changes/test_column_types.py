"""Columns of PostgreSQL's types, as Debezium's connector writes them, against what the database says of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kafka import KafkaConsumer
from tests.e2e.joined_world import eventually
from tests.ports import free_ports
from tests.services.addresses import Postgres
from tests.services.connect import Connect
from tests.unit.records import judged, pipeline

from seamline import Debezium
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection

pytestmark = pytest.mark.faults
TOPIC = "typed.public.everything"
COLUMNS = {
    "small": ("smallint", "INT"),
    "whole": ("integer", "INT"),
    "yes": ("boolean", "BOOLEAN"),
    "real": ("double precision", "DOUBLE"),
    "price": ("numeric(10, 2)", "DECIMAL(10,2)"),
    "loose": ("numeric", "DECIMAL(20,5)"),
    "name": ("text", "STRING"),
    "code": ("char(3)", "STRING"),
    "day": ("date", "DATE"),
    "micro": ("timestamp", "TIMESTAMP"),
    "milli": ("timestamp(3)", "TIMESTAMP"),
    "zoned": ("timestamptz", "TIMESTAMP"),
    "id128": ("uuid", "STRING"),
    "document": ("jsonb", "STRING"),
    "raw": ("bytea", "BINARY"),
    "list": ("integer[]", "ARRAY<INT>"),
    "texts": ("text[]", "ARRAY<STRING>"),
}
ROWS = [
    (
        "(1, 2, 3, true, 2.5, 12.34, 123.456, 'té', 'c', '2024-02-03', '2024-02-03 04:05:06.789012', "
        "'2024-02-03 04:05:06.789', '2024-02-03 04:05:06.789012+02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', "
        "'{\"a\": [1, 2]}', '\\xdeadbeef', '{1,2,NULL}', '{a,b}')"
    ),
    f"(2{', NULL' * 17})",
    (
        "(3, -32768, -2147483648, false, -0.1, -99999999.99, -0.00001, '', '', '1969-12-31', "
        "'1969-12-31 23:59:59.999999', "
        "'0001-01-01 00:00:00', '9999-12-31 23:59:59+00', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '{}', '', '{}', '{}')"
    ),
]
SCHEMA = "id BIGINT NOT NULL, " + ", ".join(f"{name} {type}" for name, (_, type) in COLUMNS.items())
UNAVAILABLE = "unavailable value raw"


@pytest.fixture
def worker(kafka: KafkaConnection, postgres: Postgres, tmp_path: Path) -> Iterator[Connect]:
    """Have a table with a column of each type, and a topic for its changes."""
    declared = ", ".join(f"{name} {type}" for name, (type, _) in COLUMNS.items())
    with psycopg.connect(postgres.url, autocommit=True) as connection, TopicAdmin(kafka) as admin:
        connection.execute(f"CREATE TABLE everything (id bigint PRIMARY KEY, {declared})")
        connection.execute("ALTER TABLE everything ALTER COLUMN raw SET STORAGE EXTERNAL")
        connection.execute(f"INSERT INTO everything VALUES {', '.join(ROWS)}")
        admin.create_topic(TOPIC, 1)
        made = Connect(tmp_path, free_ports(), kafka, postgres, "typed")
        yield made
        made.kill()
        made.drop_slot()
        admin.delete_topic(TOPIC)


def wait_for(worker: Connect, count: int) -> list[Any]:
    """Read the topic once it has so many records."""
    with TopicAdmin(worker.kafka) as admin:
        eventually("the events", lambda: sum(admin.end_offsets(TOPIC).values()) >= count)
    consumer = KafkaConsumer(
        TOPIC, **worker.kafka.for_client(), auto_offset_reset="earliest", enable_auto_commit=False
    )
    try:
        found: list[Any] = []
        while len(found) < count:
            found += [each for records in consumer.poll(timeout_ms=500).values() for each in records]
    finally:
        consumer.close()
    return found


def held(worker: Connect) -> dict[int, dict[str, Any]]:
    """Return what the database has, as the rows of a definition have it."""
    texts = {"id128": "id128::text", "document": "document::text"}
    names = ", ".join(texts.get(name, name) for name in COLUMNS)
    with psycopg.connect(worker.database.url) as connection:
        connection.execute("SET TimeZone TO 'UTC'")
        found = connection.execute(f"SELECT id, {names} FROM everything").fetchall()
    return {
        id: {name: settle(value) for name, value in zip(COLUMNS, values, strict=True)}
        for id, *values in found
    }


def settle(value: Any) -> Any:
    """Give a moment without a zone the one that Debezium takes it to be in."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def read_events(records: list[Any], format: Debezium) -> list[Any]:
    """Return what becomes of records by the definition."""
    made = pipeline(
        f"{SCHEMA}, __deleted BOOLEAN, __source_lsn BIGINT, __source_snapshot STRING",
        event_time="_kafka_timestamp",
        format=format,
        key=["id"],
        order="__source_lsn",
    )
    return judged(made, [each.value for each in records], keys=[each.key for each in records])


def test_every_type_is_read_as_the_database_has_it(worker: Connect) -> None:
    """With schemas beside events nothing is left open: units, scales, and bytes that are a number."""
    worker.start(["public.everything"], schemas=True)
    found = read_events(wait_for(worker, len(ROWS)), Debezium())
    assert {row["id"]: {name: row[name] for name in COLUMNS} for row in found} == held(worker)
    assert found[0]["__source_snapshot"] == "first"


@pytest.mark.parametrize(
    ("settings", "format"),
    [
        (
            {"decimal_handling_mode": "string", "time_precision_mode": "microseconds"},
            Debezium(timestamps="microseconds", decimals="string"),
        ),
        (
            {"decimal_handling_mode": "string", "time_precision_mode": "isostring"},
            Debezium(decimals="string"),
        ),
    ],
    ids=["microseconds", "texts"],
)
def test_without_schemas_the_definition_says_how_values_are_written(
    worker: Connect, settings: dict[str, str], format: Debezium
) -> None:
    """Decimals as texts, moments as numbers of one unit or as texts: all of it is read to the digit."""
    worker.start(["public.everything"], **settings)
    found = read_events(wait_for(worker, len(ROWS)), format)
    assert {row["id"]: {name: row[name] for name in COLUMNS} for row in found} == held(worker)


def test_what_is_no_row_says_what_it_is(worker: Connect) -> None:
    """A large value that an update left alone, a truncated table, a deletion whose row was not told."""
    with psycopg.connect(worker.database.url, autocommit=True) as connection:
        connection.execute("INSERT INTO everything (id, raw) VALUES (4, decode(repeat('ab', 9000), 'hex'))")
        worker.start(["public.everything"], schemas=True, skipped_operations="none")
        wait_for(worker, len(ROWS) + 1)
        connection.execute("UPDATE everything SET whole = 1 WHERE id = 4")
        connection.execute("DELETE FROM everything WHERE id = 4")
        connection.execute("TRUNCATE everything")
    *_, unchanged, deleted, tombstone, truncated = read_events(wait_for(worker, len(ROWS) + 5), Debezium())
    assert unchanged[0] == UNAVAILABLE
    assert (deleted["id"], deleted["__deleted"], deleted["small"]) == (4, True, None)
    assert (tombstone["id"], tombstone["__deleted"], tombstone["__source_lsn"]) == (4, True, None)
    assert truncated[0] == "truncate"
