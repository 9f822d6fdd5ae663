"""States that are too many to report: written to files by the tasks that made them, merged by other tasks.

A merging task takes the whole of an interval, or some of its pieces where the interval is large: a piece has the
states with some hashes of their keys and pane, so that what is merged is together. The driver sees names and sizes.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import partial_schema
from seamline.lake.storage.data_files import DataFile
from seamline.lake.store.data_writing import DataTarget
from seamline.lake.store.fetched_files import localize_file
from seamline.lake.store.locations import Location, delete_folder
from seamline.lake.tables.generations import Volume
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.window_arithmetic import Gaps
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.work_shares import split_by_size
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.build.share_rows import CELL
from seamline.spark.tasks.spread import Row, run_in_tasks
from seamline.spark.tasks.task import limit_task_memory

FILE = "file/"
PIECE = "_piece"
PIECES = 4096
"""Into so many pieces the states of an interval may be taken apart."""
UNIT_BYTES = 128_000_000
"""Bytes of states, in memory, that are merged at once; an interval of more goes by pieces, each some to a file."""
GROUP = 100_000
"""Rows in a row group of a file of spilled states: a task reads those that have some of its own."""


@dataclass
class SpilledStates:
    """What tasks wrote of a view's states."""

    paths: list[str] = field(default_factory=list)
    """The files."""
    weights: Counter[int] = field(default_factory=Counter)
    """Bytes in memory by interval start, in microseconds since 1970."""

    def take(self, payload: bytes) -> None:
        """Take in what a task says of a file."""
        told = json.loads(payload)
        self.paths.append(told["path"])
        self.weights.update({int(cell): bytes for cell, bytes in told["weights"].items()})


@dataclass(frozen=True)
class Unit:
    """What is merged at once: the pieces of one interval from ``low`` up to, and without, ``high``."""

    cell: int
    """The interval's start, in microseconds since 1970."""
    low: int = 0
    """The first piece."""
    high: int = PIECES
    """Past the last piece."""

    def read(self, path: str) -> pa.Table:
        """Read its states from a file."""
        mine = [(CELL, "=", self.cell)]
        if self.high - self.low < PIECES:
            mine += [(PIECE, ">=", self.low), (PIECE, "<", self.high)]
        return pq.read_table(localize_file(path), filters=mine, partitioning=None)


def spill_states(found: pa.Table, view: CompiledView, folder: Location) -> bytes:
    """Write states to a file below a generation's folder, and return what is said of it (``SpilledStates.take``)."""
    cells, pieces = find_cells(found, view), find_pieces(found, view)
    starts, cell_numbers = np.unique(cells, return_inverse=True)
    # Both sorts are stable, and of small numbers: by radix.
    order = np.argsort(pieces, kind="stable")
    order = order[
        np.argsort(cell_numbers[order].astype(np.uint16 if len(starts) < 65536 else np.int64), kind="stable")
    ]
    counts = np.bincount(cell_numbers, minlength=len(starts))
    per_row = found.nbytes / max(found.num_rows, 1)
    found = (
        found.append_column(CELL, pa.array(cells))
        .append_column(PIECE, pa.array(pieces))
        .take(pa.array(order))
    )
    target = DataTarget(folder / "parts" / f"{uuid.uuid4().hex}.parquet")
    pq.write_table(found, target.sink, compression="zstd", compression_level=1, row_group_size=GROUP)
    target.finish()
    weights = {int(cell): int(count * per_row) + 1 for cell, count in zip(starts, counts, strict=True)}
    return json.dumps({"path": str(target.place), "weights": weights}).encode()


