"""From record to row: what a definition does to each record between its bytes and the views."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from seamline.model.compile.changes.deletions import Deletion
from seamline.model.compile.lookups.lookup_join import (
    LookupJoin,
    check_lookups,
    compile_lookup,
    list_pinned_lookups,
)
from seamline.model.compile.problems import Problems, compile_condition, format_known_columns
from seamline.model.compile.transform import Transform, check_row_columns, compile_transform
from seamline.model.definition.origin import Origin
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sources import KafkaSource, Rule
from seamline.model.expressions import Expression, Guard, compile_expression
from seamline.model.types.schema import BIGINT, INT, STRING, TIMESTAMP, Field, Schema, SqlType, TypeKind

TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}", re.ASCII)
METADATA = (
    Field("_key", STRING),
    Field("_headers", SqlType(TypeKind.MAP, element=STRING)),
    Field("_topic", STRING, nullable=False),
    Field("_partition", INT, nullable=False),
    Field("_offset", BIGINT, nullable=False),
    Field("_kafka_timestamp", TIMESTAMP, nullable=False),
)
"""What Kafka knows of a record, for the expressions of a record; views see it by the names of ``select``."""
PROCESSING_TIME = "processing_time()"
"""The event time of a source that has none: when its epoch was read, kept in the row for both layers."""
SELECTED, SIDE, DUPLICATE = "_selected", "_side", "_duplicate"
SOURCE = "_source"
"""The column that names a row's source, where a pipeline has several."""


@dataclass(frozen=True)
class Record:
    """The steps by which a record becomes a row, in their order."""

    parsed: Schema
    """The columns of the source, added ones last."""
    derived: tuple[tuple[Field, Expression], ...] = ()
    """Columns with their expressions, each of which may use those before it."""
    rules: tuple[tuple[Rule, Expression], ...] = ()
    """Rules with their conditions."""
    sides: tuple[tuple[str, Expression], ...] = ()
    """Names of sides with their conditions, tried in order."""
    where: Expression | None = None
    """The condition by which a record of no side is selected, None for all."""
    transform: Transform | None = None
    """The user's function, None for none."""
    lookups: tuple[LookupJoin, ...] = ()
    """The look-ups whose columns are in rows."""
    added: tuple[Field, ...] = ()
    """The last of the parsed columns, which earlier rows may lack."""
    dedup: bool = False
    """Whether rows say that their event id was there before, and are then not selected."""
    sources: tuple[str, ...] = ()
    """The names of the sources that rows are of; none where a pipeline has one without a name."""
    flagged: frozenset[str] = frozenset()
    """Columns that say where a row belongs which other sources of the pipeline need: rows of all have the same."""
    ruling: tuple[LookupJoin, ...] = ()
    """The look-ups of other sources whose rules these records are."""
    deletion: Deletion | None = None
    """How a row says that a row was deleted; None where none does."""

    @property
    def schema(self) -> Schema:
        """List the columns of a row that views see."""
        own = self.transform.schema.fields if self.transform else ()
        found = (field for each in self.lookups for field in each.fields)
        return self.parsed.with_(*own, *found, *(field for field, _ in self.derived))

    @property
    def selective(self) -> bool:
        """Return whether a record may be accepted and yet be in no view."""
        own = self.where is not None or bool(self.sides) or self.transform is not None or self.dedup
        return own or SELECTED in self.flagged

    @property
    def flags(self) -> tuple[Field, ...]:
        """List the columns that say where a row belongs."""
        there = {SELECTED: self.selective, DUPLICATE: self.dedup}
        flags = tuple(Field(name, SqlType(TypeKind.BOOLEAN), nullable=False) for name in there if there[name])
        sided = (Field(SIDE, STRING),) if self.sides or SIDE in self.flagged else ()
        source = (Field(SOURCE, STRING, nullable=False),) if self.sources else ()
        return (*source, *flags, *sided)

    @property
    def metadata(self) -> frozenset[str]:
        """List what is asked of Kafka's own columns."""
        keys = [key for each in self.lookups for key in each.keys]
        matches = [condition for each in self.lookups for condition in (each.where, *each.conditions)]
        conditions = [condition for _, condition in (*keys, *self.derived, *self.rules, *self.sides)]
        conditions += filter(None, [*matches, self.where])
        used = frozenset[str]().union(*(each.columns for each in conditions))
        used |= {"_key"} if self.deletion else set()
        return used & {field.name for field in METADATA}

    def selected(self, where: Expression | None) -> Expression | None:
        """Restrict a view's condition to the rows of its sources that are selected at all."""
        if self.selective:
            own = compile_expression(f"`{SELECTED}`", Schema(self.flags))
            # DuckDB's scans compare a column with a value faster than they evaluate a condition that is one.
            where = restrict_condition(where, replace(own, duckdb=f"({own.duckdb} = TRUE)"))
        if self.sources:
            names = ", ".join(f"'{name}'" for name in self.sources)
            text = f"`{SOURCE}` IN ({names})" if self.sources[1:] else f"`{SOURCE}` = {names}"
            where = restrict_condition(where, compile_expression(text, Schema(self.flags)))
        return where


