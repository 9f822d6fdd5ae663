"""Look-ups: tables joined by key, to a record where they feed the row (pinned, rule 14), else to answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

from seamline.model.compile.problems import Problems, compile_condition, require_exact_key
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sources import Lookup
from seamline.model.definition.used_names import (
    extract_identifiers,
    list_pipeline_expressions,
    strip_prefixes,
)
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.types.schema import NAME as COLUMN
from seamline.model.types.schema import STRING, Field, Schema, SqlType, TypeKind, parse_field

MOST_CONDITIONS = 1_000
"""How many conditions the rules of one table may have: each record is compared with all of them."""


@dataclass(frozen=True)
class LookupJoin:
    """A look-up whose types are known. Without ``every``, keys are unique and a record without a match has NULL."""

    name: str
    """The look-up's name."""
    table: str
    """Where the table is, as declared; empty where it is of a source."""
    keys: tuple[tuple[str, Expression], ...]
    """Columns of the table with what each must equal."""
    columns: tuple[tuple[str, Field], ...]
    """Columns of the table with what each is called in the row."""
    every: Field | None = None
    """The array of the first column's values in all rows that match; None where keys are unique."""
    where: Expression | None = None
    """What is true of a record and a row of the table that matches; None for all that have the keys."""
    condition: str = ""
    """The column of the table that has each rule's own condition; empty where none has."""
    sees: Schema = Schema(())
    """What those conditions see of a record."""
    conditions: tuple[Expression, ...] = ()
    """Those of one version of the table, in the order of ``list_conditions``."""
    of: str = ""
    """The source whose newest records are the rows; empty where they are in a table."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """List the columns that a record gets."""
        return (self.every,) if self.every else tuple(field for _, field in self.columns)

    @property
    def shape(self) -> tuple[object, ...]:
        """Return what a version of the table is checked and read by: whoever shares a name shares that."""
        keys = tuple((key, made.type) for key, made in self.keys)
        return self.table, self.of, keys, self.columns, bool(self.every), self.condition, self.sees


def list_pinned_lookups(pipeline: Pipeline) -> tuple[Lookup, ...]:
    """List the look-ups of which a column is named in what makes a row or a view, or in another such look-up."""
    used = extract_identifiers(list_pipeline_expressions(pipeline))
    used |= strip_prefixes(pipeline, used)
    found: list[Lookup] = []
    for lookup in reversed(pipeline.lookups):
        if used & {name.lower() for name in list_row_names(lookup)}:
            found.insert(0, lookup)
            used |= extract_identifiers([*lookup.on.values(), lookup.where])
    return tuple(found)


def list_decorating_lookups(pipeline: Pipeline) -> tuple[Lookup, ...]:
    """List the look-ups that are not pinned."""
    feeding = list_pinned_lookups(pipeline)
    return tuple(lookup for lookup in pipeline.lookups if lookup not in feeding)


def asks_only(lookup: Lookup, keys: Schema) -> bool:
    """Return whether a look-up asks for nothing but a view's keys; a table of rules is for records alone."""
    if lookup.every or lookup.of:
        return False
    try:
        return bool([compile_expression(text, keys) for text in lookup.on.values()])
    except DefinitionError:
        return False


def list_row_names(lookup: Lookup) -> list[str]:
    """List what a record gets of a look-up."""
    return [lookup.every] if lookup.every else [row_name(lookup, each) for each in lookup.columns]


def row_name(lookup: Lookup, column: str) -> str:
    """Name a column of the table as the row has it; ``column`` may say a type."""
    return (lookup.prefix or f"{lookup.name}_") + (column.split() or [""])[0]


def check_lookups(pipeline: Pipeline, problems: Problems) -> None:
    """Note look-ups that have no name, no table, no key or no column."""
    names = [lookup.name for lookup in pipeline.lookups]
    for lookup in pipeline.lookups:
        place, origin = f"lookups[{lookup.name}]", lookup.origin
        if problems.check_name(place, origin, lookup.name) and names.count(lookup.name) > 1:
            problems.note(place, origin, f"{lookup.name!r} is declared twice.", "rename one of them.")
        if bool(lookup.table.strip()) == bool(lookup.of):
            problems.note(
                f"{place}.table",
                origin,
                "The look-up names a table and a source." if lookup.of else "The look-up names no table.",
                "keep table= or of=."
                if lookup.of
                else 'name a file, a folder, or "module:function"; or, with of=, another source of the pipeline.',
            )
        if not lookup.on and not lookup.every:
            problems.note(
                f"{place}.on",
                origin,
                "The look-up does not say how to find a row.",
                'for example: on={"column of the table": "expression"}.',
            )
        if not lookup.columns:
            problems.note(
                f"{place}.columns",
                origin,
                "The look-up names no column.",
                'list them: columns=["name", "seats INT"].',
            )
        if lookup.every:
            problems.check_name(f"{place}.every", origin, lookup.every)
        elif lookup.where or lookup.condition:
            problems.note(
                f"{place}.{'where' if lookup.where else 'condition'}",
                origin,
                "A condition selects any number of rows, and a record has a column of one.",
                'name the array of all that match: every="limits".',
            )
        elif lookup.of:
            problems.note(
                f"{place}.of",
                origin,
                "of= needs every=: what a source says is a table of rules, and a record meets any number of them.",
                'name the array of all that match: every="limits".',
            )
        check_ruling_source(pipeline, lookup, place, problems)


