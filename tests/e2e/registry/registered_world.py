"""A stream of three topics, in Avro, protobuf and JSON, whose schemas a registry has; and what its tables say."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tests.e2e.world import ROOT
from tests.ports import free_ports
from tests.services.apicurio import Apicurio

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import each_epoch
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.compile.catalog import load_catalog
from seamline.supervisor.supervisor_heartbeat import Heartbeat

TOPICS = {"avro": "registered.avro", "protobuf": "registered.protobuf", "json": "registered.json"}
AT = "2026-11-01T10:00:00Z"
READER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "shop", "type": "string", "default": "none", "aliases": ["store"]},
        {"name": "amount", "type": "double"},
        {"name": "at", "type": "string"},
    ],
}
DEFINITION = """
from pathlib import Path
from seamline import *

COLUMNS = "id BIGINT NOT NULL, shop STRING, amount DOUBLE, at TIMESTAMP"
FORMATS = {{
    "avro": Avro(schema={reader!r}, registry="schema_registry"),
    "protobuf": protobuf(Path(__file__).with_name("orders.desc"), "shop.Order", registry="schema_registry"),
    "json": Json(registry="schema_registry"),
}}
orders = Pipeline(
    name="orders",
    source=[
        KafkaSource(
            name=name,
            topic=f"registered.{{name}}",
            schema=COLUMNS,
            event_time="at",
            format=format,
            watermark=Watermark("10 minutes", idle_after="2 seconds"),
            {more}
        )
        for name, format in FORMATS.items()
    ],
    views=[
        View(
            "daily",
            of=[*FORMATS],
            keys=["shop"],
            window=Tumbling("1 day"),
            measures={{"n": count(), "total": sum("amount")}},
        )
    ],
    stream=Stream(trigger="100 milliseconds"),
    batch=Batch("1 day", "2026-11-01"),
)
"""
PROTO = 'syntax = "proto3"; package shop; message Order { %s }'
FIELDS = "int64 id = 1; string shop = 2; double amount = 3; string at = 4;"
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"id": {"type": "integer"}},
}


def describe_order() -> descriptor_pb2.FileDescriptorProto:
    """Describe the message that the definition reads."""
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    order, field = file.message_type.add(name="Order"), descriptor_pb2.FieldDescriptorProto
    types = {
        "id": field.TYPE_INT64,
        "shop": field.TYPE_STRING,
        "amount": field.TYPE_DOUBLE,
        "at": field.TYPE_STRING,
    }
    for number, (name, type) in enumerate(types.items(), 1):
        order.field.add(name=name, number=number, type=type, label=field.LABEL_OPTIONAL)
    return file


class Registered:
    """The registry, the definition, the topics and the tables."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.home, self.kafka = home, kafka
        self.registry = Apicurio(home, free_ports())
        self.layout = Layout(home / "warehouse", "orders")
        self.file = home / "pipelines" / "orders.py"
        self.file.parent.mkdir()
        described = descriptor_pb2.FileDescriptorSet(file=[describe_order()])
        self.file.with_name("orders.desc").write_bytes(described.SerializeToString())
        self.define()
        broker = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.brokers}}
        self.settings = {
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(broker),
            "AIRFLOW_CONN_SCHEMA_REGISTRY": json.dumps({"conn_type": "http", "host": self.registry.url}),
            "AIRFLOW_CONN_RENAMED": json.dumps({"conn_type": "http", "host": self.registry.url}),
            "GX_ANALYTICS_ENABLED": "false",
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_PIPELINES": str(self.file.parent),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
        }
        self.sent: Counter[str] = Counter()
        pool = descriptor_pool.DescriptorPool()
        pool.Add(describe_order())
        self.order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))

    def define(self, more: str = "", registry: str = "schema_registry") -> None:
        """Write the definition, with more said of each source, and another connection to the registry."""
        text = DEFINITION.format(reader=json.dumps(READER), more=more)
        self.file.write_text(text.replace("schema_registry", registry))

    def seamline(self, *words: str, code: int = 0) -> str:
        """Run a command, and require how it ends; return what it said."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        env = {**os.environ, **self.settings}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if code else "")

    def send(self, kind: str, *values: bytes) -> None:
        """Send values to the topic of a format."""
        with RecordWriter(self.kafka) as writer:
            for value in values:
                writer.send(TOPICS[kind], value=value, partition=0)
        self.sent[kind] += len(values)

    def avro(self, number: int, schema: Mapping[str, Any], **fields: Any) -> bytes:
        """Encode an order of Avro."""
        stream = io.BytesIO()
        schemaless_writer(stream, parse_schema(dict(schema)), {"at": AT, **fields})
        return b"\x00" + number.to_bytes(4) + stream.getvalue()

    def proto(self, number: int, **fields: Any) -> bytes:
        """Encode an order of protobuf, the first message of its file."""
        return b"\x00" + number.to_bytes(4) + b"\x00" + self.order(at=AT, **fields).SerializeToString()

    def json(self, number: int, **fields: Any) -> bytes:
        """Encode an order of JSON."""
        return b"\x00" + number.to_bytes(4) + json.dumps({"at": AT, **fields}).encode()

    @property
    def accepted(self) -> int:
        """The records that epochs have accepted."""
        return sum(each.rows for each in self.epochs)

    @property
    def refused(self) -> Counter[str]:
        """The records that epochs have refused, by reason."""
        return sum((Counter(each.refused) for each in self.epochs), Counter())

    @property
    def epochs(self) -> list[Any]:
        """The log."""
        return [*each_epoch(self.layout)] if Master.exists(self.layout) else []

    def is_read(self) -> bool:
        """Return whether all that was sent is read."""
        return self.accepted + self.refused.total() == self.sent.total()

    def quarantined(self) -> set[tuple[str, str]]:
        """Return why records are in the quarantine."""
        paths = Files.of(Table.open(self.layout.table("quarantine"))).paths
        tables = (pq.read_table(each, columns=["_reason", "_detail"]) for each in paths)
        return {(row["_reason"], row["_detail"]) for table in tables for row in table.to_pylist()}

    def judged_again(self) -> tuple[int, Counter[str]]:
        """Return what became of all records when they were judged by the definition as it is now."""
        verdicts = Reprocessed(load_catalog(self.file.parent).pipeline("orders"), self.layout).verdicts()
        refused = sum((Counter(each.refused) for each in verdicts.values()), Counter())
        return sum(sum(each.accepted.values()) for each in verdicts.values()), refused

    def daily(self) -> dict[str, tuple[int, float]]:
        """Ask for the day: orders and amounts of each shop."""
        out = self.seamline("query", "orders.daily", "--format", "csv", "--limit", "1000")
        rows = [line.replace('"', "").split(",") for line in out.splitlines()]
        head = rows[0]
        at = {name: head.index(name) for name in ("shop", "n", "total")}
        return {row[at["shop"]]: (int(row[at["n"]]), float(row[at["total"]])) for row in rows[1:]}

    @property
    def driver(self) -> int | None:
        """The driver's process."""
        beat = Heartbeat.read(self.home, "orders")
        return beat.driver.pid if beat and beat.driver else None

    @property
    def log(self) -> str:
        """What the driver has said."""
        return "".join(each.read_text() for each in (self.home / "streams" / "orders").glob("*.log"))

    def kept(self, registry: str = "schema_registry") -> set[str]:
        """Return the files of schemas that are kept."""
        return {each.name for each in (self.layout.schemas / registry).glob("*")}
