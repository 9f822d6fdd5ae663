"""``WITH (name = value, ...)``: settings of a part of a definition that are texts, numbers and truths."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

from seamline.model.definition.field_types import Declared, Shape, list_declared_fields
from seamline.model.sql.durations import read_interval, read_number
from seamline.model.sql.reader import Reader
from seamline.model.sql.slices import unquote
from seamline.model.sql.tokens import SqlToken, TokenKind

SAMPLE = "write WITH (name = 'value', ...)."
WHOLE_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
TRUTHS = {"TRUE": True, "FALSE": False}
TEXT, WHOLE, SHARE, TRUTH, NONE, TEXTS = (
    Shape(str),
    Shape(int),
    Shape(float),
    Shape(bool),
    Shape(NoneType),
    Shape(Sequence, (Shape(str),)),
)
PLAIN = (TEXT, WHOLE, SHARE, TRUTH, NONE, TEXTS, Shape(Callable))
"""Types of fields that an option can set; a function is set by its name."""


@dataclass(frozen=True)
class Option:
    """A setting as it was written."""

    name: str
    """Its name: ``topic``, ``batch.interval``."""
    value: Any
    """A text, a number, a truth, or a list of them."""
    token: SqlToken
    """Where it stands."""


Options = dict[str, Option]


def read_options(reader: Reader) -> Options:
    """Read ``WITH (...)`` where it stands next; nothing where it does not."""
    found: Options = {}
    if not reader.is_words("WITH"):
        return found
    reader.take()
    with reader.within("WITH"):
        for option in reader.list_items(lambda: read_option(reader), SAMPLE):
            if option.name in found:
                reader.fail(
                    f"{option.name} is set twice (on line {found[option.name].token.line} before).",
                    "delete one of them.",
                    option.token,
                )
            found[option.name] = option
    return found


def read_option(reader: Reader) -> Option:
    """Read ``name = value``; the name may have dots, and quotes around it."""
    token = reader.next
    if token.kind in (TokenKind.TEXT, TokenKind.RAW):
        name = reader.string("a name")
    else:
        parts = [unquote(take_part(reader))]
        while reader.accept_symbol("."):
            parts.append(unquote(take_part(reader)))
        name = ".".join(parts)
    reader.expect_symbol("=", SAMPLE)
    return Option(name, read_value(reader), token)


def take_part(reader: Reader) -> SqlToken:
    """Read a part of an option's name, which may be any word."""
    return reader.take() if reader.next.kind is TokenKind.WORD else reader.name("the name of a setting")


def read_value(reader: Reader) -> Any:
    """Read a text, a number, TRUE, FALSE, a duration, or several in brackets."""
    token = reader.next
    if token.kind in (TokenKind.TEXT, TokenKind.RAW):
        return reader.string("a value")
    if token.word in TRUTHS:
        return TRUTHS[reader.take().word]
    if token.word == "INTERVAL":
        return read_interval(reader)
    if token.symbol == "(":
        return reader.list_items(lambda: read_item_value(reader), "write ('one', 'two').")
    if token.kind is TokenKind.NUMBER or token.symbol == "-":
        return read_number(reader, "a value")
    reader.fail(f"{token.shown} is not a value.", "write a text in quotes, a number, TRUE or FALSE.")


def read_item_value(reader: Reader) -> Any:
    """Read a value in a list."""
    if reader.next.symbol == "(":
        reader.fail("A list has no lists.", "write ('one', 'two').")
    return read_value(reader)


def list_settings(owner: type) -> dict[str, Declared]:
    """List the fields of a class that an option can set, by name."""
    return {each.name: each for each in list_declared_fields(owner) if set(each.shapes) <= set(PLAIN)}


def take_settings(
    reader: Reader, owner: type, options: Options, *, before: str = "", besides: Collection[str] = ()
) -> dict[str, Any]:
    """Take the options that set fields of a class off the others; ``besides`` are set by clauses of their own."""
    known = list_settings(owner)
    taken = {}
    for name in [name for name in options if name.startswith(before)]:
        field = name.removeprefix(before)
        if field in known and field not in besides:
            taken[field] = convert_value(reader, options.pop(name), known[field])
    return taken


def convert_value(reader: Reader, option: Option, field: Declared) -> Any:
    """Return a value as its field has it; DefinitionError where it cannot be one."""
    value = option.value
    for shape in field.shapes:
        if shape == TRUTH and str(value).upper() in TRUTHS:
            return TRUTHS[str(value).upper()]
        if shape == WHOLE and not isinstance(value, bool) and WHOLE_NUMBER.fullmatch(str(value)):
            return int(value)
        if shape == SHARE and isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if shape == TEXT and isinstance(value, str):
            return value
        if shape == TEXTS and isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
    if TEXTS in field.shapes and isinstance(value, str):
        return [value]
    written = {
        TEXT: "a text in quotes",
        WHOLE: "a whole number",
        SHARE: "a number",
        TRUTH: "TRUE or FALSE",
        TEXTS: "('one', 'two')",
    }
    forms = " or ".join(written[shape] for shape in field.shapes if shape in written)
    reader.fail(f"{value!r} is not a value of {option.name}.", f"write {forms}.", option.token)


def take_text(reader: Reader, options: Options, name: str, at: SqlToken) -> str:
    """Take an option that is a text off the others; DefinitionError at a token where it is missing."""
    if name not in options:
        reader.fail(f"{name} is missing.", f"write WITH ({name} = '...').", at)
    option = options.pop(name)
    if not isinstance(option.value, str):
        reader.fail(f"{option.value!r} is not a value of {name}.", "write a text in quotes.", option.token)
    return option.value


def refuse_options(
    reader: Reader, options: Options, known: Collection[str], clauses: Mapping[str, str]
) -> None:
    """Refuse options that nothing has taken: ``clauses`` says where what has another place is written."""
    for name, option in options.items():
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known)) or 'none'}."
        reader.fail(f"{name} is not a setting here.", clauses.get(name, hint), option.token)
