"""A SQL file as a whole: one pipeline, its sources, what is derived from them, its views and its sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.model.errors import DefinitionError
from seamline.model.sql.derived_statements import read_derived
from seamline.model.sql.lookup_statements import DeclaredLookup, read_lookup
from seamline.model.sql.options import read_options
from seamline.model.sql.pipeline_settings import PIPELINE, STEPS, take_pipeline_settings
from seamline.model.sql.places import SqlOrigin
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import Derived, Names
from seamline.model.sql.sink_statements import read_sink
from seamline.model.sql.slices import unquote
from seamline.model.sql.source_statements import read_source
from seamline.model.sql.tokens import SqlToken, TokenKind
from seamline.model.sql.view_statements import read_view

INSTEAD = {
    "TABLE": "write CREATE SOURCE for what is read, and CREATE VIEW for what is shown.",
    "STREAM": "write CREATE SOURCE.",
    "MATERIALIZED": "write CREATE VIEW: every view is materialized.",
    "TEMPORARY": "write CREATE DERIVED.",
    "OR": "leave OR REPLACE out: a file says what there is, and an edited one is another version.",
    "FUNCTION": "functions of yours are written in Python.",
    "CONNECTION": "connections are Airflow's: connection = 'kafka_default' in WITH.",
    "SECRET": "secrets are in Airflow's connections.",
    "INDEX": "a view is found by its keys and window anyway.",
}
"""What other dialects create, and what to write instead."""


@dataclass
class Parts:
    """What the statements of a file have declared."""

    pipeline: tuple[SqlToken, dict[str, Any]] | None = None
    """Where the pipeline is named, and its settings."""
    names: Names = field(default_factory=Names)
    """Sources and derived rows."""
    lookups: list[DeclaredLookup] = field(default_factory=list)
    """Look-ups."""
    views: list[View] = field(default_factory=list)
    """Views."""
    sinks: list[AnySink] = field(default_factory=list)
    """Sinks."""
    declared: dict[tuple[str, str], SqlToken] = field(default_factory=dict)
    """Where each name of a kind is declared."""
    places: dict[str, SqlToken] = field(default_factory=dict)
    """Where parts of views and of the pipeline stand."""
    source_places: dict[str, dict[str, SqlToken]] = field(default_factory=dict)
    """Where parts of sources stand, by the source's name."""


def pipeline_from_sql(file: str | Path) -> Pipeline:
    """Read the pipeline that a SQL file declares, equal to the one that the same lines in Python make.

    DefinitionError says line and column of what is wrong. A file in the folder of definitions is found without it.
    """
    try:
        text = Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        told = f"The file cannot be read: {error.strerror}."
        raise DefinitionError(told, hint="check its name.", file=str(file)) from None
    except UnicodeDecodeError as error:
        raise DefinitionError(
            f"The file is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}.",
            hint="save it as UTF-8.",
            file=str(file),
        ) from None
    return read_pipeline_text(text, str(file))


def read_pipeline_text(text: str, file: str) -> Pipeline:
    """Read the pipeline that SQL text declares."""
    reader, parts = Reader.of(text, file), Parts()
    parts.names.later = list_declared(reader)
    while reader.next.kind is not TokenKind.END:
        if not reader.accept_symbol(";"):
            read_statement(reader, parts)
    reader.clause = ""
    return build_pipeline(reader, parts)


def list_declared(reader: Reader) -> dict[str, int]:
    """List the sources and derived rows of the whole file, with the line of each."""
    found: dict[str, int] = {}
    for number, token in enumerate(reader.tokens[:-3]):
        if token.word == "CREATE" and reader.tokens[number + 1].word in ("SOURCE", "DERIVED"):
            found.setdefault(unquote(reader.tokens[number + 2]), token.line)
    return found


def read_statement(reader: Reader, parts: Parts) -> None:
    """Read one statement with the semicolon behind it."""
    reader.clause = ""
    if not reader.is_words("CREATE"):
        reader.fail(
            f"No statement begins with {reader.next.shown}.",
            f"a file has statements CREATE {', '.join(STATEMENTS)}, each with a semicolon behind it.",
        )
    token, kind = reader.take(), reader.next
    if kind.word not in STATEMENTS:
        known = f"there are CREATE {', '.join(STATEMENTS)}."
        reader.fail(f"There is no CREATE {kind.text}.", INSTEAD.get(kind.word, known))
    reader.take()
    if reader.is_words("IF", "NOT", "EXISTS"):
        reader.fail("A definition has no IF NOT EXISTS.", "leave it out.")
    named = reader.next
    nameless = kind.word == "SINK" and reader.is_words("FROM")
    name = "" if nameless else unquote(reader.name(f"the name of a {kind.text}"))
    reader.clause = " ".join(filter(None, (kind.word, name)))
    declare(reader, parts, kind.word, name, named)
    STATEMENTS[kind.word](reader, parts, name, token)
    if reader.next.kind is TokenKind.END:
        reader.fail("The statement does not end.", "put a semicolon behind it: a file may have been cut off.")
    if not reader.accept_symbol(";"):
        reader.fail(f"{reader.next.shown} does not belong here.", "delete it, or put a semicolon before it.")


