"""Every format: good bytes become typed rows, ugly bytes are kept with a reason, and nothing stops the rest."""

from __future__ import annotations

import base64
import io
import json
import struct
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastavro import schemaless_writer
from google.protobuf import descriptor_pb2, timestamp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records import judged, parsed, pipeline

from seamline import Avro, Csv, Json, Protobuf, Text, protobuf
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import record_version
from seamline.model.errors import DefinitionError

AT = datetime(2024, 3, 1, 10, tzinfo=UTC)
CSV = pipeline(
    "id BIGINT NOT NULL, shop STRING, price DECIMAL(6,2), rate DOUBLE, paid BOOLEAN, day DATE, at TIMESTAMP,"
    " raw BINARY",
    format="csv",
)
GOOD_CELLS = ["1", "a", "2.50", "1e3", "true", "2024-03-01", "2024-03-01T10:00:00Z", "AP8="]


def line(**changes: str) -> bytes:
    """Write a good line with some cells changed."""
    names = [part.split()[0] for part in CSV.source.schema.split(", ")]
    return ",".join({**dict(zip(names, GOOD_CELLS, strict=True)), **changes}.values()).encode()


def test_a_line_of_cells_becomes_a_row() -> None:
    """Every type has its spelling; quotes, doubled quotes and line ends inside them belong to the cell."""
    rows = judged(CSV, [line() + b"\r\n", line(shop='"x, ""y""\nz"'), line(shop="", rate="-.5", id="+7")])
    assert parsed(rows[0]) == {
        "id": 1,
        "shop": "a",
        "price": Decimal("2.50"),
        "rate": 1000.0,
        "paid": True,
        "day": date(2024, 3, 1),
        "at": AT,
        "raw": b"\x00\xff",
    }
    assert rows[1]["shop"] == 'x, "y"\nz'
    assert (rows[2]["shop"], rows[2]["rate"], rows[2]["id"]) == (None, -0.5, 7)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "empty value"),
        (None, "tombstone"),
        (b"\xff", "not utf-8"),
        (b"\n", "malformed csv"),
        (b"1,2,3", "malformed csv"),
        (line() + b",x", "malformed csv"),
        (line() + b"\n" + line(), "malformed csv"),
        (line(shop='"open'), "malformed csv"),
        (line(shop='"a"b'), "malformed csv"),
        (line(id=""), "missing field id"),
        (line(id="1.0"), "mistyped field id"),
        (line(id=" 1"), "mistyped field id"),
        (line(id=str(2**63)), "mistyped field id"),
        (line(price="2.505"), "mistyped field price"),
        (line(price="1e-3"), "mistyped field price"),
        (line(rate="nan"), "mistyped field rate"),
        (line(rate="1e999"), "mistyped field rate"),
        (line(paid="yes"), "mistyped field paid"),
        (line(day="1.3.2024"), "mistyped field day"),
        (line(at="10:00"), "mistyped field at"),
        (line(raw="%"), "mistyped field raw"),
        (line(at=""), "null event time"),
        (line(shop="\x00", at="x"), "mistyped field at"),
        (b"a" * 200_000, "malformed csv"),
    ],
)
def test_a_bad_line_is_refused_with_its_reason(value: bytes | None, reason: str) -> None:
    """Nothing a producer sends may stop a stream or slip into the numbers."""
    good, bad, other = judged(CSV, [line(), value, line()])
    assert bad[0] == reason
    assert good["id"] == other["id"] == 1


def test_csv_has_options() -> None:
    """Half of the world's files are cut at semicolons."""
    made = pipeline("a STRING, b STRING, at TIMESTAMP", format=Csv(delimiter=";", quote="'", null="-"))
    (row,) = judged(made, [b"';';-;2024-03-01"])
    assert (row["a"], row["b"]) == (";", None)


LOG = Text(
    pattern=r'(?P<host>\S+) \S+ \S+ \[(?P<at>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>\S+)[^"]*" '
    r"(?P<status>\d{3}) (?:(?P<bytes>\d+)|-)"
)
LOGS = pipeline(
    "host STRING, at TIMESTAMP, method STRING, path STRING, status INT NOT NULL, bytes BIGINT", format=LOG
)


