"""How far a stream has come: offsets, event time, edges, and the watermark that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from seamline.model.compile.evolution import Timed
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange, Vector, advance_vector
from seamline.model.protocol.watermark import LanePolicy, advance_watermark
from seamline.model.time.intervals import EPOCH, Grid
from seamline.plan.stream.epoch_numbers import EdgePolicy, idle_lanes


@dataclass(frozen=True)
class Progress:
    """The stream's state after an epoch."""

    vector: Mapping[Lane, int]
    """The next offset to read of each lane."""
    largest: Mapping[Lane, datetime] = field(default_factory=dict)
    """The largest event time of each lane, of epochs that derive event times as ``timed`` says."""
    last_seen: Mapping[Lane, datetime] = field(default_factory=dict)
    """The wall clock at each lane's last record, or at the start."""
    epoch: Epoch | None = None
    """The last that was committed; None before the first."""
    last_edge: int = -1
    """The newest edge; -1 for none."""
    last_edge_at: datetime = EPOCH
    """When it was committed, or when the stream started."""
    timed: Timed | None = None
    """How event times are derived; None for any way."""
    mark: datetime | None = None
    """The newest watermark of epochs that derive event times so; None before the first."""

    @classmethod
    def resume(
        cls, epochs: Sequence[Epoch], vector: Vector, now: datetime, timed: Timed | None = None
    ) -> Progress:
        """Pick up where the ledger ends."""
        largest: dict[Lane, datetime] = {}
        mark = None
        for epoch in epochs:
            if timed is None or timed.is_of_clock(epoch):
                largest, mark = merge_event_times(largest, epoch.max_event_time), epoch.watermark or mark
        edge = next((epoch.number for epoch in reversed(epochs) if epoch.edge), -1)
        last = epochs[-1] if epochs else None
        return cls(vector, largest, dict.fromkeys(vector, now), last, edge, now, timed, mark)

    def add_lanes(self, beginnings: Vector, now: datetime) -> Progress:
        """Add new lanes: they are read from their beginning."""
        new = {lane: first for lane, first in beginnings.items() if lane not in self.vector}
        return replace(
            self, vector={**self.vector, **new}, last_seen={**self.last_seen, **dict.fromkeys(new, now)}
        )

    def advance(
        self, ranges: Sequence[OffsetRange], event_times: Mapping[Lane, datetime], now: datetime
    ) -> Progress:
        """Move on by what an epoch has read; the epoch itself is set once it is committed."""
        return replace(
            self,
            vector=advance_vector(self.vector, ranges),
            largest=merge_event_times(self.largest, event_times),
            last_seen={**self.last_seen, **{part.lane: now for part in ranges}},
        )

    def advance_by_holes(self, event_times: Mapping[Lane, datetime]) -> Progress:
        """Record what an epoch has read of holes: no lane moves by it."""
        return replace(self, largest=merge_event_times(self.largest, event_times))

    def commit(self, epoch: Epoch) -> Progress:
        """Remember the epoch that is now committed."""
        moved = replace(self, epoch=epoch, mark=epoch.watermark)
        if not epoch.edge:
            return moved
        return replace(moved, last_edge=epoch.number, last_edge_at=epoch.committed_at)

    def is_edge_due(self, policy: EdgePolicy, number: int, now: datetime) -> bool:
        """Return whether epoch ``number`` should be an edge."""
        return policy.is_due(number, self.last_edge, now, self.last_edge_at)

    def has_silent_lane(self, policy: LanePolicy, now: datetime) -> bool:
        """Return whether a lane has been silent so long that the broker must be asked about it."""
        return any(
            policy.counts(lane) and now - self.last_seen.get(lane, now) >= policy.idle_of(lane)
            for lane in self.vector
        )

    def is_read_to(self, ends: Vector, policy: LanePolicy) -> bool:
        """Return whether the lanes that count for the watermark have been read to some ends, and no further."""
        here, there = (
            {lane: at for lane, at in some.items() if policy.counts(lane)} for some in (self.vector, ends)
        )
        return here == there

    def watermark(self, policy: LanePolicy, ends: Vector, now: datetime) -> datetime | None:
        """Return the watermark; ``ends`` are the broker's, freshly asked, or empty to call no lane idle."""
        idle = idle_lanes(self.vector, ends, self.last_seen, now=now, after=policy.idle_of)
        lanes = [lane for lane in self.vector if policy.counts(lane)]
        # Rows of files say nothing of how late a topic's records are: they would move it where every lane is silent.
        largest = {lane: at for lane, at in self.largest.items() if policy.counts(lane) and not lane.imported}
        return advance_watermark(self.mark, lanes, largest, idle, policy)

    def last_interval_end(self, grid: Grid) -> datetime | None:
        """Return the end of the last interval that has rows; None without event times."""
        last = max(self.largest.values(), default=None)
        return None if last is None else grid.of(last).end


def merge_event_times(one: Mapping[Lane, datetime], other: Mapping[Lane, datetime]) -> dict[Lane, datetime]:
    """Merge the largest event times of lanes."""
    return {**one, **{lane: max(at, one.get(lane, at)) for lane, at in other.items()}}


IDLE = timedelta(seconds=2)


def is_stream_idle(progress: Progress, now: datetime) -> bool:
    """Return whether nothing has come for so long that an edge may be declared."""
    return progress.epoch is not None and now - progress.epoch.committed_at >= IDLE
