"""Values of another type than their fields declare, anywhere in a definition: found before anything reads them."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from seamline.model.definition.alert_routes import AlertRoute
from seamline.model.definition.expectations import Expect, ExpectationSuite, ExpectRows
from seamline.model.definition.field_examples import EXAMPLES, NOUNS
from seamline.model.definition.format_base import Format
from seamline.model.definition.origin import Origin
from seamline.model.definition.restarts import RestartPolicy
from seamline.model.definition.windows import Tumbling, Window
from seamline.model.measures import Measure

PLAIN: Mapping[Any, str] = {str: "text", int: "whole number", float: "number", bool: "truth"}
"""What values of a plain type are called where their field has no word for them."""
CALLED: Mapping[Any, str] = {
    AlertRoute: "alert route",
    Expect: "expectation",
    ExpectRows: "expectation",
    ExpectationSuite: "expectation",
    Tumbling: "tumbling window in UTC",
    Window: "window",
    RestartPolicy: "restart policy",
    Measure: "measure",
    Format: "format",
    Callable: "function",
    Mapping: "mapping",
}
"""What values of other types are called, where it is not the name of their class."""
LISTS = (str, bytes, bytearray, memoryview)
"""Sequences that are no lists."""
LONGEST = 80
"""Letters of a value that a message shows."""


@dataclass(frozen=True)
class Mismatch:
    """A value that is not of the type that its field declares."""

    place: str
    """Where it stands in the definition."""
    origin: Origin
    """Where its part was written."""
    message: str
    """What is wrong."""
    hint: str
    """What to write instead."""


@dataclass(frozen=True)
class Shape:
    """One of the types that a value may have."""

    kind: Any
    """Its class; NoneType where it may be None."""
    items: tuple[Shape, ...] = ()
    """The types of which the items of a list, or the values of a mapping, may be any; the names of one are texts."""

    def is_of(self, value: Any) -> bool:
        """Return whether a value is of it, whatever is in it.

        Texts are written as UTF-8. Lists are read more than once, and in their order.
        """
        if self.kind is str:
            return isinstance(value, str) and (value.isascii() or is_unicode(value))
        if self.kind in (int, float):
            return isinstance(value, int | self.kind) and not isinstance(value, bool)
        if self.kind is Sequence:
            return isinstance(value, Sequence) and not isinstance(value, LISTS)
        return self.kind is Any or (
            callable(value) if self.kind is Callable else isinstance(value, self.kind)
        )


@dataclass(frozen=True)
class Declared:
    """A field as its class declares it."""

    owner: type
    """The class."""
    name: str
    """The field's name."""
    shapes: tuple[Shape, ...]
    """The types of which its value may be any."""
    default: Any
    """What it is where nothing is said; MISSING where something must be."""

    def find_word(self, words: Mapping[str, str]) -> str:
        """Return the word for the field in its class, else by its name alone; empty where there is none."""
        own = (f"{each.__name__}.{self.name}" for each in self.owner.__mro__)
        return next((words[key] for key in (*own, self.name) if key in words), "")

    @property
    def hint(self) -> str:
        """Say how the field is written."""
        if self.shapes == BOOLEAN:
            return f"write {self.name}=True or {self.name}=False."
        quote = "'" if isinstance(self.default, str) and '"' in self.default else '"'
        default = f"{quote}{self.default}{quote}" if isinstance(self.default, str) else self.default
        written = f"write {self.name}={self.find_word(EXAMPLES) or default}"
        return f"{written}." if self.default is MISSING else f"{written}, or leave it out."


BOOLEAN = (Shape(bool),)


def is_unicode(text: str) -> bool:
    """Return whether a text can be written: halves of letters, as of wrongly decoded bytes, cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def read_shapes(declared: Any) -> tuple[Shape, ...]:
    """Read the annotation of a field."""
    if get_origin(declared) in (Union, types.UnionType):
        return tuple(shape for each in get_args(declared) for shape in read_shapes(each))
    kind = get_origin(declared) or declared
    inner = get_args(declared)[-1:] if kind in (Sequence, Mapping) else ()
    return (Shape(kind, tuple(shape for each in inner for shape in read_shapes(each))),)


@lru_cache(maxsize=128)
def list_declared_fields(owner: type) -> tuple[Declared, ...]:
    """List the fields of a class with their types."""
    hints = get_type_hints(owner)
    return tuple(
        Declared(
            owner,
            each.name,
            read_shapes(hints[each.name]),
            each.default if each.default_factory is MISSING else each.default_factory,
        )
        for each in fields(owner)
    )


def may_be_none(owner: type, name: str) -> bool:
    """Return whether a field of a class may be None; of a name that is no field's, whatever it is."""
    shapes = [each.shapes for each in list_declared_fields(owner) if each.name == name]
    return not shapes or Shape(types.NoneType) in shapes[0]


