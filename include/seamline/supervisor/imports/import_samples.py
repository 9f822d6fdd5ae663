"""A few rows of an import, validated as the stream would before anything is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.epoch_kernel import open_worker_duckdb, validate_records
from seamline.kernel.formats import open_readers
from seamline.kernel.kernel_config import configure_validation
from seamline.kernel.marks import join_marks
from seamline.kernel.raw import add_coordinates
from seamline.lake.imports.history_records import read_history_records
from seamline.lake.imports.import_plans import (
    ImportPlan,
)
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas, SchemasWanted
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.plan.stream.import_plan import (
    find_file_rows,
)

SAMPLE = 1_000
"""Rows that are validated before anything is asked for."""


@dataclass(frozen=True)
class Sample:
    """What becomes of the first rows."""

    accepted: int
    """How many are accepted."""
    refused: Mapping[str, int]
    """How many are refused, by reason."""
    example: str
    """The first refused record, empty for none."""
    detail: str
    """Why it is refused."""


def validate_sample(
    pipeline: CompiledPipeline, layout: Layout, plan: ImportPlan, log: Sequence[Epoch]
) -> Sample | None:
    """Validate the first rows of a plan as the stream would, with the look-ups of now; nothing is written but these.

    None where rules that come from a topic decide about them, or schemas that no record has named yet: only the stream
    has these.
    """
    if any(join.of for join in pipeline.lookups):
        return None
    tables = Lookups(pipeline.lookups, layout, in_force(log, pipeline.record_version))
    lookups = tables.version_paths(tables.current_versions())
    runs = find_file_rows(plan.files, 0, min(SAMPLE, plan.rows))
    con = open_worker_duckdb()
    batches = [each for run in runs for each in read_history_records(con, run, plan.options, plan.at)]
    if not sum(batch.num_rows for batch in batches):
        return Sample(0, {}, "", "")
    raw = add_coordinates(
        pa.Table.from_batches(batches), {plan.options.topic: ""}, NOTHING, pipeline.record_version
    )
    config = configure_validation(pipeline, lookups)
    readers = open_readers(pipeline, KeptSchemas(layout.schemas, final=False))
    try:
        accepted, refused = validate_records(con, join_marks(con, raw, pipeline, None), config, readers)
    except SchemasWanted:
        return None
    if plan.options.until is not None:
        bound = pa.scalar(plan.options.until, INSTANT)
        accepted = accepted.filter(pc.less(accepted["_event_time"], bound))
    reasons: dict[str, int] = {}
    for reason in refused["_reason"].to_pylist():
        reasons[reason] = reasons.get(reason, 0) + 1
    first = refused.slice(0, 1).to_pylist()
    example = first[0]["_value"].decode(errors="replace")[:300] if first else ""
    return Sample(accepted.num_rows, reasons, example, str(first[0]["_detail"] or "") if first else "")
