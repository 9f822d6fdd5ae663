"""Whether a place for a pipeline's tables is somebody else's already.

Below a folder that is a Delta table, its owner's VACUUM deletes whatever the table does not name: tables of ours, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from seamline.lake.storage.layout import Layout, find_warehouse, shared_warehouse, variable_of
from seamline.lake.storage.log_store import FOLDER
from seamline.lake.store.locations import Location, list_places
from seamline.model.errors import SetupError
from seamline.plan.maintain.transfers import PIPELINE_TABLES


@lru_cache(maxsize=256)
def require_free_place(layout: Layout) -> None:
    """Raise SetupError if tables of a pipeline, which are not there yet, would be inside of another's; asked once."""
    for table in find_tables_around(layout):
        raise SetupError(
            f"{layout.warehouse / layout.pipeline} is inside of the Delta table {table}, which is not Seamline's: "
            "what cleans that table up would delete ours.",
            hint=f"set {variable_of(layout.pipeline)} to a place that is no table and in none.",
        )
    for folder in (layout.warehouse, *layout.warehouse.parents):
        if has_pipeline(folder):
            raise SetupError(
                f"{layout.warehouse} is inside of {folder}, which has the tables of a pipeline of another warehouse.",
                hint=f"set {variable_of(layout.pipeline)} to the folder above it, or to a place of its own.",
            )


@lru_cache(maxsize=256)
def require_no_log_elsewhere(layout: Layout) -> None:
    """Raise SetupError if a pipeline without a log here has one in the shared warehouse: it would begin a second."""
    variable = variable_of(layout.pipeline)
    try:
        shared = Layout(shared_warehouse(), layout.pipeline)
    except SetupError:
        # No pipeline can have a log there.
        return
    if layout.warehouse == shared.warehouse or layout.warehouse != find_warehouse(layout.pipeline):
        return
    # The shared place is asked last: where there is a log here, it may be away.
    if not is_table(layout.table("master")) and is_table(shared.table("master")):
        raise SetupError(
            f"{variable} says {layout.warehouse}, where {layout.pipeline} has no log; it has one in the shared "
            f"warehouse, {shared.warehouse}.",
            hint=f"unset {variable} to go on there. To give that log up, and read again from Kafka what it still has: "
            f"delete {shared.warehouse / layout.pipeline}.",
        )


def find_tables_around(layout: Layout) -> Iterator[Location]:
    """Find the Delta tables that a pipeline's folder is, or is in."""
    for folder in (layout.warehouse / layout.pipeline, layout.warehouse, *layout.warehouse.parents):
        if is_table(folder):
            yield folder


def is_table(folder: Location) -> bool:
    """Return whether a folder is a Delta table."""
    return (folder / FOLDER).is_dir()


def has_pipeline(folder: Location) -> bool:
    """Return whether a folder has the tables of a pipeline."""
    return any(is_table(folder / mark) for mark in PIPELINE_TABLES)


def list_others(warehouse: Location, pipelines: frozenset[str]) -> tuple[list[str], list[str]]:
    """List the names in a warehouse that are of other pipelines than the given ones, and those of none."""
    names = [each.name for each in list_places(warehouse, "*") if each.name[0] not in "._"]
    others = [name for name in sorted(names) if name not in pipelines]
    known = [name for name in others if has_pipeline(warehouse / name)]
    return known, [name for name in others if name not in known]
