"""Spark's place taken by this process: what the jobs ask of Spark, done in the caller's thread on Arrow tables.

The kernel, the partial states of a build and the judging of records again are the shipped ones: they run in Spark's
tasks on Arrow batches, and know no difference. What Spark itself computes has an equal here: the slices of a catch-up,
and the raw records of a judging again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from tests.lives.joined import derive_missing, sparkless_joins

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.storage.arrow_types import COORDINATES, master_schema, partial_schema, slices_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.slices import Slices
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.plan.batch import work_shares
from seamline.plan.stream import epoch_parts
from seamline.spark.build import fast_path, repeated_ids, reprocessing, spilled_states
from seamline.spark.stream import catch_up, driver_loop
from seamline.spark.stream.epoch_writer import Writer

Batches = Iterator[pa.RecordBatch]


class Frame:
    """Raw records, or what was made of them, as a data frame: a table for each partition."""

    def __init__(self, *rows: pa.Table) -> None:
        self.rows = rows
        self.sparkSession = Here()

    def coalesce(self, _: int) -> Frame:
        """One task reads all as it is."""
        return self

    def mapInArrow(self, task: Callable[[Batches], Batches], _: object) -> Frame:  # noqa: N802 - Spark's name
        """Run a task over the rows of each partition."""
        return Frame(*(pa.Table.from_batches(found) for rows in self.rows if (found := run_task(task, rows))))

    def repartitionById(self, count: int, column: str) -> Frame:  # noqa: N802 - Spark's name
        """Shuffle rows to the partitions whose numbers a column has."""
        rows = self.toArrow()
        return Frame(*(rows.filter(pc.equal(rows[column], number)) for number in range(count)))

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """Return the rows."""
        return pa.concat_tables(self.rows)


def run_task(task: Callable[[Batches], Batches], rows: pa.Table) -> list[pa.RecordBatch]:
    """Run a task over the rows of a partition."""
    return list(task(iter(rows.to_batches())))


class Numbers:
    """What is asked of an RDD of numbers, a partition for each."""

    def __init__(self, numbers: Sequence[int], task: Callable[[Iterable[int]], Iterable[Any]] = iter) -> None:
        self.numbers, self.task = numbers, task

    def mapPartitions(self, task: Callable[[Iterable[int]], Iterable[Any]]) -> Numbers:  # noqa: N802
        """Return the numbers to a task, one by one."""
        return Numbers(self.numbers, task)

    def collect(self) -> list[Any]:
        """Run the tasks, one after the other."""
        return [row for number in self.numbers for row in self.task([number])]


class Here:
    """What is asked of a Spark session: two tasks at once, none of them anywhere else."""

    defaultParallelism = 2  # noqa: N815 - Spark's name

    @property
    def sparkContext(self) -> Here:  # noqa: N802 - Spark's name
        """It is its own context."""
        return self

    @property
    def conf(self) -> Here:
        """It is its own configuration, and"""
        return self

    @property
    def streams(self) -> Here:
        """has no streams of which to tell."""
        return self

    def get(self, *_: object) -> str:
        """What it says of their size is a number."""
        return "1"

    def range(self, start: int, end: int, _: int, count: int) -> Frame:
        """Make a frame of numbers, one to a partition."""
        assert end - start == count
        return Frame(*(pa.table({"id": [number]}) for number in range(start, end)))

    def set(self, *_: object) -> None:
        """Batches are of the size that they are."""

    def addListener(self, _: object) -> None:  # noqa: N802 - Spark's name
        """Nothing will be heard."""

    def parallelize(self, numbers: Sequence[int], _: int) -> Numbers:
        """Return numbers to tasks."""
        return Numbers(numbers)


SMALL = {
    (work_shares, "LEAST"): 1,
    (work_shares, "IN_A_PART"): 3,
    (fast_path, "REPORTED_BYTES"): 200,
    (repeated_ids, "INLINE"): 16,
    (spilled_states, "UNIT_BYTES"): 400,
}
"""Bounds by which a build of a few rows has several tasks, shuffles ids, and keeps states in files."""


@contextmanager
def building_in_parts(*, whole: bool) -> Iterator[None]:
    """Build as large builds are built; with ``whole`` all rows are compared of which an id is there twice."""
    with ExitStack() as stack:
        for (module, name), bound in {
            **SMALL,
            **({(repeated_ids, "MOST_TWICE"): 0} if whole else {}),
        }.items():
            stack.enter_context(patch.object(module, name, bound))
        yield


def computed(_: object, writer: Writer, slices: Slices, *, after: int, until: int) -> pa.Table:
    """Compute what a catch-up adds, epoch by epoch, by the kernel's SQL over the master."""
    if slices.view.join:
        found = derive_missing(writer.pipeline, writer.layout, slices.view, after=after, until=until)
        return as_slices(slices, found)
    rows = aligned(writer.pipeline, DeltaTable(str(writer.master.table.root)).to_pyarrow_table())
    epochs = rows["_epoch"]
    rows = rows.filter(pc.and_(pc.greater(epochs, after), pc.less_equal(epochs, until)))
    with open_duckdb() as con:
        con.register("held_rows", rows)
        found = states.compute_row_states(con, slices.view, "held_rows", by=["_epoch"])
    return as_slices(slices, found)


def as_slices(slices: Slices, found: pa.Table) -> pa.Table:
    """Return states by epoch as rows of slices."""
    numbers = found["_epoch"]
    schema = slices_schema(slices.view)
    whole = found.select(partial_schema(slices.view).names)
    whole = whole.append_column("from_epoch", numbers).append_column("to_epoch", numbers)
    return whole.select(schema.names).cast(schema)


def aligned(pipeline: CompiledPipeline, rows: pa.Table) -> pa.Table:
    """Return rows the columns of a definition, whatever else is there."""
    blank = master_schema(pipeline).empty_table()
    return pa.concat_tables([blank, rows], promote_options="permissive")


def raw_records(_: object, __: object, layout: Layout, block: Sequence[Epoch]) -> Frame:
    """Return the coordinates and bytes of all that some epochs read, accepted or refused."""
    numbers = pa.array([epoch.number for epoch in block], pa.int64())
    parts = []
    for name in ("master", "quarantine"):
        rows = DeltaTable(str(layout.table(name))).to_pyarrow_table(columns=COORDINATES.names)
        parts.append(
            rows.filter(pc.is_in(rows["_epoch"], numbers)).select(COORDINATES.names).cast(COORDINATES)
        )
    return Frame(pa.concat_tables(parts))


@contextmanager
def sparkless(topics: Callable[..., object], *, parted: bool) -> Iterator[None]:
    """Run drivers and builds without Spark and Kafka; ``topics`` stands in the place of ``Topics``.

    Where they are ``parted``, all epochs go through parts; else none does.
    """
    with (
        patch.object(catch_up, "compute_missing_slices", computed),
        patch.object(reprocessing, "raw_records", raw_records),
        patch.object(epoch_parts, "LEAST_STATES", 0 if parted else 2**62),
        patch.object(driver_loop, "Topics", topics),
        patch.object(driver_loop, "warm_workers", lambda _: None),
        patch.object(driver_loop, "jvm_pid", lambda _: None),
        sparkless_joins(),
    ):
        yield
