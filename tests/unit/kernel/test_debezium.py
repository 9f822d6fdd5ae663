"""Debezium's envelopes become rows of the changed table; what is no change of a row, or cannot be read, says why."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.unit.kernel.change_events import (
    LSN,
    ROW,
    SCHEMA,
    TXN,
    TYPES,
    UNCHANGED,
    changed,
    event,
    text,
    wrapped,
)
from tests.unit.records import ARRIVED, judged

from seamline import Debezium, KafkaSource, Lookup, Pipeline, Tumbling, View, count
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import record_version

AT = datetime(2024, 2, 3, 2, 5, 6, 789012, tzinfo=UTC)
KEY = b'{"id":1}'


def row_of(found: Any) -> Any:
    """Leave the columns of a row that the table has, or are told about its change; a refusal stays as it is."""
    if isinstance(found, list):
        return found[0]
    return {name: value for name, value in found.items() if not name.startswith("_") or name.startswith("__")}


def test_a_row_is_what_it_is_after_the_change() -> None:
    """A snapshot's row, an insert and an update are read alike, with Kafka Connect's schema around them or without."""
    want = {"id": 1, "country": "de", "balance": Decimal("12.34"), "at": AT}
    for op in "rcu":
        plain, with_schema = judged(
            changed(), [text(event(op, after=ROW)), wrapped(event(op, after={**ROW, "balance": "BNI="}))]
        )
        told = {"__op": op, "__deleted": False, "__source_lsn": LSN}
        assert row_of(plain) == row_of(with_schema) == {**want, **told}


@pytest.mark.parametrize("fields", [[{"field": "id"}, {"field": "id"}], [{"type": "int64"}], [None, 1, "id"]])
def test_a_schema_that_names_columns_oddly_stops_no_other_record(fields: list[Any]) -> None:
    """One that names a column twice or without a name tells as much as it can; records beside it are read."""
    after = {"type": "struct", "field": "after", "fields": fields}
    odd = text({"schema": {"type": "struct", "fields": [after]}, "payload": event("c", after=ROW)})
    one, other = judged(changed(), [odd, text(event("c", after=ROW))])
    assert row_of(one) == row_of(other)


@pytest.mark.parametrize("scale", [2_000_000_000, -2_000_000_000, 2**31 - 1, -(2**31), 10**11, 77, -77])
def test_a_scale_beyond_all_decimals_is_refused(scale: int) -> None:
    """A number is not spelled with as many zeros as a record asks for."""
    values = [text(event("c", after={**ROW, "balance": {"scale": scale, "value": "BNI="}}))]
    types = {**TYPES, "balance": {**TYPES["balance"], "parameters": {"scale": str(scale)}}}
    values.append(wrapped(event("c", after={**ROW, "balance": "BNI="}), types))
    assert [row_of(found) for found in judged(changed(), values)] == ["mistyped field balance"] * 2


@pytest.mark.parametrize("moment", [2**127 - 1, -(2**127), 2**63, 10**60])
def test_a_moment_told_beyond_all_numbers_is_refused(moment: int) -> None:
    """Its microseconds are too many for any number; records beside it are read."""
    made = changed("id BIGINT NOT NULL, __deleted BOOLEAN, __ts_ms TIMESTAMP", order="")
    values = [text(event("c", after={"id": 1}, ts_ms=told)) for told in (moment, str(moment), 0)]
    *refused, fine = judged(made, values)
    assert [row_of(found) for found in refused] == ["mistyped field __ts_ms"] * 2
    assert fine["__ts_ms"] == datetime(1970, 1, 1, tzinfo=UTC)


def test_a_deletion_has_its_key_alone() -> None:
    """The connector fills what it was not told of a deleted row with zeros and empty texts: they are no values."""
    filled = {"id": 1, "country": "", "balance": "0", "at": "1970-01-01T00:00:00Z"}
    found = judged(changed(), [text(event("d", before=filled)), text(event("d")), None], keys=[KEY, KEY, KEY])
    empty = {"country": None, "balance": None, "at": None}
    told = {"__deleted": True, "__op": "d", "__source_lsn": LSN}
    assert row_of(found[0]) == row_of(found[1]) == {"id": 1, **empty, **told}
    assert row_of(found[2]) == {"id": 1, **empty, **told, "__op": None, "__source_lsn": None}


def test_a_deletion_has_the_whole_row_where_the_database_tells_it() -> None:
    """With REPLICA IDENTITY FULL the row before is the row, down to its last digit."""
    made = changed(format=Debezium(decimals="string", full_before=True))
    [found] = judged(made, [text(event("d", before=ROW))], keys=[KEY])
    assert (found["country"], found["balance"], found["at"]) == ("de", Decimal("12.34"), AT)


@pytest.mark.parametrize("key", [b'{"id":1}', b'{"schema":{"type":"struct"},"payload":{"id":1}}'])
def test_a_tombstone_deletes_the_row_of_its_key(key: bytes) -> None:
    """After compaction it is all that is left of a deletion; its time is when it was written."""
    [found] = judged(changed(event_time="at"), [None], keys=[key])
    assert (found["id"], found["__deleted"], found["_event_time"]) == (1, True, ARRIVED)


@pytest.mark.parametrize("key", [None, b"1", b"id", b"\xff", b'{"other":1}', b'{"id":null}', b"[1]"])
def test_a_tombstone_of_no_row_is_refused(key: bytes | None) -> None:
    """Nobody can say which row it deletes; the records beside it are read."""
    good, bad, other = judged(
        changed(), [text(event(after=ROW)), None, text(event(after=ROW))], keys=[KEY, key, KEY]
    )
    assert bad == ["tombstone", "its key in Kafka is no JSON object with id"]
    assert good["id"] == other["id"] == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (text(event("t")), "truncate"),
        (
            text({"op": "m", "source": {}, "message": {"prefix": "p", "content": "aGVsbG8="}}),
            "logical message",
        ),
        (text({"source": {}, "ddl": "CREATE TABLE t (id INT)", "tableChanges": []}), "schema change"),
        (text(event("x", after=ROW)), "unknown op"),
        (text(event("u")), "malformed debezium"),
        (text(event("u", after=[1])), "malformed debezium"),
        (text(ROW), "malformed debezium"),
        (b"[]", "malformed debezium"),
        (b"{", "malformed debezium"),
        (b"\xff", "not utf-8"),
        (b"", "empty value"),
        (text(event(after={**ROW, "country": UNCHANGED})), "unavailable value country"),
        (text(event(after={**ROW, "country": None})), "missing field country"),
        (text(event(after={**ROW, "id": None})), "missing field id"),
        (text(event(after={**ROW, "id": "1"})), "mistyped field id"),
        (text(event(after={**ROW, "balance": "BNI="})), "mistyped field balance"),
        (text(event(after={**ROW, "at": 1706933106789012})), "mistyped field at"),
        (text(event(after=ROW, source={"lsn": "x"})), "mistyped field __source_lsn"),
        (text(event("d", before={"country": "de"})), "malformed debezium"),
    ],
)
def test_what_is_no_change_of_a_row_is_refused_with_its_reason(value: bytes, reason: str) -> None:
    """A truncated table, a value that was not told, an event of another kind: none of them becomes a row."""
    good, bad, other = judged(changed(), [text(event(after=ROW)), value, text(event(after=ROW))])
    assert bad[0] == reason
    assert good["id"] == other["id"] == 1


TYPED = (
    "id BIGINT NOT NULL, precise DECIMAL(20,3), variable DECIMAL(20,5), day DATE, milli TIMESTAMP, micro TIMESTAMP, "
    "nano TIMESTAMP, connect TIMESTAMP, raw BINARY, list ARRAY<INT>, texts ARRAY<STRING>, __deleted STRING, "
    "__ts_ms TIMESTAMP, __source_ts_ms BIGINT, __source_table STRING, __txId BIGINT"
)
DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "3"}}
CLOCKS = {
    "milli": {"type": "int64", "name": "io.debezium.time.Timestamp"},
    "micro": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    "nano": {"type": "int64", "name": "io.debezium.time.NanoTimestamp"},
    "connect": {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
}


def test_types_are_read_by_the_schema_beside_an_event() -> None:
    """Three clocks and two ways to write a decimal in one row: the schema says which is which."""
    after = {
        "id": 1, "precise": "/wY=", "variable": {"scale": 3, "value": "AeJA"}, "day": -1, "milli": 1706933106789,
        "micro": 1706933106789012, "nano": 1706933106789012345, "connect": -1, "raw": "3q2+7w==", "list": [1, None],
        "texts": ["a"],
    }  # fmt: skip
    [found] = judged(
        changed(TYPED, Debezium(), order="__ts_ms"),
        [wrapped(event(after=after), {"precise": DECIMAL, **CLOCKS})],
    )
    assert row_of(found) == {
        "id": 1,
        "precise": Decimal("-0.250"),
        "variable": Decimal("123.45600"),
        "day": date(1969, 12, 31),
        "milli": datetime(2024, 2, 3, 4, 5, 6, 789000, tzinfo=UTC),
        "micro": datetime(2024, 2, 3, 4, 5, 6, 789012, tzinfo=UTC),
        "nano": datetime(2024, 2, 3, 4, 5, 6, 789012, tzinfo=UTC),
        "connect": datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
        "raw": b"\xde\xad\xbe\xef",
        "list": [1, None],
        "texts": ["a"],
        "__deleted": "false",
        "__ts_ms": datetime(2024, 3, 1, 10, 0, 0, 223000, tzinfo=UTC),
        "__source_ts_ms": 1709287200123,
        "__source_table": "accounts",
        "__txId": TXN,
    }


def decimal_bytes(number: int) -> str:
    """Write a whole number as Java's BigInteger and base64 do."""
    return base64.b64encode(
        number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, signed=True)
    ).decode()


