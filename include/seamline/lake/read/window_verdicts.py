"""How far each window is right, by the intervals that it depends on, found for all windows at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.windowing import END, START, Numbers, read_numpy_column
from seamline.lake.read.answer_ways import STATUSES, Flags, Ways
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.read.standings import find_interval_ways, find_plain_ways, list_stated_intervals
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.seam import Side, Status
from seamline.model.time.intervals import parse_moment
from seamline.model.time.window_arithmetic import Gaps
from seamline.model.time.zone_clock import MICROSECOND

CERTIFIED = [STATUSES.index(each) for each in (Status.CERTIFIED, Status.DIRTY, Status.HELD)]
BUILDING = STATUSES.index(Status.BUILDING)
UNANSWERED, MOST = -(2**62), 2**62


@dataclass(frozen=True)
class Verdicts:
    """How far each window is right, one column for each fact, in the order of the windows."""

    answered: Flags
    """Whether it has an answer: none while one of its intervals is being built."""
    epochs: Numbers
    """The last epoch up to which it is right; UNANSWERED if it has no answer."""
    certified: Flags
    """Whether all its intervals are certified."""
    complete: Flags
    """Whether the watermark is past its end."""
    corrected: Flags
    """Whether it is complete and events came after the watermark had passed its end."""

    def only(self, kept: Flags) -> Verdicts:
        """Keep the windows at which ``kept`` is true."""
        return Verdicts(*(getattr(self, each.name)[kept] for each in fields(self)))


def compute_verdicts(snapshot: Snapshot, ways: Ways, found: pa.Table, side: Side) -> Verdicts:
    """Compute the verdicts on windows by their bounds."""
    if not found.num_rows:
        none = np.zeros(0, np.bool_)
        return Verdicts(none, np.zeros(0, np.int64), none, none, none)
    starts, endless = read_numpy_column(found, START), found[END].null_count > 0
    ends = found[END].fill_null(MOST).to_numpy()
    # Rows of one window follow each other: what depends on the window alone is found once for each run.
    new = np.flatnonzero((np.diff(starts) != 0) | (np.diff(ends) != 0)) + 1
    firsts = np.concatenate([[0], new])
    sizes = np.diff(np.append(firsts, len(starts)))
    if endless:
        epochs, certified = over_all(ways, len(firsts))
    else:
        touched = find_touched_intervals(snapshot.view, starts[firsts], ends[firsts])
        epochs, certified = find_window_epochs(snapshot, ways, *touched, side)
    ahead = snapshot.view.after // MICROSECOND
    mark = to_unix_micros(snapshot.watermark) - ahead if snapshot.watermark else UNANSWERED
    complete = np.repeat((ends[firsts] <= mark) & (ends[firsts] < MOST), sizes)
    epochs = np.repeat(epochs, sizes)
    late = complete & find_corrected_windows(snapshot, found, ends) if complete.any() else complete
    return Verdicts(epochs != UNANSWERED, epochs, np.repeat(certified, sizes), complete, late)


def find_touched_intervals(view: CompiledView, starts: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """Number (from 1970) the first and the last interval on which each window depends.

    A session depends on what could have joined it: a gap before its first and after its last event.
    """
    length = view.interval // MICROSECOND
    first = starts - view.windows.gap + 1 if isinstance(view.windows, Gaps) else starts
    return first // length, (ends - 1) // length


def find_corrected_windows(snapshot: Snapshot, found: pa.Table, ends: Numbers) -> Flags:
    """Find the windows that got events after an edge at which the watermark had passed their end."""
    newest = pc.unique(found["_newest"])
    marks = [snapshot.edges.mark_before(each) for each in newest.to_pylist()]
    before = np.array([UNANSWERED if mark is None else mark for mark in marks], np.int64)
    ahead = snapshot.view.after // MICROSECOND
    late: Flags = before[pc.index_in(found["_newest"], newest).to_numpy()] - ahead >= ends
    return late


def find_interval_epochs(ways: Ways) -> tuple[Numbers, Numbers]:
    """Find the epoch up to which each interval is right, UNANSWERED while it builds, and 1 where it is certified."""
    epochs = np.where(ways.statuses == BUILDING, UNANSWERED, ways.complete_to)
    return epochs, np.isin(ways.statuses, CERTIFIED).astype(np.int64)


def over_all(ways: Ways, count: int) -> tuple[Numbers, Flags]:
    """Find how far windows are right that depend on all intervals."""
    epochs, certified = find_interval_epochs(ways)
    return np.full(count, epochs.min(), np.int64), np.full(count, bool(certified.all()))


def find_window_epochs(
    snapshot: Snapshot, ways: Ways, first: Numbers, last: Numbers, side: Side
) -> tuple[Numbers, Flags]:
    """Find how far windows are right that depend on the intervals numbered from ``first`` to ``last``.

    Those that are in the answer, or that the manifest names, are looked at one by one, each once; the others
    among them, however many, are alike on either side of the last one that had rows at the view's birth.
    """
    length = snapshot.grid.length // MICROSECOND
    beside = np.setdiff1d(list_stated_intervals(snapshot).starts, ways.starts)
    beside = beside[is_in_runs(beside // length, first, last)]
    more = find_interval_ways(snapshot, beside, np.zeros(len(beside), np.int64), side)
    numbers = np.concatenate([ways.starts, more.starts]) // length
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    epochs, certified = (
        np.concatenate(each)[order]
        for each in zip(find_interval_epochs(ways), find_interval_epochs(more), strict=True)
    )
    low, high = np.searchsorted(numbers, first, "left"), np.searchsorted(numbers, last, "right")
    found, sure = find_run_minimums(epochs, low, high), find_run_minimums(certified, low, high)
    border = find_last_filled(snapshot, length)
    for start, end in ((first, np.minimum(last, border)), (np.maximum(first, border + 1), last)):
        there = np.searchsorted(numbers, end, "right") - np.searchsorted(numbers, start, "left")
        spare = end - start + 1 > np.maximum(there, 0)
        if spare.any():
            one = find_plain_ways(snapshot, start[spare][:1] * length, np.zeros(1, np.int64), side)
            found[spare] = np.minimum(found[spare], find_interval_epochs(one)[0])
            sure[spare] = 0
    return found, sure == 1


def find_last_filled(snapshot: Snapshot, length: int) -> int:
    """Number the last interval that had rows when the view was born; a number beyond all where that is not known."""
    last = snapshot.manifest.filled.get(snapshot.view.id)
    return MOST if last is None else to_unix_micros(parse_moment(last)) // length


def is_in_runs(numbers: Numbers, first: Numbers, last: Numbers) -> Flags:
    """Return which numbers are in one of the runs from ``first`` to ``last``."""
    begun = np.searchsorted(np.sort(first), numbers, "right")
    over = np.searchsorted(np.sort(last), numbers, "left")
    found: Flags = begun > over
    return found


def find_run_minimums(values: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """Find the least of each run ``values[low:high]``; MOST of an empty one.

    Runs are covered by two that are as long as a power of two, whose least values come by doubling (a sparse table).
    """
    found, sizes = np.full(len(low), MOST, np.int64), high - low
    power, width = values, 1
    while (waiting := sizes >= width).any():
        now = waiting & (sizes < 2 * width)
        found[now] = np.minimum(power[low[now]], power[high[now] - width])
        if len(power) > width:
            power = np.minimum(power[:-width], power[width:])
        width *= 2
    return found
