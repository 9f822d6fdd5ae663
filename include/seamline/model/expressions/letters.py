"""upper and lower as Spark has them: Unicode's full mapping, of which DuckDB knows what is one letter for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from seamline.model.expressions.calls import compile_strict_call, require_argument_type
from seamline.model.expressions.terms import Term, quote_duckdb_string
from seamline.model.types.schema import STRING

LONGER = (0xDF, 0x149, 0x1F0, 0x390, 0x3B0, 0x587, *range(0x1E96, 0x2000), *range(0xFB00, 0xFB18))
"""Where the letters are that become more than one; which they are Unicode never changes."""
NEWER = (
    *((0x19B, 0xA7DC), (0x264, 0xA7CB), (0x1C8A, 0x1C89), (0xA7CD, 0xA7CC), (0xA7CF, 0xA7CE)),
    *((0xA7D3, 0xA7D2), (0xA7D5, 0xA7D4), (0xA7DB, 0xA7DA)),
    *((letter, letter - 0x20) for letter in range(0x10D70, 0x10D86)),
    *((letter, letter - 0x1B) for letter in range(0x16EBB, 0x16ED4)),
)
"""Letters and their capitals that Spark's Unicode 17 has and DuckDB's has not."""
CASED = (
    r"(?:[^\P{Ll}\x{295}]|[\p{Lu}\p{Lt}\x{aa}\x{ba}\x{1c89}\x{1c8a}\x{2160}-\x{217f}\x{24b6}-\x{24e9}"
    r"\x{a7cb}-\x{a7cf}\x{a7d2}\x{a7d4}\x{a7da}-\x{a7dc}\x{10d50}-\x{10d65}\x{10d70}-\x{10d85}"
    r"\x{16ea0}-\x{16eb8}\x{16ebb}-\x{16ed3}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}])"
)
"""A letter that has a case, for RE2."""
IGNORED = (
    r"(?:[^\P{Mn}\x{1171e}]|[\p{Me}\p{Cf}\p{Lm}\p{Sk}'.:\x{b7}\x{387}\x{55f}\x{5f4}\x{897}\x{1acf}-\x{1add}"
    r"\x{1ae0}-\x{1aeb}\x{2018}\x{2019}\x{2024}\x{2027}\x{a7f1}\x{fe13}\x{fe52}\x{fe55}\x{ff07}\x{ff0e}\x{ff1a}"
    r"\x{10d4e}\x{10d69}-\x{10d6d}\x{10d6f}\x{10ec5}\x{10efa}-\x{10efc}\x{113bb}-\x{113c0}\x{113ce}\x{113d0}"
    r"\x{113d2}\x{113e1}\x{113e2}\x{11b60}\x{11b62}-\x{11b64}\x{11b66}\x{11dd9}\x{11f5a}\x{1611e}-\x{16129}"
    r"\x{1612d}-\x{1612f}\x{16d40}-\x{16d42}\x{16d6b}\x{16d6c}\x{16ff2}\x{16ff3}\x{1e5ee}\x{1e5ef}\x{1e6e3}"
    r"\x{1e6e6}\x{1e6ee}\x{1e6ef}\x{1e6f5}\x{1e6ff}])"
)
"""What stands within a word without being a letter of its own, for RE2."""


def compile_upper(arguments: Sequence[Term]) -> Term:
    """Compile upper: STRASSE of Straße."""
    text = require_argument_type(arguments[0], STRING, "upper")
    return replace(compile_strict_call("upper", STRING, [text], spell_upper(text.duckdb)), literal=None)


def compile_lower(arguments: Sequence[Term]) -> Term:
    """Compile lower; a capital sigma is another letter at the end of a word."""
    text = require_argument_type(arguments[0], STRING, "lower")
    return replace(compile_strict_call("lower", STRING, [text], spell_lower(text.duckdb)), literal=None)


def spell_upper(text: str) -> str:
    """Spell upper for DuckDB: letter by letter only where one of them needs it."""
    letters, capitals = upper_table()
    known = f'{capitals}[nullif(instr({letters}, "a letter"), 0)]'
    each = f'coalesce({known}, upper("a letter"))'
    sharp = f"replace({text}, 'ß', 'SS')"
    slow = f"list_transform(regexp_extract_all({sharp}, '(?s).'), lambda \"a letter\": {each})"
    return (
        f"(CASE WHEN strlen({text}) = length({text}) THEN upper({text})"
        f" WHEN regexp_matches({text}, '[' || {letters} || ']') THEN array_to_string({slow}, '')"
        f" ELSE upper({sharp}) END)"
    )


@cache
def upper_table() -> tuple[str, str]:
    """Return the letters that DuckDB's upper does not know, and the list of their capitals, in its SQL."""
    longer = {chr(each): chr(each).upper() for each in LONGER if len(chr(each).upper()) > 1}
    table = {**longer, **{chr(small): chr(large) for small, large in NEWER}}
    # The sharp s is common enough for a way of its own.
    letters = quote_duckdb_string("".join(letter for letter in table if letter != "ß"))
    capitals = quote_duckdb_string("|".join(table[letter] for letter in table if letter != "ß"))
    return letters, f"string_split({capitals}, '|')"


def spell_lower(text: str) -> str:
    """Spell lower for DuckDB."""
    small = quote_duckdb_string("".join(chr(small) for small, _ in NEWER))
    large = quote_duckdb_string("".join(chr(large) for _, large in NEWER))
    sigmas = f"(CASE WHEN contains({text}, 'Σ') THEN {spell_sigmas(text)} ELSE {text} END)"
    dotted = f"replace({sigmas}, 'İ', 'i' || chr(775))"
    return (
        f"(CASE WHEN strlen({text}) = length({text}) THEN lower({text})"
        f" WHEN regexp_matches({text}, '[' || {large} || ']') THEN lower(translate({dotted}, {large}, {small}))"
        f" ELSE lower({dotted}) END)"
    )


def spell_sigmas(text: str) -> str:
    """Spell sigmas small: first those that letters follow, in two passes as matches cannot overlap; then the last."""
    within = quote_duckdb_string(f"Σ({IGNORED}*{CASED})")
    last = quote_duckdb_string(f"({CASED}{IGNORED}*)Σ")
    passed = f"regexp_replace(regexp_replace({text}, {within}, 'σ\\1', 'g'), {within}, 'σ\\1', 'g')"
    return f"regexp_replace({passed}, {last}, '\\1ς', 'g')"