@pytest.mark.parametrize(
    "number", [0, 1, -1, 127, 128, -128, -129, 255, 256, 1234, 10**19, -(10**19), 10**20 - 1, 1 - 10**20]
)
def test_the_bytes_of_a_decimal_keep_every_digit(number: int) -> None:
    """At each length and sign; and what has more digits than its column is refused, never cut."""
    made = changed("id BIGINT NOT NULL, n DECIMAL(20,3), __deleted STRING", Debezium(), order="")
    after = {"id": 1, "n": decimal_bytes(number)}
    found, larger = judged(
        made,
        [
            wrapped(event(after=after), {"n": DECIMAL}),
            wrapped(event(after={"id": 1, "n": decimal_bytes(number + 10**38)}), {"n": DECIMAL}),
        ],
    )
    assert found["n"] == Decimal(number).scaleb(-3)
    assert larger[0] == "mistyped field n"


@pytest.mark.parametrize(
    ("unit", "number"),
    [
        ("milliseconds", 1706933106789),
        ("microseconds", 1706933106789000),
        ("nanoseconds", 1706933106789000000),
    ],
)
def test_the_definition_says_what_numbers_count(unit: str, number: int) -> None:
    """Without a schema beside it, a number in a TIMESTAMP column is refused until the definition says its unit."""
    events = [text(event(after={**ROW, "at": each})) for each in (number, number * 10**3)]
    found, beyond = judged(changed(format=Debezium(timestamps=unit, decimals="string")), events)
    assert found["at"] == datetime(2024, 2, 3, 4, 5, 6, 789000, tzinfo=UTC)
    assert unit == "nanoseconds" or beyond[0] == "mistyped field at"


