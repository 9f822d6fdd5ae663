"""Rows as records of a topic: what a key is, what a value has, and what a deletion is with and without old values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from seamline.sinks.kafka_rows import encode_changes
from seamline.sinks.target import ChangeBatch

INSTANT = pa.timestamp("us", "UTC")
PLACES = pa.schema([("shop", pa.string()), ("window_start", INSTANT), ("window_end", INSTANT)])
SCHEMA = pa.schema([*PLACES, ("total", pa.decimal128(10, 2)), ("sketch", pa.binary()), ("epoch", pa.int64())])


def row(shop: str | None, total: str, hour: int = 0, sketch: bytes | None = b"\x00\xff") -> dict[str, Any]:
    """Make a row."""
    start, end = datetime(2026, 1, 1, hour, tzinfo=UTC), datetime(2026, 1, 1, hour + 1, tzinfo=UTC)
    return {
        "shop": shop, "window_start": start, "window_end": end, "total": Decimal(total), "sketch": sketch, "epoch": 7,
    }  # fmt: skip


def batch(upserts: list[Any], deletions: list[Any], olds: list[Any] | None = None) -> ChangeBatch:
    """Make a batch of rows."""
    return ChangeBatch(
        pa.Table.from_pylist(upserts, schema=SCHEMA),
        pa.Table.from_pylist(deletions, schema=PLACES),
        None if olds is None else pa.Table.from_pylist(olds, schema=SCHEMA),
    )


def test_a_key_says_which_row_it_is_and_a_value_what_it_says() -> None:
    """Keys of equal rows are equal texts, or compaction would keep both; numbers have all of their digits."""
    upserts = [row('a\n\u2028"', "0.10"), row(None, "12345678.90", 3)]
    records = [*encode_changes(batch(upserts, [row("b", "0")]), changes=False)]
    keys = [json.loads(key) for key, _ in records]
    assert keys == [
        {"shop": 'a\n\u2028"', "window_start": "2026-01-01T00:00:00Z", "window_end": "2026-01-01T01:00:00Z"},
        {"shop": None, "window_start": "2026-01-01T03:00:00Z", "window_end": "2026-01-01T04:00:00Z"},
        {"shop": "b", "window_start": "2026-01-01T00:00:00Z", "window_end": "2026-01-01T01:00:00Z"},
    ]
    values = [value and json.loads(value, parse_float=Decimal) for _, value in records]
    assert [value and value["total"] for value in values] == [Decimal("0.10"), Decimal("12345678.90"), None]
    assert values[0] is not None
    assert (values[0]["epoch"], values[0]["sketch"]) == (7, "AP8=")
    assert records[2][1] is None


def test_with_changes_a_value_has_what_the_row_was() -> None:
    """A new row was nothing; of a row that is gone its last value comes before the tombstone."""
    made = batch([row("a", "2"), row("new", "1")], [row("gone", "0")], [row("a", "1"), row("gone", "5")])
    first, second, *gone = encode_changes(made, changes=True)
    told = [json.loads(each[1] or b"null") for each in (first, second, *gone)]
    assert [each and (each["before"] or {}).get("total") for each in told] == [1, None, 5, None]
    assert [each and (each["after"] or {}).get("total") for each in told] == [2, 1, None, None]
    assert gone[0][0] == gone[1][0]
    assert gone[1][1] is None
