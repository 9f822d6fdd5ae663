"""JSON: one object; every value must have the JSON type that its column's type asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from seamline.kernel.formats.reader import SHOWN, Reader, cast_text_sql
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.model.types.schema import Field, SqlType, TypeKind

WHOLE = "('UBIGINT', 'BIGINT')"
NUMBER = "('UBIGINT', 'BIGINT', 'DOUBLE')"
BLANK = "' ' || chr(9) || chr(10) || chr(13)"
"""What JSON takes for white space; what begins with a brace after it, and is JSON, is an object."""


@dataclass(frozen=True)
class Place:
    """Where a value stands in a record."""

    found: str
    """SQL of its JSON type."""
    text: str
    """SQL of its text."""
    json: str
    """SQL of itself, where it is to be opened."""
    path: tuple[str, ...] = ()
    """A column's name, or that of a part of a STRUCT, which is taken out with all other parts of the record; empty
    in an ARRAY or a MAP.
    """
    read: str = ""
    """SQL of the value where it was read before; empty otherwise."""


class JsonReader(Reader):
    """Lets DuckDB parse ``_text`` once for all plain columns, and once for all parts of STRUCTs.

    An ARRAY or a MAP is opened by itself, and so is what is in it: SQL grows by its opening with each part.
    """

    exact_texts = False
    """Whether a DECIMAL may be written as text, which keeps all of its digits."""
    trusting = True
    """To ask whether a text is JSON is to parse it once more."""
    parts = True

    def open_record(self) -> Iterator[str]:
        """List select lists that make ``_json``, in which the columns are; NULL where a text is no JSON."""
        yield f"{self.valid_sql('_text')} AS _json"

    def valid_sql(self, text: str) -> str:
        """Write a text that is JSON, or fails the query if records are trusted; NULL where it is none."""
        return text if self.trusting else f"CASE WHEN json_valid({text}) THEN {text} END"

    def steps(self) -> Iterator[str]:
        paths = ", ".join(json_path_sql(field.name) for field in self.schema.fields)
        yield from self.open_record()
        yield ", ".join(
            [
                f"json_type(_json, [{paths}]) AS _types",
                f"json_extract_string(_json, [{paths}]) AS _texts",
                *self.open_values(),
            ]
        )
        yield from self.read_parts()

    def read_parts(self) -> Iterator[str]:
        """Read the parts of STRUCTs, each once: what would be said of one again and again is planned as often."""
        parts = {names: type for names, type in places_of(self.schema.fields) if names in self.read_at}
        if parts:
            yield ", ".join(
                f"{self.typed_sql(type, replace(self.part_sql(type, names), read=''))} AS {self.read_at[names]}"
                for names, type in parts.items()
            )

    @cached_property
    def read_at(self) -> dict[tuple[str, ...], str]:
        """Name the values of all parts of STRUCTs that are none themselves."""
        types = dict(places_of(self.schema.fields))
        return {
            names: f"_read{at}"
            for names, at in self.parts_at.items()
            if types[names].kind is not TypeKind.STRUCT
        }

    def open_values(self) -> Iterator[str]:
        """Take out all parts of STRUCTs, and all that is an ARRAY or a MAP: a function that is called for each parses
        the record for each, and keeps what it has parsed.
        """
        if self.parts_at:
            paths = ", ".join(json_path_sql(*each) for each in self.parts_at)
            yield f"json_type(_json, [{paths}]) AS _part_types"
            yield f"json_extract_string(_json, [{paths}]) AS _part_texts"
        if self.lists_at:
            yield f"json_extract(_json, [{', '.join(json_path_sql(*each) for each in self.lists_at)}]) AS _lists"

    @cached_property
    def parts_at(self) -> dict[tuple[str, ...], int]:
        """Number the parts of STRUCTs, from 1."""
        parts = (names for names, _ in places_of(self.schema.fields) if len(names) > 1)
        return {names: at for at, names in enumerate(parts, 1)}

    @cached_property
    def lists_at(self) -> dict[tuple[str, ...], int]:
        """Number what is an ARRAY or a MAP and not in one, from 1."""
        lists = (names for names, type in places_of(self.schema.fields) if self.is_opened_alone(type))
        return {names: at for at, names in enumerate(lists, 1)}

    def is_opened_alone(self, type: SqlType) -> bool:
        """Return whether a value is opened by itself, as the JSON that it is."""
        return type.kind in (TypeKind.ARRAY, TypeKind.MAP)

    def extracted_sql(self, type: SqlType, names: tuple[str, ...]) -> str:
        """Write the JSON of a column, or of a part of a STRUCT, that is opened by itself."""
        return f"_lists[{self.lists_at[names]}]" if self.is_opened_alone(type) else ""

    def value_sql(self, field: Field, at: int) -> str:
        return self.typed_sql(field.type, self.place_sql(field, at))

    def place_sql(self, field: Field, at: int) -> Place:
        """Return where a column's value stands."""
        names = (field.name,)
        return Place(f"_types[{at}]", self.text_sql(field, at), self.extracted_sql(field.type, names), names)

    def text_sql(self, field: Field, at: int) -> str:
        """Write the text of a column: a string's own, of everything else the JSON."""
        return f"_texts[{at}]"

    def malformed_sql(self) -> Iterator[tuple[str, str]]:
        yield "_json IS NULL", f"left(_text, {SHOWN})"
        yield f"NOT starts_with(ltrim(_json, {BLANK}), '{{')", "'not an object: ' || json_type(_json)"

    def absent_sql(self, field: Field, at: int, *, null: bool) -> tuple[str, str]:
        also = f" OR _types[{at}] = 'NULL'" if null else ""
        return f"_types[{at}] IS NULL{also}", f"coalesce(_types[{at}], '')"

    def mistyped_sql(self, field: Field, at: int) -> tuple[str, str]:
        shown, no = f"left({self.text_sql(field, at)}, {SHOWN})", quote_literal(f" is no {field.type.spark}")
        said = f"_types[{at}] || ' ' || {shown} || {no}"
        if field.type.nested:
            return self.wrong_sql(field.type, self.place_sql(field, at)), said
        return f"{quote_identifier(field.name)} IS NULL AND _types[{at}] <> 'NULL'", said

    def scalar_sql(self, type: SqlType, found: str, text: str) -> str:
        """Write the value of a type without parts from the JSON type and text of what was found."""
        match type.kind:
            case TypeKind.STRING:
                return f"CASE WHEN {found} = 'VARCHAR' THEN {text} END"
            case TypeKind.INT | TypeKind.BIGINT:
                return f"CASE WHEN {found} IN {WHOLE} THEN {cast_text_sql(type, text)} END"
            case TypeKind.DOUBLE:
                tried = cast_text_sql(type, text)
                return f"CASE WHEN {found} IN {NUMBER} AND isfinite({tried}) THEN {tried} END"
            case TypeKind.DECIMAL:
                texts = " OR " + f"{found} = 'VARCHAR'" if self.exact_texts else ""
                return f"CASE WHEN {found} IN {NUMBER}{texts} THEN {cast_text_sql(type, text)} END"
            case TypeKind.BOOLEAN:
                return f"CASE WHEN {found} = 'BOOLEAN' THEN {text} = 'true' END"
        return f"CASE WHEN {found} = 'VARCHAR' THEN {cast_text_sql(type, text)} END"

    def typed_sql(self, type: SqlType, place: Place, depth: int = 0) -> str:
        """Write the value of any type from where it stands, part by part."""
        if place.read:
            return place.read
        item = f"_x{depth}"
        match type.kind:
            case TypeKind.STRUCT:
                parts = [
                    f"{quote_identifier(field.name)} := "
                    f"{self.typed_sql(field.type, self.member_sql(place, field), depth)}"
                    for field in type.fields
                ]
                return f"CASE WHEN {place.found} = 'OBJECT' THEN struct_pack({', '.join(parts)}) END"
            case TypeKind.ARRAY:
                assert type.element is not None
                made = self.typed_sql(type.element, self.place_value(type.element, item), depth + 1)
                items = f"list_transform({self.items_sql(type, place.json)}, lambda {item}: {made})"
                return f"CASE WHEN {place.found} = 'ARRAY' THEN {items} END"
            case TypeKind.MAP:
                assert type.element is not None
                made = self.typed_sql(type.element, self.place_value(type.element, f"{item}[2]"), depth + 1)
                members = self.members_sql(type, place.json, item)
                pairs = f"list_transform({members}, lambda {item}: row({item}[1], {made}))"
                return f"CASE WHEN {place.found} = 'OBJECT' THEN map_from_entries({pairs}) END"
        return self.scalar_sql(type, place.found, place.text)

    def wrong_sql(self, type: SqlType, place: Place, depth: int = 0) -> str:
        """Write the condition under which a value, or a part of it, is not of its type."""
        item, there = f"_y{depth}", f"{place.found} <> 'NULL'"
        match type.kind:
            case TypeKind.STRUCT:
                inside = [
                    self.amiss_sql(field, self.member_sql(place, field), depth) for field in type.fields
                ]
                return f"({there} AND ({place.found} <> 'OBJECT' OR {' OR '.join(inside)}))"
            case TypeKind.ARRAY | TypeKind.MAP:
                assert type.element is not None
                array = type.kind is TypeKind.ARRAY
                value = self.place_value(type.element, item if array else f"{item}[2]")
                each = f"coalesce({self.wrong_sql(type.element, value, depth + 1)}, false)"
                items = (
                    self.items_sql(type, place.json) if array else self.members_sql(type, place.json, item)
                )
                some = f"coalesce(list_bool_or(list_transform({items}, lambda {item}: {each})), false)"
                root = "ARRAY" if array else "OBJECT"
                return f"({there} AND ({place.found} <> '{root}' OR {some}))"
        return f"({there} AND ({self.typed_sql(type, place, depth)}) IS NULL)"

    def place_value(self, type: SqlType, json: str) -> Place:
        """Return where a value stands that has been taken out of an ARRAY or a MAP."""
        return Place(f"json_type({json})", f"json_extract_string({json}, '$')", json)

    def member_sql(self, place: Place, field: Field) -> Place:
        """Return where a member of an object stands, by its declared name."""
        if not place.path:
            return self.place_value(field.type, self.opened_member_sql(place.json, field))
        return self.part_sql(field.type, (*place.path, field.name))

    def part_sql(self, type: SqlType, names: tuple[str, ...]) -> Place:
        """Return where a part of a STRUCT stands that is in no ARRAY or MAP."""
        at, json, read = self.parts_at[names], self.extracted_sql(type, names), self.read_at.get(names, "")
        return Place(f"_part_types[{at}]", f"_part_texts[{at}]", json, names, read)

    def opened_member_sql(self, json: str, field: Field) -> str:
        """Write a member of an object that has been opened by itself."""
        return f"json_extract({json}, {json_path_sql(field.name)})"

    def items_sql(self, type: SqlType, json: str) -> str:
        """Write the items of an array that is read as ``type``."""
        return f"json_extract({json}, '$[*]')"

    def members_sql(self, type: SqlType, json: str, item: str) -> str:
        """Write the members of an object that is read as ``type``: a sorted list of (key, value)."""
        return json_members_sql(json, item)

    def amiss_sql(self, field: Field, place: Place, depth: int) -> str:
        """Write whether a part of a STRUCT is of another type, or is not there and must be."""
        wrong = f"coalesce({self.wrong_sql(field.type, place, depth)}, false)"
        return wrong if field.nullable else f"({wrong} OR coalesce({place.found}, 'NULL') = 'NULL')"


def json_path_sql(*names: str) -> str:
    """Write the path of a member, or of a member of one."""
    return quote_literal("$" + "".join("." + quote_identifier(name) for name in names))


def places_of(
    fields: Iterable[Field], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], SqlType]]:
    """List the paths of columns and of the parts of STRUCTs, with their types, but what is in an ARRAY or a MAP."""
    for field in fields:
        names = (*above, field.name)
        yield names, field.type
        if field.type.kind is TypeKind.STRUCT:
            yield from places_of(field.type.fields, names)


def json_members_sql(json: str, item: str) -> str:
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
