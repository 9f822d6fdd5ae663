"""What is asked of Spark's data frames and of its session, done in the caller's thread on Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
