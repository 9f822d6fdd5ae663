"""A log condensed: epochs that read or import and follow each other become one row, which any fold over the log may
take.

What a sum stands for cannot be taken apart any more, so it never crosses an epoch that someone asks about: a cut, the
last edge, a hole or what fills one of a topic, another record version, other versions of look-ups, a gap between
ranges, and what joined rows are restated from.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import format_utc_instant, parse_moment

Runs = tuple[tuple[int, int], ...]
SUMMED = (EpochKind.READ, EpochKind.IMPORT)
"""Kinds of epochs that are summed: pieces of an import come between live epochs, and are as many."""
LEAP = 1_000_000
"""By how much numbers jump where a line begins: more than a power loss can take of what others have seen."""


@dataclass(frozen=True)
class Summed(Epoch):
    """Several epochs as one.

    Counts are sums, event times the largest, ``ranges`` what all of them read; everything else is that of the last.
    """

    count: int = 0
    """How many epochs they are."""
    runs: Runs = ()
    """Their numbers as runs ``first..last`` (both in)."""
    arrived: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The first and the last of them that brought rows, by interval id."""
    refusing: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)
    """The last that refused a record and when it was committed, by reason."""


def count_of(epochs: Iterable[Epoch]) -> int:
    """Count the epochs that a log stands for."""
    return sum(each.count if isinstance(each, Summed) else 1 for each in epochs)


def first_of(epoch: Epoch) -> int:
    """Return the number of the first epoch that a row stands for."""
    return epoch.runs[0][0] if isinstance(epoch, Summed) else epoch.number


def runs_of(epoch: Epoch) -> Runs:
    """Return the numbers that a row stands for, as runs ``first..last``, both in."""
    return epoch.runs if isinstance(epoch, Summed) else ((epoch.number, epoch.number),)


def find_last_loss(log: Iterable[Epoch]) -> int | None:
    """Find the epoch after which the newest line begins; None where there is only one, and no epoch was ever lost."""
    runs = sorted(run for epoch in log for run in runs_of(epoch))
    gaps = (end for (_, end), (begin, _) in pairwise(runs) if begin - end >= LEAP)
    return max(gaps, default=None)


def find_arrival_epochs(epoch: Epoch, interval: str) -> tuple[int, int]:
    """Return the first and the last epoch of a row that brought rows of an interval; it has some."""
    return epoch.arrived[interval] if isinstance(epoch, Summed) else (epoch.number, epoch.number)


def find_last_refusal(epoch: Epoch, reason: str) -> tuple[int, datetime]:
    """Return the last epoch of a row that refused a record for a reason, and when it was; it has refused some."""
    return epoch.refusing[reason] if isinstance(epoch, Summed) else (epoch.number, epoch.committed_at)


def condense_epochs(epochs: Iterable[Epoch], cuts: Iterable[int] = ()) -> list[Epoch]:
    """Condense rows of a log, in order, some of which may be sums already; no sum crosses one of ``cuts``.

    The sums of a run end with its last edge, and with its last epoch: the newest edge of a log is a row's number.
    """
    return list(sum_epoch_runs(epochs, sorted(set(cuts))))


def sum_epoch_runs(epochs: Iterable[Epoch], cuts: list[int]) -> Iterator[Epoch]:
    """Return the rows of a condensed log."""
    run = Run()
    at = 0
    for epoch in epochs:
        passed = bisect_left(cuts, epoch.number, at)
        if passed > at or not run.extends_to(epoch):
            yield from run.to_sums()
            run = Run()
        at = passed
        if epoch.kind in SUMMED:
            run.add(epoch)
        else:
            yield epoch
    yield from run.to_sums()


MOST = 1_000
"""Rows that are kept until they are added up: a log may be longer than memory."""


