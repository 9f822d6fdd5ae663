"""What the log holds: the offsets of its records, lane by lane, and its rows by epoch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_scans import connection, relations, scan
from seamline.lake.engine.pane_ranges import micros
from seamline.lake.engine.states import floor_sql
from seamline.lake.log.epoch_log import condensed_log, epochs_bringing, known_epochs
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, look
from seamline.lake.tables.view_versions import live
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.audit import Rows
from seamline.model.protocol.condensed import runs_of, touching
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offset_runs import Run
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval, stamp

PLACES = "_topic_id, _partition, _offset, _epoch"
SPELLED = 32
"""Runs of epochs that are compared one by one: of more the numbers are looked up."""


@dataclass(frozen=True)
class HeldLog:
    """The files of master and quarantine as of one epoch, and what is held up to it.

    ``log`` is all of it condensed. ``epochs`` are those that are looked at: each, or with a ``span`` those that brought
    rows of its intervals, of which alone their counts are. ``frontiers`` are W(v) of the versions that run, by their
    ids.
    """

    pipeline: CompiledPipeline
    log: Sequence[Epoch]
    epochs: Sequence[Epoch]
    master: Files
    quarantine: Files | None
    frontiers: Mapping[str, int]
    span: Interval | None = None

    @classmethod
    def pin(cls, pipeline: CompiledPipeline, layout: Layout, span: Interval | None = None) -> HeldLog:
        """Pin the master first: what it holds is in the quarantine by then (rule 1). NotFound without a master."""
        master = Master.open(layout)
        last, files = master.epoch, Files.of(master.table)
        quarantine = look(layout.table("quarantine"), "files", Files.of)
        frontiers = {view.id: master.frontier(view.id) for view in live(pipeline, layout).views}
        log = condensed_log(layout, until=last)
        if span is None:
            epochs = [epoch for epoch in known_epochs(layout) if epoch.number <= last]
            return cls(pipeline, log, epochs, files, quarantine, frontiers)
        ids = {interval.id for interval in pipeline.grid.within(span)}
        bringing = [only(epoch, ids) for epoch in epochs_bringing(layout, ids) if epoch.number <= last]
        if quarantine:
            quarantine = between(quarantine, bringing)
        return cls(pipeline, log, bringing, between(files, bringing), quarantine, frontiers, span)

    @property
    def epoch(self) -> int:
        """E, -1 before the first."""
        return self.log[-1].number if self.log else -1

    def offsets(self) -> Iterator[tuple[Lane, list[Run], dict[int, int]]]:
        """Return every lane of the log: the runs of its records, and how often each is there that is so twice."""
        if not (log := self._log()):
            return
        with relations() as con:
            lanes = con.sql(f"SELECT DISTINCT _topic_id, _partition FROM {log} ORDER BY ALL").fetchall()
            for topic_id, partition in lanes:
                found = con.execute(
                    f"SELECT _offset FROM {log} WHERE _topic_id = ? AND _partition = ? ORDER BY 1",
                    [topic_id, partition],
                ).fetchnumpy()["_offset"]
                yield Lane(topic_id, partition), *offset_runs(np.asarray(found, np.int64))

    def rows(self) -> Rows:
        """Count the rows of each epoch."""
        start = floor_sql("_event_time", self.pipeline.grid.length)
        con, held = connection(), among("_epoch", self.epochs)
        inside = held if self.span is None else f"{held} AND {within('_event_time', self.span)}"
        accepted = counted(con, self.master, start, inside)
        refused = counted(con, self.quarantine, "_reason", held) if self.quarantine else {}
        return Rows(
            {epoch: {stamp(at): rows for at, rows in found.items()} for epoch, found in accepted.items()},
            refused,
        )

    def _log(self) -> str:
        parts = [
            f"SELECT {PLACES} FROM {scan(files.paths)} WHERE {among('_epoch', self.epochs)}"
            for files in (self.master, self.quarantine)
            if files and files.actions.num_rows
        ]
        return f"({' UNION ALL '.join(parts)})" if parts else ""


def uncrossed(con: duckdb.DuckDBPyConnection, slices: Files, until: int) -> int:
    """Return the last epoch up to ``until`` that no slice crosses: upkeep may have merged beyond what was pinned."""
    if not slices.actions.num_rows:
        return until
    crossing = pc.and_(
        pc.greater(slices.high("to_epoch").cast(pa.int64()), until),
        pc.less_equal(slices.low("from_epoch").cast(pa.int64()), until),
    )
    slices = slices.keep(crossing)
    if not slices.actions.num_rows:
        return until
    query = (
        f"SELECT min(from_epoch) FROM {scan(slices.paths)} WHERE from_epoch <= {until} AND to_epoch > {until}"
    )
    [[first]] = con.sql(query).fetchall()
    return until if first is None else first - 1


def only(epoch: Epoch, ids: Collection[str]) -> Epoch:
    """Return an epoch with its counts of some intervals alone."""
    counts = {
        name: {id: rows for id, rows in getattr(epoch, name).items() if id in ids}
        for name in ("accepted", "late", "very_late")
    }
    return Epoch(**{**vars(epoch), **counts})


def between(files: Files, epochs: Sequence[Epoch]) -> Files:
    """Keep the files that may hold rows of some epochs, which are in order."""
    if not files.actions.num_rows:
        return files
    first, last = (epochs[0].number, epochs[-1].number) if epochs else (0, -1)
    files = files.keep(pc.greater_equal(files.high("_epoch").cast(pa.int64()), first))
    return files.keep(pc.less_equal(files.low("_epoch").cast(pa.int64()), last))


def within(column: str, span: Interval) -> str:
    """Spell that an instant is in a span."""
    return f"(epoch_us({column}) >= {micros(span.start)} AND epoch_us({column}) < {micros(span.end)})"


def among(column: str, epochs: Iterable[Epoch]) -> str:
    """Spell that a number is that of an epoch that is held: what is not is dead (rule 2)."""
    runs = list(touching(run for epoch in epochs for run in runs_of(epoch)))
    if len(runs) <= SPELLED:
        return (
            "("
            + " OR ".join(["false", *(f"{column} BETWEEN {first} AND {last}" for first, last in runs)])
            + ")"
        )
    values = ", ".join(f"({first}, {last})" for first, last in runs)
    return f"{column} IN (SELECT unnest(range(a, b + 1)) FROM (VALUES {values}) held(a, b))"


def alive(epochs: Iterable[Epoch]) -> str:
    """Spell that slices are not of a dead epoch: where upkeep has merged them there is none (rule 2)."""
    return f"(from_epoch <> to_epoch OR {among('to_epoch', epochs)})"


def counted(
    con: duckdb.DuckDBPyConnection, files: Files, by: str, held: str
) -> Mapping[int, Mapping[Any, int]]:
    """Count a table's rows of held epochs, by epoch and something else."""
    found: dict[int, dict[Any, int]] = {}
    if files.actions.num_rows:
        query = f"SELECT _epoch, {by}, count(*) FROM {scan(files.paths)} "
        query += f"WHERE {held} GROUP BY ALL"
        for epoch, name, rows in con.sql(query).fetchall():
            found.setdefault(epoch, {})[name] = rows
    return found


def offset_runs(offsets: np.ndarray) -> tuple[list[Run], dict[int, int]]:
    """Join ascending offsets to runs; count those that are there more than once."""
    if not len(offsets):
        return [], {}
    steps = np.diff(offsets)
    starts = offsets[np.concatenate([[True], steps > 1])]
    ends = offsets[np.concatenate([steps > 1, [True]])] + 1
    repeated, times = np.unique(offsets[1:][steps == 0], return_counts=True)
    twice = {int(offset): int(count) + 1 for offset, count in zip(repeated, times, strict=True)}
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)], twice
