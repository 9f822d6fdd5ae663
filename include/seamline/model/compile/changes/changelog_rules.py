"""Which changelogs a definition declares, what a view counts of them, and what is wrong with either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.changes.row_changes import RowChanges
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.compile.derived_names import check_derived_name
from seamline.model.compile.derived_view import list_read_columns
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.process_view import compile_net_view
from seamline.model.compile.record_rules import Record
from seamline.model.definition.changes import Changelog
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.windows import Global
from seamline.model.time.intervals import Grid


def compile_changelogs(
    pipeline: Pipeline,
    records: Mapping[str, Record],
    changes: Mapping[str, RowChanges | None],
    problems: Problems,
) -> dict[str, CompiledChangelog]:
    """Compile the changelogs of a pipeline by name; note the problems of those that are left out.

    ``changes`` are what each source says of its records.
    """
    found: dict[str, CompiledChangelog] = {}
    for each in pipeline.derive if records else ():
        if not isinstance(each, Changelog) or not check_derived_name(pipeline, each, records, problems):
            continue
        if each.of not in records:
            known = ", ".join(filter(None, records)) or "none: sources that rows are derived from have names"
            problems.note(
                f"derive[{each.name}].of",
                each.origin,
                f"There is no source {each.of!r}.",
                f"the sources are {known}.",
            )
            continue
        before, said = len(problems.found), changes.get(each.of)
        check_changed_source(pipeline, each, said, records[each.of], problems)
        if said and len(problems.found) == before:
            fields = tuple(records[each.of].schema.fields)
            found[each.name] = CompiledChangelog(each.name, each.of, said, fields, records[each.of].selective)
    return found


def check_changed_source(
    pipeline: Pipeline, changelog: Changelog, said: RowChanges | None, record: Record, problems: Problems
) -> None:
    """Note what the source of a changelog lacks, and what it cannot have."""
    place = f"derive[{changelog.name}].of"
    source = next(each for each in pipeline.sources if each.name == changelog.of)
    if not source.key:
        problems.note(
            place,
            changelog.origin,
            f"{changelog.of!r} does not say which row of the table a record changes.",
            'write key=["id"] in the source, for example.',
        )
    elif source.event_id and said and {*source.event_id} <= {each.name for each in said.key}:
        problems.note(
            place,
            changelog.origin,
            f"event_id={list(source.event_id)!r} is the same for all changes of a row, so all but its first are "
            "copies.",
            "name a column in event_id= that differs between the changes of a row, or remove it.",
        )
    for lookup in record.lookups:
        problems.note(
            place,
            changelog.origin,
            f"The source has a look-up {lookup.name!r}: to restate it would change what each row was before all of "
            "its later changes.",
            "show its columns beside the keys: lookups= of the pipeline; or join it in a view of its own.",
        )


def compile_changelog_view(
    pipeline: Pipeline, view: View, changelog: CompiledChangelog, grid: Grid, problems: Problems
) -> CompiledView | None:
    """Compile a view of a table's rows, without a fingerprint; note its problems and return None where it has any."""
    before = len(problems.found)
    check_changelog_view(view, problems)
    if len(problems.found) > before:
        return None
    compiled = compile_net_view(pipeline, view, changelog.schema, grid, problems)
    return compiled and replace(compiled, changelog=changelog)


def check_changelog_view(view: View, problems: Problems) -> None:
    """Note what a view of a table's rows cannot have."""
    place = f"views[{view.name}]"
    if not isinstance(view.window, Global):
        problems.note(
            f"{place}.window",
            view.origin,
            "A change may replace a row of any age, so the rows of a time window would not be what the table had then.",
            "write window=Global(); read it as of an epoch of the past for what the table had then.",
        )
    if view.explode:
        problems.note(
            f"{place}.explode",
            view.origin,
            "A view of a table's rows cannot have explode.",
            "explode in a view of the source.",
        )
    if view.expect:
        problems.note(
            f"{place}.expect",
            view.origin,
            "An interval of a changelog has only what its changes add and take away, not what the table has.",
            "remove expect=, or put it on a view of the source.",
        )


def narrow_changelogs(views: Sequence[CompiledView]) -> tuple[CompiledView, ...]:
    """Let each changelog carry the columns that any of its views needs."""
    found = []
    for view in views:
        if view.changelog is None:
            found.append(view)
            continue
        mine = [each for each in views if each.changelog and each.of == view.of]
        used = frozenset[str]().union(*map(list_read_columns, mine))
        found.append(replace(view, changelog=view.changelog.narrowed(used)))
    return tuple(found)
