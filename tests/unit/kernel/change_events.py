"""Change events as Debezium's connector to PostgreSQL writes them: envelopes, their schemas, and keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.records import pipeline

from seamline import Debezium, Pipeline

LSN, TXN = 28312376, 762
UNCHANGED = "__debezium_unavailable_value"
SCHEMA = (
    "id BIGINT NOT NULL, country STRING NOT NULL, balance DECIMAL(10,2), at TIMESTAMP, "
    "__op STRING, __deleted BOOLEAN, __source_lsn BIGINT"
)
ROW = {"id": 1, "country": "de", "balance": "12.34", "at": "2024-02-03T02:05:06.789012Z"}
TYPES = {
    "balance": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "at": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}


STRINGS = Debezium(decimals="string")


def changed(schema: str = SCHEMA, format: Debezium | str = STRINGS, **more: Any) -> Pipeline:
    """Declare a pipeline over a changed table; its events are as late as their records."""
    more = {"event_time": "_kafka_timestamp", "key": ["id"], "order": "__source_lsn", **more}
    return pipeline(schema, format=format, **more)


def event(op: str = "u", **parts: Any) -> dict[str, Any]:
    """Make an envelope; a row before or after it is as given."""
    moment = 1709287200123
    source = {"connector": "postgresql", "ts_ms": moment, "table": "accounts", "txId": TXN, "lsn": LSN}
    made = {"before": None, "after": None, "source": source, "transaction": None, "op": op}
    return {**made, "ts_ms": moment + 100, **parts}


def text(found: Any) -> bytes:
    """Write it as Kafka Connect does."""
    return json.dumps(found, separators=(",", ":")).encode()


def wrapped(found: Mapping[str, Any], types: Mapping[str, Mapping[str, Any]] = TYPES) -> bytes:
    """Write an envelope with its schema beside it; columns that have no type there are texts."""
    row = found["after"] or found["before"] or {}
    fields = [{"field": name, "optional": True, **types.get(name, {"type": "string"})} for name in row]
    rows = [{"type": "struct", "fields": fields, "field": name} for name in ("before", "after")]
    schema = {"type": "struct", "fields": [*rows, {"type": "string", "field": "op"}], "name": "Envelope"}
    return text({"schema": schema, "payload": found})
