"""Two generations of an interval compared, and the difference in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seamline.lake.publish.generation_history import list_past_generations
from seamline.lake.read.row_differences import (
    Difference,
    after_column,
    before_column,
    compare_rows,
    difference_column,
    generation_rows,
    list_row_place_names,
)
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.errors import BadRange, NotFound
from seamline.model.protocol.manifest import Manifest
from seamline.model.time.intervals import Interval
from seamline.model.types.schema import TypeKind
from seamline.plan.publish.generation_fates import PastGeneration, find_generation, find_predecessor
from seamline.serve.query import format_cell


@dataclass(frozen=True)
class Compared:
    """Two generations of an interval and their difference."""

    before: PastGeneration
    """The one that was published earlier, or was named first."""
    after: PastGeneration
    """The one that was published later, or was named second."""
    difference: Difference
    """From ``before`` to ``after``."""


def compare_two_generations(
    pipeline: CompiledPipeline,
    layout: Layout,
    view_name: str,
    interval: Interval,
    *,
    earlier: str = "",
    later: str = "",
) -> Compared:
    """Compare two generations of an interval: the served one with the one published before it if not named.

    Raises NotFound if there is no such generation, or one that is gone.
    """
    manifest = manifest_of(layout)
    _, view = find_served_version(pipeline, layout, find_view(pipeline, layout, view_name))
    known = list_past_generations(layout, manifest, view_name, interval)
    current = manifest.published.get((view.id, interval.id))
    if current is None and not (earlier and later):
        raise NotFound(
            f"No generation of {view.qualified} {interval.id} is published.",
            hint="pass both --from and --to.",
        )
    after = require_kept_generation(find_generation(known, later or (current.generation if current else "")))
    other = earlier or find_predecessor(
        manifest.history.get((after.generation.view, interval.id), ()),
        after.generation.id,
        manifest.forgotten,
    )
    if not other:
        raise NotFound(
            f"No kept generation was published before generation {after.generation.id} of {view.qualified} "
            f"{interval.id}.",
            hint="name another with --from; seamline history lists them.",
        )
    first = require_kept_generation(find_generation(known, other))
    views = [version_view(pipeline, manifest, each) for each in (first, after)]
    rows = [
        generation_rows(layout, one, interval, each.generation.id)
        for one, each in zip(views, (first, after), strict=True)
    ]
    return Compared(
        first, after, compare_rows(rows[0], rows[1], places_of(*views), list_common_measures(*views))
    )


def require_kept_generation(each: PastGeneration) -> PastGeneration:
    """Return the generation; NotFound if rows of it are gone."""
    if each.kept:
        return each
    raise NotFound(
        f"Generation {each.generation.id} is gone: {each.held} of its {each.generation.rows} rows are left.",
        hint="seamline history lists those that are kept.",
    )


def version_view(pipeline: CompiledPipeline, manifest: Manifest, each: PastGeneration) -> CompiledView:
    """Find the version of the view that a generation is of."""
    return resolve_view_version(pipeline, manifest, each.generation.view)[1]


def places_of(first: CompiledView, after: CompiledView) -> list[str]:
    """List the columns that distinguish rows of both versions; BadRange if their keys or the types of these differ.

    Keys that are whole numbers are compared as such.
    """
    names = list_row_place_names(first), list_row_place_names(after)
    whole = (TypeKind.INT, TypeKind.BIGINT)
    types = [
        ["BIGINT" if key.type.kind in whole else key.type.spark for key in each.keys]
        for each in (first, after)
    ]
    if names[0] != names[1] or types[0] != types[1]:
        keys = [
            ", ".join([GROUPING] * each.grouped + [f"{key.name} {key.type.spark}" for key in each.keys])
            for each in (first, after)
        ]
        raise BadRange(
            f"The versions of {after.qualified} have other keys: {keys[0] or 'none'}, and {keys[1] or 'none'}.",
            hint="compare totals of both with seamline query --version.",
        )
    return names[0]


def list_common_measures(first: CompiledView, after: CompiledView) -> list[str]:
    """List the measures that both versions have, and the texts of totals that no DECIMAL holds."""
    known = {*(each.name for each in first.measures), *first.beyond}
    return [name for name in (*(each.name for each in after.measures), *after.beyond) if name in known]


def format_difference(found: Difference) -> Iterator[str]:
    """Describe how many rows differ, and each measure's largest change."""
    if found.none:
        yield f"{found.equal} rows, no difference."
        return
    yield (
        f"{found.equal} rows equal, {found.changed} changed, {found.only_before} only before, "
        f"{found.only_after} only after."
    )
    for name, most in found.measures.items():
        if most.count:
            yield f"  {name}: {most.count} changed" + (
                f", most {format_largest_change(found, name)}" if most.row else ""
            )


def format_largest_change(found: Difference, name: str) -> str:
    """Describe a measure's largest change and where it is."""
    row = found.measures[name].row
    assert row
    where = ", ".join(f"{place}={format_cell(row[place])}" for place in found.places if place != "window_end")
    gain = row[difference_column(name)]
    sign = "+" if gain > 0 else ""
    before, after = format_cell(row[before_column(name)]), format_cell(row[after_column(name)])
    return f"{before} -> {after} ({sign}{format_cell(gain)}) at {where}"
