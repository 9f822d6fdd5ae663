"""Catching up a view that is behind: its missing slices, computed from the master by the general path."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from seamline.lake.joins.restatements import list_named_restatements
from seamline.lake.log.epoch_log import each_epoch, read_condensed_log
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import slices_schema
from seamline.lake.storage.delta_table import EPOCH
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import Reprocessed, read_reprocessed_log
from seamline.lake.tables.slices import PRUNES, Slices
from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import NotRestatable
from seamline.model.protocol.condensed import first_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.restated_views import count_named_restatements, find_naming_epoch
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Interval
from seamline.plan.batch.reprocessing_plan import list_outdated_epochs
from seamline.plan.batch.restating_plan import list_unbuilt_intervals
from seamline.plan.stream.epoch_numbers import step_end
from seamline.spark.build.changed_path import find_contributions
from seamline.spark.build.general_path import reprocess_restated_rows, require_sound
from seamline.spark.build.reprocessing import log_of
from seamline.spark.stream.derived.missed_folds import compute_missed_states
from seamline.spark.stream.derived.missed_joins import compute_missed_versions, derive_missing_rows
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.tasks.job_failures import describe_failed_step
from seamline.spark.tasks.measures import compute_states, floor_to_span, number_count_windows

log = logging.getLogger("seamline.stream")
CELL = "_cell"
STEP, EPOCHS = 1_000_000, 10_000
"""Rows of the master that a step reads, about, and epochs at most: live epochs wait for it."""


@dataclass(frozen=True)
class Step:
    """Epochs that a view's slices lack."""

    above: int
    """The epoch before the first, exclusive."""
    last: int
    """The last epoch, inclusive."""


def catch_up(
    spark: SparkSession, writer: Writer, views: Collection[str] | None = None, *, most: int = STEP
) -> bool:
    """Bring views that are behind a step nearer to E, of about ``most`` rows each; return whether any moved.

    All of them, or those named. The next master commit states the new frontiers. A view that fails again stays
    behind and harms nobody.
    """
    before = dict(writer.frontiers)
    late = [view for view in sorted(writer.behind) if views is None or view in views]
    if late:
        # Files that a handle of yesterday names may be gone: upkeep has put others in their place.
        writer.ledger.table.refresh()
        writer.master.table.refresh()
    for view in late:
        slices = writer.slices[view]
        step = next_step(writer, slices, most)
        if slices.view.process or slices.view.revised:
            step = step_to_edge(writer, step)
        why = find_waiting_epochs(writer, step, joined=slices.view.derived is not None)
        if slices.view.derived and not why:
            step, why = step_to_restatement(writer, slices.view, step)
            (writer.awaiting.add if why else writer.awaiting.discard)(view)
        if why:
            if writer.stuck.get(view) != why:
                log.warning("View %s stays behind at %s: %s", view, writer.frontiers[view], why)
            writer.stuck[view] = writer.errors[view] = why
            continue
        try:
            caught_up(spark, writer, slices, step)
            writer.frontiers[view] = step.last
            writer.errors.pop(view, None)
        except Exception as error:
            if type(error).__module__.startswith("seamline") and not isinstance(error, NotRestatable):
                raise
            log.warning("View %s stays behind at %s: %s", view, writer.frontiers[view], error)
            writer.errors[view] = describe_failed_step(error)
    return writer.frontiers != before


def find_waiting_epochs(writer: Writer, step: Step, *, joined: bool) -> str:
    """Describe why a step cannot be caught up: epochs wait to be validated again; empty if none does.

    They are those of the step, or all where rows are joined: derived rows are of rows of any epoch in reach.
    """
    if not joined:
        return format_foreign_epochs(writer, writer.ledger.read_after(step.above, step.last), step.above)
    if list_outdated_epochs(read_condensed_log(writer.layout), writer.pipeline.record_version, ()):
        # One by one: a condensed row has the number of its last epoch, and no verdict is about all of them.
        return format_foreign_epochs(writer, each_epoch(writer.layout), NOTHING)
    return ""


def format_foreign_epochs(writer: Writer, ledger: Iterable[Epoch], frontier: int) -> str:
    """Describe the epochs above a frontier that another record version validated, and this one not yet again."""
    ours = writer.pipeline.record_version
    found = [each for each in list_outdated_epochs(ledger, ours, ()) if each.number > frontier]
    judged = Reprocessed(writer.pipeline, writer.layout).verdicts() if found else ()
    others = [each for each in found if each.number not in judged]
    if not others:
        return ""
    return (
        f"epochs {others[0].number}..{others[-1].number} were validated by record version "
        f"{others[-1].record_version}, the definition's is {ours}; "
        f"`seamline quarantine replay {writer.pipeline.name}` reprocesses them"
    )


def next_step(writer: Writer, slices: Slices, most: int) -> Step:
    """Decide on the next slices above the view's frontier that the master contains.

    What was committed before a crash, and not stated by the master, is recognised by the newest number in the slices:
    a view takes epochs strictly in order, so that they are complete up to the last committed epoch at or below it.
    """
    newest = slices.table.refresh().txn(EPOCH)
    frontier = writer.frontiers[slices.view.id]
    held = writer.ledger.read_sizes(frontier, EPOCHS)
    above = max([frontier, *(number for number in held if newest is not None and number <= newest)])
    return Step(above, step_end(held, above, most))


def step_to_edge(writer: Writer, step: Step) -> Step:
    """Let a step end at the next edge: what changes derived rows is one set of slices, and no cut may be within it."""
    log = writer.ledger.read_after(step.above, step.last)
    return Step(step.above, next((each.number for each in log if each.edge), step.last))


