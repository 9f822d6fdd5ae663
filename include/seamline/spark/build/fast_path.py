"""The fast path of a build: the kernel's own SQL over the master's files, inside Spark's tasks.

A task scans its share of the files once for each view, and reports partial states; the few that all tasks report are
merged here. States that are too many to report go through files, a share of the intervals to a task.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from seamline.lake.engine import states
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.store.locations import delete_folder
from seamline.lake.tables.generations import Generations, Volume
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.time.intervals import Interval, parse_moment
from seamline.plan.batch.work_shares import Counts, split_by_size
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.build.partial_states import COUNTS, PARTS, STATES, Partials
from seamline.spark.build.repeated_ids import NO_PLACES, find_repeated_rows
from seamline.spark.build.share_rows import Share, ShareTask
from seamline.spark.build.spilled_states import SpilledStates, merge_states_in_tasks, write_merged_states
from seamline.spark.tasks.spread import Row, count_task_slots, run_in_tasks
from seamline.spark.tasks.task import limit_task_memory

REPORTED_BYTES = 4_000_000
"""States of a view that a task has more of are written to files instead of being reported."""
ALL_REPORTED_BYTES = 64_000_000
"""Bytes of a view's states that all tasks may report to the driver together."""


@dataclass(frozen=True)
class Touched:
    """A file that may contain rows of what is built."""

    path: str
    """Absolute."""
    size: int
    """Bytes."""
    rows: int
    """As the log states them."""
    interval: str = ""
    """The id of the interval to which all its rows belong, if each of them counts; else empty."""


@dataclass
class GatheredReports:
    """What all tasks reported."""

    counts: dict[str, Counts] = field(default_factory=dict)
    """By interval id."""
    states: dict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))
    """Partial states by version id."""
    spilled: dict[str, SpilledStates] = field(default_factory=lambda: defaultdict(SpilledStates))
    """States in files, by version id."""

    def take(self, kind: str, payload: bytes) -> None:
        """Take in one row of a report."""
        if kind == COUNTS:
            for interval, found in json.loads(payload).items():
                counts = Counts(**found)
                self.counts[interval] = self.counts[interval] + counts if interval in self.counts else counts
        elif kind.startswith(STATES):
            self.states[kind.removeprefix(STATES)].append(pa.ipc.open_stream(bytes(payload)).read_all())
        else:
            self.spilled[kind.removeprefix(PARTS)].take(payload)

    def add_known(self, own: Sequence[Touched], views: Sequence[CompiledView]) -> None:
        """Add the rows of files that nobody had to count; what views take of them was reported below zero."""
        choosy = [view.id for view in views if view.where]
        for each in own:
            if each.interval:
                counts = Counts(each.rows, 0, dict.fromkeys(choosy, each.rows), {})
                before = self.counts.get(each.interval)
                self.counts[each.interval] = before + counts if before else counts


def build_states_fast(
    spark: SparkSession,
    pipeline: CompiledPipeline,
    layout: Layout,
    master: Files,
    spans: Sequence[Interval],
    cut: int,
    attempt: str,
) -> tuple[dict[str, Counts], dict[str, dict[str, Volume]]]:
    """Write and commit the states of the intervals in ``spans`` of every view; return what was read, and written.

    ``master`` are the files of a version that contains the cut. One Spark job, and another where states are many.
    """
    tables = {view.id: Generations.ensure(layout, view) for view in pipeline.views}
    folders = {id: generations.folder(attempt) for id, generations in tables.items()}
    own = list_touched_files(pipeline, master, spans, cut)
    again = list_touched_files(pipeline, Reprocessed(pipeline, layout).files(), spans, cut)
    slots = count_task_slots(spark)
    work = tuple(split_into_shares(own, again, pipeline, slots))
    alone = any(share.alone for share in work)
    repeats = NO_PLACES
    if pipeline.event_id and work and not alone:
        rows = sum(each.rows for each in (*own, *again))
        scratch = next(iter(folders.values())) / "ids"
        repeats = find_repeated_rows(
            spark, ShareTask(pipeline, work, tuple(spans), cut), rows, slots, scratch
        )
    task = Partials(pipeline, work, tuple(spans), cut, folders, most_reported(len(work)), repeats)
    found = gather_reports(spark, task, len(work), pipeline)
    if repeats.paths:
        delete_folder(scratch)
    if not alone:
        found.add_known(own, pipeline.views)
    return found.counts, write_gathered_states(spark, pipeline, tables, found, attempt, slots)


