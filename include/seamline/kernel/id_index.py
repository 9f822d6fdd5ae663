"""One part of the event ids within the horizon: a folder of runs, and a state that says what they stand for.

The index is a cache of the master. An epoch's ids are *pending* until the next survey says that the epoch was
committed; those of one that was not are dropped. Whoever asks names the index and the epoch after which it is to
stand: a part that does not stand there is lost, and is made again from the master, up to that epoch.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from seamline.kernel.id_runs import HASHES, Run, RunFiles, find_known, list_to_merge, merge_runs, sort_ids
from seamline.lake.engine.duckdb_connections import query_tables

GATHERED = 4_000_000
"""Ids that are sorted in memory while an index is made."""
NEW = pa.schema(
    [
        *HASHES,
        ("_topic", pa.string()),
        ("_topic_id", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
    ]
)
"""An id of an epoch, with the place of its record."""
STATE = "state.json"


@dataclass(frozen=True)
class IndexState:
    """What the runs of a folder stand for."""

    index: str
    """The index's name: it is made anew under another one."""
    after: str
    """The epoch up to which its runs have all ids."""
    runs: tuple[Run, ...] = ()
    """From the oldest to the newest."""
    pending: Run | None = None
    """What an epoch adds that may have been committed; None if it adds nothing."""
    epoch: str = ""
    """That epoch; empty without one."""

    @property
    def every(self) -> tuple[Run, ...]:
        """All runs, the pending one too."""
        return (*self.runs, *([self.pending] if self.pending else []))


@dataclass
class IdIndex:
    """One part's index, as it stands after an epoch."""

    folder: Path
    """Where its files are; on this machine."""
    state: IndexState
    """What is in them."""

    @classmethod
    def open(cls, folder: Path, index: str, after: str) -> IdIndex | None:
        """Open an index that stands, or can stand, after an epoch; None if there is none, or it is not whole."""
        try:
            found = json.loads((folder / STATE).read_text())
            runs, pending = tuple(Run(**each) for each in found["runs"]), found["pending"]
            state = IndexState(index, found["after"], runs, pending and Run(**pending), found["epoch"])
            if found["index"] != index or after not in (state.after, state.epoch):
                return None
            files = RunFiles(folder)
            for run in state.every:
                for name in HASHES.names:
                    files.column(run, name)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        made = cls(folder, state)
        made.settle(after)
        return made

    @classmethod
    def load(cls, folder: Path, index: str, after: str, ids: Iterable[pa.Table]) -> IdIndex:
        """Make an index of the ids (``HASHES``) of every epoch up to ``after``, a bounded number in memory."""
        made = cls(folder, IndexState(index, after))
        waiting: list[pa.Table] = []
        count = 0
        for table in ids:
            waiting.append(table)
            count += table.num_rows
            if count >= GATHERED:
                made.add(waiting)
                waiting, count = [], 0
        made.add(waiting)
        made.save()
        return made

    @property
    def files(self) -> RunFiles:
        """The files of its runs."""
        return RunFiles(self.folder)

    def settle(self, after: str) -> None:
        """Take in what was pending if its epoch is the one after which the index is to stand, else drop it."""
        landed = self.state.pending if self.state.epoch == after else None
        runs = (*self.state.runs, *([landed] if landed else []))
        self.state = replace(self.state, after=after, runs=runs, pending=None, epoch="")

    def add(self, tables: list[pa.Table]) -> None:
        """Add ids to those that count, while an index is made."""
        if tables and (run := self.files.write([sort_ids(pa.concat_tables(tables))])):
            self.state = replace(self.state, runs=(*self.state.runs, run))
            self.merge(None)

    def merge(self, oldest: int | None) -> None:
        """Leave out runs that are older than the horizon, and merge those of about the same size."""
        runs = [run for run in self.state.runs if oldest is None or run.latest >= oldest]
        if chosen := list_to_merge(runs):
            whole = merge_runs(self.files, chosen, oldest)
            runs = [*runs[: -len(chosen)], *([whole] if whole else [])]
        self.state = replace(self.state, runs=tuple(runs))

    def find_repeated(self, found: pa.Table, oldest: int | None) -> np.ndarray:
        """Return which of an epoch's records (``NEW``) repeat an id; nothing is written.

        A record repeats the id of an earlier one, by (epoch, partition, offset, topic), whose event time is at or above
        ``oldest``, in microseconds since 1970; of any earlier one for None.
        """
        known = find_known(self.files, self.state.runs, found, oldest)
        known |= find_repeated_here(found, oldest)
        return known

    def mark(self, found: pa.Table, epoch: str, oldest: int | None) -> np.ndarray:
        """Return what ``find_repeated`` returns, and keep the ids of the other records as pending for ``epoch``."""
        self.merge(oldest)
        repeated = self.find_repeated(found, oldest)
        new = sort_ids(found.select(HASHES.names).filter(pa.array(~repeated)))
        self.state = replace(self.state, pending=self.files.write([new]), epoch=epoch)
        self.save()
        return repeated

    def save(self) -> None:
        """Write the state, and delete what it does not name: what was merged, and what broken attempts have left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f"{uuid.uuid4().hex}.tmp"
        draft.write_text(json.dumps(asdict(self.state)))
        draft.replace(self.folder / STATE)
        self.files.keep_only(self.state.every, STATE)


def find_repeated_here(found: pa.Table, oldest: int | None) -> np.ndarray:
    """Return which records repeat the id of an earlier one of the same epoch."""
    high = found["high"].to_numpy()
    order = np.argsort(high, kind="stable")
    same = high[order][1:] == high[order][:-1]
    several = np.zeros(len(high), bool)
    several[order] = np.append(False, same) | np.append(same, False)
    repeated = np.zeros(len(high), bool)
    if not several.any():
        return repeated
    rows = np.flatnonzero(several)
    recent = "true" if oldest is None else f'"at" >= {oldest}'
    earlier = (
        "PARTITION BY high, low ORDER BY _partition, _offset, _topic "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    )
    said = query_tables(
        f"SELECT row, coalesce(bool_or({recent}) OVER ({earlier}), false) AS repeated FROM several",
        several=found.take(pa.array(rows)).append_column("row", pa.array(rows)),
    )
    repeated[said["row"].to_numpy()] = said["repeated"].to_numpy()
    return repeated
