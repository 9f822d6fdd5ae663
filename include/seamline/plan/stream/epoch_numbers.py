"""Decisions of a stream: the next number, where to begin, and when a cut may fall."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from seamline.model.protocol.offsets import Lane, Vector

PER_TASK = 20_000
"""Records that a task should read at least; it costs as much by itself as a few thousand of them."""


def next_number(seen: Collection[int | None]) -> int:
    """Return a number above every one that any table has seen, dead epochs included (rule 2)."""
    return max((number for number in seen if number is not None), default=-1) + 1


@dataclass(frozen=True)
class Checkpoint:
    """What Spark's checkpoint says."""

    planned: int
    """The last batch that Spark has planned."""
    finished: int
    """The last batch that Spark has finished."""
    ends: Mapping[str, Mapping[int, int]]
    """End offsets of the last planned batch, exclusive, by topic and partition."""


@dataclass(frozen=True)
class Resume:
    """Go on with Spark's checkpoint: it ends where the master ends."""


@dataclass(frozen=True)
class Begin:
    """Start a new query from the master's end offsets; a partition not named is new."""

    offsets: Mapping[str, Mapping[int, int]]
    """The next offset to read, by topic and partition."""


def decide_start_position(
    ends: Mapping[str, Mapping[int, int]], checkpoint: Checkpoint | None
) -> Resume | Begin:
    """Decide where a start reads from; the master's ``ends`` count, not the checkpoint's (rule 3).

    They are by topic and partition; a topic of which nothing was read is not named.
    """
    if checkpoint and checkpoint.planned == checkpoint.finished and checkpoint.ends == ends and ends:
        return Resume()
    return Begin(ends)


@dataclass(frozen=True)
class EdgePolicy:
    """When an edge is due: after so many epochs or so much wall clock, whichever is first."""

    epochs: int
    """The most epochs from one edge to the next."""
    every: timedelta
    """The most time from one edge to the next."""

    def is_due(self, number: int, last_edge: int, now: datetime, last_edge_at: datetime) -> bool:
        """Return whether epoch ``number`` should be an edge."""
        return number - last_edge >= self.epochs or now - last_edge_at >= self.every


def idle_lanes(
    positions: Vector,
    broker_ends: Mapping[Lane, int],
    last_seen: Mapping[Lane, datetime],
    *,
    now: datetime,
    after: Callable[[Lane], timedelta],
) -> frozenset[Lane]:
    """List the lanes that are read to the broker's end and have shown nothing for as long as ``after`` says (rule 12).

    ``broker_ends`` are freshly asked; ``last_seen`` is the wall clock of the last record, or of the start.
    """
    return frozenset(
        lane
        for lane, end in broker_ends.items()
        if positions.get(lane, 0) >= end and now - last_seen.get(lane, now) >= after(lane)
    )


FEWEST = 1000
"""Records: a smaller epoch is mostly overhead."""
FURTHEST = 4.0
"""How many times larger or smaller the next size may be."""


def next_size(size: int, records: int, seconds: float, *, target: float, most: int) -> int:
    """Return the size of the next epochs, after one of ``records`` that took ``seconds``.

    It changes where the epoch was half as long again as the target, or as large as allowed and less than half as
    long; in proportion, for the records' share of the time is by far the largest in epochs of such a length.
    """
    full = records * 10 >= size * 9
    if not (seconds > 1.5 * target or (full and seconds < target / 2)):
        return size
    factor = min(max(target / max(seconds, 0.001), 1 / FURTHEST), FURTHEST)
    return min(max(int(min(size, max(records, 1)) * factor), min(FEWEST, most)), most)


INTERVALS = 2_000
"""What an epoch should have rows of: each is an entry of its commit, and of every plan."""


def limit_epoch_size(wanted: int, size: int, records: int, intervals: int, *, most: int) -> int:
    """Return the size of the next epochs, ``wanted`` for their time, after one of so many ``intervals``.

    A smaller epoch of a topic that few write to, read from long ago, has fewer intervals in proportion.
    """
    if not intervals:
        return wanted
    bound = max(records * INTERVALS // intervals, min(FEWEST, most))
    return min(wanted, bound) if intervals > INTERVALS else min(wanted, max(bound, size))


LEAST, MOST = 15.0, 120.0
"""Seconds until a view that failed to catch up is tried again."""
AWAITED = 2.0
"""Seconds until one that waits for a build is tried again."""


def count_tasks(records: int) -> int:
    """Return how many tasks are worth their while for so many records."""
    return max(-(-records // PER_TASK), 1)


def step_end(sizes: Mapping[int, int], after: int, most: int) -> int:
    """Return the last epoch of a step of at most ``most`` rows above epoch ``after``, but of one epoch at least.

    ``sizes`` are rows by epoch, in order; ``after`` itself where there is none above it.
    """
    last, rows = after, 0
    for number, size in sizes.items():
        if number > after:
            rows += size
            if rows > most and last > after:
                break
            last = number
    return last


@dataclass(frozen=True)
class Turns:
    """Whose turn it is to catch up: live epochs wait for each step, so there is one at a time.

    A view that a step brings nearer goes on at once; one that fails is tried after ``LEAST`` seconds, then after
    twice as long each time, up to ``MOST``. One that waits for a build is tried every ``AWAITED`` seconds.
    """

    due: Mapping[str, float] = field(default_factory=dict)
    """When each view that has failed is tried again, in seconds of the caller's clock, by its id."""
    waits: Mapping[str, float] = field(default_factory=dict)
    """Seconds that each view that has failed waits the next time, by its id."""

    def next_view(self, behind: Mapping[str, int], now: float) -> str:
        """Return the view that is furthest behind of those whose time has come; empty if there is none."""
        ready = [view for view in behind if self.due.get(view, now) <= now]
        return min(ready, key=lambda view: (behind[view], view), default="")

    def record_step(self, view: str, now: float, *, moved: bool, awaits_build: bool = False) -> Turns:
        """Take in a step of a view."""
        due, waits = (
            {key: value for key, value in each.items() if key != view} for each in (self.due, self.waits)
        )
        if moved:
            return Turns(due, waits)
        wait = AWAITED if awaits_build else min(self.waits.get(view, LEAST / 2) * 2, MOST)
        return Turns({**due, view: now + wait}, {**waits, view: wait})