def step_to_restatement(writer: Writer, view: CompiledView, step: Step) -> tuple[Step, str]:
    """Let a step end before an epoch that names restatements, which is a step of its own.

    It is taken once each interval that waits for it is built (rule 22); else the answer has the reason why not.
    """
    if not (decisions := list_restatements(writer.layout)):
        return step, ""
    naming = find_naming_epoch(read_condensed_log(writer.layout), step.above)
    if naming is None or (number := first_of(naming)) > step.last:
        return step, ""
    if naming.before is not None and step.above < naming.before:
        return Step(step.above, naming.before), ""
    manifest = ManifestTable.ensure(writer.layout).read()
    # An interval of which new rules refuse all rows is never built.
    log = read_reprocessed_log(writer.pipeline, writer.layout)
    published = partial(manifest.find_published, view.id)
    waiting = list_unbuilt_intervals(view, writer.pipeline.grid, decisions, published, log, naming)
    if not waiting:
        return Step(step.above, number), ""
    new = decisions[count_named_restatements(log, step.above) : naming.restated]
    names = sorted({each.lookup for each in new if view.derived and each.lookup in view.derived.lookups})
    return step, (
        f"look-up {', '.join(names)} was restated in epoch {number}, and "
        f"{format_unbuilt_intervals(writer.pipeline.name, manifest, view, waiting)}"
    )


def format_unbuilt_intervals(
    name: str, manifest: Manifest, view: CompiledView, waiting: Sequence[str]
) -> str:
    """Say what builds the intervals that a view waits for; one that somebody rolled back must be asked for."""
    for each in waiting:
        if by := manifest.hold([view.id], each):
            run = f"seamline run {name} --from {each}"
            return f"{each} was rolled back by {by.actor}: {by.reason}; `{run}` builds it all the same"
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    return f"{waiting[0]}{more} not built with it yet; `seamline run {name} --dirty` builds them"


def caught_up(spark: SparkSession, writer: Writer, slices: Slices, step: Step) -> None:
    """Commit a step's slices, all at once; nothing if they are there already."""
    if step.above == step.last:
        return
    found = compute_missing_slices(spark, writer, slices, after=step.above, until=step.last)
    block = write_slices_block(writer, slices, found, step.above + 1, step.last)
    log.info(
        "View %s caught up from %s to %s: %s rows", slices.view.id, step.above, step.last, found.num_rows
    )
    # A number that a dead attempt took stays the highest: the next start must not assign it again.
    slices.table.append(block, txns={EPOCH: max(step.last, slices.table.txn(EPOCH) or step.last)})


def compute_missing_slices(
    spark: SparkSession, writer: Writer, slices: Slices, *, after: int, until: int
) -> pa.Table:
    """Compute the slices of ``after < epoch <= until`` from the master, epoch by epoch: none crosses a cut.

    Those of rows that may be withdrawn are one set.
    """
    rows = log_of(spark, writer.pipeline, writer.layout, version=writer.master.table.version)
    wanted = (f.col("_epoch") > after) & (f.col("_epoch") <= until)
    missing = rows.where(wanted)
    memory = writer.pipeline.definition.stream.worker_memory
    if slices.view.derived:
        derived, decisions = slices.view.derived, list_named_restatements(writer.layout, until)

        def restate(near: DataFrame, span: Interval) -> DataFrame:
            made = reprocess_restated_rows(near, writer.pipeline, writer.layout, decisions, [span], derived)
            require_sound(made)
            return made

        if slices.view.process:
            found = compute_missed_states(
                rows, writer.pipeline, slices.view, writer.layout, restate, after=after, until=until
            )
            return name_epochs(found, slices.view, pa.scalar(after + 1), pa.scalar(until))
        if isinstance(derived, CompiledChangelog):
            given = writer.pipeline, writer.layout, derived, wanted, until, writer
            missing = find_contributions(spark, *given)
        elif isinstance(derived, CompiledJoin) and derived.latest:
            found = compute_missed_versions(
                rows, slices.view, derived, restate, after=after, until=until, memory=memory
            )
            return name_epochs(found, slices.view, pa.scalar(after + 1), pa.scalar(until))
        elif isinstance(derived, CompiledJoin):
            missing = derive_missing_rows(rows, derived, restate, after=after, until=until)
    elif slices.view.counts:
        # Which window a record is in depends on all before it in its interval.
        cell = floor_to_span("_event_time", slices.view.interval).alias(CELL)
        cells = missing.select(cell).distinct()
        whole = rows.where(f.col("_epoch") <= until).select("*", cell).join(cells, CELL, "left_semi")
        missing = number_count_windows(whole, slices.view, CELL).where(f.col("_epoch") > after)
    found = compute_states(missing, slices.view, by=["_epoch"], memory=memory).toArrow()
    return name_epochs(found, slices.view, found["_epoch"], found["_epoch"])


def name_epochs(
    found: pa.Table, view: CompiledView, first: pa.ChunkedArray | pa.Scalar, last: pa.ChunkedArray | pa.Scalar
) -> pa.Table:
    """Say of states which epochs they are of, from the first to the last of them."""
    for name, number in (("from_epoch", first), ("to_epoch", last)):
        column = pa.repeat(number, found.num_rows) if isinstance(number, pa.Scalar) else number
        found = found.append_column(name, column)
    schema = slices_schema(view)
    return found.select(schema.names).cast(schema)


def write_slices_block(
    writer: Writer, slices: Slices, found: pa.Table, first: int, last: int
) -> list[data_files.DataFile]:
    """Write the block as one file; none for no rows."""
    if not found.num_rows:
        return []
    name = f"{writer.token:06d}-{first:012d}-{last:012d}-{uuid.uuid4().hex}.parquet"
    return [data_files.write_data_file(found, slices.table.root, name, stats=PRUNES)]