def test_a_pattern_reads_a_web_servers_log() -> None:
    """Groups become columns by name; a group that took no part is NULL."""
    values = [
        b'10.0.0.1 - bob [2024-03-01T10:00:00Z] "GET /a?b=1 HTTP/1.1" 200 512\n',
        '10.0.0.1 - - [2024-03-01T10:00:00+00:00] "POST /é HTTP/1.1" 404 -'.encode(),
        b'10.0.0.1 - - [yesterday] "GET / HTTP/1.1" 200 1',
        b'10.0.0.1 - - [2024-03-01] "GET /" 99999 1',
        b"GET /",
        b"",
        b"\xc3\x28",
        None,
    ]
    rows = judged(LOGS, values)
    assert parsed(rows[0]) == {
        "host": "10.0.0.1",
        "at": AT,
        "method": "GET",
        "path": "/a?b=1",
        "status": 200,
        "bytes": 512,
    }
    assert (rows[1]["path"], rows[1]["bytes"]) == ("/é", None)
    assert [reason for reason, _ in rows[2:]] == [
        "mistyped field at",
        "malformed text",
        "malformed text",
        "empty value",
        "not utf-8",
        "tombstone",
    ]


NESTED = (
    "id BIGINT NOT NULL, at TIMESTAMP, price DECIMAL(30,10), "
    "cart STRUCT<shop: STRING NOT NULL, lines: ARRAY<STRUCT<sku: STRING, n: INT>>>, "
    "tags ARRAY<STRING>, facts MAP<STRING, ARRAY<DOUBLE>>"
)
GOOD: dict[str, Any] = {
    "id": 1,
    "at": "2024-03-01T10:00:00Z",
    "price": 2.5,
    "cart": {"shop": "a", "lines": [{"sku": "x", "n": 2}, {"sku": None}, None]},
    "tags": ["p", None, "q"],
    "facts": {"a/b~c": [1, 2.5], "": [], 'q"': None},
}


def cart(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_nested_json_is_typed_part_by_part() -> None:
    """What lies deep is read by the same rules as what lies on top."""
    rows = judged(pipeline(NESTED), [cart(), cart(cart=None, tags=[], facts={}), cart(id=2)])
    assert rows[0]["cart"] == {"shop": "a", "lines": [{"sku": "x", "n": 2}, {"sku": None, "n": None}, None]}
    assert rows[0]["tags"] == ["p", None, "q"]
    assert dict(rows[0]["facts"]) == {"a/b~c": [1.0, 2.5], "": [], 'q"': None}
    assert (rows[1]["cart"], rows[1]["tags"], rows[1]["facts"]) == (None, [], [])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (cart(cart="a"), "mistyped field cart"),
        (cart(cart={"shop": 5}), "mistyped field cart"),
        (cart(cart={"lines": []}), "mistyped field cart"),
        (cart(cart={"shop": "a", "lines": {}}), "mistyped field cart"),
        (cart(cart={"shop": "a", "lines": [{"n": "1"}]}), "mistyped field cart"),
        (cart(cart={"shop": "a", "lines": [{"n": 2**31}]}), "mistyped field cart"),
        (cart(tags="p"), "mistyped field tags"),
        (cart(tags=["p", 1]), "mistyped field tags"),
        (cart(tags=[["p"]]), "mistyped field tags"),
        (cart(facts=[]), "mistyped field facts"),
        (cart(facts={"a": [1], "b": [None, "x"]}), "mistyped field facts"),
        (cart(facts={"a": 1}), "mistyped field facts"),
    ],
)
def test_a_wrong_part_refuses_the_record(value: bytes, reason: str) -> None:
    """A part that is left out in silence would be missing in the numbers."""
    good, bad = judged(pipeline(NESTED), [cart(), value])
    assert bad[0] == reason
    assert good["id"] == 1