def check_ruling_source(pipeline: Pipeline, lookup: Lookup, place: str, problems: Problems) -> None:
    """Note rules from a source that can have none, or for one that can get none."""
    if lookup.of in {each.name for each in pipeline.tables if each.name}:
        problems.note(
            f"{place}.of",
            lookup.origin,
            f"Source {lookup.of!r} is a Delta table, and rules come from topics.",
            'name the table itself: table="/lake/limits", whose newest version counts.',
        )
    if lookup.of and not pipeline.sources[0].name:
        problems.note(
            f"{place}.of",
            lookup.origin,
            "The pipeline's only source cannot have its rules from another one.",
            'write source=[KafkaSource(name="cards", lookups=[...]), KafkaSource(name="limits", ...)].',
        )


def compile_decorations(
    pipeline: Pipeline, keys: Schema, taken: Sequence[str], problems: Problems
) -> tuple[LookupJoin, ...]:
    """Compile the look-ups whose columns a view shows beside its keys; ``taken`` are names it has for others."""
    row = keys.with_(*(Field(name, STRING) for name in taken))
    found = []
    for lookup in list_decorating_lookups(pipeline):
        join = compile_lookup(lookup, row, keys, problems) if asks_only(lookup, keys) else None
        if join is not None:
            found.append(join)
            row = row.with_(*join.fields)
    return tuple(found)


def check_decorating_lookups(
    pipeline: Pipeline, row: Schema, views: Iterable[Schema], problems: Problems
) -> None:
    """Note look-ups that neither a row nor a view has a use for; ``row`` are all columns, ``views`` keys of each."""
    keys = list(views)
    for lookup in list_decorating_lookups(pipeline):
        if any(asks_only(lookup, each) for each in keys):
            continue
        if lookup.every:
            problems.note(
                f"lookups[{lookup.name}].every",
                lookup.origin,
                f"Nothing uses {lookup.every!r}.",
                f'use it in an expression, or make a row of each match: explode={{"match": "{lookup.every}"}}.',
            )
        elif compile_lookup(lookup, Schema(()), row, problems) is not None:
            problems.note(
                f"lookups[{lookup.name}]",
                lookup.origin,
                "Nothing uses its columns, and no view has the keys that its on= uses.",
                "use a column in an expression, or only keys of a view in on=.",
            )


def compile_lookup(lookup: Lookup, row: Schema, seen: Schema, problems: Problems) -> LookupJoin | None:
    """Compile a look-up that reads ``seen`` and adds to ``row``; problems are noted."""
    before, place = len(problems.found), f"lookups[{lookup.name}]"
    keys = []
    for column, text in lookup.on.items():
        made = problems.attempt(
            f"{place}.on[{column}]",
            lookup.origin,
            lambda text=text: compile_exact_key(text, seen),  # type: ignore[misc]
        )
        if made is not None:
            keys.append((column, made))
    columns: list[tuple[str, Field]] = []
    for text in lookup.columns:
        field = problems.attempt(f"{place}.columns", lookup.origin, lambda text=text: column_of(text))  # type: ignore[misc]
        if field is None:
            continue
        named = Field(row_name(lookup, field.name), field.type)
        if not COLUMN.fullmatch(named.name):
            problems.note(
                f"{place}.prefix",
                lookup.origin,
                f"{named.name!r} is not a column name.",
                "start the prefix with a letter, then use letters, digits and underscores.",
            )
        if row.with_(*(each for _, each in columns)).field(named.name):
            problems.note(
                f"{place}.columns",
                lookup.origin,
                f"A column {named.name!r} already exists.",
                'set another prefix="..." for the look-up.',
            )
        columns.append((field.name, named))
    if len(problems.found) > before or not columns:
        return None
    join = LookupJoin(lookup.name, lookup.table, tuple(keys), tuple(columns), of=lookup.of)
    return compile_rules_table(lookup, join, row, seen, problems) if lookup.every else join


def compile_rules_table(
    lookup: Lookup, join: LookupJoin, row: Schema, seen: Schema, problems: Problems
) -> LookupJoin | None:
    """Add to the join of a look-up what ``every`` and ``where`` say; problems are noted."""
    before, place = len(problems.found), f"lookups[{lookup.name}]"
    wide = seen.with_(*(field for _, field in join.columns))
    if row.field(lookup.every) or wide.field(lookup.every):
        problems.note(
            f"{place}.every",
            lookup.origin,
            f"A column {lookup.every!r} already exists.",
            "choose another name.",
        )
    name, first = join.columns[0]
    if first.type.nested:
        problems.note(
            f"{place}.columns",
            lookup.origin,
            f"The array would be of {name}, which is {first.type}.",
            "let the first column be the one that names a rule.",
        )
    where = None
    if lookup.where:
        where = problems.attempt(
            f"{place}.where", lookup.origin, lambda: compile_condition(lookup.where, wide)
        )
    if len(problems.found) > before:
        return None
    array = SqlType(TypeKind.ARRAY, element=first.type)
    rules = replace(join, every=Field(lookup.every, array, nullable=False), where=where)
    return replace(rules, condition=lookup.condition, sees=seen) if lookup.condition else rules


@lru_cache(maxsize=4 * MOST_CONDITIONS)
def compile_rule_condition(text: str, sees: Schema) -> Expression:
    """Compile the condition of one rule, whose text is in a table; DefinitionError where it is none.

    It is done on a stack of its own, so that what is deep enough to be refused is so in all processes.
    """
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(compile_condition, text, sees).result()


def compile_exact_key(text: str, seen: Schema) -> Expression:
    """Compile what a key must equal; DefinitionError where that cannot be compared exactly."""
    made = compile_expression(text, seen)
    require_exact_key(repr(text), made.type, instead="CAST it, or compare a part of it")
    return made


def column_of(text: str) -> Field:
    """Read ``name TYPE``; without a type it is text."""
    return parse_field(text if len(text.split()) > 1 else f"{text} STRING")
