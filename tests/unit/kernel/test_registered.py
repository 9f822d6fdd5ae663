"""Records that name their writers' schemas: each is read by its own, and none by one that cannot be read."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2
from tests.unit.records import judged, parsed, pipeline

from seamline import Avro, Json, Protobuf
from seamline.kernel.formats.registered import HEADLESS
from seamline.lake.tables.schemas.kept_schemas import (
    KeptSchemas,
    SchemasWanted,
    begin_registry,
    keep_schema,
    read_schema,
)
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.fingerprint import record_version
from seamline.model.errors import DefinitionError, NotFound
from seamline.model.schemas.writer_schema import Reference, WriterSchema
from seamline.model.types.schema import Schema

COLUMNS = "id BIGINT NOT NULL, price DOUBLE, shop STRING, at STRING, when TIMESTAMP"


def avro_schema(*fields: Mapping[str, Any], name: str = "shop.Order") -> str:
    """Write a record schema."""
    return json.dumps({"type": "record", "name": name, "fields": fields})


ID, PRICE = {"name": "id", "type": "long"}, {"name": "price", "type": "double"}
WHEN = {"name": "when", "type": {"type": "long", "logicalType": "timestamp-micros"}}
READER = avro_schema(
    ID,
    PRICE,
    {"name": "shop", "type": ["null", "string"], "default": None, "aliases": ["store"]},
    {"name": "at", "type": "string", "default": "here"},
    WHEN,
)
OLD = avro_schema({"name": "id", "type": "int"}, {"name": "price", "type": "float"}, WHEN)
NEW = avro_schema(WHEN, {"name": "store", "type": "string"}, {"name": "extra", "type": "bytes"}, ID, PRICE)
AVROS = pipeline(COLUMNS, event_time="when", format=Avro(schema=READER, registry="main"))
MICROS = 1_709_287_200_000_000


def avro(number: int, schema: str, **fields: Any) -> bytes:
    """Encode a record as a registry's serializer does."""
    stream = io.BytesIO(b"\x00" + number.to_bytes(4))
    stream.seek(5)
    schemaless_writer(stream, parse_schema(json.loads(schema)), {"when": MICROS, **fields})
    return stream.getvalue()


def shelf(folder: Path, *schemas: WriterSchema, registry: str = "main", **changes: Any) -> KeptSchemas:
    """Keep schemas."""
    begin_registry(folder, registry, [])
    for each in schemas:
        keep_schema(folder, registry, each)
    return KeptSchemas(folder, **changes)


def test_each_record_is_read_by_its_writers_schema(tmp_path: Path) -> None:
    """Avro's promotions, defaults, aliases and other orders of fields are what evolution consists of."""
    kept = shelf(tmp_path, *(WriterSchema(n, "AVRO", text) for n, text in ((1, READER), (2, OLD), (3, NEW))))
    rows = judged(
        AVROS,
        [
            avro(1, READER, id=1, price=1.5, shop="a", at="there"),
            avro(2, OLD, id=2, price=2.5),
            avro(3, NEW, id=3, price=3.5, store="c", extra=b"x"),
            avro(2, OLD, id=4, price=4.5),
        ],
        kept=kept,
    )
    found = [[row[name] for name in ("id", "price", "shop", "at")] for row in rows]
    assert found == [
        [1, 1.5, "a", "there"],
        [2, 2.5, None, "here"],
        [3, 3.5, "c", "here"],
        [4, 4.5, None, "here"],
    ]


