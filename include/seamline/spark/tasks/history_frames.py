"""Rows of files as raw records, like those that Kafka gives: each task reads a run of a file's rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.kernel.kernel_config import Read
from seamline.lake.imports.history_records import read_history_records
from seamline.lake.imports.import_plans import ImportPlan
from seamline.model.protocol.offsets import OffsetRange
from seamline.plan.stream.import_plan import FileRows, find_file_rows

RAW_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, headers STRING"
"""The columns of raw records, for Spark."""
NUMBER = "number"
"""The column of the numbers of runs."""
LEAST_SHARE = 20_000
"""Rows: a smaller run is not cut for another task."""


def cut_into_runs(plan: ImportPlan, part: OffsetRange, tasks: int) -> list[FileRows]:
    """Cut the rows of a part of an import into runs, one or more for each of so many tasks."""
    share = max(-(-len(part) // tasks), LEAST_SHARE)
    return [
        each for rows in find_file_rows(plan.files, part.start, part.end) for each in cut_run(rows, share)
    ]


def cut_run(rows: FileRows, share: int) -> Iterator[FileRows]:
    """Cut a run of rows into runs of ``share`` rows."""
    for first in range(rows.first, rows.last, share):
        shift = first - rows.first
        yield replace(rows, first=first, last=min(first + share, rows.last), offset=rows.offset + shift)


def make_reader(runs: Sequence[FileRows], plan: ImportPlan) -> Read:
    """Make the function that reads the runs whose numbers it is given."""
    options, at = plan.options, plan.at

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_history_records(open_worker_duckdb(), runs[number], options, at)

    return read
