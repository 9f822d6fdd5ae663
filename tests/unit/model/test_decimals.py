"""Money is exact: a number becomes a DECIMAL by its own digits, or its record is refused."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Context, Decimal, Inexact, Rounded, localcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastavro import schemaless_writer
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit import records
from tests.unit.shop import DEFINITION, Sale, Shop, sales_pipeline

from seamline import Avro, Csv, Protobuf, Text, Tumbling, View, count
from seamline.cli.doctor import check_decimals as digits_of
from seamline.kernel.formats import open_reader
from seamline.kernel.formats.decimals import decimal_sql as spelled
from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.states import present_states
from seamline.lake.log.epoch_log import known_epochs
from seamline.model.compile.compiled_pipeline import compile_pipeline, rounded_record_version
from seamline.model.compile.evolution import is_compatible_version, require_order
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.sources import EXACT, ROUNDED
from seamline.model.errors import BadRange
from seamline.model.measures import Maximum, Sum
from seamline.model.measures.values import normalize_stored_value
from seamline.model.protocol.epoch import Epoch
from seamline.model.types.decimals import rescale_decimal
from seamline.model.types.exact_json import dump_exact_json, load_exact_json
from seamline.model.types.schema import Field, SqlType, build_decimal_type
from seamline.plan.batch.reprocessing_plan import Verdict, list_rounded_epochs
from seamline.serve.answer_request import as_json, key_literal_sql
from seamline.serve.explain import parse_key_values
from seamline.serve.pipeline_status import format_reprocessing
from seamline.serve.query import format_cell, rows_written
from seamline.web import charts, render

AT = '"at": "2024-03-01T00:00:00Z"'
NESTED = (
    "at TIMESTAMP, s STRUCT<p: DECIMAL(38,18) NOT NULL, n: INT, x: DOUBLE>, a ARRAY<DECIMAL(38,18)>, "
    "m MAP<STRING, DECIMAL(38,18)>, deep ARRAY<STRUCT<by: MAP<STRING, ARRAY<DECIMAL(38,18)>>, t: STRING>>"
)
WIDE = Context(prec=500, traps=[])
digits = st.text("0123456789", max_size=42)
numbers = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.just("") | digits.map(lambda text: f".{text}"),
    st.just("") | st.integers(-50, 50).map(lambda by: f"e{by}") | st.sampled_from(["E+3", "e99999999999"]),
)
types = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: build_decimal_type(p, s)))


def meant(text: str, type: SqlType) -> Decimal | None:
    """Say what a text means in a type: Python's decimal is the judge."""
    found = WIDE.create_decimal(text)
    kept = found.quantize(Decimal(1).scaleb(-type.scale), context=WIDE)
    fits = kept == found and abs(kept) < Decimal(10) ** (type.precision - type.scale)
    return kept if fits else None


@settings(max_examples=25)
@given(st.lists(numbers, min_size=1, max_size=50), types)
def test_a_text_is_the_decimal_that_python_reads_or_none(given: list[str], type: SqlType) -> None:
    """No digit is rounded away, whatever the exponent; DuckDB's own cast does so."""
    texts = pa.table({"t": given})
    found = query_tables(f"SELECT {spelled(type, 't')} AS d FROM texts", texts=texts)["d"].to_pylist()
    assert found == [meant(each, type) for each in given]


KEPT = {
    "1234567890123456.78": "1234567890123456.78",
    "0.123456789012345678": "0.123456789012345678",
    "12345678901234567.0": "12345678901234567",
    "0.0000001": "0.0000001",
    "1e-7": "0.0000001",
    "1.5E3": "1500",
    "-0": "0",
    "-0.0": "0",
    "12345678901234567890.123456789012345678": "12345678901234567890.123456789012345678",
}
LOST = ["0.1234567890123456789", "1e-19", "123456789012345678901", "1E400", "1e400000", "true", "[1]", "NaN"]


def test_what_a_decimal_is_costs_a_query_little_to_plan() -> None:
    """Each epoch plans it anew, once for each column: spelled out eight times over it took 30 ms."""
    assert len(spelled(build_decimal_type(38, 18), "d")) < 1200


