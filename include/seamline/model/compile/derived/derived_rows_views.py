"""Views of derived rows of any kind: which kind a view counts, and what rows of that kind have to carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seamline.model.compile.as_of.as_of_view import compile_as_of_view
from seamline.model.compile.changes.changelog_rules import compile_changelog_view, narrow_changelogs
from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.changes.declared_changelogs import find_changelog
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.compile.derived_view import compile_derived_view, narrow_joins
from seamline.model.compile.join_rules import find_join
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess, Derived
from seamline.model.compile.processes.fold_rules import find_fold
from seamline.model.compile.processes.process_view import compile_process_view
from seamline.model.compile.sources import split_process_name
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.time.intervals import Grid


def is_derived(pipeline: Pipeline, names: Sequence[str]) -> bool:
    """Return whether a view of some names counts derived rows that are declared."""
    return bool(find_join(pipeline, names) or find_fold(pipeline, names) or find_changelog(pipeline, names))


def compile_view_of_derived(
    pipeline: Pipeline,
    view: View,
    names: Sequence[str],
    derived: Mapping[str, Derived],
    grid: Grid,
    problems: Problems,
) -> CompiledView | None:
    """Compile a view of derived rows, without a fingerprint; None where it, or what makes its rows, has a problem."""
    name, side = split_process_name(names[0])
    made = derived.get(name)
    if isinstance(made, CompiledJoin) and made.latest:
        return compile_as_of_view(pipeline, view, made, grid, problems)
    if isinstance(made, CompiledJoin):
        return compile_derived_view(pipeline, view, made, grid, problems)
    if isinstance(made, CompiledProcess):
        return compile_process_view(pipeline, view, made, side, grid, problems)
    if isinstance(made, CompiledChangelog):
        return compile_changelog_view(pipeline, view, made, grid, problems)
    return None


def narrow_derived(views: Sequence[CompiledView]) -> tuple[CompiledView, ...]:
    """Let joins and changelogs carry what any of their views needs."""
    return narrow_changelogs(narrow_joins(views))