def declare(reader: Reader, parts: Parts, kind: str, name: str, token: SqlToken) -> None:
    """Note a name; DefinitionError where it is borne twice."""
    rows = "SOURCE" if kind == "DERIVED" else kind
    before = parts.declared.setdefault((rows, name), token)
    if name and before is not token:
        reader.fail(
            f"{name!r} is declared twice (on line {before.line} before).", "rename one of them.", token
        )


def declare_pipeline(reader: Reader, parts: Parts, name: str, token: SqlToken) -> None:
    """Take ``CREATE PIPELINE``."""
    if parts.pipeline is not None:
        reader.fail(
            "The file declares two pipelines.", "a file has one: move the other one to its own file.", token
        )
    options = read_options(reader)
    parts.places |= {each.name: each.token for each in options.values()}
    with reader.within("WITH"):
        parts.pipeline = token, take_pipeline_settings(reader, name, token, options)


def declare_source(reader: Reader, parts: Parts, name: str, token: SqlToken) -> None:
    """Take ``CREATE SOURCE``."""
    found, parts.source_places[name] = read_source(reader, name, token)
    parts.names.sources[name] = found


def declare_derived(reader: Reader, parts: Parts, name: str, token: SqlToken) -> None:
    """Take ``CREATE DERIVED``."""
    add_derived(parts, read_derived(reader, name, token, parts.names), token)


def add_derived(parts: Parts, rows: Derived, token: SqlToken) -> None:
    """Keep derived rows."""
    parts.names.derived[rows.name] = rows
    parts.places[f"derive[{rows.name}]"] = token


def declare_lookup(reader: Reader, parts: Parts, name: str, token: SqlToken) -> None:
    """Take ``CREATE LOOKUP``."""
    parts.lookups.append(read_lookup(reader, name, token, parts.names))
    parts.places[f"lookups[{name}]"] = token


def declare_view(reader: Reader, parts: Parts, name: str, token: SqlToken) -> None:
    """Take ``CREATE VIEW``."""
    found = read_view(reader, name, token, parts.names)
    if found.rows is not None:
        declare(reader, parts, "DERIVED", found.rows.name, token)
        add_derived(parts, found.rows, token)
    parts.views.append(found.view)
    parts.places |= {f"views[{name}]": token, **found.places}


def declare_sink(reader: Reader, parts: Parts, name: str, token: SqlToken) -> None:
    """Take ``CREATE SINK``."""
    views = {view: found for (kind, view), found in parts.declared.items() if kind == "VIEW"}
    sink = read_sink(reader, name, token, views)
    parts.sinks.append(sink)
    parts.places[f"sinks[{sink.id}]"] = token


STATEMENTS: dict[str, Callable[[Reader, Parts, str, SqlToken], None]] = {
    "PIPELINE": declare_pipeline,
    "SOURCE": declare_source,
    "LOOKUP": declare_lookup,
    "DERIVED": declare_derived,
    "VIEW": declare_view,
    "SINK": declare_sink,
}
"""What takes each statement, by the word behind CREATE."""


def build_pipeline(reader: Reader, parts: Parts) -> Pipeline:
    """Make the pipeline of all statements."""
    if parts.pipeline is None:
        reader.fail("The file declares no pipeline.", PIPELINE)
    if not parts.names.sources:
        reader.fail("The pipeline has no source.", "write CREATE SOURCE.", parts.pipeline[0])
    token, settings = parts.pipeline
    alone = len(parts.names.sources) == 1 and not parts.names.derived
    made = build_only_source(parts) if alone else build_sources(parts)
    more = {"derive": [*parts.names.derived.values()], "sinks": parts.sinks}
    made |= {name: said for name, said in more.items() if said}
    places = {**parts.places, **list_source_places(parts, alone=alone)}
    origin = SqlOrigin(
        reader.file, token.line, {name: (place.line, place.column) for name, place in places.items()}
    )
    return Pipeline(**settings, **made, origin=origin)


def build_only_source(parts: Parts) -> dict[str, Any]:
    """Return the settings of a pipeline whose only source has no name: its steps are the pipeline's."""
    [declared] = parts.names.sources.values()
    steps = {name: getattr(declared.source, name) for name in STEPS if getattr(declared.source, name)}
    nothing: dict[str, Any] = {"name": "", "rules": (), "select": {}, "where": "", "side": {}}
    lookups = [each.lookup for each in parts.lookups]
    return {
        **steps,
        "source": replace(declared.source, **nothing),
        "views": [replace(view, of="") for view in parts.views],
        **({"lookups": lookups} if lookups else {}),
    }


def build_sources(parts: Parts) -> dict[str, Any]:
    """Return the settings of a pipeline whose sources have names."""
    sources = []
    for name, declared in parts.names.sources.items():
        own = [each.lookup for each in parts.lookups if each.source == name]
        sources.append(replace(declared.source, lookups=own) if own else declared.source)
    shown = [each.lookup for each in parts.lookups if not each.source]
    return {"source": sources, "views": parts.views, **({"lookups": shown} if shown else {})}


def list_source_places(parts: Parts, *, alone: bool) -> dict[str, SqlToken]:
    """List where parts of sources stand, by the fields of the definition."""
    found = {}
    for name, places in parts.source_places.items():
        for each, token in places.items():
            step = each.partition("[")[0] in STEPS
            found[each if alone and step else f"source.{each}" if alone else f"source[{name}].{each}"] = token
    return found