def test_many_decimals_of_a_type_are_spelled_once() -> None:
    """400 columns took 8 seconds of CPU to plan, in each batch; few are read as ever."""
    made = compile_pipeline(
        records.pipeline("at TIMESTAMP, " + ", ".join(f"c{at} DECIMAL(9,3)" for at in range(400)))
    )
    steps = "".join(open_reader(made).steps())
    values = "".join(
        open_reader(made).value_sql(field, at) for at, field in enumerate(made.record.parsed.fields, 1)
    )
    assert (steps + values).count("DECIMAL(9,3)") == spelled(build_decimal_type(9, 3), "d").count(
        "DECIMAL(9,3)"
    )


@pytest.mark.parametrize("number", [*KEPT, *LOST])
def test_many_decimals_of_a_type_are_read_as_few_are(number: str) -> None:
    """Columns and parts, of two types, beside one of a third."""
    names = [f"c{at}" for at in range(20)]
    columns = ", ".join(f"{name} DECIMAL(38,18)" for name in names)
    parts = ", ".join(f"{name}: DECIMAL(38,9)" for name in names)
    schema = f"at TIMESTAMP, {columns}, s STRUCT<{parts}, one: DECIMAL(38,18), t: STRING>, last DECIMAL(10,2)"
    good = ", ".join(f'"{name}": {at}.5' for at, name in enumerate(names) if at != 7)
    plain = records.pipeline(
        "at TIMESTAMP, c7 DECIMAL(38,18), s STRUCT<c7: DECIMAL(38,9), one: DECIMAL(38,18)>"
    )
    for c7, part, one in ((number, "1", "1"), ("1", number, "1"), ("1", "1", number)):
        own = f'{{{AT}, {good}, "c7": {c7}, "s": {{{good}, "c7": {part}, "one": {one}, "t": "1"}}, "last": "0.5"}}'
        [found] = records.judged(records.pipeline(schema), [own.encode()])
        [meant] = records.judged(plain, [own.encode()])
        if not isinstance(meant, dict):
            assert found[0] == meant[0]
            continue
        assert (found["c7"], found["s"]["c7"], found["s"]["one"]) == (meant["c7"], *meant["s"].values())
        assert (found["c3"], found["s"]["c19"], found["last"]) == (
            Decimal("3.5"),
            Decimal("19.5"),
            Decimal("0.5"),
        )


@pytest.mark.parametrize("quoted", [False, True], ids=["number", "text"])
def test_numbers_of_json_keep_their_digits(quoted: bool) -> None:
    """They went through a double, which keeps 17; a text was no way around it."""
    made = records.pipeline("at TIMESTAMP, d DECIMAL(38,18) NOT NULL")
    texts = [*KEPT, *LOST[:5]] if quoted else [*KEPT, *LOST]
    found = records.judged(
        made, [f'{{{AT}, "d": {json.dumps(each) if quoted else each}}}'.encode() for each in texts]
    )
    for text, became in zip(texts, found, strict=True):
        if text in KEPT:
            assert became["d"] == Decimal(KEPT[text]), text
        else:
            assert became[0] == "mistyped field d" and became[1].endswith(f"{text} is no DECIMAL(38,18)")


@pytest.mark.parametrize(
    "text", ["", " ", " 1", "1 ", "1,5", "1_000", "0x10", ".", "-", "1e", "e1", "\u0661"]
)
def test_a_text_that_spells_no_number_is_refused(text: str) -> None:
    """A blank is no zero, and no mistake of a sender's is guessed at."""
    made = records.pipeline("at TIMESTAMP, d DECIMAL(10,2)")
    [found] = records.judged(made, [f'{{{AT}, "d": {json.dumps(text)}}}'.encode()])
    assert found[0] == "mistyped field d"


