"""Answers as records of their topic: what a function has returned is checked against the columns that were declared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from seamline.asking.questions import AskedRow, Outcome
from seamline.lake.storage.arrow_types import arrow_of
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.time.intervals import format_utc_instant
from seamline.model.types.exact_json import dump_finite_json
from seamline.model.types.schema import Field, TypeKind

SHOWN = 200
"""Letters of a value, and of an error, that are kept."""
PYTHON: Mapping[TypeKind, tuple[type, ...]] = {
    TypeKind.STRING: (str,),
    TypeKind.BOOLEAN: (bool,),
    TypeKind.INT: (int,),
    TypeKind.BIGINT: (int,),
    TypeKind.DOUBLE: (int, float),
    TypeKind.DECIMAL: (int, Decimal, str),
    TypeKind.DATE: (date, str),
    TypeKind.TIMESTAMP: (datetime, str),
    TypeKind.STRUCT: (Mapping,),
    TypeKind.ARRAY: (list, tuple),
    TypeKind.MAP: (Mapping,),
}
"""The classes of values by the kind of their column; those of other kinds cannot be in JSON."""


SIMPLE: Mapping[TypeKind, Callable[[Any], bool]] = {
    TypeKind.STRING: lambda value: bool(value.isascii() or value.encode()),
    TypeKind.BOOLEAN: lambda _value: True,
    TypeKind.INT: lambda value: -(2**31) <= value < 2**31,
    TypeKind.BIGINT: lambda value: -(2**63) <= value < 2**63,
    TypeKind.DOUBLE: math.isfinite,
}
"""Whether a value of the right class can be in a column, by the kinds of columns that most answers have."""


class WrongAnswer(Exception):
    """What was returned is no answer of the declared columns; its text says why."""


def check_answer(found: object, ask: CompiledAsk) -> dict[str, Any]:
    """Return the columns of an answer; WrongAnswer where it lacks the shape that was declared.

    A column that it does not have is NULL.
    """
    if not isinstance(found, Mapping):
        raise WrongAnswer(f"the answer is of type {type(found).__name__}, not a dict")
    known = {field.name: field for field in ask.answer}
    if unknown := [str(name) for name in found if name not in known]:
        raise WrongAnswer(f"the answer has a column {unknown[0][:SHOWN]!r}, which was not declared")
    return {name: check_value(field, found.get(name)) for name, field in known.items()}


def check_value(field: Field, value: Any) -> Any:
    """Return a value as JSON has it; WrongAnswer where it is of another type than its column."""
    if value is None:
        return None
    kind, kinds = field.type.kind, PYTHON.get(field.type.kind, ())
    good = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
    try:
        if good and kind in SIMPLE:
            good = SIMPLE[kind](value)
        elif good and kind is TypeKind.DECIMAL:
            value = Decimal(value)
            pa.scalar(value, arrow_of(field.type))
        elif good and not isinstance(value, str):
            pa.scalar(value, arrow_of(field.type))
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        good = False
    if not good:
        raise WrongAnswer(f"{field.name} is {repr(value)[:SHOWN]}, not {field.type}")
    return value if kind in SIMPLE or kind is TypeKind.DECIMAL else spell_times(value)


def spell_times(value: Any) -> Any:
    """Return a value with its instants and days as texts, whatever it is made of."""
    match value:
        case datetime():
            return format_utc_instant(value if value.tzinfo else value.replace(tzinfo=UTC))
        case date():
            return value.isoformat()
        case Mapping():
            return {str(name): spell_times(each) for name, each in value.items()}
        case list() | tuple():
            return [spell_times(each) for each in value]
    return value


def encode_answer(ask: CompiledAsk, row: AskedRow, outcome: Outcome) -> bytes:
    """Write the record of a row's answer, or of why there is none."""
    told = {"error": outcome.error or None, "tries": outcome.tries, "seconds": round(outcome.seconds, 6)}
    place = {
        "topic_id": row.topic_id,
        "partition": row.partition,
        "offset": row.offset,
        "at": row.at,
        "version": ask.definition.version,
    }
    named = {ask.definition.named(name): value for name, value in {**place, **outcome.values, **told}.items()}
    return dump_finite_json(named, separators=(",", ":")).encode()


def describe_error(error: BaseException) -> str:
    """Say what a call has failed with."""
    if isinstance(error, TimeoutError):
        return "timeout"
    return f"{type(error).__name__}: {error}"[:SHOWN]