WRONG = {
    "other type": (avro_schema({"name": "id", "type": "string"}, PRICE, WHEN), {"id": "x", "price": 1.0}),
    "no default": (avro_schema({"name": "id", "type": "long"}, WHEN), {"id": 1}),
    "other record": (avro_schema(ID, PRICE, WHEN, name="shop.Refund"), {"id": 1, "price": 1.0}),
    "narrower": (avro_schema(ID, {"name": "price", "type": "string"}, WHEN), {"id": 1, "price": "1"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_avro_cannot_resolve_is_refused_by_that_reason(tmp_path: Path, case: str) -> None:
    """A change that readers cannot follow is found at its records, and the others count."""
    text, fields = WRONG[case]
    kept = shelf(tmp_path, WriterSchema(1, "AVRO", READER), WriterSchema(9, "AVRO", text))
    good = avro(1, READER, id=1, price=1.5, shop="a", at="b")
    first, bad, last = judged(AVROS, [good, avro(9, text, **fields), good], kept=kept)
    assert bad[0] == "incompatible schema"
    assert bad[1].startswith("schema 9")
    assert first["id"] == last["id"] == 1


def test_a_schema_of_another_kind_or_none_at_all_is_refused(tmp_path: Path) -> None:
    """A registry has schemas of all kinds under one row of numbers."""
    kept = shelf(tmp_path, WriterSchema(1, "JSON", "{}"), WriterSchema(2, "AVRO", '{"type": "record"}'))
    rows = judged(AVROS, [avro(n, READER, id=1, price=1.0, shop="a", at="b") for n in (1, 2, 3)], kept=kept)
    assert [row[0] for row in rows] == ["incompatible schema", "incompatible schema", "unknown schema"]
    assert [row[1] for row in rows][::2] == ["schema 1 is of kind JSON, not AVRO", "schema 3 is not in main"]


def test_a_schema_builds_upon_others(tmp_path: Path) -> None:
    """Registries keep shared records once, and name them."""
    shop = json.dumps({"type": "record", "name": "shop.Shop", "fields": [{"name": "city", "type": "string"}]})
    text = avro_schema(ID, {"name": "shop", "type": "shop.Shop"}, WHEN)
    reader = avro_schema(ID, {"name": "shop", "type": json.loads(shop)}, WHEN)
    declared = pipeline(
        "id BIGINT, shop STRUCT<city STRING>, when TIMESTAMP",
        event_time="when",
        format=Avro(schema=reader, registry="main"),
    )
    kept = shelf(tmp_path, WriterSchema(4, "AVRO", text, (Reference("shop.Shop", shop),)))
    (row,) = judged(declared, [avro(4, reader, id=1, shop={"city": "Zürich"})], kept=kept)
    assert row["shop"] == {"city": "Zürich"}


@pytest.mark.parametrize("value", [b"", b"\x00\x00", b'{"id": 1}', b"\x01\x00\x00\x00\x01\x02"])
def test_a_record_without_a_header_is_malformed(tmp_path: Path, value: bytes) -> None:
    """Whoever sends by no registry is told so."""
    assert judged(AVROS, [value], kept=shelf(tmp_path)) == [["malformed avro", HEADLESS]]


@pytest.mark.parametrize("cut", [1, 3])
def test_bytes_that_are_no_record_are_malformed(tmp_path: Path, cut: int) -> None:
    """The schema is known, and what follows its number is cut off, or goes on."""
    kept = shelf(tmp_path, WriterSchema(1, "AVRO", READER), WriterSchema(2, "AVRO", OLD))
    good = avro(1, READER, id=1, price=1.0, shop="a", at="b")
    for value in (good[:-cut], good + b"\x00", avro(2, OLD, id=1, price=1.0)[:-cut]):
        assert judged(AVROS, [value], kept=kept)[0][0] == "malformed avro"


def test_a_stream_wants_what_is_not_kept_and_others_do_not(tmp_path: Path) -> None:
    """Only the stream asks a registry; for whoever comes later what is not kept was unknown to it."""
    value = avro(7, READER, id=1, price=1.0, shop="a", at="b")
    asking = shelf(tmp_path, WriterSchema(1, "AVRO", READER), final=False)
    with pytest.raises(SchemasWanted, match=r"'main' are not kept yet: 7, 8\.") as wanted:
        judged(AVROS, [value, avro(8, OLD, id=1, price=1.0), value], kept=asking)
    assert wanted.value.ids == [7, 8]
    told = KeptSchemas(tmp_path, frozenset({("main", 7)}), final=False)
    assert judged(AVROS, [value], kept=told)[0][0] == "unknown schema"
    assert judged(AVROS, [value], kept=KeptSchemas(tmp_path))[0][0] == "unknown schema"
    keep_schema(tmp_path, "main", WriterSchema(7, "AVRO", READER))
    assert judged(AVROS, [value], kept=asking)[0]["id"] == 1


def test_nothing_is_refused_where_the_kept_schemas_are_gone(tmp_path: Path) -> None:
    """Records that counted would go to the quarantine because somebody has renamed a connection."""
    kept = shelf(tmp_path, WriterSchema(1, "AVRO", READER), registry="other")
    with pytest.raises(NotFound, match="'main'"):
        judged(AVROS, [avro(1, READER, id=1, price=1.0, shop="a", at="b")], kept=kept)


def test_a_kept_schema_is_read_once_and_never_written_again(tmp_path: Path) -> None:
    """Its number means it for ever: a bucket is not asked by each task of each epoch."""
    shelf(tmp_path, WriterSchema(1, "AVRO", READER, (Reference("a", "b"),)))
    keep_schema(tmp_path, "main", WriterSchema(1, "AVRO", OLD))
    first = read_schema(tmp_path, "main", 1)
    assert first == WriterSchema(1, "AVRO", READER, (Reference("a", "b"),))
    (tmp_path / "main" / "1.json").unlink()
    assert read_schema(tmp_path, "main", 1) is first


JSONS = "id BIGINT NOT NULL, price DECIMAL(38,20), when TIMESTAMP"


@pytest.mark.parametrize(
    "columns", [JSONS, JSONS.replace("DECIMAL(38,20)", "DOUBLE")], ids=["exact", "plain"]
)
def test_json_stands_behind_its_header(tmp_path: Path, columns: str) -> None:
    """With digits kept and without; what is wrong with one record harms no other."""
    declared = pipeline(columns, event_time="when", format=Json(registry="main"))
    kept = shelf(tmp_path, WriterSchema(1, "JSON", "{}"), WriterSchema(2, "AVRO", READER))
    text = b'{"id": 1, "price": 1.12345678901234567890, "when": "2024-03-01T10:00:00Z"}'
    heads = {n: b"\x00" + n.to_bytes(4) for n in (1, 2, 3)}
    values = [heads[1] + text, heads[2] + text, heads[3] + text, text, heads[1] + b"{", heads[1] + b"\xff"]
    rows = judged(declared, [*values, heads[1] + text, None, b""], kept=kept)
    assert rows[0]["id"] == rows[6]["id"] == 1
    wanted = Decimal("1.12345678901234567890") if "DECIMAL" in columns else 1.1234567890123457
    assert rows[0]["price"] == wanted
    assert [row[0] for at, row in enumerate(rows) if at not in (0, 6)] == [
        *("incompatible schema", "unknown schema", "malformed json", "malformed json", "not utf-8"),
        *("tombstone", "empty value"),
    ]
    assert rows[3][1] == HEADLESS


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_any_number_of_json_records_is_read_at_once(tmp_path: Path, size: int) -> None:
    """Arrow's slice without an end fails for each even number of values, and an epoch was halved to single records."""
    declared = pipeline(JSONS, event_time="when", format=Json(registry="main"))
    kept = shelf(tmp_path, WriterSchema(1, "JSON", "{}"))
    value = b'\x00\x00\x00\x00\x01{"id": 1, "when": "2024-03-01T10:00:00Z"}'
    assert [row["id"] for row in judged(declared, [value] * size, kept=kept)] == [1] * size


def descriptor() -> str:
    """Describe shop.Line and shop.Order, whose field 4 is an Order.Part."""
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Line")
    order = file.message_type.add(name="Order")
    part = order.nested_type.add(name="Part")
    field = descriptor_pb2.FieldDescriptorProto
    for made, name, number, type in (
        (part, "size", 1, field.TYPE_INT32),
        (order, "id", 1, field.TYPE_INT64),
        (order, "when", 2, field.TYPE_STRING),
        (order, "shop", 3, field.TYPE_STRING),
    ):
        made.field.add(name=name, number=number, type=type, label=field.LABEL_OPTIONAL)
    order.field.add(
        name="part",
        number=4,
        type=field.TYPE_MESSAGE,
        type_name=".shop.Order.Part",
        label=field.LABEL_OPTIONAL,
    )
    made = descriptor_pb2.FileDescriptorSet(file=[file])
    return base64.b64encode(made.SerializeToString()).decode()


PROTO = """
syntax = "proto3"; package shop;
message Line {}
message Order {
  message Part { int32 size = 1; }
  int32 id = 1;  // was narrower
  string when = 2;
  Part part = 4; map<string, Line> lines = 9;
}
"""
MESSAGE = Protobuf(descriptor(), "shop.Order", registry="main")
PROTOS = pipeline(
    "id BIGINT, when TIMESTAMP, shop STRING, part STRUCT<size INT>", event_time="when", format=MESSAGE
)


def proto(id: int, path: bytes = b"\x02\x02") -> bytes:
    """Encode an order; its place in the file is the second, as a zigzag of one place 1."""
    order = MESSAGE.type(id=5, when="2024-03-01T10:00:00Z", part={"size": 2})
    return b"\x00" + id.to_bytes(4) + path + bytes(order.SerializeToString())


def test_a_message_is_read_by_the_numbers_of_its_fields(tmp_path: Path) -> None:
    """Fields come and go by number; the header says which message of the file it is."""
    kept = shelf(tmp_path, WriterSchema(1, "PROTOBUF", PROTO))
    (row,) = judged(PROTOS, [proto(1)], kept=kept)
    assert (row["id"], row["shop"], row["part"]) == (5, "", {"size": 2})
    first = PROTO.replace("message Line {}\n", "").replace("Line>", "Part>")
    kept = shelf(tmp_path, WriterSchema(2, "PROTOBUF", first))
    assert judged(PROTOS, [proto(2, b"\x00")], kept=kept)[0]["id"] == 5


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("int32 id", "string id"), "field 1 of shop.Order is string, not int64"),
        (("int32 size", "int64 size"), "field 1 of shop.Order.Part is int64, not int32"),
        (("string when", "repeated string when"), "field 2 of shop.Order is repeated, not one string"),
        (("Part part", "Line part"), ""),
        (("Part part", "string part"), "field 4 of shop.Order is string, not shop.Order.Part"),
        (("map<string, Line> lines = 9", "map<string, Line> lines = 3"), "field 3 of shop.Order is map"),
        (("package shop;", "package store;"), "is of store.Order, not of shop.Order"),
        (("message Order", "message Order ("), "cannot be read"),
    ],
)
def test_what_protobuf_would_read_as_something_else_is_refused(
    tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    """Protobuf's own reader cuts off what is too large, and takes the last of several."""
    kept = shelf(tmp_path, WriterSchema(1, "PROTOBUF", PROTO.replace(*change)))
    (row,) = judged(PROTOS, [proto(1)], kept=kept)
    if why:
        assert row[0] == "incompatible schema"
        assert why in row[1]
    else:
        assert parsed(row)["id"] == 5


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (b"\x02\x00", "incompatible schema"),
        (b"\x02\x20", "incompatible schema"),
        (b"\x04\x02\x00", "incompatible schema"),
        (b"\x80", "malformed protobuf"),
        (b"\x01", "malformed protobuf"),
        (b"\xff\xff\xff\xff\xff\xff", "malformed protobuf"),
        (b"\x02\x01", "malformed protobuf"),
    ],
)
def test_another_message_of_the_file_is_refused(tmp_path: Path, path: bytes, reason: str) -> None:
    """A topic may have messages of several types, and a reader has one."""
    kept = shelf(tmp_path, WriterSchema(1, "PROTOBUF", PROTO))
    assert judged(PROTOS, [proto(1, path)], kept=kept)[0][0] == reason