def find_cells(found: pa.Table, view: CompiledView) -> np.ndarray:
    """Return the start of the interval of each state: no pane crosses a border."""
    panes = found["pane"].cast(pa.int64()).to_numpy()
    starts: np.ndarray = panes - panes % (view.interval // MICROSECOND)
    return starts


def find_pieces(found: pa.Table, view: CompiledView) -> np.ndarray:
    """Return the piece of each state: the same for all that are merged into one; sessions merge whatever their pane."""
    by = [*(key.name for key in view.keys), *([] if isinstance(view.windows, Gaps) else ["pane"])]
    if not by:
        return np.zeros(found.num_rows, np.uint16)
    told = query_tables(
        f"SELECT (hash({', '.join(map(quote_identifier, by))}) % {PIECES})::USMALLINT AS piece FROM found",
        found=found.select(by),
    )
    pieces: np.ndarray = told["piece"].to_numpy()
    return pieces


def write_merged_states(
    whole: pa.Table, view: CompiledView, root: Location, attempt: str
) -> Iterator[tuple[DataFile, Volume]]:
    """Write merged states, a file for each interval."""
    cells = pa.array(find_cells(whole, view))
    for cell in pc.unique(cells).to_pylist():
        mine = whole.filter(pc.equal(cells, cell)).select(partial_schema(view).names)
        mine = mine.append_column("generation", pa.repeat(pa.scalar(attempt), mine.num_rows))
        interval = format_utc_instant(EPOCH + cell * MICROSECOND)
        name = f"{attempt}/{CELL}={cell}/{uuid.uuid4().hex}.parquet"
        file = data_files.write_data_file(mine, root, name, partition={"interval": interval})
        yield file, Volume(mine.num_rows, pc.sum(mine["rows"]).as_py())


@dataclass(frozen=True)
class Merging:
    """Merges spilled states in a Spark task, a unit at a time."""

    view: CompiledView
    """The version that is built."""
    paths: tuple[str, ...]
    """The files of spilled states."""
    shares: tuple[tuple[Unit, ...], ...]
    """By task number."""
    root: Location
    """The folder of the generations table."""
    attempt: str
    """The id of the attempt that builds."""

    def __call__(self, number: int) -> Iterator[Row]:
        """Merge the units of a share, and report each file."""
        for unit in self.shares[number]:
            whole = states.combine_states(self.view, [unit.read(path) for path in self.paths])
            for file, volume in write_merged_states(whole, self.view, self.root, self.attempt):
                hit_failpoint("merged")
                said = json.dumps({"file": vars(file), "rows": volume.rows, "counted": volume.state_rows})
                yield FILE, said.encode()


def split_into_units(weights: Mapping[int, int]) -> list[tuple[Unit, int]]:
    """Take intervals of so many bytes apart where they are large; return units with their bytes."""
    made = []
    for cell, weight in sorted(weights.items()):
        count = min(-(-weight // UNIT_BYTES), PIECES)
        bounds = [PIECES * number // count for number in range(count + 1)]
        made += [(Unit(cell, bounds[at], bounds[at + 1]), weight // count) for at in range(count)]
    return made


def merge_states_in_tasks(
    spark: SparkSession,
    view: CompiledView,
    folder: Location,
    attempt: str,
    found: SpilledStates,
    reported: Sequence[pa.Table],
    slots: int,
    memory: str,
) -> list[tuple[DataFile, Volume]]:
    """Merge states that were written to files; those that were ``reported`` join them."""
    if reported:
        found.take(spill_states(pa.concat_tables(reported), view, folder))
    units = split_into_units(found.weights)
    work = split_by_size([weight for _, weight in units], slots, least=1)
    shares = tuple(tuple(units[at][0] for at in sorted(part)) for part in work)
    task = Merging(view, tuple(found.paths), shares, folder.parent, attempt)
    rows = run_in_tasks(spark, limit_task_memory(task, memory), len(work))
    delete_folder(folder / "parts")
    return [*map(parse_written_file, (json.loads(payload) for _, payload in rows))]


def parse_written_file(said: Mapping[str, object]) -> tuple[DataFile, Volume]:
    """Parse what a task said of a file."""
    return DataFile(**said["file"]), Volume(said["rows"], said["counted"])  # type: ignore[arg-type]
