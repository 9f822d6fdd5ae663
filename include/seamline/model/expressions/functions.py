"""The functions an expression may call, by Spark's names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from seamline.model.expressions import parts
from seamline.model.expressions.arithmetic import compile_abs, compile_arithmetic, compile_try_arithmetic
from seamline.model.expressions.casts import compile_cast, saturated_integer_sql, utc_timestamp_sql
from seamline.model.expressions.coercion import coerce_term
from seamline.model.expressions.conditions import (
    coerce_choices,
    compile_coalesce,
    compile_not,
    is_null,
    null_if,
)
from seamline.model.expressions.refused import REFUSED
from seamline.model.expressions.terms import (
    INTEGERS,
    Term,
    any_nullable,
    build_expression_error,
    columns_of,
    refuse_null_constant,
    require_infallible_term,
)
from seamline.model.types.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    TypeKind,
    build_decimal_type,
)

Function = Callable[[Sequence[Term]], Term]
FIELDS = {
    "year": "year({})",
    "quarter": "quarter({})",
    "month": "month({})",
    "day": "day({})",
    "dayofmonth": "day({})",
    "dayofyear": "dayofyear({})",
    "weekofyear": "week({})",
    "dayofweek": "dayofweek({}) + 1",
    "weekday": "isodow({}) - 1",
    "hour": "hour({})",
    "minute": "minute({})",
    "second": "second({})",
}
TRIED = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/"}
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def compile_function_call(name: str, arguments: Sequence[Term]) -> Term:
    """Compile a function call; unknown and refused functions say what to write instead."""
    lowered = name.lower()
    if lowered not in FUNCTIONS:
        raise build_expression_error(
            f"Function {name} is not supported.", REFUSED.get(lowered) or suggest_functions(lowered)
        )
    least, most, make = FUNCTIONS[lowered]
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise build_expression_error(
            f"{name} takes {wanted} arguments, not {len(arguments)}.", "see docs/expressions.md."
        )
    return make(arguments)


def suggest_functions(name: str) -> str:
    """Say which known functions are close."""
    close = difflib.get_close_matches(name, FUNCTIONS, n=3)
    return f"did you mean {' or '.join(close)}?" if close else "docs/expressions.md lists the functions."


def require_argument_type(term: Term, wanted: SqlType, function: str) -> Term:
    """Require an argument's type."""
    if refuse_null_constant(term).type == wanted or (wanted == TIMESTAMP and term.type == DATE):
        return coerce_term(term, wanted)
    raise build_expression_error(
        f"{function} takes {wanted}; {term.spark} is {term.type}.", f"cast it to {wanted} if you can."
    )


def compile_strict_call(name: str, type_: SqlType, arguments: Sequence[Term], duckdb: str) -> Term:
    """Make the call of a function that is NULL for any NULL; only its first argument may fail."""
    for argument in arguments[1:]:
        require_infallible_term(argument, name)
    return Term(
        type_,
        f"{name}({', '.join(argument.spark for argument in arguments)})",
        duckdb,
        any_nullable(*arguments),
        columns_of(*arguments),
        arguments[0].guards,
    )


def field_of(name: str) -> Function:
    """Make year, hour and their kin: an INT read from a day or an instant, in UTC."""

    def make(arguments: Sequence[Term]) -> Term:
        moment = require_argument_type(arguments[0], TIMESTAMP, name)
        return compile_strict_call(
            name, INT, arguments, f"CAST({FIELDS[name].format(utc_timestamp_sql(moment))} AS INTEGER)"
        )

    return make


def define_text_function(name: str, duckdb: str, type_: SqlType) -> Function:
    """Make a function of texts; ``duckdb`` has a place for each."""

    def make(arguments: Sequence[Term]) -> Term:
        texts = [require_argument_type(argument, STRING, name).duckdb for argument in arguments]
        return compile_strict_call(name, type_, arguments, duckdb.format(*texts))

    return make


