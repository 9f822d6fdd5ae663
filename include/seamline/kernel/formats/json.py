"""JSON: one object; every value must have the JSON type that its column's type asks for."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.kernel.formats.reader import SHOWN, Reader, cast
from seamline.lake.scans import literal
from seamline.lake.states import quoted
from seamline.model.schema import Field, Kind, SqlType

WHOLE = "('UBIGINT', 'BIGINT')"
NUMBER = "('UBIGINT', 'BIGINT', 'DOUBLE')"
BLANK = "' ' || chr(9) || chr(10) || chr(13)"
"""What JSON takes for white space; what begins with a brace after it, and is JSON, is an object."""


class JsonReader(Reader):
    """Lets DuckDB parse ``_text`` once for all plain columns; a column with parts is opened by itself."""

    exact_texts = False
    """Whether a DECIMAL may be written as text, which keeps all of its digits."""
    trusting = True
    """To ask whether a text is JSON is to parse it once more."""
    parts = True

    def steps(self) -> Iterator[str]:
        paths = ", ".join(path(field.name) for field in self.schema.fields)
        yield "_text AS _json" if self.trusting else "CASE WHEN json_valid(_text) THEN _text END AS _json"
        nested = [
            f"json_extract(_json, {path(field.name)}) AS _part{at}"
            for at, field in enumerate(self.schema.fields, 1)
            if field.type.nested
        ]
        yield ", ".join(
            [
                f"json_type(_json, [{paths}]) AS _types",
                f"json_extract_string(_json, [{paths}]) AS _texts",
                *nested,
            ]
        )

    def value(self, field: Field, at: int) -> str:
        if field.type.nested:
            return self.typed(field.type, f"_part{at}")
        return self.scalar(field.type, f"_types[{at}]", self.text(field, at))

    def text(self, field: Field, at: int) -> str:
        """Write the text of a column: a string's own, of everything else the JSON."""
        return f"_texts[{at}]"

    def broken(self) -> Iterator[tuple[str, str]]:
        yield "_json IS NULL", f"left(_text, {SHOWN})"
        yield f"NOT starts_with(ltrim(_json, {BLANK}), '{{')", "'not an object: ' || json_type(_json)"

    def absent(self, field: Field, at: int, *, null: bool) -> tuple[str, str]:
        also = f" OR _types[{at}] = 'NULL'" if null else ""
        return f"_types[{at}] IS NULL{also}", f"coalesce(_types[{at}], '')"

    def mistyped(self, field: Field, at: int) -> tuple[str, str]:
        shown, no = f"left({self.text(field, at)}, {SHOWN})", literal(f" is no {field.type.spark}")
        said = f"_types[{at}] || ' ' || {shown} || {no}"
        if field.type.nested:
            return self.wrong(field.type, f"_part{at}"), said
        return f"{quoted(field.name)} IS NULL AND _types[{at}] <> 'NULL'", said

    def scalar(self, type: SqlType, found: str, text: str) -> str:
        """Write the value of a type without parts from the JSON type and text of what was found."""
        match type.kind:
            case Kind.STRING:
                return f"CASE WHEN {found} = 'VARCHAR' THEN {text} END"
            case Kind.INT | Kind.BIGINT:
                return f"CASE WHEN {found} IN {WHOLE} THEN {cast(type, text)} END"
            case Kind.DOUBLE:
                tried = cast(type, text)
                return f"CASE WHEN {found} IN {NUMBER} AND isfinite({tried}) THEN {tried} END"
            case Kind.DECIMAL:
                texts = " OR " + f"{found} = 'VARCHAR'" if self.exact_texts else ""
                return f"CASE WHEN {found} IN {NUMBER}{texts} THEN {cast(type, text)} END"
            case Kind.BOOLEAN:
                return f"CASE WHEN {found} = 'BOOLEAN' THEN {text} = 'true' END"
        return f"CASE WHEN {found} = 'VARCHAR' THEN {cast(type, text)} END"

    def typed(self, type: SqlType, json: str, depth: int = 0) -> str:
        """Write the value of any type from a JSON value, part by part."""
        item = f"_x{depth}"
        match type.kind:
            case Kind.STRUCT:
                parts = [
                    f"{quoted(field.name)} := {self.typed(field.type, self.part(json, field), depth)}"
                    for field in type.fields
                ]
                return f"CASE WHEN json_type({json}) = 'OBJECT' THEN struct_pack({', '.join(parts)}) END"
            case Kind.ARRAY:
                assert type.element is not None
                made = self.typed(type.element, item, depth + 1)
                items = f"list_transform({self.items(type, json)}, lambda {item}: {made})"
                return f"CASE WHEN json_type({json}) = 'ARRAY' THEN {items} END"
            case Kind.MAP:
                assert type.element is not None
                made = self.typed(type.element, f"{item}[2]", depth + 1)
                pairs = (
                    f"list_transform({self.members(type, json, item)}, lambda {item}: row({item}[1], {made}))"
                )
                return f"CASE WHEN json_type({json}) = 'OBJECT' THEN map_from_entries({pairs}) END"
        return self.leaf(type, json)

    def wrong(self, type: SqlType, json: str, depth: int = 0) -> str:
        """Write the condition under which a JSON value, or a part of it, is not of its type."""
        item, there = f"_y{depth}", f"json_type({json}) <> 'NULL'"
        match type.kind:
            case Kind.STRUCT:
                inside = [self.amiss(field, self.part(json, field), depth) for field in type.fields]
                return f"({there} AND (json_type({json}) <> 'OBJECT' OR {' OR '.join(inside)}))"
            case Kind.ARRAY | Kind.MAP:
                assert type.element is not None
                array = type.kind is Kind.ARRAY
                value = item if array else f"{item}[2]"
                each = f"coalesce({self.wrong(type.element, value, depth + 1)}, false)"
                items = self.items(type, json) if array else self.members(type, json, item)
                some = f"coalesce(list_bool_or(list_transform({items}, lambda {item}: {each})), false)"
                root = "ARRAY" if array else "OBJECT"
                return f"({there} AND (json_type({json}) <> '{root}' OR {some}))"
        return f"({there} AND ({self.typed(type, json, depth)}) IS NULL)"

    def leaf(self, type: SqlType, json: str) -> str:
        """Write the value of a type without parts from a JSON value."""
        return self.scalar(type, f"json_type({json})", f"json_extract_string({json}, '$')")

    def part(self, json: str, field: Field) -> str:
        """Write a member of an object by its declared name."""
        return f"json_extract({json}, {path(field.name)})"

    def items(self, type: SqlType, json: str) -> str:
        """Write the items of an array that is read as ``type``."""
        return f"json_extract({json}, '$[*]')"

    def members(self, type: SqlType, json: str, item: str) -> str:
        """Write the members of an object that is read as ``type``: a sorted list of (key, value)."""
        return members(json, item)

    def amiss(self, field: Field, json: str, depth: int) -> str:
        """Write whether a part of a STRUCT is of another type, or is not there and must be."""
        wrong = f"coalesce({self.wrong(field.type, json, depth)}, false)"
        return wrong if field.nullable else f"({wrong} OR coalesce(json_type({json}), 'NULL') = 'NULL')"


def path(name: str) -> str:
    """Write the path of a member."""
    return literal("$." + quoted(name))


def members(json: str, item: str) -> str:
    """Write an object's members as a sorted list of (key, value): of one name the first counts, as with columns.

    A lambda copies what it captures for each item, so none here captures anything: members stand beside their
    neighbours instead, and the cost is that of a sort.
    """
    ordered = (
        f"list_sort(list_zip(json_keys({json}), range(len(json_keys({json}))), json_extract({json}, '$.*')))"
    )
    paired = f"list_zip({ordered}, list_prepend(NULL, {ordered}))"
    firsts = f"{item}[1] IS NOT NULL AND {item}[1][1] IS DISTINCT FROM {item}[2][1]"
    return (
        f"list_transform(list_filter({paired}, lambda {item}: {firsts}), "
        f"lambda {item}: row({item}[1][1], {item}[1][3]))"
    )