def test_of_members_of_one_name_the_first_counts_in_a_map_too() -> None:
    """As with columns; a later one that is of another type is nobody's, and does not refuse the record."""
    value = b'{"at": "2024-03-01T10:00:00Z", "m": {"b": 1, "a": {"x": 2, "x": "no"}, "b": "no", "a": 7}}'
    [row] = judged(pipeline("at TIMESTAMP, m MAP<STRING, STRING>"), [value])
    assert row[0] == "mistyped field m"
    value = b'{"at": "2024-03-01T10:00:00Z", "m": {"b": {}, "a": {"x": 2, "x": "no"}, "b": "no", "a": 7}}'
    [row] = judged(pipeline("at TIMESTAMP, m MAP<STRING, MAP<STRING, INT>>"), [value])
    assert row["m"] == [("a", [("x", 2)]), ("b", [])]


LARGE = """
import json, resource
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
from tests.unit.records import judged, pipeline
at = "2024-03-01T10:00:00Z"
many = {f"k{i}": i for i in range(20_000)}
each = {f"k{i}": {f"x{j}": j for j in range(20)} for i in range(1_000)}
schema = "at TIMESTAMP, flat MAP<STRING, INT>, deep MAP<STRING, MAP<STRING, INT>>, list ARRAY<MAP<STRING, INT>>"
value = {"at": at, "flat": many, "deep": each, "list": [*each.values()]}
[row] = judged(pipeline(schema), [json.dumps(value).encode()])
assert dict(row["flat"]) == many
assert {name: dict(inner) for name, inner in row["deep"]} == each
assert [dict(inner) for inner in row["list"]] == [*each.values()]
print("read")
"""


def test_an_object_of_many_members_costs_as_much_as_it_holds() -> None:
    """One of 209 kB took 6 GB, and its worker with it: read with 2 GB, maps in maps and in lists too."""
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("read\n"), done.stderr[-2000:]


WIDE = """
import json, resource
resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
from tests.unit.records import judged, pipeline
at, parts = "2024-01-01T00:00:00Z", range(200)
kinds = {0: ("DECIMAL(18,2)", 1.25), 1: ("BIGINT", 7), 2: ("STRING", "x"), 3: ("ARRAY<INT>", [1, 2])}
written = ", ".join(f"p{i}: {kinds[i % 4][0]}" for i in parts)
schema = f"at TIMESTAMP, raw STRUCT<value: STRUCT<{written}>, topic: STRING NOT NULL>"
values = {f"p{i}": kinds[i % 4][1] for i in parts}
record = {"at": at, "raw": {"value": values, "topic": "t"}}
rows = judged(pipeline(schema), [json.dumps(record).encode()] * 300)
assert len(rows) == 300
for row in (rows[0], rows[-1]):
    assert row["raw"]["value"] == values
print("read")
"""


def test_a_struct_of_many_parts_costs_as_much_as_it_holds() -> None:
    """A thousand of 400 parts took more than 18 GB: each part had the whole STRUCT copied for it.

    A column and its part may have the names of a table of ours and a column of that.
    """
    done = subprocess.run([sys.executable, "-c", WIDE], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("read\n"), done.stderr[-2000:]


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {
            "name": "price",
            "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10}],
        },
        {
            "name": "cart",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Cart",
                    "fields": [
                        {"name": "shop", "type": "string"},
                        {
                            "name": "lines",
                            "type": {
                                "type": "array",
                                "items": {
                                    "type": "record",
                                    "name": "Line",
                                    "fields": [
                                        {"name": "sku", "type": "string"},
                                        {"name": "n", "type": "int"},
                                    ],
                                },
                            },
                        },
                    ],
                },
            ],
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "facts", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
        {"name": "unused", "type": "bytes"},
    ],
}
ORDER: dict[str, Any] = {
    "id": 1,
    "at": AT,
    "price": Decimal("12345678901234567890.0123456789"),
    "cart": {"shop": "é", "lines": [{"sku": "x", "n": 2}]},
    "tags": ["p", "q"],
    "facts": {"a": [1.0, 2.5]},
    "unused": b"\xff",
}


def avro(order: Mapping[str, Any] = ORDER, prefix: bytes = b"") -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, AVRO, dict(order))
    return prefix + out.getvalue()


AVROS = pipeline(NESTED, format=Avro(schema=json.dumps(AVRO)))


