"""Functions of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from seamline.model.expressions.calls import compile_strict_call, require_argument_type, whole_literal
from seamline.model.expressions.terms import Term, build_expression_error, refuse_null_constant
from seamline.model.types.schema import STRING, SqlType, TypeKind

Function = Callable[[Sequence[Term]], Term]


def define_text_function(name: str, duckdb: str, type_: SqlType) -> Function:
    """Make a function of texts; ``duckdb`` has a place for each."""

    def make(arguments: Sequence[Term]) -> Term:
        texts = [require_argument_type(argument, STRING, name).duckdb for argument in arguments]
        return compile_strict_call(name, type_, arguments, duckdb.format(*texts))

    return make


def compile_concat(arguments: Sequence[Term]) -> Term:
    """Join texts; NULL if one is."""
    texts = [require_argument_type(argument, STRING, "concat").duckdb for argument in arguments]
    return compile_strict_call("concat", STRING, arguments, f"({' || '.join(texts)})")


def concat_ws(arguments: Sequence[Term]) -> Term:
    """Join texts, and the items of arrays of texts, with a separator; NULLs among them are passed over."""
    mark = require_argument_type(arguments[0], STRING, "concat_ws")
    parts = [spell_joined_part(argument, mark) for argument in arguments[1:]]
    term = compile_strict_call(
        "concat_ws", STRING, arguments, f"concat_ws({', '.join([mark.duckdb, *parts])})"
    )
    return replace(term, nullable=mark.nullable)


def spell_joined_part(term: Term, mark: Term) -> str:
    """Spell what concat_ws joins: an array is NULL, and so passed over, if there is no text in it."""
    if term.type == SqlType(TypeKind.ARRAY, element=STRING):
        if not isinstance(mark.literal, str):
            raise build_expression_error(
                f"concat_ws joins the items of {term.spark} with {mark.spark}, which is no literal.",
                "write the separator itself, or join single texts.",
            )
        items = refuse_null_constant(term).duckdb
        return f"(CASE WHEN list_count({items}) > 0 THEN array_to_string({items}, {mark.duckdb}) END)"
    return require_argument_type(term, STRING, "concat_ws").duckdb


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
