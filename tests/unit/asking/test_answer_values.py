"""Answers as records: what is written the pipeline's own kernel reads, digit by digit, and what it refuses is an error.

A record that the kernel refuses would be the end of its row: it was asked about, and nobody ever reads what came of it.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.asking.payments import ANSWERS, SOURCE, START, compiled, question, row

from seamline.asking.answer_values import (
    SHOWN,
    WrongAnswer,
    check_answer,
    describe_error,
    encode_answer,
)
from seamline.asking.questions import Outcome
from seamline.kernel.epoch_kernel import open_worker_duckdb, validate_source_records
from seamline.kernel.formats import open_readers
from seamline.kernel.kernel_config import configure_validation
from seamline.kernel.validation import REPEATED
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.time.intervals import format_utc_instant

EAST = timezone(timedelta(hours=2))
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@cache
def asking_for(kind: str) -> CompiledPipeline:
    """Compile a question whose answer has one column of a type."""
    return compiled(columns=[f"x {kind}"])


def read(pipeline: CompiledPipeline, record: bytes) -> dict[str, Any] | tuple[str, str]:
    """Read a record as the kernel does: a row, or why there is none."""
    alone = next(each for each in pipeline.by_source if each.source.name == "scored_answers")
    place = {"_topic": ANSWERS, "_topic_id": "id", "_partition": 0, "_offset": 0, "_kafka_timestamp": START}
    raw = pa.Table.from_pylist([{**place, "_value": record, "_epoch": 1}], COORDINATES)
    raw = raw.append_column(REPEATED, pa.array([False]))
    [reader] = open_readers(alone)
    rows, refused = validate_source_records(open_worker_duckdb(), raw, configure_validation(alone), reader)
    if refused.num_rows:
        return (refused["_reason"][0].as_py(), refused["_detail"][0].as_py())
    found: dict[str, Any] = rows.to_pylist()[0]
    return found


def pass_on(kind: str, value: object) -> Any:
    """Return what the kernel reads of an answer; WrongAnswer where it is none."""
    pipeline = asking_for(kind)
    [ask] = pipeline.asks
    found = read(pipeline, encode_answer(ask, row(5), Outcome(check_answer({"x": value}, ask))))
    assert isinstance(found, Mapping), found
    assert found["_event_time"] == START
    return found["scored_x"]


SAME: Mapping[str, tuple[Any, ...]] = {
    "STRING": ("ada", "", "é😀\u2028", "a\0b", 'a"\\', None),
    "BOOLEAN": (True, False),
    "INT": (0, 2**31 - 1, -(2**31)),
    "BIGINT": (2**63 - 1, -(2**63)),
    "DOUBLE": (1.5, -0.0, 5e-324, 1.7976931348623157e308, 0.1),
    "DECIMAL(10,2)": (Decimal("1.20"), Decimal("99999999.99"), Decimal("-0.01")),
    "DECIMAL(38,18)": (Decimal("12345678901234567890.123456789012345678"),),
    "DATE": (date(2026, 1, 5), date.min, date.max),
    "TIMESTAMP": (NOON, datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)),
    "STRUCT<a: INT, b: STRUCT<c: DECIMAL(10,2), d: TIMESTAMP>>": (
        {"a": 1, "b": {"c": Decimal("1.20"), "d": NOON}},
        {"a": None, "b": None},
    ),
    "ARRAY<INT>": ([], [1, None, 2]),
    "ARRAY<DECIMAL(10,2)>": ([Decimal("1.50")],),
    "ARRAY<STRUCT<at: TIMESTAMP, on: DATE>>": ([{"at": NOON, "on": date(2026, 1, 5)}],),
}
"""Values by type that come as they went."""
ALIKE: tuple[tuple[str, Any, Any], ...] = (
    ("DOUBLE", 3, 3.0),
    ("DECIMAL(10,2)", 3, Decimal("3.00")),
    ("DECIMAL(10,2)", "1.2", Decimal("1.20")),
    ("DECIMAL(10,2)", Decimal("1E+3"), Decimal("1000.00")),
    ("DECIMAL(10,2)", Decimal("1.2000000"), Decimal("1.20")),
    ("DECIMAL(38,0)", 10**37, Decimal(10**37)),
    ("DATE", "2026-01-05", date(2026, 1, 5)),
    ("TIMESTAMP", "2026-01-05T12:00:00Z", NOON),
    ("TIMESTAMP", NOON.replace(tzinfo=None), NOON),
    ("TIMESTAMP", datetime(2026, 1, 5, 14, tzinfo=EAST), NOON),
    ("STRUCT<a: INT, b: STRING>", OrderedDict(a=1), {"a": 1, "b": None}),
    ("ARRAY<INT>", (1, 2), [1, 2]),
    ("ARRAY<DOUBLE>", [1], [1.0]),
    ("MAP<STRING, INT>", {"a": 1, "b": None}, [("a", 1), ("b", None)]),
)
"""Values that come as others: type, what is returned, and what a row has."""
WRONG: Mapping[str, tuple[Any, ...]] = {
    "STRING": (5, b"ada", "\ud800", ["ada"]),
    "BOOLEAN": (1, "true"),
    "INT": (True, 1.0, "1", 2**31, Decimal(1)),
    "BIGINT": (2**63, 1.5),
    "DOUBLE": (math.nan, math.inf, -math.inf, "1.5", True, Decimal("1.5"), 10**400),
    "DECIMAL(10,2)": ("1.239", "x", 1.5, True, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), 10**8),
    "DATE": (datetime(2026, 1, 5, 12), "yesterday", "", "2026-02-30", 20260105),
    "TIMESTAMP": ("soon", "", date(2026, 1, 5), 1767614400),
    "STRUCT<a: INT, b: STRING>": (
        [1, "x"],
        "x",
        {"a": "1"},
        {"a": 1.0},
        {"a": True},
        {"b": "\ud800"},
        {"b": b"x"},
    ),
    "STRUCT<a: DOUBLE>": ({"a": math.nan}, {"a": math.inf}),
    "STRUCT<a: DATE>": ({"a": datetime(2026, 1, 5, 12)},),
    "ARRAY<INT>": ("12", {1: 2}, ["1"], [1.0], [True]),
    "ARRAY<DOUBLE>": ([math.nan], [math.inf]),
    "ARRAY<STRING>": ([b"x"],),
    "ARRAY<TIMESTAMP>": ([5],),
    "MAP<STRING, INT>": ({1: 1}, {None: 1}, {b"a": 1}, {"\ud800": 1}, {"a": "1"}),
    "MAP<STRING, DOUBLE>": ({"a": math.nan},),
}
"""Values by type that are no answers."""


def spread(values: Mapping[str, tuple[Any, ...]]) -> list[Any]:
    """List values beside their types, each by its own name."""
    return [
        pytest.param(kind, value, id=f"{kind}-{ascii(value)[:40]}")
        for kind, some in values.items()
        for value in some
    ]


@pytest.mark.parametrize(("kind", "value"), spread(SAME))
def test_what_was_answered_is_what_a_row_has(kind: str, value: object) -> None:
    """To the last digit: sums of answers are audited against sums of the system's own books."""
    found = pass_on(kind, value)
    assert found == value
    assert str(found) == str(value) or not isinstance(value, float | Decimal)


