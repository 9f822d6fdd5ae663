"""Which versions of look-ups a pipeline's numbers were made with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.read import decorations
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.reprocessed import read_reprocessed_epochs
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.protocol.condensed import count_of, first_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import merge_intervals


@dataclass
class Use:
    """What was read with one version of a look-up."""

    version: str
    """A hash of the look-up's rows."""
    first: int
    """The first epoch."""
    last: int = -1
    """The last epoch, inclusive; -1 before one is counted."""
    epochs: int = 0
    """How many epochs read with it."""
    accepted: dict[str, int] = field(default_factory=dict)
    """Accepted rows by interval id."""


def list_lookup_uses(epochs: Iterable[Epoch]) -> dict[str, list[Use]]:
    """List the versions of each pinned look-up by its name, in the order of their first epochs.

    Of a condensed log the epochs that read nothing are counted too.
    """
    found: dict[str, dict[str, Use]] = {}
    for epoch in epochs:
        for name, version in epoch.lookups.items():
            use = found.setdefault(name, {}).setdefault(version, Use(version, first_of(epoch)))
            use.last, use.epochs = epoch.number, use.epochs + count_of([epoch])
            for interval, rows in epoch.accepted.items():
                use.accepted[interval] = use.accepted.get(interval, 0) + rows
    return {name: list(some.values()) for name, some in found.items()}


def lookups_of(pipeline: CompiledPipeline, layout: Layout) -> list[str]:
    """Describe what each look-up feeds or decorates, and of which versions its columns are."""
    used = list_lookup_uses(read_reprocessed_epochs(pipeline, layout))
    current = in_force(read_condensed_log(layout), pipeline.record_version)
    declared = {join.name: join for join in pipeline.lookups}
    some = declared or pipeline.definition.lookups
    lines = [pipeline.name if some else f"{pipeline.name} has no look-ups"]
    gone = set(used) - set(declared)
    for name in [*declared, *sorted(gone)]:
        table = describe_table(declared[name]) if name in declared else "no longer in the definition"
        lines.append(f"  {name}  {table}: pinned, in the rows")
        for use in used.get(name, ()):
            lines += format_lookup_use(pipeline, use, now=current.get(name) == use.version)
        lines += [f"    restated: {each}" for each in list_restatements(layout) if each.lookup == name]
    for join, views in find_decorated_views(pipeline).items():
        version = decorations.load_current_lookup(join, layout).version or "none yet"
        lines.append(f"  {join.name}  {join.table}: beside {', '.join(views)}, version {version} shown")
    return lines


def describe_table(join: LookupJoin) -> str:
    """Say where a look-up's rows are from."""
    return f"the records of source {join.of}" if join.of else join.table


def format_lookup_use(pipeline: CompiledPipeline, use: Use, *, now: bool) -> Iterator[str]:
    """Describe what was read with a version, neighbouring intervals joined."""
    count = f"{use.epochs} epoch{'s' * (use.epochs > 1)} from {use.first} to {use.last}"
    yield f"    {use.version}  {count}, {sum(use.accepted.values())} rows{', in force' if now else ''}"
    intervals = (each for each in map(pipeline.grid.named, use.accepted))
    for span in merge_intervals(intervals):
        rows = sum(n for id, n in use.accepted.items() if pipeline.grid.named(id).start in span)
        yield f"      {span}  {rows} rows"


def find_decorated_views(pipeline: CompiledPipeline) -> dict[LookupJoin, list[str]]:
    """Find the look-ups that decorate, with the names of the views that show them."""
    found: dict[LookupJoin, list[str]] = {}
    for view in pipeline.views:
        for join in view.decorations:
            found.setdefault(join, []).append(view.name)
    return found