class Run:
    """Rows that may become sums: one up to their last edge, one of what follows it."""

    def __init__(self) -> None:
        self.rows: list[Epoch] = []
        self.edge = 0
        """How many of them there are up to the last edge."""
        self.ends: dict[Lane, int] = {}
        self.lookups: Mapping[str, str] = {}
        self.filled = False

    def extends_to(self, epoch: Epoch) -> bool:
        """Return whether an epoch goes on where this ends, its records read in the same way.

        Beside versions of look-ups there may be only epochs without them that accepted nothing.
        """
        if not self.rows:
            return True
        if epoch.kind not in SUMMED or epoch.record_version != self.rows[-1].record_version:
            return False
        if epoch.restated != self.rows[-1].restated:
            return False
        bare = not epoch.lookups and not epoch.accepted, not self.lookups and not self.filled
        if epoch.lookups != self.lookups and not any(bare):
            return False
        return all(self.ends.get(part.lane, part.start) == part.start for part in epoch.ranges)

    def add(self, epoch: Epoch) -> None:
        """Take a row in."""
        self.rows.append(epoch)
        for part in epoch.ranges:
            self.ends[part.lane] = part.end
        self.lookups = epoch.lookups or self.lookups
        self.filled = self.filled or bool(epoch.accepted)
        if epoch.edge:
            self.edge = len(self.rows)
        if len(self.rows) == MOST:
            self.rows = list(self.to_sums())
            self.edge = min(self.edge, 1)

    def to_sums(self) -> Iterator[Epoch]:
        """Return the sums."""
        for rows in (self.rows[: self.edge], self.rows[self.edge :]):
            if rows:
                yield sum_epochs(rows) if len(rows) > 1 else rows[0]


def sum_epochs(rows: list[Epoch]) -> Summed:
    """Add up rows that follow each other."""
    totals: dict[str, dict[str, int]] = {"accepted": {}, "refused": {}, "late": {}, "very_late": {}}
    spans: dict[Lane, tuple[int, int]] = {}
    largest: dict[Lane, datetime] = {}
    came: dict[str, tuple[int, int]] = {}
    turned: dict[str, tuple[int, datetime]] = {}
    for row in rows:
        for name, total in totals.items():
            for key, count in getattr(row, name).items():
                total[key] = total.get(key, 0) + count
        for part in row.ranges:
            spans[part.lane] = (spans.get(part.lane, (part.start, 0))[0], part.end)
        for lane, at in row.max_event_time.items():
            largest[lane] = max(at, largest.get(lane, at))
        for interval in row.accepted:
            first, last = find_arrival_epochs(row, interval)
            came[interval] = (came.get(interval, (first, 0))[0], last)
        for reason in row.refused:
            turned[reason] = find_last_refusal(row, reason)
    end = rows[-1]
    facts: dict[str, Any] = dict(totals)
    return Summed(
        number=end.number,
        token=end.token,
        committed_at=end.committed_at,
        record_version=end.record_version,
        edge=end.edge,
        ranges=tuple(OffsetRange(lane, *span) for lane, span in sorted(spans.items())),
        max_event_time=largest,
        watermark=end.watermark,
        frontiers=end.frontiers,
        lookups=next((row.lookups for row in reversed(rows) if row.lookups), {}),
        before=rows[0].before,
        count=count_of(rows),
        runs=tuple(merge_adjacent_runs(run for row in rows for run in runs_of(row))),
        clock=end.clock,
        restated=end.restated,
        arrived=came,
        refusing=turned,
        **facts,
    )


def merge_adjacent_runs(runs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join runs, in order, that touch."""
    last: tuple[int, int] | None = None
    for first, end in runs:
        if last and first == last[1] + 1:
            last = (last[0], end)
            continue
        if last:
            yield last
        last = (first, end)
    if last:
        yield last


def to_text(rows: Iterable[Epoch]) -> str:
    """Write a condensed log as JSON."""
    return json.dumps(
        [[json.loads(row.to_json()), list_sum_fields(row)] for row in rows], separators=(",", ":")
    )


def list_sum_fields(row: Epoch) -> dict[str, object] | None:
    """Return what a sum has beside an epoch's fields."""
    if not isinstance(row, Summed):
        return None
    turned = {reason: (number, format_utc_instant(at)) for reason, (number, at) in row.refusing.items()}
    return {"count": row.count, "runs": row.runs, "arrived": dict(row.arrived), "refusing": turned}


def from_text(text: str) -> list[Epoch]:
    """Read what ``to_text`` wrote."""
    found: list[Epoch] = []
    for row, more in json.loads(text):
        epoch = Epoch.from_row(row)
        if more is not None:
            epoch = Summed(
                **vars(epoch),
                count=more["count"],
                runs=tuple((first, last) for first, last in more["runs"]),
                arrived={id: (first, last) for id, (first, last) in more["arrived"].items()},
                refusing={
                    reason: (number, parse_moment(at)) for reason, (number, at) in more["refusing"].items()
                },
            )
        found.append(epoch)
    return found
