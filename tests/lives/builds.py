"""What Spark itself computes of a build: rows that were restated, and the joins of those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.lives.derived.joined import logged, restated
from tests.lives.frames import Frame, Here

from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.generations import Volume
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import Interval, merge_intervals
from seamline.model.time.reached_intervals import widen_to_intervals
from seamline.plan.batch.join_slices import Slice, TimedFile, leave_out
from seamline.plan.batch.work_shares import Counts
from seamline.spark.build import build, derived_path, fast_path
from seamline.spark.build.general_path import list_meant_restatements

Made = tuple[Mapping[str, Counts], dict[str, dict[str, Volume]]]
HERE: Any = Here()


def log_rows(_: object, pipeline: CompiledPipeline, layout: Layout, job: BuildJob) -> Frame:
    """Read the rows of a job's spans up to its cut."""
    rows = logged(pipeline, layout, job.cut)
    moments = rows["_event_time"]
    mask = pa.chunked_array([pa.repeat(False, rows.num_rows)])
    for span in job.spans:
        mask = pc.or_(mask, within(moments, span))
    return Frame(rows.filter(mask))


def reprocess_restated_rows(
    rows: Frame,
    pipeline: CompiledPipeline,
    layout: Layout,
    decisions: Sequence[Restatement],
    spans: Sequence[Interval],
    join: CompiledJoin | None = None,
) -> Frame:
    """Make rows as decisions have them: those alone that one of them is about, which is one of the join's own."""
    found, meant = rows.toArrow(), list_meant_restatements(decisions, spans, join)
    mask = pa.chunked_array([pa.repeat(False, found.num_rows)])
    for each in meant:
        known = pc.less_equal(found["_epoch"], each.epoch)
        mask = pc.or_(mask, pc.and_(known, within(found["_event_time"], each.span)))
    made = restated(pipeline, layout, found.filter(mask), decisions if meant else [])
    return Frame(pa.concat_tables([found.filter(pc.invert(mask)), made.select(found.column_names)]))


def within(moments: pa.ChunkedArray, span: Interval) -> pa.ChunkedArray:
    """Tell which moments are in a span."""
    begin, end = (pa.scalar(each, moments.type) for each in (span.start, span.end))
    return pc.and_(pc.greater_equal(moments, begin), pc.less(moments, end))


def build_general(
    _: object,
    pipeline: CompiledPipeline,
    layout: Layout,
    job: BuildJob,
    decisions: Sequence[Restatement],
    attempt: str,
) -> Made:
    """Build restated rows in the way of others, as if they were the master's."""
    rows = restated(pipeline, layout, log_rows(HERE, pipeline, layout, job).toArrow(), decisions)
    with TemporaryDirectory() as folder, patch.object(fast_path, "Reprocessed", Nothing):
        file = write(rows, folder)
        about = {"path": [file.name], "size_bytes": [file.stat().st_size], "num_records": [rows.num_rows]}
        files = Files(Path(folder), 0, pa.table(about))
        return fast_path.build_states_fast(HERE, pipeline, layout, files, job.spans, job.cut, attempt)


class Nothing:
    """In the place of rows that were validated again: they are among the others."""

    def __init__(self, *_: object) -> None: ...

    def files(self) -> None:
        """There are none."""


def build_by_shuffle(
    rows: Frame,
    pipeline: CompiledPipeline,
    layout: Layout,
    job: BuildJob,
    join: CompiledJoin,
    attempt: str,
) -> Made:
    """Join rows of all intervals in reach as slices of time are joined, as if they were the master's."""
    found, spans = rows.toArrow(), merge_intervals(job.spans)
    wide = merge_intervals(widen_to_intervals(pipeline.grid, span, pipeline.views[0]) for span in job.spans)
    with TemporaryDirectory() as folder:
        path = write(found, folder)
        first, last = (each.as_py() for each in pc.min_max(found["_event_time"]).values())
        files = (TimedFile(str(path), path.stat().st_size, found.num_rows, first, last),) if first else ()
        slices = [Slice(span, files, built=True) for span in spans]
        slices += [Slice(rest, files, built=False) for span in wide for rest in leave_out(span, [*spans])]
        return derived_path.build_by_slices(
            HERE, pipeline, layout, job, join, slices if files else [], attempt
        )


def write(rows: pa.Table, folder: str) -> Path:
    """Write rows as a file."""
    path = Path(folder) / "rows.parquet"
    pq.write_table(rows, path)
    return path


STAND_INS = (
    (build, "build_states_general", build_general),
    (derived_path, "log_rows", log_rows),
    (derived_path, "reprocess_restated_rows", reprocess_restated_rows),
    (derived_path, "build_by_shuffle", build_by_shuffle),
)


@contextmanager
def sparkless_builds() -> Iterator[None]:
    """Build without Spark what does not go the way of small builds."""
    with ExitStack() as stack:
        for module, name, mine in STAND_INS:
            stack.enter_context(patch.object(module, name, mine))
        yield