def test_an_avro_record_keeps_every_digit() -> None:
    """A binary format is exact; the way through JSON text must not round it."""
    (row,) = judged(AVROS, [avro()])
    assert {**parsed(row), "facts": dict(row["facts"])} == {
        name: value for name, value in ORDER.items() if name != "unused"
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "malformed avro"),
        (None, "tombstone"),
        (b"\x00", "malformed avro"),
        (b"\xff" * 40, "malformed avro"),
        (avro()[:-1], "malformed avro"),
        (avro() + b"\x00", "malformed avro"),
        (b'{"id": 1}', "malformed avro"),
        (avro({**ORDER, "at": None}), "null event time"),
        (avro({**ORDER, "facts": {"a": [float("nan")]}}), "mistyped field facts"),
    ],
)
def test_bytes_that_are_no_such_record_are_refused(value: bytes | None, reason: str) -> None:
    """A record of another schema must not be read as something it is not."""
    good, bad = judged(AVROS, [avro(), value])
    assert bad[0] == reason
    assert good["id"] == 1


def test_the_header_of_confluents_clients_is_stripped_when_declared() -> None:
    """Most Avro on Kafka has it."""
    made = pipeline(NESTED, format=Avro(schema=json.dumps(AVRO), confluent=True))
    prefix = b"\x00" + struct.pack(">I", 7)
    rows = judged(made, [avro(prefix=prefix), avro(prefix=b"\x01" + prefix[1:]), b"\x00\x00"])
    assert rows[0]["id"] == 1
    assert [row[0] for row in rows[1:]] == ["malformed avro", "malformed avro"]


