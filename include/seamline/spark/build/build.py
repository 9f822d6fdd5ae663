"""The build: states of whole intervals from the master's rows up to a cut."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from seamline.lake.joins.restatements import list_named_restatements
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.generations import Volume
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.readiness import require_repaired
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import ProtocolError
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.restatement import Restatement
from seamline.plan.batch.work_shares import Counts
from seamline.plan.maintain.unneeded import STAMP
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.build.derived_path import build_derived_states
from seamline.spark.build.fast_path import build_states_fast
from seamline.spark.build.general_path import build_states_general
from seamline.spark.build.joined_copies import Copies
from seamline.spark.build.reprocessing import reprocess_epochs
from seamline.spark.build.share_rows import ROW_NAMES
from seamline.spark.tasks.job_failures import translate_spark_errors

NO_ROWS = Counts(0, 0, {}, {})


def build_intervals(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, job: BuildJob, *, fast: bool = True
) -> list[BuildRow]:
    """Build the intervals in ``job.spans`` of every live view from the master's rows up to ``job.cut``.

    One attempt has one generation id. ``fast`` is taken where it is possible; both ways make the same.
    Raises ProtocolError if the master does not contain the cut, OutOfStep if a start has to repair it first,
    SparkFailed where Spark does not outlive it: then nothing refers to what it wrote.
    """
    began = time.monotonic()
    require_repaired(layout)
    with translate_spark_errors(f"run {job.run}"):
        reprocess_epochs(spark, pipeline, layout, until=job.cut)
    pipeline = add_live_versions(pipeline, layout)
    # Read before the restatements: who has published since is found out, and none he knew is missed.
    expected = ManifestTable.ensure(layout).read().published
    decisions = list_restatements(layout)
    named = list_named_restatements(layout, job.cut)
    attempt = f"{datetime.now(UTC):{STAMP}}-{uuid.uuid4().hex[:12]}"
    master = Master.open(layout)
    if master.epoch < job.cut:
        raise ProtocolError(
            f"The master ends at {master.epoch} (version {master.table.version}), but the cut is {job.cut}.",
            hint="a cut must be an edge that the master contains; plan again.",
        )
    columns = [each.name for each in master.table.handle.schema().fields]
    plain = replace(pipeline, views=tuple(view for view in pipeline.views if not view.derived))
    found: Mapping[str, Counts] = {}
    wrote: dict[str, dict[str, Volume]] = {}
    with translate_spark_errors(f"run {job.run}"):
        if plain.views and fast and is_fast_path_possible(plain, job, decisions, columns):
            found, wrote = build_states_fast(
                spark, plain, layout, Files.of(master.table), job.spans, job.cut, attempt
            )
        elif plain.views:
            found, wrote = build_states_general(spark, plain, layout, job, decisions, attempt)
        derived = build_derived_states(spark, pipeline, layout, job, named, attempt)
        wrote |= derived.volumes
    seconds, at = time.monotonic() - began, datetime.now(UTC)
    result = []
    for view in pipeline.views:
        for interval in (each for span in job.spans for each in pipeline.grid.within(span)):
            count = derived.counts.get(view.id, found).get(interval.id, NO_ROWS)
            copies = derived.copies.get(view.id, {}).get(interval.id, Copies())
            volume = wrote[view.id].get(interval.id, Volume(0, 0))
            current = expected.get((view.id, interval.id))
            result.append(
                BuildRow(
                    run=job.run,
                    view=view.id,
                    interval=interval.id,
                    generation=attempt,
                    cut=job.cut,
                    rows=volume.rows,
                    state_rows=volume.state_rows,
                    rows_read=count.read,
                    duplicates=count.duplicates,
                    not_selected=count.not_selected.get(view.id, 0),
                    exploded=count.exploded.get(view.id, 0),
                    expected=current.generation if current else "",
                    seconds=seconds,
                    reason=job.reason,
                    at=at,
                    restated=len(named if view.derived else decisions),
                    planned=job.planned,
                    copies=copies.rows,
                    copied=copies.first,
                    unanswered=derived.unanswered.get(view.id, {}).get(interval.id, 0),
                )
            )
    Builds.ensure(layout).append(result)
    hit_failpoint("built")
    return result


def is_fast_path_possible(
    pipeline: CompiledPipeline, job: BuildJob, decisions: Sequence[Restatement], columns: Iterable[str]
) -> bool:
    """Return whether the fast path makes the same from a master with such columns.

    No row is validated again on the way, no events are numbered, and no column hides what DuckDB says of a row's place.
    """
    restated = any(each.span.overlaps(span) for each in decisions for span in job.spans)
    hidden = any(name.lower() in ROW_NAMES for name in columns)
    return not restated and not hidden and not any(view.counts for view in pipeline.views)
