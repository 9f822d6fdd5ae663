"""What imports tell: that they were decided, and how they have ended, from the tables of the moment."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.storage.layout import Layout, definitions_folder
from seamline.lake.tables.decided import list_imports
from seamline.lineage.batch_lineage import read_version
from seamline.lineage.batch_reporter import report_state
from seamline.lineage.configuration import read_namespace
from seamline.lineage.table_names import name_tables
from seamline.model.compile.catalog import load_pipeline
from seamline.model.protocol.imported.imports import Import
from seamline.plan.lineage.import_events import make_import_event, name_import_run
from seamline.plan.lineage.lineage_events import LineageEvent, RunState

TABLES = ("master", "quarantine")


def tell_import(layout: Layout, decision: Import, state: RunState, error: str = "") -> None:
    """Tell a state of an import, and wait for that a little."""

    def look(state: RunState, error: str) -> LineageEvent:
        pipeline = load_pipeline(definitions_folder(), layout.pipeline)
        found = {name: read_version(layout.table(name)) for name in TABLES}
        newest = newest_epochs(layout, 1)
        return make_import_event(
            pipeline,
            name_tables(pipeline, layout),
            decision,
            name_import_run(read_namespace(), pipeline.name, decision),
            state,
            datetime.now(UTC),
            epoch=newest[-1].number if newest else -1,
            versions={name: version for name, version in found.items() if version is not None},
            error=error,
        )

    report_state(look, state, error)


def tell_ended_imports(layout: Layout, ids: Collection[str]) -> None:
    """Tell of imports that nothing is left of to do how they have ended."""
    for each in list_imports(layout):
        if each.id in ids:
            state = RunState.ABORT if each.cancelled else RunState.COMPLETE
            tell_import(layout, each, state, each.cancelled)