def restrict_condition(where: Expression | None, own: Expression) -> Expression:
    """Let a condition be evaluated only where ``own`` is true."""
    if where is None:
        return own
    return replace(
        where,
        spark=f"({own.spark} AND {where.spark})",
        duckdb=f"({own.duckdb} AND {where.duckdb})",
        columns=own.columns | where.columns,
        guards=tuple(
            Guard(f"({own.duckdb} AND {each.condition_duckdb})", each.message) for each in where.guards
        ),
    )


def compile_record(
    pipeline: Pipeline, base: Schema, problems: Problems, added: Sequence[Field] = ()
) -> Record:
    """Compile the steps of a record; problems are noted and what has them is left out."""
    origin, parsed = pipeline.origin, base.with_(*added)
    derived: list[tuple[Field, Expression]] = []
    transform = compile_transform(pipeline, base, problems, added)
    seen = parsed.with_(*transform.schema.fields) if transform else parsed
    check_lookups(pipeline, problems)
    lookups: list[LookupJoin] = []
    for lookup in list_pinned_lookups(pipeline):
        join = compile_lookup(lookup, seen, seen.with_(*METADATA), problems)
        if join is not None:
            lookups.append(join)
            seen = seen.with_(*join.fields)
    for name, text in pipeline.select.items():
        place = f"select[{name}]"
        if not problems.check_name(place, origin, name):
            continue
        if seen.field(name):
            problems.note(place, origin, f"A column {name!r} already exists.", "choose another name.")
        elif (made := compile_record_expression(text, seen, place, origin, problems)) is not None:
            derived.append((Field(name, made.type), made))
            seen = seen.with_(derived[-1][0])
    wide = seen.with_(*METADATA)
    rules = tuple(compile_rules(pipeline, wide, problems))
    sides = tuple(compile_sides(pipeline.side, wide, origin, problems))
    where = (
        problems.attempt("where", origin, lambda: compile_condition(pipeline.where, wide))
        if pipeline.where
        else None
    )
    record = Record(
        parsed,
        tuple(derived),
        rules,
        sides,
        where,
        transform,
        tuple(lookups),
        tuple(added),
        dedup=bool(pipeline.only_source.dedup_within),
    )
    if transform:
        own = len(parsed.with_(*transform.schema.fields).fields)
        check_row_columns(transform, Schema(record.schema.fields[own:]), origin, problems)
    return record


def compile_record_expression(
    text: str, seen: Schema, place: str, origin: Origin, problems: Problems
) -> Expression | None:
    """Compile an expression over the columns so far and what Kafka knows."""
    return problems.attempt(place, origin, lambda: compile_expression(text, seen.with_(*METADATA)))


def compile_rules(
    pipeline: Pipeline, schema: Schema, problems: Problems
) -> Iterator[tuple[Rule, Expression]]:
    """Compile each rule's condition."""
    for rule in pipeline.rules:
        condition = problems.attempt(
            f"rules[{rule.name}].condition",
            rule.origin,
            lambda r=rule: compile_condition(r.condition, schema),  # type: ignore[misc]
        )
        if condition is not None:
            yield rule, condition


def compile_sides(
    sides: Mapping[str, str], schema: Schema, origin: Origin, problems: Problems
) -> Iterator[tuple[str, Expression]]:
    """Compile the condition of each side."""
    for name, text in sides.items():
        place = f"side[{name}]"
        if not problems.check_name(place, origin, name):
            continue
        condition = problems.attempt(place, origin, lambda t=text: compile_condition(t, schema))  # type: ignore[misc]
        if condition is not None:
            yield name, condition


def check_topic_names(source: KafkaSource, problems: Problems) -> None:
    """Note topics that Kafka cannot have, and a source of none, or of one twice."""
    for topic in source.topics:
        if not TOPIC.fullmatch(topic):
            problems.note(
                "source.topic",
                source.origin,
                f"{topic!r} is not the name of a topic.",
                "Kafka's names have letters, digits, dots, underscores and dashes, 249 at most.",
            )
    if not source.topics or len(set(source.topics)) < len(source.topics):
        problems.note(
            "source.topic",
            source.origin,
            f"{source.topic!r} names no topic, or one of them twice.",
            'for example: topic="orders", or topic=["orders", "returns"].',
        )


def check_source(pipeline: Pipeline, schema: Schema, problems: Problems) -> None:
    """Note an event time or id that is no column, or none of the right type."""
    source = pipeline.only_source
    wide = schema.with_(*(field for field in METADATA if field.name == "_kafka_timestamp"))
    if isinstance(source, KafkaSource):
        check_topic_names(source, problems)
    if source.dedup_within and not source.event_id:
        problems.note(
            "source.dedup_within",
            source.origin,
            "There is no event id by which to find duplicates.",
            'add event_id=["order_id"].',
        )
    for field, names, columns in (
        ("source.event_time", [source.event_time], wide),
        ("source.event_id", source.event_id, schema),
    ):
        for name in names:
            found = next((each for each in columns.fields if each.name == name), None)
            if found is None and name == PROCESSING_TIME and field.endswith("time"):
                continue
            if found is None:
                problems.note(
                    field, source.origin, f"There is no column {name!r}.", format_known_columns(schema, name)
                )
            elif field.endswith("time") and found.type != TIMESTAMP:
                problems.note(field, source.origin, f"{name} is {found.type}.", "declare it TIMESTAMP.")
            elif found.type.nested:
                problems.note(
                    field, source.origin, f"{name} is {found.type}.", "select its parts in select=."
                )