def descriptor() -> descriptor_pb2.FileDescriptorSet:
    """Describe an order as protoc would, Timestamp included."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    level = file.enum_type.add(name="Level")
    level.value.add(name="LOW", number=0)
    level.value.add(name="HIGH", number=1)
    item = file.message_type.add(name="Item")
    item.field.add(name="sku", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    item.field.add(name="n", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    fields: list[tuple[str, int, int, str]] = [
        ("id", kinds.TYPE_INT64, kinds.LABEL_OPTIONAL, ""),
        ("at", kinds.TYPE_MESSAGE, kinds.LABEL_OPTIONAL, ".google.protobuf.Timestamp"),
        ("level", kinds.TYPE_ENUM, kinds.LABEL_OPTIONAL, ".shop.Level"),
        ("items", kinds.TYPE_MESSAGE, kinds.LABEL_REPEATED, ".shop.Item"),
        ("tags", kinds.TYPE_STRING, kinds.LABEL_REPEATED, ""),
        ("raw", kinds.TYPE_BYTES, kinds.LABEL_OPTIONAL, ""),
        ("facts", kinds.TYPE_MESSAGE, kinds.LABEL_REPEATED, ".shop.Order.FactsEntry"),
    ]
    for number, (name, type_, label, of) in enumerate(fields, 1):
        order.field.add(
            name=name, number=number, type=type_, label=label, **({"type_name": of} if of else {})
        )
    entry = order.nested_type.add(name="FactsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_OPTIONAL)
    time = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(time)
    return descriptor_pb2.FileDescriptorSet(file=[time, file])


PROTO = Protobuf(base64.b64encode(descriptor().SerializeToString()).decode(), "shop.Order")
PROTOS = pipeline(
    "id BIGINT, at TIMESTAMP, level STRING, items ARRAY<STRUCT<sku: STRING, n: INT>>, tags ARRAY<STRING>,"
    " raw BINARY, facts MAP<STRING, DOUBLE>",
    format=PROTO,
)


def message(**changes: Any) -> bytes:
    made = PROTO.type(id=2**53 + 1, level=1, items=[{"sku": "x"}], tags=["p"], raw=b"\xff", facts={"a": 1.5})
    made.at.FromDatetime(AT)
    for name, value in changes.items():
        if value is None:
            made.ClearField(name)
        else:
            setattr(made, name, value)
    return bytes(made.SerializeToString())


def test_a_protobuf_message_becomes_a_row() -> None:
    """A field without a presence of its own has its default; one with presence can be NULL."""
    rows = judged(
        PROTOS, [message(), message(id=None, level=9, tags=None), message(at=None), b"", b"\x08", None]
    )
    assert {**parsed(rows[0]), "facts": dict(rows[0]["facts"])} == {
        "id": 2**53 + 1,
        "at": AT,
        "level": "HIGH",
        "items": [{"sku": "x", "n": 0}],
        "tags": ["p"],
        "raw": b"\xff",
        "facts": {"a": 1.5},
    }
    assert [row[0] for row in rows[1:]] == [
        "mistyped field level",
        "null event time",
        "null event time",
        "malformed protobuf",
        "tombstone",
    ]


def test_a_descriptor_comes_from_a_file_and_outlives_it(tmp_path: Path) -> None:
    """A stored definition must run after somebody has cleaned up."""
    file = tmp_path / "shop.desc"
    file.write_bytes(descriptor().SerializeToString())
    assert protobuf(file, "shop.Order") == PROTO
    with pytest.raises(DefinitionError, match="cannot be read"):
        protobuf(tmp_path / "none.desc", "shop.Order")


EACH = {"csv": (CSV, line()), "text": (LOGS, b"x"), "avro": (AVROS, avro()), "protobuf": (PROTOS, message())}


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
@settings(max_examples=12, deadline=None)
@given(values=st.lists(st.binary(max_size=40), min_size=20, max_size=40))
def test_any_bytes_are_judged_and_harm_no_other(name: str, values: list[bytes]) -> None:
    """Each record has a verdict, whatever lies beside it."""
    made, good = EACH[name]
    *_, row = judged(made, [*values, good])
    assert parsed(row) == parsed(GOOD_ROWS.setdefault(name, judged(made, [good])[0]))


GOOD_ROWS: dict[str, Any] = {}


WRONG = {
    "text without a pattern": ("text", "a STRING", "needs options"),
    "unknown": ("xml", "a STRING", "not supported"),
    "wide delimiter": (Csv(delimiter="||"), "a STRING", "not a valid delimiter"),
    "delimiter is quote": (Csv(delimiter='"'), "a STRING", "both delimiter and quote"),
    "nested csv": ("csv", "a ARRAY<STRING>", "nested values"),
    "broken pattern": (Text(pattern="(?P<a>"), "a STRING", "cannot be read"),
    "look-ahead": (Text(pattern="(?P<a>x(?=y))(?P<at>.*)"), "a STRING", "RE2"),
    "back reference": (Text(pattern=r"(?P<a>x)\1(?P<at>.*)"), "a STRING", "RE2"),
    "group without column": (Text(pattern="(?P<at>.*)(?P<b>x)"), "a STRING", "differ in a, b"),
    "avro schema": (Avro(schema="{"), "a STRING", "Avro schema cannot be read"),
    "avro no record": (Avro(schema='"string"'), "a STRING", "not a record"),
    "avro column": (Avro(schema=json.dumps(AVRO)), "a STRING", "'a' is not in the Avro schema"),
    "protobuf descriptor": (Protobuf("%", "shop.Order"), "a STRING", "descriptor cannot be read"),
    "protobuf message": (Protobuf(PROTO.descriptor, "shop.Cart"), "a STRING", "no message 'shop.Cart'"),
    "protobuf column": (PROTO, "a STRING", "'a' is not in shop.Order"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_format_that_cannot_be_meant_is_told(case: str) -> None:
    """Before a topic is read into the quarantine."""
    format, schema, fact = WRONG[case]
    compiled, problems = compile_with_problems(pipeline(f"{schema}, at TIMESTAMP", format=format))
    assert compiled is None
    found = next(each for each in problems if each.field.startswith("source.format"))
    assert fact in found.message
    assert found.hint
    assert found.line > 0


def test_options_are_part_of_the_record_version_and_defaults_are_not() -> None:
    """The same bytes read otherwise are other rows; a name for what was there before is not."""
    schema = "a STRING, at TIMESTAMP"
    versions = [
        record_version(pipeline(schema, format=each)) for each in ("csv", Csv(), Csv(";"), "json", Json())
    ]
    assert versions[0] == versions[1]
    assert versions[3] == versions[4] == compile_pipeline(pipeline(schema)).record_version
    assert len(set(versions)) == 3
