"""Comparisons, three-valued logic and the forms that choose between values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seamline.model.expressions.coercion import coerce_operands, coerce_term, find_common_type
from seamline.model.expressions.terms import (
    NULL,
    Term,
    any_nullable,
    build_expression_error,
    columns_of,
    left_first,
    quote_duckdb_string,
    refuse_null_constant,
    require_infallible_term,
)
from seamline.model.types.schema import BOOLEAN, DOUBLE, STRING, SqlType


def require_condition(term: Term, place: str) -> Term:
    """Require a condition."""
    if term.type is None:
        return replace(term, type=BOOLEAN, duckdb="CAST(NULL AS BOOLEAN)")
    if term.type != BOOLEAN:
        raise build_expression_error(
            f"{term.spark} is {term.type}; {place} takes conditions.", "compare it: x <> 0, x IS NOT NULL."
        )
    return term


def compile_comparison(operator: str, left: Term, right: Term) -> Term:
    """Compile = <> < <= > >= ."""
    one, two = coerce_operands(refuse_null_constant(left), refuse_null_constant(right))
    return Term(
        BOOLEAN,
        f"({left.spark} {operator} {right.spark})",
        f"({one.duckdb} {operator} {two.duckdb})",
        any_nullable(left, right),
        columns_of(left, right),
        left_first(left, right),
    )


def compile_null_safe_equal(left: Term, right: Term, *, negate: bool = False) -> Term:
    """Compile <=>, for which NULL equals NULL."""
    one, two = coerce_operands(left, right)
    spark = f"({left.spark} <=> {right.spark})"
    word = "IS DISTINCT FROM" if negate else "IS NOT DISTINCT FROM"
    return Term(
        BOOLEAN,
        f"(NOT {spark})" if negate else spark,
        f"({one.duckdb} {word} {two.duckdb})",
        nullable=False,
        columns=columns_of(left, right),
        guards=left.guards + right.guards,
    )


def compile_between(value: Term, low: Term, high: Term) -> Term:
    """Compile BETWEEN; Spark looks at the upper bound only if the lower one is true."""
    above, below = (
        compile_comparison(">=", value, low),
        compile_comparison("<=", value, require_infallible_term(high, "BETWEEN")),
    )
    return replace(
        above,
        spark=f"({value.spark} BETWEEN {low.spark} AND {high.spark})",
        duckdb=f"({above.duckdb} AND {below.duckdb})",
        nullable=any_nullable(above, below),
        columns=columns_of(above, below),
    )


def compile_in_list(value: Term, items: Sequence[Term]) -> Term:
    """Compile IN over a list; a NULL in it makes a miss unknown."""
    terms = [refuse_null_constant(value), *(require_infallible_term(item, "IN") for item in items)]
    wanted = find_common_type(terms)
    assert wanted is not None
    if wanted == DOUBLE and len(items) > 10:
        raise build_expression_error(
            "IN has more than 10 items on a DOUBLE.", "round it and cast to INT, or use comparisons."
        )
    first, *rest = (coerce_term(term, wanted).duckdb for term in terms)
    return Term(
        BOOLEAN,
        f"({value.spark} IN ({', '.join(item.spark for item in items)}))",
        f"({first} IN ({', '.join(rest)}))",
        any_nullable(*terms),
        columns_of(*terms),
        value.guards,
    )


def compile_and_or(word: str, left: Term, right: Term) -> Term:
    """Compile AND and OR: the left side is always evaluated, the right one not."""
    one, two = require_condition(left, word), require_infallible_term(require_condition(right, word), word)
    if one.guards and not two.columns:
        raise build_expression_error(
            f"{left.spark} can fail beside a constant.", f"remove the constant from the {word}."
        )
    return Term(
        BOOLEAN,
        f"({left.spark} {word} {right.spark})",
        f"({one.duckdb} {word} {two.duckdb})",
        any_nullable(one, two),
        columns_of(one, two),
        one.guards,
    )


def compile_not(term: Term) -> Term:
    """Compile NOT."""
    one = require_condition(term, "NOT")
    return replace(one, spark=f"(NOT {term.spark})", duckdb=f"(NOT {one.duckdb})", literal=None)


def is_null(term: Term) -> Term:
    """Compile IS NULL."""
    return replace(
        term,
        type=BOOLEAN,
        spark=f"({term.spark} IS NULL)",
        duckdb=f"({term.duckdb} IS NULL)",
        nullable=False,
        literal=None,
        bounds=None,
    )


def is_truth(term: Term, value: bool) -> Term:
    """Compile IS TRUE and IS FALSE."""
    one, word = require_condition(term, "IS"), "TRUE" if value else "FALSE"
    return replace(
        one,
        spark=f"({term.spark} IS {word})",
        duckdb=f"({one.duckdb} IS NOT DISTINCT FROM {word})",
        nullable=False,
        literal=None,
    )


def coerce_choices(terms: Sequence[Term], place: str) -> tuple[SqlType, list[str]]:
    """Bring the values a form chooses from to one type."""
    wanted = find_common_type(terms)
    if wanted is None:
        raise build_expression_error(
            f"Every value of {place} is NULL.", "cast one to a type: CAST(NULL AS STRING)."
        )
    return wanted, [coerce_term(term, wanted).duckdb for term in terms]


def compile_case(branches: Sequence[tuple[Term, Term]], otherwise: Term | None) -> Term:
    """Compile CASE; only its first condition is always evaluated."""
    default = otherwise or NULL
    conditions = [require_condition(condition, "CASE") for condition, _ in branches]
    values = [
        require_infallible_term(value, "CASE") for value in [*(value for _, value in branches), default]
    ]
    for condition in conditions[1:]:
        require_infallible_term(condition, "CASE")
    wanted, texts = coerce_choices(values, "CASE")
    pairs = list(zip(conditions, texts, strict=False))
    spark = " ".join(f"WHEN {c.spark} THEN {v.spark}" for c, v in branches)
    duckdb = " ".join(f"WHEN {condition.duckdb} THEN {text}" for condition, text in pairs)
    return Term(
        wanted,
        f"(CASE {spark} ELSE {default.spark} END)",
        f"(CASE {duckdb} ELSE {texts[-1]} END)",
        any_nullable(*values),
        columns_of(*conditions, *values),
        conditions[0].guards,
    )


def compile_coalesce(terms: Sequence[Term]) -> Term:
    """Compile COALESCE; only its first value is always evaluated."""
    first, *others = terms
    for other in others:
        require_infallible_term(other, "COALESCE")
    wanted, texts = coerce_choices(terms, "COALESCE")
    return Term(
        wanted,
        f"coalesce({', '.join(term.spark for term in terms)})",
        f"coalesce({', '.join(texts)})",
        all(term.nullable for term in terms),
        columns_of(*terms),
        first.guards,
    )


def null_if(left: Term, right: Term) -> Term:
    """Compile NULLIF, which keeps the type of its first value."""
    equal = compile_comparison("=", left, right)
    return replace(
        equal,
        type=left.type,
        spark=f"nullif({left.spark}, {right.spark})",
        duckdb=f"(CASE WHEN {equal.duckdb} THEN NULL ELSE {left.duckdb} END)",
        nullable=True,
    )


def compile_like(text: Term, pattern: Term, escape: str = "\\") -> Term:
    """Compile LIKE with a literal pattern, read by Spark's rules: an escape must escape something."""
    if text.type != STRING or not isinstance(pattern.literal, str):
        raise build_expression_error(
            f"{text.spark} LIKE {pattern.spark} is not of the form text LIKE literal.",
            "use contains or startswith.",
        )
    if len(escape) != 1 or escape in "%_":
        raise build_expression_error(
            f"{escape!r} cannot be the escape character.", "use one character other than % and _."
        )
    escaped = "" if escape == "\\" else f" ESCAPE '{escape}'".replace("'''", "'\\''")
    like = quote_duckdb_string(normalize_like_pattern(pattern.literal, escape))
    return Term(
        BOOLEAN,
        f"({text.spark} LIKE {pattern.spark}{escaped})",
        f"({refuse_null_constant(text).duckdb} LIKE {like} ESCAPE '\\')",
        text.nullable,
        text.columns,
        text.guards,
    )


def normalize_like_pattern(pattern: str, escape: str) -> str:
    """Spell a pattern with a backslash as its escape."""
    out, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            meant = next(letters, "")
            if not meant or meant not in ("%", "_", escape):
                raise build_expression_error(
                    f"Pattern {pattern!r} has an escape character that escapes nothing.",
                    f"write {escape * 2} for a {escape} itself.",
                )
            out.append("\\" + meant if meant in "%_\\" else meant)
        else:
            out.append("\\\\" if letter == "\\" else letter)
    return "".join(out)