def list_mismatches(part: Any, place: str, origin: Origin) -> Iterator[Mismatch]:
    """List every value in a part of a definition that is not of its type; ``origin`` is of what the part stands in."""
    said = getattr(part, "origin", None)
    origin = said if isinstance(said, Origin) else origin
    kind: type = type(part)
    for field in list_declared_fields(kind):
        value = getattr(part, field.name)
        if value is not field.default:
            spot = f"{place}.{field.name}" if place else field.name
            yield from compare_value(value, field.shapes, field, spot, origin)


def compare_value(
    value: Any, shapes: tuple[Shape, ...], field: Declared, place: str, origin: Origin
) -> Iterator[Mismatch]:
    """List what is not of its type in a value, or in what it lists."""
    shape = next((each for each in shapes if each.is_of(value)), None)
    if shape is None:
        yield Mismatch(place, origin, *word_mismatch(value, shapes, field))
    elif shape.kind is Mapping:
        for key, item in value.items():
            if TEXT.is_of(key):
                yield from compare_value(item, shape.items, field, f"{place}[{key}]", origin)
            else:
                yield Mismatch(place, origin, f"{spell_value(key)} is not a name.", field.hint)
    elif shape.kind is Sequence:
        for at, item in enumerate(value):
            yield from compare_value(item, shape.items, field, name_item(place, item, at), origin)
    elif is_dataclass(value) and shape.kind not in (Origin, Any):
        yield from list_mismatches(value, place, origin)


TEXT = Shape(str)


def name_item(place: str, item: Any, at: int) -> str:
    """Name the place of an item: by its own name if it has one, by its number if it has fields, else as its list."""
    if not is_dataclass(item) or isinstance(item, type):
        return place
    name = getattr(item, "name", None)
    return f"{place}[{name if name and isinstance(name, str) else at}]"


def word_mismatch(value: Any, shapes: tuple[Shape, ...], field: Declared) -> tuple[str, str]:
    """Say what a value is not, and what to write instead."""
    said = spell_value(value)
    if shapes == BOOLEAN:
        return f"{said} is neither True nor False.", field.hint
    if TEXT in shapes and isinstance(value, str):
        return f"{said} cannot be written as UTF-8.", field.hint
    lists = [each for each in shapes if each.kind is Sequence]
    if lists and isinstance(value, Iterator):
        return f"{said} can be read only once.", f"write list(...) around it, or {field.hint[6:]}"
    texts = (
        list_texts_of(value) if any(TEXT in each.items for each in lists) and shapes == field.shapes else []
    )
    message = f"{said} is not {describe_shapes(shapes, field)}."
    return message, f"write {field.name}={json.dumps(texts, ensure_ascii=False)}." if texts else field.hint


def list_texts_of(value: Any) -> list[str]:
    """List the texts that somebody wrote where a list of them is meant: one alone, or several without an order."""
    if isinstance(value, str) and value:
        return [value]
    unordered = isinstance(value, Iterable) and not isinstance(value, Mapping | Sequence)
    return sorted(value) if unordered and all(isinstance(each, str) for each in value) else []


def describe_shapes(shapes: Iterable[Shape], field: Declared, *, many: bool = False) -> str:
    """Describe what a value may be in the field's own word; that it may be None is no help."""
    told = [describe_shape(each, field, many=many) for each in shapes if each.kind is not types.NoneType]
    *first, last = dict.fromkeys(told)
    return f"{', '.join(first)} or {last}" if first else last


def describe_shape(shape: Shape, field: Declared, *, many: bool) -> str:
    """Describe the values of a type: "a list of columns"."""
    if shape.kind is Sequence:
        return f"{'lists' if many else 'a list'} of {describe_shapes(shape.items, field, many=True)}"
    if shape.kind in PLAIN:
        noun = field.find_word(NOUNS) or PLAIN[shape.kind]
    else:
        noun = CALLED.get(shape.kind) or shape.kind.__name__
    if many:
        return f"{noun}s"
    return f"{'an' if noun[0] in 'aeioAEIO' else 'a'} {noun}"


def spell_value(value: Any) -> str:
    """Write a value as a message shows it: in one way, though a set has no order."""
    kind = type(value).__name__
    if isinstance(value, Iterator):
        return f"A {kind}"
    try:
        plain = isinstance(value, set | frozenset) and value
        written = f"{{{', '.join(sorted(map(repr, value)))}}}" if plain else repr(value)
    except Exception:  # noqa: BLE001 - a value that cannot be written is still one that is not of its type
        written = ""
    shown = written and len(written) <= LONGEST and " at 0x" not in written
    return written if shown else f"A value of type {kind}"