def most_reported(tasks: int) -> int:
    """Return how many bytes of a view's states each of some tasks may report."""
    return min(REPORTED_BYTES, ALL_REPORTED_BYTES // max(tasks, 1))


def write_gathered_states(
    spark: SparkSession,
    pipeline: CompiledPipeline,
    tables: Mapping[str, Generations],
    found: GatheredReports,
    attempt: str,
    slots: int,
) -> dict[str, dict[str, Volume]]:
    """Merge what tasks reported of every view, write and commit it."""
    wrote = {}
    for view in pipeline.views:
        if view.id in found.spilled:
            memory = pipeline.definition.stream.worker_memory
            files_of = merge_states_in_tasks(
                spark,
                view,
                tables[view.id].folder(attempt),
                attempt,
                found.spilled[view.id],
                found.states[view.id],
                slots,
                memory,
            )
        else:
            reported = found.states[view.id]
            whole = states.combine_states(view, reported) if reported else None
            files_of = (
                []
                if whole is None
                else [*write_merged_states(whole, view, tables[view.id].table.root, attempt)]
            )
        hit_failpoint("states")
        wrote[view.id] = tables[view.id].commit_files(files_of)
        hit_failpoint("generation")
    return wrote


def gather_reports(
    spark: SparkSession, task: Callable[[int], Iterable[Row]], count: int, pipeline: CompiledPipeline
) -> GatheredReports:
    """Do some tasks in Spark, bounded in memory, and take in what they report."""
    found = GatheredReports()
    work = limit_task_memory(task, pipeline.definition.stream.worker_memory)
    for kind, payload in run_in_tasks(spark, work, count):
        found.take(kind, payload)
    return found


def list_touched_files(
    pipeline: CompiledPipeline, found: Files | None, spans: Sequence[Interval], cut: int
) -> list[Touched]:
    """List the files that may contain rows of the spans up to the cut."""
    if found is None or not found.actions.num_rows:
        return []
    found = found.keep(pc.less_equal(found.low("_epoch").cast(pa.int64()), cut))
    low, high = (side("_event_time").cast(INSTANT) for side in (found.low, found.high))
    mask = pa.chunked_array([pa.repeat(False, found.actions.num_rows)])
    for span in spans:
        begin, end = pa.scalar(span.start, INSTANT), pa.scalar(span.end, INSTANT)
        mask = pc.or_kleene(mask, pc.and_kleene(pc.less(low, end), pc.greater_equal(high, begin)))
    found = found.keep(mask)
    sizes, rows = (found.actions[name].to_pylist() for name in ("size_bytes", "num_records"))
    inside = find_file_intervals(pipeline, found, spans, cut)
    return [Touched(*each) for each in zip(found.paths, sizes, rows, inside, strict=True)]


def find_file_intervals(
    pipeline: CompiledPipeline, found: Files, spans: Sequence[Interval], cut: int
) -> Iterator[str]:
    """Find the id of the interval that all rows of a file are in, if its bounds show that each of them counts.

    Where a view multiplies rows, they must be looked at all the same.
    """
    looked_at = any(view.explode for view in pipeline.views)
    bounds = (
        found.low("_event_time").cast(INSTANT),
        found.high("_event_time").cast(INSTANT),
        found.high("_epoch").cast(pa.int64()),
        found.low("_record_version").cast(pa.string()),
        found.high("_record_version").cast(pa.string()),
    )
    for first, last, newest, version, other in zip(*(each.to_pylist() for each in bounds), strict=True):
        if (
            looked_at
            or None in (first, last, newest)
            or newest > cut
            or not version == other == pipeline.record_version
        ):
            yield ""
        else:
            own = pipeline.grid.of(first)
            asked = any(span.start <= own.start and own.end <= span.end for span in spans)
            yield own.id if asked and last < own.end else ""


def split_into_shares(
    own: Sequence[Touched], again: Sequence[Touched], pipeline: CompiledPipeline, cores: int
) -> list[Share]:
    """Share the files out among tasks; where one task has all, and ids are declared, it looks at each row."""
    every = [*own, *again]
    sizes = [each.size for each in every]
    work = split_by_size(sizes, cores)
    if pipeline.event_id and len(work) == 1:
        ours, theirs = (tuple(each.path for each in some) for some in (own, again))
        return [Share(ours, theirs, alone=True)]
    made = []
    for part in work:
        mine = [every[at] for at in part if at < len(own)]
        known: dict[int, tuple[str, ...]] = defaultdict(tuple)
        for each in mine:
            if each.interval:
                known[to_unix_micros(parse_moment(each.interval))] += (each.path,)
        made.append(
            Share(
                own=tuple(each.path for each in mine if not each.interval),
                again=tuple(every[at].path for at in part if at >= len(own)),
                known=dict(known),
            )
        )
    return made
