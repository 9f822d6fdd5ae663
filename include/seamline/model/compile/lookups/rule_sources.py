"""Sources whose records are rules for those of other sources: what they must have, and who asks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seamline.model.compile.compiled_source import CompiledSource
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.problems import Problems, format_known_columns
from seamline.model.definition.debezium import DELETED
from seamline.model.types.schema import STRING, SqlType


def attach_rule_tables(
    sources: Sequence[CompiledSource], lookups: Sequence[LookupJoin], problems: Problems
) -> tuple[CompiledSource, ...]:
    """Tell each source which look-ups its records are rules of; what does not fit is noted.

    ``lookups`` are those of all sources.
    """
    names = [each.definition.only_source.name for each in sources]
    for join in (each for each in lookups if each.of):
        askers = [each for each in sources if join in each.record.lookups]
        others = [name for name, each in zip(names, sources, strict=True) if each not in askers]
        if join.of in others:
            check_rule_source(sources[names.index(join.of)], join, askers[0], problems)
            continue
        said = (
            "Its records would be their own rules."
            if join.of in names
            else f"There is no source {join.of!r}."
        )
        hint = f"name one of {', '.join(others)}." if others else "declare a source of rules beside it."
        note_rule_problem(askers[0], join, "of", said, hint, problems)
    return tuple(
        replace(each, record=replace(each.record, ruling=tuple(join for join in lookups if join.of == name)))
        for name, each in zip(names, sources, strict=True)
    )


def check_rule_source(
    source: CompiledSource, join: LookupJoin, asker: CompiledSource, problems: Problems
) -> None:
    """Note what rules cannot be made of."""
    if source.record.lookups:
        note_rule_problem(
            asker,
            join,
            "of",
            f"Source {join.of!r} has look-ups of its own, and what is a rule must not depend on them.",
            "move what they add into the rules themselves.",
            problems,
        )
    if source.record.deletion:
        note_rule_problem(
            asker,
            join,
            "of",
            f"Source {join.of!r} reads tombstones as rows with {DELETED}, and here they take rules out of force.",
            f"remove key= and {DELETED} there: the newest record of each key in Kafka is in force anyway.",
            problems,
        )
    for place, name, wanted, hint in list_asked_columns(join):
        found = source.record.schema.field(name)
        if found is None:
            said = f"Source {join.of!r} has no column {name!r}."
            note_rule_problem(
                asker, join, place, said, format_known_columns(source.record.schema, name), problems
            )
        elif found.type != wanted:
            said = f"Column {name!r} of source {join.of!r} is {found.type}, not {wanted}."
            note_rule_problem(asker, join, place, said, hint.format(found.type), problems)


def list_asked_columns(join: LookupJoin) -> Iterator[tuple[str, str, SqlType, str]]:
    """List the columns that a rule must have: where each is asked for, its name and type, and a hint for another."""
    for name, key in join.keys:
        yield f"on[{name}]", name, key.type, "CAST what the key must equal to {}."
    for name, field in join.columns:
        yield "columns", name, field.type, f'declare the type that it has: columns=["{name} {{}}"].'
    if join.condition:
        hint = f"a condition is a text: change the schema of source {join.of!r}, or name another column."
        yield "condition", join.condition, STRING, hint


def note_rule_problem(
    asker: CompiledSource, join: LookupJoin, place: str, said: str, hint: str, problems: Problems
) -> None:
    """Note a problem at a setting of the look-up of the source that asks."""
    source = asker.definition.only_source
    origin = next(each.origin for each in source.lookups if each.name == join.name)
    problems.note(f"source[{source.name}].lookups[{join.name}].{place}", origin, said, hint)