def test_without_kept_schemas_every_number_means_the_definitions_own() -> None:
    """A scenario has no registry."""
    assert judged(AVROS, [avro(77, READER, id=1, price=1.0, shop="a", at="b")])[0]["id"] == 1
    assert judged(PROTOS, [proto(77)])[0]["id"] == 5


def test_the_record_version_knows_only_that_there_is_a_registry() -> None:
    """A connection may be renamed, and a registry may learn: what a definition means is the same."""

    def version(**options: Any) -> str:
        declared = pipeline(COLUMNS, event_time="when", format=Avro(schema=READER, **options))
        return record_version(compile_pipeline(declared).definition)

    assert version() != version(registry="main") == version(registry="other")
    plain = pipeline(JSONS, event_time="when", format="json")
    written = pipeline(JSONS, event_time="when", format=Json())
    assert record_version(plain) == record_version(written)


@pytest.mark.parametrize("options", [{"registry": "../x"}, {"registry": "a", "confluent": True}])
def test_a_registry_is_a_connection_and_has_the_five_bytes(options: Mapping[str, Any]) -> None:
    """Its name is that of a folder, too."""
    with pytest.raises(DefinitionError):
        compile_pipeline(pipeline(COLUMNS, event_time="when", format=Avro(schema=READER, **options)))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ({"type": "bytes", "default": "abcd"}, True),
        ({"type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0}, True),
        ({"type": ["null", "bytes"], "default": None}, False),
        ({"type": "string", "default": "none"}, False),
    ],
)
def test_a_default_that_would_be_read_as_something_else_is_refused(
    field: dict[str, Any], wrong: bool
) -> None:
    """Its text would be taken for what JSON has of such a value, without a word."""
    fields = [{"name": "x", **field}, {"name": "at", "type": "string"}]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    schema = Schema.parse("x STRING, at TIMESTAMP")
    if wrong:
        with pytest.raises(DefinitionError, match="bytes or of a logical type"):
            Avro(text, registry="main").check(schema)
    else:
        Avro(text, registry="main").check(schema)
    Avro(text).check(schema)