@pytest.mark.parametrize(("kind", "value", "expected"), ALIKE)
def test_an_answer_becomes_its_columns_type(kind: str, value: object, expected: object) -> None:
    found = pass_on(kind, value)
    assert (found, repr(found)) == (expected, repr(expected)) or (kind == "TIMESTAMP" and found == expected)


@pytest.mark.parametrize(("kind", "value"), spread(WRONG))
def test_an_answer_of_another_type_is_an_error(kind: str, value: object) -> None:
    """Of its row alone, and told: the kernel would refuse the record, and nobody would ask again."""
    with pytest.raises(WrongAnswer, match="x is .*, not "):
        pass_on(kind, value)


FEW = settings(max_examples=20)
"""Each example is a query of the kernel."""


@FEW
@given(st.decimals(allow_nan=False, allow_infinity=False, places=18, min_value=-(10**19), max_value=10**19))
def test_any_decimal_keeps_its_digits(value: Decimal) -> None:
    """Readers of JSON elsewhere make doubles of them, which have 17."""
    assert pass_on("DECIMAL(38,18)", value) == value


@FEW
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_double_is_the_same_double(value: float) -> None:
    assert pass_on("DOUBLE", value) == value


@FEW
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_text_is_the_same_text(value: str) -> None:
    assert pass_on("STRING", value) == value


