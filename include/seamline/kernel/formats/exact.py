"""JSON whose numbers become DECIMAL by their own digits, at any depth; never a double on the way.

DuckDB's functions of JSON read a number with a point as a double, all but ``json_transform`` where what it is to make
holds a DECIMAL: then it keeps every number as it is written, also those that it returns as text or as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from seamline.kernel.formats.decimals import decimal_sql
from seamline.kernel.formats.json import NUMBER, JsonReader, Place, json_path_sql, places_of
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.model.errors import SetupError
from seamline.model.types.schema import Field, SqlType, TypeKind

EXACT = ("_", "DECIMAL(1,0)")
"""A member that asks for numbers as they are written; no column begins with an underscore."""
LONG = "1234567890.12345678901234567890"
MANY = 16
"""DECIMALs of one type that are read as one list: what is spelled for each is planned for each."""


class ExactJsonReader(JsonReader):
    """Reads a number, or a text that spells one, into a DECIMAL if that keeps all of its digits.

    An ARRAY or a MAP that contains a DECIMAL is passed on as JSON that was not read yet. An object with a name twice is
    no MAP of those.
    """

    def steps(self) -> Iterator[str]:
        require_digits()
        yield from self.open_record()
        paths = ", ".join(json_path_sql(field.name) for field in self.schema.fields)
        shape = {field.name: "JSON" if field.type.decimals else "VARCHAR" for field in self.schema.fields}
        shape |= {field.name: "VARCHAR" for field in self.schema.fields if not field.type.nested}
        yield f"json_type(_json, [{paths}]) AS _types, {json_transform_sql('_json', shape)} AS _texts"
        if opened := list(self.open_values()):
            yield ", ".join(opened)
        if self.alike:
            yield ", ".join(self.read_alike_sql())
        yield from self.read_parts()

    @cached_property
    def alike(self) -> dict[SqlType, list[tuple[str, ...]]]:
        """List the columns and parts of STRUCTs of each DECIMAL type that has many."""
        found: dict[SqlType, list[tuple[str, ...]]] = {}
        for names, type in places_of(self.schema.fields):
            if type.kind is TypeKind.DECIMAL:
                found.setdefault(type, []).append(names)
        return {type: places for type, places in found.items() if len(places) >= MANY}

    @cached_property
    def alike_at(self) -> dict[tuple[str, ...], str]:
        """Say where the values of these are."""
        lists = enumerate(self.alike.values())
        return {names: f"_alike{n}[{at}]" for n, places in lists for at, names in enumerate(places, 1)}

    def read_alike_sql(self) -> Iterator[str]:
        """Write the lists of values that are alike."""
        columns = {field.name: self.place_sql(field, at) for at, field in enumerate(self.schema.fields, 1)}
        for n, (type, places) in enumerate(self.alike.items()):
            found = [columns[names[0]] if len(names) == 1 else self.part_sql(type, names) for names in places]
            texts = (f"CASE WHEN {may_be_number_sql(each.found)} THEN {each.text} END" for each in found)
            yield f"list_transform([{', '.join(texts)}], lambda _d: {decimal_sql(type, '_d')}) AS _alike{n}"

    def typed_sql(self, type: SqlType, place: Place, depth: int = 0) -> str:
        known = "" if place.read else self.alike_at.get(place.path, "")
        return known or super().typed_sql(type, place, depth)

    def open_values(self) -> Iterator[str]:
        yield from super().open_values()
        structs = [each for each in self.schema.fields if each.type.kind is TypeKind.STRUCT]
        if shape := shape_of(structs):
            yield f"{json_transform_sql('_json', shape)} AS _exact"

    def is_opened_alone(self, type: SqlType) -> bool:
        return super().is_opened_alone(type) and not type.decimals

    def extracted_sql(self, type: SqlType, names: tuple[str, ...]) -> str:
        if not type.decimals:
            return super().extracted_sql(type, names)
        return ".".join(["_texts" if len(names) == 1 else "_exact", *map(quote_identifier, names)])

    def text_sql(self, field: Field, at: int) -> str:
        return f"_texts.{quote_identifier(field.name)}"

    def scalar_sql(self, type: SqlType, found: str, text: str) -> str:
        if type.kind is not TypeKind.DECIMAL:
            return super().scalar_sql(type, found, text)
        return f"CASE WHEN {may_be_number_sql(found)} THEN {decimal_sql(type, text)} END"

    def place_value(self, type: SqlType, json: str) -> Place:
        found = super().place_value(type, json)
        # JSON is its own text; what is left of a string without its quotes may be a number.
        return replace(found, text=f"trim({json}::VARCHAR, '\"')") if type.kind is TypeKind.DECIMAL else found

    def part_sql(self, type: SqlType, names: tuple[str, ...]) -> Place:
        found = super().part_sql(type, names)
        return (
            replace(found, text=self.extracted_sql(type, names)) if type.kind is TypeKind.DECIMAL else found
        )

    def opened_member_sql(self, json: str, field: Field) -> str:
        if not field.type.decimals:
            return super().opened_member_sql(json, field)
        return f"{json_transform_sql(json, {field.name: 'JSON'})}.{quote_identifier(field.name)}"

    def items_sql(self, type: SqlType, json: str) -> str:
        return json_value_sql(json, ["JSON"]) if type.decimals else super().items_sql(type, json)

    def members_sql(self, type: SqlType, json: str, item: str) -> str:
        if not type.decimals:
            return super().members_sql(type, json, item)
        found = json_value_sql(json, "MAP(VARCHAR, JSON)")
        return f"list_sort(list_zip(map_keys({found}), map_values({found})))"

    def wrong_sql(self, type: SqlType, place: Place, depth: int = 0) -> str:
        found = super().wrong_sql(type, place, depth)
        if type.kind is not TypeKind.MAP or not type.decimals:
            return found
        return f"({found} OR {place.found} = 'OBJECT' AND {json_value_sql(place.json, 'MAP(VARCHAR, JSON)')} IS NULL)"


def may_be_number_sql(found: str) -> str:
    """Write whether a value of a JSON type may spell a number."""
    return f"{found} IN {NUMBER} OR {found} = 'VARCHAR'"


def shape_of(fields: Iterable[Field]) -> dict[str, Any]:
    """Name the DECIMALs among some fields, and in the STRUCTs among them; what else has one is opened by itself."""
    found: dict[str, Any] = {}
    for field in fields:
        if field.type.kind is TypeKind.STRUCT:
            found |= {field.name: inner} if (inner := shape_of(field.type.fields)) else {}
        elif field.type.decimals:
            found[field.name] = "VARCHAR" if field.type.kind is TypeKind.DECIMAL else "JSON"
    return found


def json_transform_sql(text: str, shape: dict[str, Any]) -> str:
    """Write the members of an object, numbers as they are written."""
    return f"json_transform({text}, {quote_literal(json.dumps({**shape, EXACT[0]: EXACT[1]}))})"


def json_value_sql(text: str, shape: Any) -> str:
    """Write a JSON value as it is asked for, numbers as they are written."""
    boxed = """('{"x":' || """ + text + """::VARCHAR || '}')"""
    return f"{json_transform_sql(boxed, {'x': shape})}.x"


@cache
def require_digits() -> None:
    """Raise SetupError where this DuckDB does not keep the digits of a number: no record may pass then."""
    with open_duckdb() as con:
        [[found]] = con.execute(f"SELECT {json_value_sql(quote_literal(LONG), 'VARCHAR')}").fetchall()
    if found != LONG:
        raise SetupError(
            f"This DuckDB reads {LONG} in JSON as {found}: DECIMAL columns would lose digits.",
            hint="install the DuckDB that requirements.txt names.",
        )
