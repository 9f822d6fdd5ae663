"""What was decided about look-ups, as it is for the views that are live."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import ProtocolError
from seamline.model.protocol.condensed import first_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Statement
from seamline.model.protocol.restated_views import Restated, count_named_restatements, find_naming_epoch
from seamline.model.protocol.restatement import Restatement
from seamline.plan.batch.restating_plan import list_unbuilt_intervals


def read_restated(pipeline: CompiledPipeline, layout: Layout, log: Sequence[Epoch]) -> Restated:
    """Read the decisions, and how many of them the epochs of a log name."""
    views = add_live_versions(pipeline, layout).views
    return Restated.of(pipeline.grid, list_restatements(layout), views, log[-1].restated if log else 0)


def list_named_restatements(layout: Layout, number: int) -> tuple[Restatement, ...]:
    """List the decisions that joined rows up to an epoch are made with."""
    return take_named_restatements(layout, count_named_restatements(read_condensed_log(layout), number))


def take_named_restatements(layout: Layout, count: int) -> tuple[Restatement, ...]:
    """List the first so many decisions, which an epoch names; ProtocolError where the control table has lost some."""
    made = list_restatements(layout)
    if count > len(made):
        raise ProtocolError(
            f"Epochs name {count} restatements, and the control table of {layout.pipeline} has {len(made)}.",
            hint="it is older than the log: bring it back from a newer backup, or the whole warehouse from one.",
        )
    return made[:count]


def find_fitting_epoch(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    find_answering: Callable[[str], Statement | None],
    *,
    born: int,
    until: int,
) -> int:
    """Return the last epoch, ``until`` at most, whose slices fit the generations that answer, by the ids of intervals.

    Slices from an epoch on that names decisions fit no generation that was made without them (rule 22). A view has no
    slices of epochs before the one that it was ``born`` with.
    """
    if not (decisions := list_restatements(layout)):
        return until
    log, above = read_condensed_log(layout), born - 1
    known: list[Epoch] = []
    while (naming := find_naming_epoch(log, above)) and (number := first_of(naming)) <= until:
        known = known or read_reprocessed_log(pipeline, layout)
        if list_unbuilt_intervals(view, pipeline.grid, decisions, find_answering, known, naming):
            return number - 1
        above = number
    return until
