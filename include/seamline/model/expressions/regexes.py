"""Functions of regular expressions: RLIKE, regexp_extract, regexp_replace, split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seamline.model.errors import ExpressionError
from seamline.model.expressions.calls import compile_strict_call, require_argument_type, whole_literal
from seamline.model.expressions.pattern_parts import RegexPattern
from seamline.model.expressions.patterns import read_pattern
from seamline.model.expressions.terms import Term, build_expression_error, quote_duckdb_string
from seamline.model.types.schema import BOOLEAN, STRING, SqlType, TypeKind

TEXTS = SqlType(TypeKind.ARRAY, element=STRING)
MOST_GROUPS = 9
"""RE2 names no further group where it replaces."""


def spell_groups(number: int) -> str:
    """Write how many groups a pattern has."""
    return f"{number} group{'' if number == 1 else 's'}"


def require_pattern(term: Term, function: str) -> RegexPattern:
    """Require a literal pattern."""
    if not isinstance(term.literal, str):
        raise build_expression_error(
            f"{function} takes a pattern as a literal; {term.spark} is not one.",
            "write the pattern itself, or use contains or startswith.",
        )
    return read_pattern(term.literal)


def require_text_literal(term: Term, function: str) -> str:
    """Require a text literal."""
    if not isinstance(term.literal, str):
        raise build_expression_error(
            f"{function} takes a text literal; {term.spark} is not one.", "write the text itself."
        )
    return term.literal


def spell_match(call: str, text: str, pattern: RegexPattern) -> str:
    """Spell a call of DuckDB's; $ has two spellings, and the text decides which of them is Java's."""
    plain = call.format(quote_duckdb_string(pattern.spell()))
    if not pattern.ends:
        return plain
    crlf = call.format(quote_duckdb_string(pattern.spell(crlf=True)))
    return f"(CASE WHEN ends_with({text}, chr(13) || chr(10)) THEN {crlf} ELSE {plain} END)"


def regexp_like(arguments: Sequence[Term]) -> Term:
    """Tell whether a pattern occurs in a text."""
    text = require_argument_type(arguments[0], STRING, "regexp_like").duckdb
    pattern = require_pattern(arguments[1], "regexp_like")
    found = spell_match(f"regexp_matches({escape_braces(text)}, {{}})", text, pattern)
    return compile_strict_call("regexp_like", BOOLEAN, arguments, found)


def escape_braces(text: str) -> str:
    """Keep the braces of a text through format."""
    return text.replace("{", "{{").replace("}", "}}")


def regexp_extract(arguments: Sequence[Term]) -> Term:
    """Take a group of the first match, the first group unless told; empty where there is none."""
    text = require_argument_type(arguments[0], STRING, "regexp_extract").duckdb
    pattern = require_pattern(arguments[1], "regexp_extract")
    group = whole_literal(arguments[2], "regexp_extract") if len(arguments) == 3 else 1
    if not 0 <= group <= min(pattern.groups, MOST_GROUPS):
        raise build_expression_error(
            f"regexp_extract takes group {group} of a pattern with {spell_groups(pattern.groups)}.",
            f"put ( ) around what to take, among {MOST_GROUPS} groups at most, or write 0 as third argument for the "
            "whole match.",
        )
    refuse_repeated_group(group, pattern)
    if pattern.ends and group == 0:
        raise build_expression_error(
            "regexp_extract takes the whole match of a pattern with $.",
            "put ( ) around what to take, or write \\z for the end of the text.",
        )
    found = spell_match(f"regexp_extract({escape_braces(text)}, {{}}, {group})", text, pattern)
    return compile_strict_call("regexp_extract", STRING, arguments, found)


def refuse_repeated_group(group: int, pattern: RegexPattern) -> None:
    """Refuse a group of which Java and RE2 remember different matches."""
    if group in pattern.repeated:
        raise build_expression_error(
            f"Group {group} is within a repetition, and engines remember different matches of it.",
            "repeat with ? only, put ( ) around the repetition, or write (?: ) for groups that are not taken.",
        )


def require_searchable_pattern(term: Term, function: str) -> RegexPattern:
    """Require a pattern whose matches engines find at the same places, one after the other."""
    pattern = require_pattern(term, function)
    if pattern.nullable:
        raise build_expression_error(
            f"{function} has a pattern that may match the empty text.",
            "engines find empty matches at different places: use + instead of *, or concat.",
        )
    if pattern.ends:
        raise build_expression_error(
            f"{function} has a pattern with $, which is at two places of a text that ends with a line end.",
            "write \\z for the end of the text.",
        )
    return pattern


def regexp_replace(arguments: Sequence[Term]) -> Term:
    """Replace each match; $1 is the first group."""
    text = require_argument_type(arguments[0], STRING, "regexp_replace").duckdb
    pattern = require_searchable_pattern(arguments[1], "regexp_replace")
    made = translate_replacement(require_text_literal(arguments[2], "regexp_replace"), pattern)
    spelled = f"{quote_duckdb_string(pattern.spell())}, {quote_duckdb_string(made)}"
    return compile_strict_call("regexp_replace", STRING, arguments, f"regexp_replace({text}, {spelled}, 'g')")


def translate_replacement(text: str, pattern: RegexPattern) -> str:
    r"""Spell Java's replacement for RE2: $1 is \1, and a backslash takes away what a letter means."""
    out, letters = [], list(text)
    while letters:
        letter = letters.pop(0)
        if letter == "$":
            out.append(f"\\{read_group_number(text, letters, pattern)}")
            continue
        if letter == "\\":
            if not letters:
                raise refuse_replacement(text)
            letter = letters.pop(0)
        out.append("\\\\" if letter == "\\" else letter)
    return "".join(out)