def date_trunc(arguments: Sequence[Term]) -> Term:
    """Cut an instant down to a unit of UTC; weeks start on Monday."""
    unit = arguments[0].literal
    if not isinstance(unit, str) or unit.lower() not in UNITS:
        raise build_expression_error(
            f"date_trunc does not support {arguments[0].spark}.", f"use one of {', '.join(UNITS)}."
        )
    moment = require_argument_type(arguments[1], TIMESTAMP, "date_trunc")
    cut = f"make_timestamptz(epoch_us(date_trunc('{unit.lower()}', {utc_timestamp_sql(moment)})))"
    term = replace(moment, literal=None, duckdb=cut)
    return replace(term, spark=f"date_trunc('{unit.lower()}', {arguments[1].spark})")


def to_date(arguments: Sequence[Term]) -> Term:
    """Return the UTC day of an instant."""
    return compile_cast(require_argument_type(arguments[0], TIMESTAMP, "to_date"), DATE)


def compile_concat(arguments: Sequence[Term]) -> Term:
    """Join texts; NULL if one is."""
    texts = [require_argument_type(argument, STRING, "concat").duckdb for argument in arguments]
    return compile_strict_call("concat", STRING, arguments, f"({' || '.join(texts)})")


def whole_literal(term: Term, function: str) -> int:
    """Require an INT literal."""
    if term.type == INT and isinstance(term.literal, int):
        return term.literal
    raise build_expression_error(
        f"{function} takes INT literals; {term.spark} is not one.", "write the number itself."
    )


def compile_substring(arguments: Sequence[Term]) -> Term:
    """Cut characters out: 1 and 0 are the first, negative starts count from the end."""
    text = require_argument_type(arguments[0], STRING, "substring").duckdb
    start = whole_literal(arguments[1], "substring")
    length = max(whole_literal(arguments[2], "substring"), 0) if len(arguments) == 3 else 2**31 - 1
    cut = f"substr({text}, {max(start, 1)}, {length})"
    if start < 0:
        before = f"substr({text}, 1, greatest(length({text}) + {start} + {length}, 0))"
        inside = f"substr({text}, length({text}) + {start} + 1, {length})"
        cut = f"(CASE WHEN length({text}) >= {-start} THEN {inside} ELSE {before} END)"
    return compile_strict_call("substring", STRING, arguments, cut)


def compile_trim(text: Term, letters: Term | None = None, side: str = "BOTH") -> Term:
    """Strip blanks, or any of the given letters; other white space stays, as in Spark."""
    function = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
    if letters is not None and not (isinstance(letters.literal, str) and letters.literal):
        raise build_expression_error(
            f"{function} takes letters as a literal; {letters.spark} is not one.",
            "write the letters themselves.",
        )
    stripped = letters.duckdb if letters else "' '"
    spark = f"trim({side} {letters.spark if letters else ''} FROM {text.spark})".replace("  ", " ")
    cut = f"{function}({require_argument_type(text, STRING, function).duckdb}, {stripped})"
    return replace(text, spark=spark, duckdb=cut, literal=None)


def define_trim_function(side: str) -> Function:
    """Make trim, ltrim or rtrim of one argument."""
    return lambda arguments: compile_trim(arguments[0], side=side)


def compile_round(arguments: Sequence[Term]) -> Term:
    """Round half away from zero to a whole number; to digits behind the point engines differ."""
    number = refuse_null_constant(arguments[0])
    if len(arguments) == 2 and whole_literal(arguments[1], "round") != 0:
        raise build_expression_error(
            "round to digits differs between engines.", "use round(x * 100) to keep two digits."
        )
    if number.type in INTEGERS:
        return replace(number, spark=f"round({number.spark})", literal=None)
    return compile_strict_call(
        "round", DOUBLE, [require_argument_type(number, DOUBLE, "round")], f"(round({number.duckdb}) + 0e0)"
    )


def whole_number(name: str, function: str) -> Function:
    """Make floor and ceil: BIGINT of a DOUBLE, limited to the ends of its range."""

    def make(arguments: Sequence[Term]) -> Term:
        number = refuse_null_constant(arguments[0])
        if number.type in INTEGERS:
            return compile_strict_call(name, BIGINT, [number], f"CAST({number.duckdb} AS BIGINT)")
        if number.type is not None and number.type.kind is TypeKind.DECIMAL:
            type_ = build_decimal_type(min(number.type.precision - number.type.scale + 1, 38), 0)
            return compile_strict_call(
                name, type_, [number], f"CAST({function}({number.duckdb}) AS {type_.duckdb})"
            )
        x = require_argument_type(number, DOUBLE, name).duckdb
        return compile_strict_call(name, BIGINT, [number], saturated_integer_sql(function, x, BIGINT))

    return make