@pytest.mark.parametrize("number", list(KEPT))
def test_parts_keep_their_digits(number: str) -> None:
    """In a STRUCT, an ARRAY, a MAP, and each in another; what stands beside them is read as ever."""
    text = (
        f'{{{AT}, "s": {{"n": 7, "p": {number}, "x": 0.1234567890123456789}}, "a": [{number}, null, "{number}"], '
        f'"m": {{"b": {number}, "a\\"~/é": "{number}", "n": null}}, '
        f'"deep": [{{"by": {{"k": [{number}]}}, "t": "{number}"}}]}}'
    )
    [found] = records.judged(records.pipeline(NESTED), [text.encode()])
    value = Decimal(KEPT[number])
    assert found["s"] == {"p": value, "n": 7, "x": 0.12345678901234568}
    assert found["a"] == [value, None, value]
    assert dict(found["m"]) == {"b": value, 'a"~/é': value, "n": None}
    [deep] = found["deep"]
    assert (dict(deep["by"]), deep["t"]) == ({"k": [value]}, number)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('"s": {"n": 1}', "s"),
        ('"s": {"p": null}', "s"),
        ('"s": {"p": 0.1234567890123456789}', "s"),
        ('"s": {"p": 1, "n": "1"}', "s"),
        ('"s": [1]', "s"),
        ('"s": 1.5', "s"),
        ('"a": [1e-19]', "a"),
        ('"a": {"x": 1}', "a"),
        ('"m": {"x": true}', "m"),
        ('"m": [1]', "m"),
        ('"m": {"x": 1, "x": 2}', "m"),
        ('"deep": [{"by": {"k": ["x"]}}]', "deep"),
    ],
)
def test_a_part_that_is_no_decimal_refuses_the_record(text: str, column: str) -> None:
    """A name twice too: which of the two is meant nobody knows, and it is money."""
    [found] = records.judged(records.pipeline(NESTED), [f"{{{AT}, {text}}}".encode()])
    assert found[0] == f"mistyped field {column}"


def test_parts_that_are_not_there_are_null() -> None:
    """As without decimals."""
    found = records.judged(
        records.pipeline(NESTED), [f"{{{AT}}}".encode(), f'{{{AT}, "s": null, "a": [], "m": {{}}}}'.encode()]
    )
    assert [found[0][name] for name in ("s", "a", "m", "deep")] == [None] * 4
    assert [found[1][name] for name in ("s", "a", "m", "deep")] == [None, [], [], None]


@pytest.mark.parametrize(
    "format",
    [Csv(), Text(r"(?P<at>[^,]+),(?P<d>.*)")],
    ids=["csv", "text"],
)
def test_other_texts_keep_digits_and_take_exponents(format: Any) -> None:
    """One meaning of a number in every format that is text."""
    made = records.pipeline("at TIMESTAMP, d DECIMAL(38,18)", format=format)
    found = records.judged(
        made, [f"2024-03-01,{each}".encode() for each in [*KEPT, "+.5", "5.", "1e-19", " 1"]]
    )
    values = [each["d"] if isinstance(each, dict) else each[0] for each in found]
    refused = ["mistyped field d"] * 2
    assert values == [*map(Decimal, KEPT.values()), Decimal("0.5"), Decimal(5), *refused]


def test_only_decimals_make_another_record_version() -> None:
    """Tables of others must not be built again; those of these must."""
    for schema, changes, moved in (
        ("at TIMESTAMP, n INT, x DOUBLE", {}, False),
        ("at TIMESTAMP, d DECIMAL(10,2)", {}, True),
        ("at TIMESTAMP, d DECIMAL(10,2)", {"format": "csv"}, True),
        ("at TIMESTAMP, s STRUCT<a: ARRAY<DECIMAL(10,2)>>", {}, True),
        ("at TIMESTAMP, d DECIMAL(10,2)", {"format": AVRO_FORMAT}, True),
        ("at TIMESTAMP, d STRING", {"format": AVRO_FORMAT}, False),
        ("at TIMESTAMP, d DECIMAL(10,2)", {"format": PROTO}, True),
        ("at TIMESTAMP, x DOUBLE", {"format": PROTO}, False),
    ):
        declared = records.pipeline(schema, **changes)
        before = replace(declared, source=replace(declared.source, decimals=ROUNDED))
        made, old = compile_pipeline(declared), compile_pipeline(before)
        assert (made.record_version != old.record_version) == moved
        assert (made.views[0].fingerprint != old.views[0].fingerprint) == moved
        between = compile_pipeline(replace(declared, source=replace(declared.source, decimals=EXACT)))
        textual = made.format.textual
        assert between.record_version == (made if textual else old).record_version


