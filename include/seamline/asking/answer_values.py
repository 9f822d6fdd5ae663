"""Answers as records of their topic: what a function has returned is checked against the columns that were declared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from seamline.asking.questions import AskedRow, Outcome
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.time.intervals import format_utc_instant
from seamline.model.types.exact_json import dump_finite_json
from seamline.model.types.schema import Field, SqlType, TypeKind

SHOWN = 200
"""Letters of a value, and of an error, that are kept."""
MOST_BYTES = 900_000
"""Of the JSON of an answer: Kafka takes records of a megabyte."""
SIMPLE: Mapping[TypeKind, tuple[tuple[type, ...], Callable[[Any], bool]]] = {
    TypeKind.STRING: ((str,), lambda value: bool(value.isascii() or value.encode())),
    TypeKind.BOOLEAN: ((bool,), lambda _value: True),
    TypeKind.INT: ((int,), lambda value: -(2**31) <= value < 2**31),
    TypeKind.BIGINT: ((int,), lambda value: -(2**63) <= value < 2**63),
    TypeKind.DOUBLE: ((int, float), math.isfinite),
}
"""The classes of values by the kind of their column, and which of them it can have."""


TEXT = SqlType(TypeKind.STRING)


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
    made = {name: check_value(field, found.get(name)) for name, field in known.items()}
    large = [name for name, value in made.items() if isinstance(value, str | list | dict)]
    if large and (count := len(dump_finite_json(made))) > MOST_BYTES:
        raise WrongAnswer(f"the answer is too large: {count:,} bytes of JSON, of {MOST_BYTES:,} at most")
    return made


def check_value(field: Field, value: Any) -> Any:
    """Return a value as JSON has it; WrongAnswer where it is of another type than its column."""
    try:
        return spell(value, field.type)
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        said = repr(value)[:SHOWN]
        raise WrongAnswer(f"{field.name} is {said}, not {field.type}") from None


def spell(value: Any, type: SqlType) -> Any:
    """Return a value of a type as JSON has it; ValueError, or what conversions raise, where it is of none."""
    if value is None:
        return None
    if type.kind in SIMPLE:
        kinds, fits = SIMPLE[type.kind]
        require(isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds))
        require(fits(value))
        return value
    match type.kind:
        case TypeKind.DECIMAL:
            require(isinstance(value, int | Decimal | str) and not isinstance(value, bool))
            pa.scalar(Decimal(value), pa.decimal128(type.precision, type.scale))
            return Decimal(value)
        case TypeKind.DATE:
            day = date.fromisoformat(value) if isinstance(value, str) else value
            require(isinstance(day, date) and not isinstance(day, datetime))
            return day.isoformat()
        case TypeKind.TIMESTAMP:
            return spell_instant(datetime.fromisoformat(value) if isinstance(value, str) else value)
        case TypeKind.ARRAY:
            assert type.element is not None
            require(isinstance(value, list | tuple))
            return [spell(each, type.element) for each in value]
        case TypeKind.MAP:
            assert type.element is not None
            require(isinstance(value, Mapping) and all(spell(name, TEXT) or name == "" for name in value))
            return {name: spell(each, type.element) for name, each in value.items()}
        case TypeKind.STRUCT:
            types = {field.name: field.type for field in type.fields}
            require(isinstance(value, Mapping) and value.keys() <= types.keys())
            return {name: spell(each, types[name]) for name, each in value.items()}
    raise ValueError(type.kind)


def spell_instant(moment: datetime) -> str:
    """Write an instant, in UTC where it has no zone; ValueError, or OverflowError for one that is none in UTC."""
    require(isinstance(moment, datetime))
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return format_utc_instant(moment)


def require(true: bool) -> None:
    """Raise ValueError for what is not so."""
    if not true:
        raise ValueError


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
    # Names of files may have bytes that are no letters, of which no JSON is made.
    return f"{type(error).__name__}: {error}"[:SHOWN].encode(errors="replace").decode()
