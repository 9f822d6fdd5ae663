"""How many intervals far from Kafka's time a task may open: one producer's random event times make one per record.

A row is far where its event time is further than ``very_late`` from its Kafka timestamp, and an interval where all of
its rows are. Those with most rows are taken, of equals the nearest: rows that are late by a day or a month come before
junk. What is left goes to the quarantine.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.raw import filter_rows
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.record_rules import SOURCE
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND

REASON = "too many intervals"
TIMES = frozenset({REASON, "event time in the future", "event time in the past"})
"""The reasons of records whose producer's clock is not to be trusted."""


class StrayIntervals:
    """What one task has opened so far, chunk by chunk, by source."""

    def __init__(self, pipeline: CompiledPipeline) -> None:
        self.several = bool(pipeline.alone)
        self.sources = {each.source.name: SourceStrays(each) for each in pipeline.by_source}

    def split(self, accepted: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Part accepted rows into those that stay and those of intervals that are one too many, with reason."""
        if not self.several:
            [only] = self.sources.values()
            return only.split(accepted)
        parts = [
            own.split(filter_rows(accepted, pc.equal(accepted[SOURCE], name)))
            for name, own in self.sources.items()
        ]
        gone = [astray for _, astray in parts if astray.num_rows]
        if not gone:
            return accepted, accepted.slice(0, 0)
        return pa.concat_tables([stay for stay, _ in parts]), pa.concat_tables(gone)


class SourceStrays:
    """What a task has opened so far for one source; instants are microseconds from 1970."""

    def __init__(self, pipeline: CompiledPipeline) -> None:
        self.most = pipeline.source.max_stray_intervals
        self.length = pipeline.grid.length // MICROSECOND
        self.far = pipeline.very_late // MICROSECOND
        self.open: set[int] = set()
        self.count = 0

    def split(self, accepted: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Part accepted rows into those that stay and those of intervals that are one too many, with reason."""
        times, arrived = (instants_to_micros(accepted[name]) for name in ("_event_time", "_kafka_timestamp"))
        away = np.abs(times - arrived)
        distant = away > self.far
        if not distant.any():
            return accepted, accepted.slice(0, 0)
        starts = times // self.length * self.length
        found, place, rows = np.unique(starts[distant], return_inverse=True, return_counts=True)
        near = starts[~distant]
        self.open.update(near[np.isin(near, found)].tolist())
        nearest = np.full(len(found), np.iinfo(np.int64).max)
        np.minimum.at(nearest, place, away[distant])
        new = np.flatnonzero([start not in self.open for start in found.tolist()])
        ranked = new[np.lexsort((nearest[new], -rows[new]))]
        room = max(self.most - self.count, 0)
        self.open.update(found[ranked[:room]].tolist())
        self.count += len(ranked[:room])
        if len(ranked) <= room:
            return accepted, accepted.slice(0, 0)
        gone = np.zeros(len(starts), dtype=bool)
        gone[distant] = np.isin(place, ranked[room:])
        return accepted.filter(pa.array(~gone)), reject_stray_rows(
            accepted.filter(pa.array(gone)), starts[gone], self.most
        )


def reject_stray_rows(rows: pa.Table, starts: np.ndarray, most: int) -> pa.Table:
    """Return rows their reason, with the interval that each would have opened."""
    said = f"not among the {most} of its task's part of the epoch"
    detail = [f"{format_utc_instant(EPOCH + int(start) * MICROSECOND)} is {said}" for start in starts]
    reason = pa.repeat(pa.scalar(REASON), rows.num_rows)
    return rows.append_column("_reason", reason).append_column("_detail", pa.array(detail, pa.string()))


def instants_to_micros(moments: pa.ChunkedArray) -> np.ndarray:
    """Return instants as microseconds from 1970."""
    return np.asarray(moments.cast(INSTANT).cast(pa.int64()).to_numpy())