def test_a_definition_stored_before_is_what_it_was() -> None:
    """What is served is found again, and read as it was, until the mended version takes its place."""
    declared = records.pipeline("at TIMESTAMP, d DECIMAL(10,2)")
    assert from_json(to_json(declared)) == declared
    stored = json.loads(to_json(declared))
    [source] = [
        each for each in stored["of"].values() if isinstance(each, dict) and each["is"] == "KafkaSource"
    ]
    del source["of"]["decimals"]
    old = compile_pipeline(from_json(json.dumps(stored)))
    assert (old.exact, old.definition.source.decimals) == (False, ROUNDED)
    [found] = records.judged(old.definition, [f'{{{AT}, "d": 1e-7}}'.encode()])
    assert found == ["mistyped field d", "DOUBLE 1e-7 is no DECIMAL(10,2)"]


def test_added_decimals_say_by_themselves_how_they_are_read() -> None:
    """The columns of before keep their version; rows that have the added ones are read anew."""
    plain = records.pipeline("at TIMESTAMP, n INT")
    wider = replace(plain, source=replace(plain.source, added=["tip DECIMAL(8,2)"]))
    before = replace(wider, source=replace(wider.source, decimals=ROUNDED))
    none, new, old = (compile_pipeline(each).record_version for each in (plain, wider, before))
    assert (
        is_compatible_version(none, new)
        and is_compatible_version(none, old)
        and not is_compatible_version(old, new)
    )
    assert rounded_record_version(compile_pipeline(wider)) == old
    epoch = Epoch(1, 1, records.ARRIVED, old, accepted={"2024-03-01T00:00:00Z": 1})
    require_order(new, [epoch])
    assert list_rounded_epochs([epoch], new, old, ()) == [epoch]
    assert (
        list_rounded_epochs([epoch], new, old, {1})
        == list_rounded_epochs([replace(epoch, record_version=new)], new, old, ())
        == []
    )


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False)))
def test_json_has_every_digit(given: list[Decimal]) -> None:
    """The numbers of answers and of statistics; a text that looks like ours stays a text."""
    found = load_exact_json(dump_exact_json([*given, "1", {"a": given}]))
    assert found == [*given, "1", {"a": given}]


def test_answers_are_written_exactly() -> None:
    """By the command line and over HTTP: a double shows 17 digits, and they are not the ones that were sent."""
    value = Decimal("12345678901234567890.123456789012345678")
    rows = pa.table(
        {"total": pa.array([value], pa.decimal128(38, 18)), "n": pa.array([7], pa.decimal128(38, 0))}
    )
    for format in ("json", "csv", "table"):
        out = StringIO()
        rows_written(rows, format, out)
        assert str(value) in out.getvalue()
    assert as_json(rows.to_pylist()) == f'[{{"total": {value}, "n": 7}}]'
    assert as_json({"a": [value, float("nan")]}) == f'{{"a": [{value}, null]}}'


@pytest.mark.parametrize(
    ("text", "spelled"), [("1e-1", "0.10"), ("12345678901234567.89", "12345678901234567.89"), ("1.005", None)]
)
def test_a_filter_of_an_answer_is_exact(text: str, spelled: str | None) -> None:
    """Rounded it would find the row of another key."""
    key = Field("k", build_decimal_type(19, 2))
    if spelled is None:
        with pytest.raises(BadRange, match="is not a valid DECIMAL"):
            key_literal_sql(key, text)
    else:
        assert key_literal_sql(key, text) == f"CAST('{spelled}' AS DECIMAL(19,2))"


def test_totals_in_plain_python_keep_their_digits() -> None:
    """Its own arithmetic rounds to 28, and the oracle of the engines would be wrong."""
    a, b = Decimal("99999999999999999999.000000000000000001"), Decimal("0.100000000000000001")
    assert Sum("x").fold([a, b]) == Decimal("99999999999999999999.100000000000000002")
    assert normalize_stored_value(a, build_decimal_type(38, 18)) == a


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "at", "type": "string"},
        {"name": "d", "type": ["null", "string", "bytes", "long", "double"]},
        {"name": "s", "default": None, "type": ["null", {"type": "record", "name": "S", "fields": [
            {"name": "a", "type": {"type": "array", "items": ["string", "bytes", "double"]}},
            {"name": "m", "type": {"type": "map", "values": ["string", "bytes", "double"]}},
        ]}]},
    ],
}  # fmt: skip
AVRO_FORMAT = Avro(schema=json.dumps(AVRO))
MANY = "at TIMESTAMP, d DECIMAL(38,18), s STRUCT<a: ARRAY<DECIMAL(38,18)>, m: MAP<STRING, DECIMAL(38,18)>>"