def define_extreme_function(name: str) -> Function:
    """Make greatest and least, which pass over NULLs."""

    def make(arguments: Sequence[Term]) -> Term:
        wanted, texts = coerce_choices(arguments, name)
        for argument in arguments[1:]:
            require_infallible_term(argument, name)
        term = compile_strict_call(name, wanted, arguments, f"{name}({', '.join(texts)})")
        return replace(term, nullable=all(argument.nullable for argument in arguments))

    return make


def is_nan(arguments: Sequence[Term]) -> Term:
    """Tell NaN; NULL is none."""
    number = require_argument_type(arguments[0], DOUBLE, "isnan")
    return replace(
        compile_strict_call("isnan", BOOLEAN, [number], f"coalesce(isnan({number.duckdb}), FALSE)"),
        nullable=False,
    )


def define_binary_function(make: Callable[[Term, Term], Term]) -> tuple[int, int, Function]:
    """Make an entry for a function of two."""
    return 2, 2, lambda arguments: make(arguments[0], arguments[1])


FUNCTIONS: dict[str, tuple[int, int, Function]] = {
    **{name: (1, 1, field_of(name)) for name in FIELDS},
    **{
        name: define_binary_function(partial(compile_try_arithmetic, sign, name))
        for name, sign in TRIED.items()
    },
    "array_contains": define_binary_function(parts.array_contains),
    "cardinality": (1, 1, lambda arguments: parts.compile_size(arguments[0])),
    "element_at": define_binary_function(parts.element_at),
    "get": define_binary_function(parts.compile_array_get),
    "size": (1, 1, lambda arguments: parts.compile_size(arguments[0])),
    "try_element_at": define_binary_function(parts.try_element_at),
    "abs": (1, 1, lambda arguments: compile_abs(refuse_null_constant(arguments[0]))),
    "ceil": (1, 1, whole_number("ceil", "ceil")),
    "ceiling": (1, 1, whole_number("ceil", "ceil")),
    "char_length": (1, 1, define_text_function("length", "CAST(length({}) AS INTEGER)", INT)),
    "coalesce": (1, 64, compile_coalesce),
    "concat": (1, 64, compile_concat),
    "contains": (2, 2, define_text_function("contains", "contains({}, {})", BOOLEAN)),
    "date": (1, 1, to_date),
    "date_trunc": (2, 2, date_trunc),
    "endswith": (2, 2, define_text_function("endswith", "ends_with({}, {})", BOOLEAN)),
    "floor": (1, 1, whole_number("floor", "floor")),
    "greatest": (2, 64, define_extreme_function("greatest")),
    "ifnull": (2, 2, compile_coalesce),
    "isnan": (1, 1, is_nan),
    "isnotnull": (1, 1, lambda arguments: compile_not(is_null(arguments[0]))),
    "isnull": (1, 1, lambda arguments: is_null(arguments[0])),
    "least": (2, 64, define_extreme_function("least")),
    "length": (1, 1, define_text_function("length", "CAST(length({}) AS INTEGER)", INT)),
    "ltrim": (1, 1, define_trim_function("LEADING")),
    "mod": define_binary_function(lambda left, right: compile_arithmetic("%", left, right)),
    "nullif": define_binary_function(null_if),
    "nvl": (2, 2, compile_coalesce),
    "round": (1, 2, compile_round),
    "rtrim": (1, 1, define_trim_function("TRAILING")),
    "startswith": (2, 2, define_text_function("startswith", "starts_with({}, {})", BOOLEAN)),
    "substr": (2, 3, compile_substring),
    "substring": (2, 3, compile_substring),
    "to_date": (1, 1, to_date),
    "trim": (1, 1, define_trim_function("BOTH")),
}
