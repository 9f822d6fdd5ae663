"""The functions an expression may call, by Spark's names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from seamline.model.expressions import days, hashes, letters, parts, regexes, texts
from seamline.model.expressions.arithmetic import compile_abs, compile_arithmetic, compile_try_arithmetic
from seamline.model.expressions.calls import compile_strict_call, require_argument_type, whole_literal
from seamline.model.expressions.casts import saturated_integer_sql
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
    build_expression_error,
    refuse_null_constant,
    require_infallible_term,
)
from seamline.model.types.schema import BIGINT, BOOLEAN, DOUBLE, INT, TypeKind, build_decimal_type

Function = Callable[[Sequence[Term]], Term]
TRIED = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/"}


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
    **{name: (1, 1, days.field_of(name)) for name in days.FIELDS},
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
    "add_months": (2, 2, days.add_months),
    "ceil": (1, 1, whole_number("ceil", "ceil")),
    "ceiling": (1, 1, whole_number("ceil", "ceil")),
    "char_length": (1, 1, texts.define_text_function("length", "CAST(length({}) AS INTEGER)", INT)),
    "coalesce": (1, 64, compile_coalesce),
    "concat": (1, 64, texts.compile_concat),
    "concat_ws": (2, 64, texts.concat_ws),
    "contains": (2, 2, texts.define_text_function("contains", "contains({}, {})", BOOLEAN)),
    "date": (1, 1, days.to_date),
    "date_add": (2, 2, days.define_day_shift("date_add", "+")),
    "date_diff": (2, 2, days.count_days),
    "date_sub": (2, 2, days.define_day_shift("date_sub", "-")),
    "date_trunc": (2, 2, days.date_trunc),
    "dateadd": (2, 2, days.define_day_shift("date_add", "+")),
    "datediff": (2, 2, days.count_days),
    "endswith": (2, 2, texts.define_text_function("endswith", "ends_with({}, {})", BOOLEAN)),
    "floor": (1, 1, whole_number("floor", "floor")),
    "greatest": (2, 64, define_extreme_function("greatest")),
    "hash": (1, 64, hashes.compile_hash),
    "ifnull": (2, 2, compile_coalesce),
    "isnan": (1, 1, is_nan),
    "isnotnull": (1, 1, lambda arguments: compile_not(is_null(arguments[0]))),
    "isnull": (1, 1, lambda arguments: is_null(arguments[0])),
    "last_day": (1, 1, days.last_day),
    "lcase": (1, 1, letters.compile_lower),
    "least": (2, 64, define_extreme_function("least")),
    "length": (1, 1, texts.define_text_function("length", "CAST(length({}) AS INTEGER)", INT)),
    "lower": (1, 1, letters.compile_lower),
    "ltrim": (1, 1, texts.define_trim_function("LEADING")),
    "mod": define_binary_function(lambda left, right: compile_arithmetic("%", left, right)),
    "nullif": define_binary_function(null_if),
    "nvl": (2, 2, compile_coalesce),
    "regexp": (2, 2, regexes.regexp_like),
    "regexp_extract": (2, 3, regexes.regexp_extract),
    "regexp_like": (2, 2, regexes.regexp_like),
    "regexp_replace": (3, 3, regexes.regexp_replace),
    "rlike": (2, 2, regexes.regexp_like),
    "round": (1, 2, compile_round),
    "rtrim": (1, 1, texts.define_trim_function("TRAILING")),
    "split": (2, 3, regexes.split),
    "startswith": (2, 2, texts.define_text_function("startswith", "starts_with({}, {})", BOOLEAN)),
    "substr": (2, 3, texts.compile_substring),
    "substring": (2, 3, texts.compile_substring),
    "to_date": (1, 1, days.to_date),
    "trim": (1, 1, texts.define_trim_function("BOTH")),
    "ucase": (1, 1, letters.compile_upper),
    "upper": (1, 1, letters.compile_upper),
}