def avro(d: Any, parts: Any = None) -> bytes:
    """Write a record whose number is a text, bytes, or a number of a kind."""
    out = io.BytesIO()
    schemaless_writer(out, AVRO, {"at": "2024-03-01T00:00:00Z", "d": d, "s": parts})
    return out.getvalue()


def described() -> Protobuf:
    """Describe a message whose numbers are texts, bytes, doubles and whole."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="money.proto", package="money", syntax="proto3")
    message = file.message_type.add(name="Money")
    types = {
        "at": kinds.TYPE_STRING,
        "d": kinds.TYPE_STRING,
        "x": kinds.TYPE_DOUBLE,
        "f": kinds.TYPE_FLOAT,
        "n": kinds.TYPE_UINT64,
        "b": kinds.TYPE_BYTES,
        "a": kinds.TYPE_STRING,
    }
    for number, (name, type) in enumerate(types.items(), 1):
        label = kinds.LABEL_REPEATED if name == "a" else kinds.LABEL_OPTIONAL
        message.field.add(name=name, number=number, type=type, label=label)
    found = descriptor_pb2.FileDescriptorSet(file=[file])
    return Protobuf(base64.b64encode(found.SerializeToString()).decode(), "money.Money")


PROTO = described()


def proto(**fields: Any) -> bytes:
    """Write a message."""
    made: bytes = PROTO.type(at="2024-03-01T00:00:00Z", **fields).SerializeToString()
    return made


TEXTS = {**KEPT, "+.5": "0.5", "5.": "5", "-0.10000000000000000000": "-0.1"}
NO_TEXTS = ["1e-19", "0.0000000000000000001", "100000000000000000000", "1e400000", "", "x", " 1", "NaN"]


@pytest.mark.parametrize("format", [AVRO_FORMAT, PROTO], ids=["avro", "protobuf"])
def test_texts_of_binary_formats_are_read_as_those_of_json(format: Any) -> None:
    """One meaning of a text in every format: exponents taken, digits kept, nothing rounded."""
    made = records.pipeline("at TIMESTAMP, d DECIMAL(38,18)", format=format)
    written = avro if isinstance(format, Avro) else lambda text: proto(d=text)
    found = records.judged(made, [written(text) for text in [*TEXTS, *NO_TEXTS]])
    assert [each["d"] for each in found[: len(TEXTS)]] == [*map(Decimal, TEXTS.values())]
    assert found[len(TEXTS) :] == [
        ["mistyped field d", f"VARCHAR {text} is no DECIMAL(38,18)"] for text in NO_TEXTS
    ]


DOUBLES = {
    0.1: "0.1",
    1e-7: "0.0000001",
    1e16: "10000000000000000",
    -2.5e19: "-25000000000000000000",
    5.0: "5",
}
NO_DOUBLES = [0.1 + 0.2, 1234567890123456.78, 1e20, 1e-19, float("nan"), float("inf")]


@pytest.mark.parametrize("format", [AVRO_FORMAT, PROTO], ids=["avro", "protobuf"])
def test_a_double_is_the_decimal_that_it_keeps_or_none(format: Any) -> None:
    """...456.78 was sent as ...456.75 and stored as ...456.80; which digits were meant nobody knows."""
    column = "d" if isinstance(format, Avro) else "x"
    made = records.pipeline(f"at TIMESTAMP, {column} DECIMAL(38,18)", format=format)
    written = avro if column == "d" else lambda number: proto(x=number)
    found = records.judged(made, [written(number) for number in [*DOUBLES, *NO_DOUBLES]])
    assert [each[column] for each in found[: len(DOUBLES)]] == [*map(Decimal, DOUBLES.values())]
    assert [each[0] for each in found[len(DOUBLES) :]] == [f"mistyped field {column}"] * len(NO_DOUBLES)


def test_other_numbers_of_protobuf_are_exact() -> None:
    """A float is 0.10000000149011612, 2**64 - 1 is whole, bytes are no number though their base64 is digits."""
    made = records.pipeline(
        "at TIMESTAMP, f DECIMAL(38,18), n DECIMAL(38,18), a ARRAY<DECIMAL(38,18)>, b DECIMAL(38,18)",
        format=PROTO,
    )
    texts = ["1e-7", "1234567890123456.78"]
    digits = base64.b64decode("12345678")
    found = records.judged(
        made, [proto(f=0.25, n=2**64 - 1, a=texts), proto(f=0.1), proto(a=["x"]), proto(b=digits)]
    )
    assert [each[0] for each in found] == [
        "mistyped field b",
        "mistyped field f",
        "mistyped field a",
        "mistyped field b",
    ]
    made = records.pipeline(
        "at TIMESTAMP, f DECIMAL(38,18), n DECIMAL(38,18), a ARRAY<DECIMAL(38,18)>", format=PROTO
    )
    [found] = records.judged(made, [proto(f=0.25, n=2**64 - 1, a=texts)])
    assert (found["f"], found["n"]) == (Decimal("0.25"), Decimal(2**64 - 1))
    assert found["a"] == [Decimal("0.0000001"), Decimal("1234567890123456.78")]


def test_parts_of_avro_are_exact() -> None:
    """In a STRUCT, an ARRAY and a MAP; bytes are no number there either."""
    digits = base64.b64decode("12345678")
    parts = [
        {"a": ["1e-7", 0.1], "m": {"k": "1234567890123456.78"}},
        {"a": [digits], "m": {}},
        {"a": [], "m": {"k": digits}},
        {"a": [0.1 + 0.2], "m": {}},
        {"a": [], "m": {"k": "1e-19"}},
    ]
    made = records.pipeline(MANY, format=AVRO_FORMAT)
    found = records.judged(made, [*(avro("1", each) for each in parts), avro(digits), avro(2**62)])
    assert found[0]["s"]["a"] == [Decimal("0.0000001"), Decimal("0.1")]
    assert dict(found[0]["s"]["m"]) == {"k": Decimal("1234567890123456.78")}
    assert [each[0] for each in found[1:6]] == [*["mistyped field s"] * 4, "mistyped field d"]
    assert found[6]["d"] == Decimal(2**62)


@pytest.mark.parametrize("said", [EXACT, ROUNDED])
def test_a_binary_format_stored_before_is_what_it_was(said: str) -> None:
    """What is served runs on as it was read, exponents refused, until the mended version takes its place."""
    made = records.pipeline("at TIMESTAMP, d DECIMAL(38,18)", format=AVRO_FORMAT)
    old = replace(made, source=replace(made.source, decimals=said))
    assert not compile_pipeline(old).exact
    assert compile_pipeline(old).record_version == rounded_record_version(compile_pipeline(made))
    assert compile_pipeline(old).record_version != compile_pipeline(made).record_version
    [one, other] = records.judged(old, [avro("1e3"), avro("1.5")])
    assert (one, other["d"]) == (["mistyped field d", "VARCHAR 1e3 is no DECIMAL(38,18)"], Decimal("1.5"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12345678901234567.01", "12345678901234567.010000000000000000"),
        ("1e-18", "0.000000000000000001"),
        ("+5", "5.000000000000000000"),
        ("1e20", None),
        ("0.0000000000000000001", None),
        ("nan", None),
        ("", None),
    ],
)
def test_a_number_is_explained_by_a_key_with_all_digits(text: str, value: str | None) -> None:
    """A key that went through a double would be another key, of which there is no row."""
    keyed = View("v", keys=["d"], window=Tumbling("1 day"), measures={"n": count()})
    view = compile_pipeline(records.pipeline("at TIMESTAMP, d DECIMAL(38,18)", views=[keyed])).views[0]
    if value is None:
        with pytest.raises(BadRange, match=r"is not a valid DECIMAL\(38,18\)"):
            parse_key_values(view, {"d": text})
        return
    read = parse_key_values(view, {"d": text})
    assert read == {"d": Decimal(value)}
    assert format_cell(read["d"]) == value


def test_epochs_that_lost_digits_are_named_until_they_are_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has decimals in a text learns from doctor and status what mending the past takes."""
    text = DEFINITION.replace("amount BIGINT", "amount DECIMAL(18,2)")
    compiled = sales_pipeline(text=text)
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path))
    assert [*digits_of("shop", compiled)] == []
    before = replace(compiled, record_version=rounded_record_version(compiled))
    shop = Shop(tmp_path, compiled=before)
    shop.epoch([Sale(0)])
    shop.epoch([Sale(1)])
    [said] = digits_of("shop", compiled)
    assert str(said).startswith("LACKS decimals of shop: 2 epochs were read through a double.")
    assert "seamline quarantine replay shop, then seamline flip" in str(said)
    epochs = known_epochs(shop.layout)
    lines = [*format_reprocessing(compiled, epochs, {})]
    assert "2 epochs were read when DECIMAL columns went through a double" in lines[-1]
    assert "`seamline quarantine replay shop` reads their digits again" in lines[-1]
    shop.compiled = compiled
    shop.epoch([Sale(2)])
    verdicts = {each.number: Verdict(each.number, "") for each in epochs}
    assert not [
        line
        for line in format_reprocessing(compiled, known_epochs(shop.layout), verdicts)
        if "double" in line
    ]