def test_values_that_were_not_told_are_known_in_every_type() -> None:
    """A large value that an update leaves alone is not in the event, whether text, bytes or a list."""
    schema = "id BIGINT NOT NULL, b BINARY, ia ARRAY<INT>, ta ARRAY<STRING>, __deleted STRING"
    untold = {
        "b": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        "ia": list(UNCHANGED.encode()),
        "ta": [UNCHANGED],
    }
    row = {"id": 1, "b": "AA==", "ia": [1], "ta": ["a"]}
    events = [text(event(after={**row, name: value})) for name, value in untold.items()]
    found = judged(changed(schema, Debezium(), order=""), events)
    assert [each[0] for each in found] == [f"unavailable value {name}" for name in untold]
    assert "REPLICA IDENTITY FULL" in found[0][1]


def test_a_flattened_topic_has_the_same_definition() -> None:
    """ExtractNewRecordState writes rows with the same columns; a tombstone beside them deletes as one does here."""
    schema = "id BIGINT NOT NULL, country STRING NOT NULL, __op STRING, __deleted STRING, __source_lsn BIGINT"
    row = {"id": 1, "country": "de"}
    flat = {**row, "__op": "u", "__deleted": "false", "__source_lsn": LSN}
    gone = {"id": 1, "country": None, "__op": "d", "__deleted": "true", "__source_lsn": LSN}
    flattened = judged(changed(schema, "json"), [text(flat), text(gone), None], keys=[KEY] * 3)
    events = [text(event(after=row)), text(event("d", before=row)), None]
    assert [row_of(each) for each in flattened] == [
        row_of(each) for each in judged(changed(schema), events, keys=[KEY] * 3)
    ]
    assert judged(changed(schema, "json"), [text({**flat, "country": None})])[0][0] == "missing field country"


