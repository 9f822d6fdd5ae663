"""How intervals stand: by what the manifest says of them, and by one rule for all that it does not mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.pane_ranges import is_within_bounds, to_unix_micros
from seamline.lake.engine.windowing import Numbers, read_numpy_column
from seamline.lake.read.answer_ways import STATUSES, Flags, IntervalAnswer, Ways, format_interval_id
from seamline.lake.read.snapshot import Snapshot
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import NOTHING, Side, Status
from seamline.model.recent import Recent
from seamline.model.time.intervals import Interval, parse_moment
from seamline.model.time.window_arithmetic import Bounds
from seamline.model.time.zone_clock import MICROSECOND
from seamline.runtime.deadline import in_time


@dataclass(frozen=True)
class StatedIntervals:
    """The intervals of a view that a manifest mentions."""

    manifest: Manifest
    """As of the snapshot."""
    starts: Numbers
    """Microseconds since 1970, ascending."""
    named: Flags
    """In the same order: whether it is in an answer even without rows: published, or waiting for a build."""


_known: Recent[str, StatedIntervals] = Recent(1_024)


def list_stated_intervals(snapshot: Snapshot) -> StatedIntervals:
    """List the intervals that the manifest mentions, once for each manifest."""
    manifest, view = snapshot.manifest, snapshot.view.id
    known = _known.get(view)
    if known is None or known.manifest is not manifest:
        ids = {id for name, id in [*manifest.history, *manifest.floors] if name == view}
        # One that waits for a build may have no row that counts: left out, it would look like a day of nothing.
        places = {*manifest.published, *manifest.floors}
        by_start = {to_unix_micros(parse_moment(id)): (view, id) in places for id in ids}
        starts = sorted(by_start)
        flags = np.array([by_start[each] for each in starts], np.bool_)
        known = StatedIntervals(manifest, np.array(starts, np.int64), flags)
        _known[view] = known
    return known


@dataclass
class CountedIntervals:
    """What was read of each interval: which have states, and how many of their rows came from slices."""

    pieces: list[tuple[Numbers, Numbers]] = field(default_factory=list)
    """Starts in microseconds since 1970, ascending, and rows counted from slices, of each piece that was read."""

    def add(self, taken: pa.Table) -> None:
        """Count states that were read."""
        at, speed = read_numpy_column(taken, "_at"), taken["_speed"].to_numpy()
        starts = np.sort(pc.unique(taken["_at"]).to_numpy())
        since = np.zeros(len(starts), np.int64)
        # What withdraws as much as it adds is news, too.
        rows = np.maximum(np.abs(read_numpy_column(taken, "rows")[speed]), 1)
        np.add.at(since, np.searchsorted(starts, at[speed]), rows)
        self.pieces.append((starts, since))

    def within(self, panes: Sequence[Bounds]) -> CountedIntervals:
        """Keep the intervals that start within some bounds."""
        found = CountedIntervals()
        for starts, since in self.pieces:
            kept = is_within_bounds(starts, panes)
            found.pieces.append((starts[kept], since[kept]))
        return found

    def ways(self, snapshot: Snapshot, panes: Sequence[Bounds], side: Side) -> Ways:
        """Find how every interval that has anything within the bounds is answered, in order."""
        length, told = snapshot.grid.length // MICROSECOND, list_stated_intervals(snapshot)
        named = told.starts[told.named]
        starts = named[is_within_bounds(named, panes, length)]
        if len(self.pieces) == 1:
            starts = np.union1d(self.pieces[0][0], starts)
        else:
            starts = np.unique(np.concatenate([starts, *(each for each, _ in self.pieces)]))
        since = np.zeros(len(starts), np.int64)
        for at, rows in self.pieces:
            since[np.searchsorted(starts, at)] += rows
        return find_interval_ways(snapshot, starts, since, side)


def ways_of(snapshot: Snapshot, taken: pa.Table, panes: Sequence[Bounds], side: Side) -> Ways:
    """Find how every interval is answered of which states were taken, or that has anything within the bounds."""
    counted = CountedIntervals()
    counted.add(taken)
    return counted.ways(snapshot, panes, side)


def find_interval_ways(snapshot: Snapshot, starts: Numbers, since: Numbers, side: Side) -> Ways:
    """Find how the intervals at ``starts`` are answered, of which so many rows came from slices."""
    found = find_plain_ways(snapshot, starts, since, side)
    for at in in_time(np.flatnonzero(np.isin(starts, list_stated_intervals(snapshot).starts)).tolist()):
        each = found.told[at] = find_manifest_way(
            snapshot, format_interval_id(int(starts[at])), int(since[at]), side
        )
        found.statuses[at], found.cuts[at] = STATUSES.index(each.status), each.cut
        found.complete_to[at] = each.complete_to
    return found


def find_plain_ways(snapshot: Snapshot, starts: Numbers, since: Numbers, side: Side) -> Ways:
    """Find how intervals are answered that the manifest does not mention."""
    cuts = plain_cuts(snapshot, starts)
    building = cuts > NOTHING if side is not Side.SPEED else np.zeros(len(starts), np.bool_)
    return Ways(
        starts=starts,
        statuses=np.where(building, STATUSES.index(Status.BUILDING), STATUSES.index(Status.OPEN)),
        cuts=cuts,
        rows_since=since,
        complete_to=cuts.copy() if side is Side.BATCH else np.maximum(cuts, snapshot.until),
        missing=count_missing_offsets(snapshot, starts),
        told={},
    )


def plain_cuts(snapshot: Snapshot, starts: Numbers) -> Numbers:
    """Return the cuts of intervals that the manifest does not mention: there are no slices up to a birth."""
    birth, filled = snapshot.floor(""), snapshot.manifest.filled.get(snapshot.view.id)
    cuts = np.full(len(starts), birth, np.int64)
    # No row is accepted from before the pipeline's start.
    cuts[starts < to_unix_micros(snapshot.grid.start)] = NOTHING
    if filled is not None:
        cuts[starts > to_unix_micros(parse_moment(filled))] = NOTHING
    return cuts


def find_manifest_way(snapshot: Snapshot, id: str, since: int, side: Side) -> IntervalAnswer:
    """Find how one interval that the manifest mentions is answered."""
    generation = None if side is Side.SPEED else snapshot.generation(id)
    cut = generation.epoch if generation else snapshot.floor(id)
    owned = side is Side.BATCH or (snapshot.view.counts and generation is not None)
    complete_to = cut if owned else max(cut, snapshot.until)
    if snapshot.building(id, side):
        status = Status.BUILDING
    else:
        news = bool(since) or (generation is not None and snapshot.unmade(generation, id))
        status = snapshot.manifest.standing(generation, news=news)
    named, restated = (generation.generation, generation.restated) if generation else ("", 0)
    note = generation.note if generation and status in NOTED else ""
    lacking = int(count_missing_offsets(snapshot, np.array([to_unix_micros(parse_moment(id))], np.int64))[0])
    return IntervalAnswer(status, cut, named, since, complete_to, restated, note, lacking)


def count_missing_offsets(snapshot: Snapshot, starts: Numbers) -> Numbers:
    """Count the offsets of holes that may belong to intervals."""
    found = np.zeros(len(starts), np.int64)
    for bounds, count in snapshot.lacking.items():
        found += np.where(meet_bounds(snapshot, starts, bounds), count, 0)
    return found


def list_met_borders(snapshot: Snapshot, starts: Numbers) -> tuple[datetime, ...]:
    """List the borders by time of imports whose rows may belong to intervals, the earliest first."""
    met = {until for bounds, until in snapshot.borders if meet_bounds(snapshot, starts, bounds).any()}
    return tuple(sorted(met))


def meet_bounds(snapshot: Snapshot, starts: Numbers, bounds: Interval | None) -> Flags:
    """Return which intervals rows of some event times, None for any, may belong to."""
    if bounds is None:
        return np.ones(len(starts), np.bool_)
    # Rows that are joined with those of an interval may be among them too.
    length, view = snapshot.grid.length // MICROSECOND, snapshot.view
    before, after, span = (each // MICROSECOND for each in (view.before, view.after, view.span))
    begun = starts // span * span if span else starts - before
    first, last = to_unix_micros(bounds.start), to_unix_micros(bounds.end)
    found: Flags = (begun < last) & (starts + length + after > first)
    return found


NOTED = (Status.HELD, Status.PROVISIONAL, Status.UNCERTIFIED)
"""Of these an answer says who decided, and why."""