def test_what_a_chart_writes_has_all_digits() -> None:
    """A point's place on a screen may be a double, the number beside it may not."""
    row = {"window_start": datetime(2024, 3, 1, tzinfo=UTC), "speed_part": 0, "_explain": "", "_told": ""}
    value = Decimal("1234567890123456.78")
    drawn = charts.draw_measure([("a", [row | {"total": value}, row | {"total": None}])], "total", None)
    [trace] = drawn["data"]
    assert (trace["hovertext"], trace["hoverinfo"]) == (["1,234,567,890,123,456.78", ""], "x+text+name")
    assert render.format_table_cell(value) == trace["hovertext"][0]
    [trace] = charts.draw_measure([("a", [row | {"n": 1}])], "n", None)["data"]
    assert "hovertext" not in trace


def test_a_product_has_room_for_all_of_its_digits(tmp_path: Path) -> None:
    """DuckDB keeps it to 18, and failed: the record was refused, or its view set aside for good."""
    made = records.pipeline(
        "at TIMESTAMP, d DECIMAL(18,2), e DECIMAL(12,6)",
        select={"due": "d * e"},
        views=[
            View(
                "v",
                keys=[],
                window=Tumbling("1 day"),
                measures={"total": Sum("d * 3"), "most": Maximum("e * d")},
            )
        ],
    )
    text = f'{{{AT}, "d": 9999999999999999.99, "e": 999999.999999}}'
    compiled = compile_pipeline(made)
    result = records.kernel_run(tmp_path, compiled, records.batch([text.encode()]))
    [row] = records.read(tmp_path / "master", result.master)
    product = WIDE.multiply(Decimal("9999999999999999.99"), Decimal("999999.999999"))
    assert (row["due"], result.failed) == (product, {})
    view = compiled.views[0]
    [answered] = present_states(view, result.states[view.id][0], []).to_pylist()
    assert (answered["total"], answered["most"]) == (Decimal("29999999999999999.97"), product)


@pytest.mark.parametrize("context", [Context(prec=28), Context(prec=3, traps=[Rounded, Inexact])])
@pytest.mark.parametrize(("digits", "precision"), [(10**38 - 1, 38), (10**30 - 1, 30), (-(10**38) + 1, 38)])
def test_a_number_of_all_digits_fits_whatever_the_thread_rounds_to(context, digits, precision):
    """Values of 29 digits and more were compared after they had been rounded up."""
    with localcontext(context):
        assert rescale_decimal(Decimal(digits), precision, 0) == Decimal(digits)
        with pytest.raises(ValueError, match="does not fit"):
            rescale_decimal(Decimal(digits), precision - 1, 0)
