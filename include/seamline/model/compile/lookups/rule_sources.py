"""Sources whose records are rules for those of other sources: what they must have, and who asks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seamline.model.compile.compiled_source import CompiledSource
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.problems import Problems, format_known_columns
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
        if join.of not in names:
            note_rule_problem(
                askers[0],
                join,
                f"There is no source {join.of!r}.",
                f"name one of {', '.join(names)}.",
                problems,
            )
        else:
            check_rule_source(sources[names.index(join.of)], join, askers, problems)
    return tuple(
        replace(each, record=replace(each.record, ruling=tuple(join for join in lookups if join.of == name)))
        for name, each in zip(names, sources, strict=True)
    )


def check_rule_source(
    source: CompiledSource, join: LookupJoin, askers: Sequence[CompiledSource], problems: Problems
) -> None:
    """Note what rules cannot be made of."""
    if source in askers:
        note_rule_problem(
            source, join, "Its records would be their own rules.", "name another source.", problems
        )
    elif source.record.lookups:
        note_rule_problem(
            askers[0],
            join,
            f"Source {join.of!r} has look-ups of its own, and what is a rule must not depend on them.",
            "move what they add into the rules themselves.",
            problems,
        )
    for name, wanted in list_asked_columns(join):
        found = source.record.schema.field(name)
        if found is None:
            note_rule_problem(
                askers[0],
                join,
                f"Source {join.of!r} has no column {name!r}.",
                format_known_columns(source.record.schema, name),
                problems,
            )
        elif found.type != wanted:
            note_rule_problem(
                askers[0],
                join,
                f"Column {name!r} of source {join.of!r} is {found.type}, not {wanted}.",
                f'declare its type in columns=["{name} {found.type}"], or CAST what the key must equal.',
                problems,
            )


def list_asked_columns(join: LookupJoin) -> Iterator[tuple[str, SqlType]]:
    """List the columns that a rule must have, with their types."""
    yield from ((name, key.type) for name, key in join.keys)
    yield from ((name, field.type) for name, field in join.columns)
    if join.condition:
        yield join.condition, STRING


def note_rule_problem(
    asker: CompiledSource, join: LookupJoin, said: str, hint: str, problems: Problems
) -> None:
    """Note a problem at the look-up of the source that asks."""
    source = asker.definition.only_source
    origin = next(each.origin for each in source.lookups if each.name == join.name)
    problems.note(f"source[{source.name}].lookups[{join.name}].of", origin, said, hint)