def read_group_number(text: str, letters: list[str], pattern: RegexPattern) -> int:
    """Read the group behind a $: as many digits as there are groups for."""
    if not letters or letters[0] not in "0123456789":
        raise refuse_replacement(text)
    number = int(letters.pop(0))
    while letters and letters[0] in "0123456789" and number * 10 + int(letters[0]) <= pattern.groups:
        number = number * 10 + int(letters.pop(0))
    if number > min(pattern.groups, MOST_GROUPS):
        raise build_expression_error(
            f"Replacement {text!r} takes group {number} of a pattern with {spell_groups(pattern.groups)}.",
            f"write \\\\$ for the character; at most {MOST_GROUPS} groups are supported.",
        )
    refuse_repeated_group(number, pattern)
    return number


def refuse_replacement(text: str) -> ExpressionError:
    """Make the error of a replacement that Java does not take either."""
    return build_expression_error(
        f"Replacement {text!r} has a $ or a backslash that stands for nothing.",
        "write $1 for the first group, \\\\$ for a dollar sign.",
    )


def split(arguments: Sequence[Term]) -> Term:
    """Split a text at each match of a pattern; empty texts at the end stay, as in Spark."""
    text = require_argument_type(arguments[0], STRING, "split").duckdb
    pattern = require_searchable_pattern(arguments[1], "split")
    limit = whole_literal(arguments[2], "split") if len(arguments) == 3 else -1
    if pattern.plain is not None:
        mark = quote_duckdb_string(pattern.plain)
        made = f"string_split({text}, {mark})"
        if limit > 0:
            rest = f"list_append({made}[:{limit - 1}], array_to_string({made}[{limit}:], {mark}))"
            made = f"(CASE WHEN len({made}) > {limit} THEN {rest} ELSE {made} END)"
    elif limit <= 0:
        made = f"regexp_split_to_array({text}, {quote_duckdb_string(pattern.spell())})"
    else:
        raise build_expression_error(
            "split has both a limit and a pattern that is more than a text.",
            "leave the limit out, or split at a text such as ',' or '\\\\|'.",
        )
    return replace(compile_strict_call("split", TEXTS, arguments, made), bounds=(1, 2**31 - 1))
