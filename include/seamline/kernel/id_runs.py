"""Event ids in files: sorted runs of hashes with their event times, looked up and merged in bounded memory.

A log-structured merge tree of one level (O'Neil and others, 1996): what an epoch adds is a run of its own, and runs of
about the same size are merged into one, up to ``MOST``. A run is three files of eight bytes an id, mapped into memory
as NumPy arrays, of which a look-up touches the pages that it needs. An id is a hash of 128 bits, MD5: two of 10^11 ids
are taken for one with a probability of 10^-17.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

MOST = 8_000_000
"""Ids of a run at most: 24 bytes each, and merging them takes a second."""
CLOSE = 2
"""Runs are merged where the older is not this many times as large as all that are newer."""
MERGED_AT_ONCE = 1_000_000
"""Ids that a merge has in memory."""
HASHES = pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("at", pa.int64())])
"""An id and its event time in microseconds since 1970."""


@dataclass(frozen=True)
class Run:
    """One sorted run, in files of its own that never change."""

    name: str
    """The stem of its files."""
    rows: int
    """Its ids."""
    latest: int
    """The largest event time, in microseconds since 1970."""


class RunFiles:
    """The files of runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def column(self, run: Run, name: str) -> np.ndarray:
        """Map a column of a run; OSError or ValueError where its file is not there, or is too short."""
        kind = HASHES.field(name).type.to_pandas_dtype()
        return np.memmap(self.folder / f"{run.name}.{name}", kind, "r", shape=(run.rows,))

    def write(self, pieces: Iterable[pa.Table]) -> Run | None:
        """Write sorted pieces (``HASHES``) as one run; None for no rows. OSError where there is no room."""
        name, rows, latest = uuid.uuid4().hex, 0, -(2**63)
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            files = {
                field: stack.enter_context((self.folder / f"{name}.{field}").open("wb"))
                for field in HASHES.names
            }
            for piece in pieces:
                for field, file in files.items():
                    file.write(np.ascontiguousarray(piece[field].to_numpy()).data)
                rows += piece.num_rows
                latest = max(latest, int(piece["at"].to_numpy().max(initial=latest)))
        return Run(name, rows, latest) if rows else None

    def keep_only(self, runs: Iterable[Run], *others: str) -> None:
        """Delete every file of the folder but those of some runs and those of ``others``' names."""
        kept = {f"{run.name}.{field}" for run in runs for field in HASHES.names}.union(others)
        for file in self.folder.iterdir():
            if file.name not in kept:
                file.unlink(missing_ok=True)


def sort_ids(table: pa.Table) -> pa.Table:
    """Sort ids; of one id the latest event time stays."""
    high, low, at = (table[name].to_numpy() for name in HASHES.names)
    # Runs that are sorted already are merged in linear time; the second half matters where the first is the same.
    order = np.argsort(high, kind="stable")
    if np.any((high[order][1:] == high[order][:-1]) & (low[order][1:] != low[order][:-1])):
        order = np.lexsort((low, high))
    high, low, at = high[order], low[order], at[order]
    if not len(high):
        return HASHES.empty_table()
    first = np.flatnonzero(np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1])))
    kept = [high[first], low[first], np.maximum.reduceat(at, first)]
    return pa.table(kept, schema=HASHES)


def find_known(files: RunFiles, runs: Sequence[Run], ids: pa.Table, oldest: int | None) -> np.ndarray:
    """Return for each id (``HASHES``) whether a run has it with an event time at or above ``oldest``."""
    high, low = (ids[name].to_numpy() for name in ("high", "low"))
    order = np.argsort(high)
    known = np.zeros(len(high), bool)
    for run in runs:
        if oldest is None or run.latest >= oldest:
            known[order] |= look_up(files, run, high[order], low[order], oldest)
    return known


def look_up(files: RunFiles, run: Run, high: np.ndarray, low: np.ndarray, oldest: int | None) -> np.ndarray:
    """Look sorted ids up in one run."""
    mine = files.column(run, "high")
    found = np.zeros(len(high), bool)
    place = np.searchsorted(mine, high)
    open_ = np.flatnonzero(place < run.rows)
    open_ = open_[mine[place[open_]] == high[open_]]
    lows, times = (files.column(run, name) for name in ("low", "at")) if len(open_) else ((), ())
    # Different ids with the same first half are neighbours: as good as never is there a second round.
    while len(open_):
        at = place[open_]
        same = lows[at] == low[open_]
        found[open_[same]] = True if oldest is None else times[at[same]] >= oldest
        open_ = open_[~same]
        place[open_] += 1
        open_ = open_[place[open_] < run.rows]
        open_ = open_[mine[place[open_]] == high[open_]]
    return found


def list_to_merge(runs: Sequence[Run]) -> list[Run]:
    """List the newest runs that should become one; ``runs`` are from the oldest to the newest."""
    chosen: list[Run] = []
    total = 0
    for run in reversed(runs):
        if chosen and (run.rows > CLOSE * total or run.rows + total > MOST):
            break
        chosen.insert(0, run)
        total += run.rows
    return chosen if len(chosen) > 1 else []


def merge_runs(files: RunFiles, runs: Sequence[Run], oldest: int | None) -> Run | None:
    """Merge runs into a new one, without ids older than ``oldest``; None if none is left."""
    return files.write(list_merged_pieces(files, runs, oldest))


def list_merged_pieces(files: RunFiles, runs: Sequence[Run], oldest: int | None) -> Iterator[pa.Table]:
    """Merge runs range by range of the hash, which is spread evenly."""
    count = max(sum(run.rows for run in runs) // MERGED_AT_ONCE, 1)
    borders = [(step << 64) // count for step in range(1, count)]
    columns = [[files.column(run, name) for name in HASHES.names] for run in runs]
    cuts = [
        [0, *np.searchsorted(high, np.array(borders, np.uint64)).tolist(), len(high)] for high, *_ in columns
    ]
    for step in range(count):
        parts = [
            pa.table([column[cut[step] : cut[step + 1]] for column in each], schema=HASHES)
            for each, cut in zip(columns, cuts, strict=True)
        ]
        whole = sort_ids(pa.concat_tables(parts))
        if oldest is not None:
            whole = whole.filter(pa.array(whole["at"].to_numpy() >= oldest))
        yield whole
