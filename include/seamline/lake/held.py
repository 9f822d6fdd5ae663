"""What the log holds: the offsets of its records, lane by lane, and its rows by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from seamline.lake.layout import Layout
from seamline.lake.log import known_epochs
from seamline.lake.master import Master
from seamline.lake.pins import Files, look
from seamline.lake.scans import relations, scan
from seamline.lake.states import floor_sql
from seamline.lake.versions import live
from seamline.model.audit import Rows
from seamline.model.compiled import CompiledPipeline
from seamline.model.epoch import Epoch
from seamline.model.intervals import stamp
from seamline.model.offsets import Lane
from seamline.model.runs import Run

PLACES = "_topic_id, _partition, _offset, _epoch"
ALIVE = "(from_epoch <> to_epoch OR to_epoch IN (SELECT epoch FROM epochs_held))"
"""Which slices are not of a dead epoch: where upkeep has merged them there is none (rule 2)."""


@dataclass(frozen=True)
class HeldLog:
    """The files of master and quarantine as of one epoch, and the epochs that are held up to it.

    ``frontiers`` are W(v) of the versions that run, by their ids.
    """

    pipeline: CompiledPipeline
    epochs: Sequence[Epoch]
    master: Files
    quarantine: Files | None
    frontiers: Mapping[str, int]

    @classmethod
    def pin(cls, pipeline: CompiledPipeline, layout: Layout) -> HeldLog:
        """Pin the master first: what it holds is in the quarantine by then (rule 1). NotFound without a master."""
        master = Master.open(layout)
        last, files = master.epoch, Files.of(master.table)
        quarantine = look(layout.table("quarantine"), "files", Files.of)
        epochs = [epoch for epoch in known_epochs(layout) if epoch.number <= last]
        frontiers = {view.id: master.frontier(view.id) for view in live(pipeline, layout).views}
        return cls(pipeline, epochs, files, quarantine, frontiers)

    @property
    def epoch(self) -> int:
        """E, -1 before the first."""
        return self.epochs[-1].number if self.epochs else -1

    def offsets(self) -> Iterator[tuple[Lane, list[Run], dict[int, int]]]:
        """Give every lane of the log: the runs of its records, and how often each is there that is so twice."""
        if not (log := self._log()):
            return
        with relations(epochs_held=epochs_table(self.epochs)) as con:
            lanes = con.sql(f"SELECT DISTINCT _topic_id, _partition FROM {log} ORDER BY ALL").fetchall()
            for topic_id, partition in lanes:
                found = con.execute(
                    f"SELECT _offset FROM {log} WHERE _topic_id = ? AND _partition = ? ORDER BY 1",
                    [topic_id, partition],
                ).fetchnumpy()["_offset"]
                yield Lane(topic_id, partition), *runs_of(np.asarray(found, np.int64))

    def rows(self) -> Rows:
        """Count the rows of each epoch."""
        start = floor_sql("_event_time", self.pipeline.grid.length)
        with relations(epochs_held=epochs_table(self.epochs)) as con:
            accepted = counted(con, self.master, start)
            refused = counted(con, self.quarantine, "_reason") if self.quarantine else {}
        return Rows(
            {epoch: {stamp(at): rows for at, rows in found.items()} for epoch, found in accepted.items()},
            refused,
        )

    def _log(self) -> str:
        parts = [
            f"SELECT {PLACES} FROM {scan(files.paths)} WHERE _epoch IN (SELECT epoch FROM epochs_held)"
            for files in (self.master, self.quarantine)
            if files and files.actions.num_rows
        ]
        return f"({' UNION ALL '.join(parts)})" if parts else ""


def uncrossed(con: duckdb.DuckDBPyConnection, slices: Files, until: int) -> int:
    """Give the last epoch up to ``until`` that no slice crosses: upkeep may have merged beyond what was pinned."""
    if not slices.actions.num_rows:
        return until
    query = (
        f"SELECT min(from_epoch) FROM {scan(slices.paths)} WHERE from_epoch <= {until} AND to_epoch > {until}"
    )
    [[first]] = con.sql(query).fetchall()
    return until if first is None else first - 1


def epochs_table(epochs: Iterable[Epoch]) -> pa.Table:
    """Give the numbers of epochs to SQL, as ``epochs_held``."""
    return pa.table({"epoch": pa.array([epoch.number for epoch in epochs], pa.int64())})


def counted(con: duckdb.DuckDBPyConnection, files: Files, by: str) -> Mapping[int, Mapping[Any, int]]:
    """Count a table's rows of held epochs, by epoch and something else."""
    found: dict[int, dict[Any, int]] = {}
    if files.actions.num_rows:
        query = f"SELECT _epoch, {by}, count(*) FROM {scan(files.paths)} "
        query += "WHERE _epoch IN (SELECT epoch FROM epochs_held) GROUP BY ALL"
        for epoch, name, rows in con.sql(query).fetchall():
            found.setdefault(epoch, {})[name] = rows
    return found


def runs_of(offsets: np.ndarray) -> tuple[list[Run], dict[int, int]]:
    """Join ascending offsets to runs; count those that are there more than once."""
    if not len(offsets):
        return [], {}
    steps = np.diff(offsets)
    starts = offsets[np.concatenate([[True], steps > 1])]
    ends = offsets[np.concatenate([steps > 1, [True]])] + 1
    repeated, times = np.unique(offsets[1:][steps == 0], return_counts=True)
    twice = {int(offset): int(count) + 1 for offset, count in zip(repeated, times, strict=True)}
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)], twice
