"""What is committed to the log: the offsets of its records, lane by lane, and its rows by epoch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import connection, register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import floor_sql
from seamline.lake.log.epoch_log import known_epochs, list_accepting_epochs, read_condensed_log
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.audit import Rows
from seamline.model.protocol.condensed import merge_adjacent_runs, runs_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offset_runs import Run
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval, format_utc_instant

PLACES = "_topic_id, _partition, _offset, _epoch"
SPELLED = 32
"""Runs of epochs that are compared one by one: of more the numbers are looked up."""


@dataclass(frozen=True)
class CommittedLog:
    """The files of master and quarantine as of one epoch, and what was committed up to it."""

    pipeline: CompiledPipeline
    """What the records are of."""
    log: Sequence[Epoch]
    """The whole log, condensed, ascending."""
    epochs: Sequence[Epoch]
    """Ascending: all epochs, or with ``span`` those that accepted rows of its intervals, counts of these alone."""
    master: Files
    """Of accepted records."""
    quarantine: Files | None
    """None if there is no table."""
    frontiers: Mapping[str, int]
    """W(v), the last epoch in each view's slices, by the id of the version."""
    span: Interval | None = None
    """The event times to look at; None for all."""

    @classmethod
    def pin(cls, pipeline: CompiledPipeline, layout: Layout, span: Interval | None = None) -> CommittedLog:
        """Pin the master first: what it contains is in the quarantine by then (rule 1). NotFound without a master."""
        master = Master.open(layout)
        last, files = master.epoch, Files.of(master.table)
        quarantine = read_cached_table(layout.table("quarantine"), "files", Files.of)
        frontiers = {view.id: master.frontier(view.id) for view in add_live_versions(pipeline, layout).views}
        log = read_condensed_log(layout, until=last)
        if span is None:
            epochs = [epoch for epoch in known_epochs(layout) if epoch.number <= last]
            return cls(pipeline, log, epochs, files, quarantine, frontiers)
        ids = {interval.id for interval in pipeline.grid.within(span)}
        bringing = [
            keep_interval_counts(epoch, ids)
            for epoch in list_accepting_epochs(layout, ids)
            if epoch.number <= last
        ]
        if quarantine:
            quarantine = keep_epoch_files(quarantine, bringing)
        return cls(pipeline, log, bringing, keep_epoch_files(files, bringing), quarantine, frontiers, span)

    @property
    def epoch(self) -> int:
        """E, -1 before the first."""
        return self.log[-1].number if self.log else -1

    def offsets(self) -> Iterator[tuple[Lane, list[Run], dict[int, int]]]:
        """Return every lane of the log: the runs of its records, and how often each is there that is so twice."""
        if not (log := self._log()):
            return
        with register_tables() as con:
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
        con, held = connection(), committed_epochs_sql("_epoch", self.epochs)
        inside = held if self.span is None else f"{held} AND {within_span_sql('_event_time', self.span)}"
        accepted = count_epoch_rows(con, self.master, start, inside)
        refused = count_epoch_rows(con, self.quarantine, "_reason", held) if self.quarantine else {}
        return Rows(
            {
                epoch: {format_utc_instant(at): rows for at, rows in found.items()}
                for epoch, found in accepted.items()
            },
            refused,
        )

    def _log(self) -> str:
        parts = [
            f"SELECT {PLACES} FROM {read_parquet_sql(files.paths)} WHERE {committed_epochs_sql('_epoch', self.epochs)}"
            for files in (self.master, self.quarantine)
            if files and files.actions.num_rows
        ]
        return f"({' UNION ALL '.join(parts)})" if parts else ""


def find_uncrossed_epoch(con: duckdb.DuckDBPyConnection, slices: Files, until: int) -> int:
    """Find the last epoch up to ``until`` that no slice crosses: upkeep may have merged beyond what was pinned."""
    if not slices.actions.num_rows:
        return until
    crossing = pc.and_(
        pc.greater(slices.high("to_epoch").cast(pa.int64()), until),
        pc.less_equal(slices.low("from_epoch").cast(pa.int64()), until),
    )
    slices = slices.keep(crossing)
    if not slices.actions.num_rows:
        return until
    crosses = f"from_epoch <= {until} AND to_epoch > {until}"
    query = f"SELECT min(from_epoch) FROM {read_parquet_sql(slices.paths)} WHERE {crosses}"
    [[first]] = con.sql(query).fetchall()
    return until if first is None else first - 1


def keep_interval_counts(epoch: Epoch, ids: Collection[str]) -> Epoch:
    """Return an epoch with its counts of some intervals alone."""
    counts = {
        name: {id: rows for id, rows in getattr(epoch, name).items() if id in ids}
        for name in ("accepted", "late", "very_late")
    }
    return Epoch(**{**vars(epoch), **counts})


def keep_epoch_files(files: Files, epochs: Sequence[Epoch]) -> Files:
    """Keep the files that may contain rows of some epochs, which are in order."""
    if not files.actions.num_rows:
        return files
    first, last = (epochs[0].number, epochs[-1].number) if epochs else (0, -1)
    files = files.keep(pc.greater_equal(files.high("_epoch").cast(pa.int64()), first))
    return files.keep(pc.less_equal(files.low("_epoch").cast(pa.int64()), last))


def within_span_sql(column: str, span: Interval) -> str:
    """Write the condition that an instant is in a span."""
    return f"(epoch_us({column}) >= {to_unix_micros(span.start)} AND epoch_us({column}) < {to_unix_micros(span.end)})"


def committed_epochs_sql(column: str, epochs: Iterable[Epoch]) -> str:
    """Write the condition that a number is that of an epoch that is committed: what is not is dead (rule 2)."""
    runs = list(merge_adjacent_runs(run for epoch in epochs for run in runs_of(epoch)))
    if len(runs) <= SPELLED:
        return (
            "("
            + " OR ".join(["false", *(f"{column} BETWEEN {first} AND {last}" for first, last in runs)])
            + ")"
        )
    values = ", ".join(f"({first}, {last})" for first, last in runs)
    return f"{column} IN (SELECT unnest(range(a, b + 1)) FROM (VALUES {values}) held(a, b))"


def live_slices_sql(epochs: Iterable[Epoch]) -> str:
    """Write the condition that slices are of no dead epoch (rule 2), nor merged of lost ones alone."""
    return committed_epochs_sql("to_epoch", epochs)


def count_epoch_rows(
    con: duckdb.DuckDBPyConnection, files: Files, by: str, held: str
) -> Mapping[int, Mapping[Any, int]]:
    """Count a table's rows of committed epochs, by epoch and something else."""
    found: dict[int, dict[Any, int]] = {}
    if files.actions.num_rows:
        query = f"SELECT _epoch, {by}, count(*) FROM {read_parquet_sql(files.paths)} "
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
