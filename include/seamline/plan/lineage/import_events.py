"""The events of an import: from files, or a table, to the master and the quarantine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.imported.imports import Import
from seamline.plan.lineage.dataset_names import TableNames, name_place
from seamline.plan.lineage.lineage_events import (
    BuildFacts,
    LineageEvent,
    ReadDataset,
    RunName,
    RunState,
    WrittenDataset,
)
from seamline.plan.lineage.run_ids import make_run_id
from seamline.plan.lineage.table_columns import list_columns


def name_import_run(namespace: str, pipeline: str, decision: Import) -> RunName:
    """Name the run of an import by its decision: one process tells that it begins, and perhaps another how it ends."""
    job = f"seamline.{pipeline}.import"
    about = f"{namespace}.{job}.{decision.id}"
    return RunName(namespace, job, str(make_run_id(decision.at, about)))


def make_import_event(
    pipeline: CompiledPipeline,
    tables: TableNames,
    decision: Import,
    run: RunName,
    state: RunState,
    at: datetime,
    *,
    epoch: int,
    versions: Mapping[str, int],
    error: str = "",
) -> LineageEvent:
    """Make an event of an import; ``versions`` are those of ``master`` and ``quarantine``, as far as they are known."""
    named = {name: str(version) for name, version in versions.items()}
    return LineageEvent(
        state,
        at,
        run,
        streaming=False,
        facts=BuildFacts(pipeline.name, "", epoch, reason=decision.reason),
        inputs=(ReadDataset(name_place(decision.origin)),),
        outputs=(
            WrittenDataset(tables.master, list_columns(pipeline.schema.fields), named.get("master", "")),
            WrittenDataset(tables.quarantine, version=named.get("quarantine", "")),
        ),
        error=error,
    )