def ruled() -> Pipeline:
    """Declare rules whose tombstones would be rows."""
    rules = KafkaSource(
        name="rules",
        topic="r",
        schema="id BIGINT NOT NULL, name STRING, at TIMESTAMP, __deleted STRING",
        key=["id"],
        event_time="at",
    )
    limits = Lookup("limits", of="rules", every="limits", columns=["name"])
    orders = KafkaSource(
        name="orders",
        topic="o",
        schema="n BIGINT, at TIMESTAMP",
        event_time="at",
        lookups=[limits],
        where="size(limits) > 0",
    )
    made = changed()
    view = View("n", of="orders", keys=[], window=Tumbling("1 day"), measures={"n": count()})
    return replace(made, source=[orders, rules], views=[view])


WRONG = {
    "no column of deletions": (
        changed("id BIGINT NOT NULL", order=""), "source.format", "__deleted is not declared",
    ),
    "a source of rules": (ruled(), "source[orders].lookups[limits].of", "take rules out of force"),
    "no key": (changed(key=[], order=""), "source.key", "no key= says"),
    "no key of JSON": (changed(SCHEMA, "json", key=[], order=""), "source.key", "no key= says"),
    "an unknown unit": (changed(format=Debezium(timestamps="seconds")), "source.format.timestamps", "is not a unit"),
    "unknown decimals": (
        changed(format=Debezium(decimals="precise")), "source.format.decimals", "how decimals are written",
    ),
    "a moment of no unit": (
        changed(SCHEMA.replace("lsn BIGINT", "lsn TIMESTAMP")), "source.format", "does not tell its unit",
    ),
    "a day that is told": (
        changed(SCHEMA.replace("lsn BIGINT", "lsn DATE")), "source.format", "facts about a change",
    ),
    "a number of deletions": (
        changed(SCHEMA.replace("deleted BOOLEAN", "deleted BIGINT")), "source.schema", "declare __deleted BOOLEAN",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_definition_says_what_it_lacks(name: str) -> None:
    """Deletions need a column that says so, and a key that says which row; a unit and a type are checked."""
    wrong, field, said = WRONG[name]
    made, problems = compile_with_problems(wrong)
    assert made is None
    assert [each.field for each in problems if said in str(each)] == [field]


def test_what_reads_rows_reckons_with_deletions() -> None:
    """Other columns than the key may be NULL for expressions; the record version knows the key and the options."""
    made = compile_pipeline(changed())
    assert [each.name for each in made.record.parsed.fields if not each.nullable] == ["id"]
    assert made.by_source[0].record.deletion is not None
    versions = {
        record_version(changed(**more)) for more in ({}, {"format": Debezium()}, {"key": ["country"]})
    }
    assert len(versions) == 3