@FEW
@given(st.datetimes(timezones=st.just(UTC)))
def test_any_instant_is_the_same_instant(value: datetime) -> None:
    assert pass_on("TIMESTAMP", value) == value


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "of type NoneType, not a dict"),
        ([("risk", 1)], "of type list, not a dict"),
        ({"risk": 1, "Model": "x"}, "has a column 'Model', which was not declared"),
        ({"RISK": 1}, "has a column 'RISK'"),
        ({"scored_risk": 1}, "has a column 'scored_risk'"),
        ({5: 1}, "has a column '5'"),
        ({"x" * 10_000: 1}, "has a column"),
        ({"risk": "x" * 10_000}, "risk is 'xxx"),
    ],
)
def test_an_answer_of_another_shape_says_why(found: object, why: str) -> None:
    """In a few words, whatever was returned: each error is a row of the source of answers."""
    with pytest.raises(WrongAnswer, match=why) as raised:
        check_answer(found, question())
    assert len(str(raised.value)) < SHOWN + 100


def test_a_column_that_an_answer_lacks_is_null() -> None:
    made = question(columns=["risk INT", "model"])
    assert check_answer({"risk": 3}, made) == {"risk": 3, "model": None}
    assert check_answer({}, made) == {"risk": None, "model": None}


def test_an_answer_that_no_topic_takes_is_an_error() -> None:
    """Kafka refuses records of more than a megabyte: the process would end at this row, again and again."""
    ask, found = question(columns=["model"]), Outcome(error="too large")
    with suppress(WrongAnswer):
        found = Outcome(check_answer({"model": "x" * 2_000_000}, ask))
    assert len(encode_answer(ask, row(7), found)) < 1_000_000


def test_a_record_says_which_row_it_is_about() -> None:
    """The join finds the row by these columns alone, and the views count it at its time."""
    pipeline = compiled(version="v.2")
    [ask] = pipeline.asks
    record = encode_answer(ask, row(7), Outcome({"risk": 3}, tries=2, seconds=0.123456789))
    assert json.loads(record) == {
        "scored_topic_id": "id of paid",
        "scored_partition": 0,
        "scored_offset": 7,
        "scored_at": "2026-01-05T00:00:00Z",
        "scored_version": "v.2",
        "scored_risk": 3,
        "scored_error": None,
        "scored_tries": 2,
        "scored_seconds": 0.123457,
    }
    found = read(pipeline, record)
    assert isinstance(found, Mapping)
    assert (found["_event_time"], found["scored_version"], found["scored_error"]) == (START, "v.2", None)


def test_an_answer_has_its_rows_time_whatever_the_clock_is() -> None:
    """A row was accepted by the clock of who sent it; its answer must not be refused by that of who asks."""
    pipeline = compiled(source=replace(SOURCE, max_future="1 minute"))
    ahead = replace(row(7), at=format_utc_instant(START + timedelta(hours=1)))
    found = read(pipeline, encode_answer(pipeline.asks[0], ahead, Outcome({"risk": 3})))
    assert isinstance(found, Mapping), found
    assert found["_event_time"] == START + timedelta(hours=1)


@pytest.mark.parametrize("error", ["timeout", "é😀", "a\0b", '"'])
def test_a_record_says_why_there_is_no_answer(error: str) -> None:
    pipeline = compiled()
    found = read(pipeline, encode_answer(pipeline.asks[0], row(7), Outcome(error=error, tries=3)))
    assert isinstance(found, Mapping)
    assert (found["scored_error"], found["scored_risk"], found["scored_tries"]) == (error, None, 3)


def test_an_error_may_be_of_any_letters() -> None:
    """An exception names a file of bytes that are no text: half letters, of which no JSON is made."""
    pipeline = compiled()
    error = describe_error(FileNotFoundError("no file \udcff"))
    found = read(pipeline, encode_answer(pipeline.asks[0], row(7), Outcome(error=error)))
    assert isinstance(found, Mapping), found
    assert str(found["scored_error"]).startswith("FileNotFoundError: no file ")


def test_errors_are_told_in_a_few_words() -> None:
    assert describe_error(TimeoutError()) == "timeout"
    assert describe_error(ValueError("no such user")) == "ValueError: no such user"
    assert describe_error(ValueError()) == "ValueError: "
    assert len(describe_error(ValueError("x" * 10_000))) == SHOWN
