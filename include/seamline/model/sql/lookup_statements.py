"""``CREATE LOOKUP``: a table that is joined to records, or to answers."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.definition.sources import Lookup
from seamline.model.sql.options import list_settings, read_options, refuse_options, take_settings
from seamline.model.sql.reader import ASCII_NAME, Reader
from seamline.model.sql.scope import Names
from seamline.model.sql.slices import unquote
from seamline.model.sql.source_elements import read_typed_column
from seamline.model.sql.tokens import SqlToken

SAMPLE = "write CREATE LOOKUP name (column TYPE, ...) ON key = expression WITH (table = '...');"
OTHERWISE = ("name", "columns")
CLAUSES = {"on": "write ON key = expression.", "columns": "columns stand in the brackets.", "name": SAMPLE}


@dataclass(frozen=True)
class DeclaredLookup:
    """A look-up, and whose records it is joined to."""

    lookup: Lookup
    """The look-up."""
    source: str
    """The name of the source; empty where none is said."""


def read_lookup(reader: Reader, name: str, token: SqlToken, names: Names) -> DeclaredLookup:
    """Read what stands behind ``CREATE LOOKUP name``."""
    columns = reader.list_items(lambda: read_lookup_column(reader), SAMPLE)
    source = ""
    if reader.accept("FOR"):
        named = reader.name("the name of a source")
        source = unquote(named)
        names.find_source(reader, named, source)
    on = {}
    if reader.accept("ON"):
        with reader.within("ON"):
            on = read_keys(reader)
    options = read_options(reader)
    with reader.within("WITH"):
        settings = take_settings(reader, Lookup, options, besides=OTHERWISE)
        refuse_options(reader, options, {*list_settings(Lookup)} - {*OTHERWISE}, CLAUSES)
    lookup = Lookup(name, on=on, columns=columns, origin=reader.origin(token), **settings)
    return DeclaredLookup(lookup, source)


def read_lookup_column(reader: Reader) -> str:
    """Read ``name`` or ``name TYPE``."""
    token = reader.name("a column")
    if reader.next.symbol in (",", ")"):
        return unquote(token) if ASCII_NAME.fullmatch(unquote(token)) else token.text
    return read_typed_column(reader, token)


def read_keys(reader: Reader) -> dict[str, str]:
    """Read ``key = expression AND key = expression``."""
    found: dict[str, str] = {}
    while not found or reader.accept("AND"):
        token = reader.name("a column of the table")
        reader.expect_symbol("=", "write the table's column, and what it must equal: ON key = expression.")
        if unquote(token) in found:
            reader.fail(f"{token.shown} is there twice.", "delete one of them.", token)
        found[unquote(token)] = reader.expression("The expression", ("AND", "WITH")).text
    return found
