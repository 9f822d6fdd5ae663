"""How a stream is: what it should do, what it does, and how far behind it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from seamline.model.protocol.alert import Standing
from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.stream_state import Actual

SHORT = 5.0
"""Seconds: what is read in so long is no backlog."""
WINDOW = timedelta(minutes=1)


@dataclass(frozen=True)
class Sample:
    """How far a stream had read, all lanes together."""

    at: datetime
    """When, UTC."""
    read: int
    """Offsets that were read."""
    end: int
    """Offsets at which the topics ended."""

    @property
    def lag(self) -> int:
        """Records not read."""
        return max(self.end - self.read, 0)


@dataclass(frozen=True)
class Lag:
    """What is not read yet; None is not known."""

    records: int | None = None
    """Offsets that are not read; transactions and compaction leave some of them empty."""
    seconds: float | None = None
    """The age of the oldest record that is not read."""
    at: datetime | None = None
    """When it was so, UTC."""
    asked: bool = False
    """Whether the broker said so now; else the driver did at its last epoch."""
    lanes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Offsets that are not read, by topic and partition."""
    arriving: float | None = None
    """Records that arrive in a second."""
    drained: float | None = None
    """Records that are read in a second."""

    @property
    def catch_up(self) -> float | None:
        """Seconds until all is read, at the rates of the last minute; infinite where the lag does not shrink."""
        if self.records == 0:
            return 0.0
        if self.records is None or self.drained is None or self.arriving is None:
            return None
        if 0 < self.records <= SHORT * self.drained:
            return self.records / self.drained
        shrinks = self.drained - self.arriving
        return self.records / shrinks if shrinks > 0 else math.inf

    @property
    def growing(self) -> bool:
        """Return whether it never ends as things are, and more arrives than is read."""
        return self.catch_up == math.inf and (self.arriving or 0) > (self.drained or 0)


def compute_record_rates(earlier: Sample | None, now: Sample) -> tuple[float | None, float | None]:
    """Return the records that arrive and those that are read in a second, between two samples."""
    if earlier is None or (seconds := (now.at - earlier.at).total_seconds()) < 1:
        return None, None
    return max(now.end - earlier.end, 0) / seconds, max(now.read - earlier.read, 0) / seconds


def rows_per_second(recent: Iterable[Epoch], *, now: datetime) -> float | None:
    """Return the rows accepted in a second over the last minute; ``recent`` epochs are in order, None for none."""
    epochs = list(recent)
    if not epochs:
        return None
    start = max(now - WINDOW, epochs[0].committed_at)
    seconds = (now - start).total_seconds()
    return sum(each.rows for each in epochs if each.committed_at > start) / seconds if seconds > 0 else None


ASTRAY_WITHIN = timedelta(minutes=10)


def count_astray_records(
    epochs: Iterable[Epoch], names: Mapping[str, str], *, now: datetime
) -> dict[tuple[str, int], int]:
    """Count what was refused for its event times lately, by topic and partition; a topic without a name by its id."""
    found: Counter[tuple[str, int]] = Counter()
    for epoch in epochs:
        if now - epoch.committed_at <= ASTRAY_WITHIN:
            for lane, records in epoch.astray.items():
                found[names.get(lane.topic_id, lane.topic_id), lane.partition] += records
    return dict(found)


@dataclass(frozen=True)
class ViewBehind:
    """A view whose slices are not complete to E."""

    frontier: int
    """The epoch to which they are complete."""
    error: str = ""
    """Why, as far as is known."""


@dataclass(frozen=True)
class Observation:
    """How a stream is at an instant; None is not known.

    ``holes`` are gaps that nobody has decided on, in words. ``restarts`` counts the driver's starts but the first
    under its supervisor, ``strikes`` failures in a row. ``unread`` says what could not be read, and why.
    ``silenced`` is true where Airflow has not reconciled the stream for long: pausing its DAG does that.
    ``frontiers`` is W(v) of every view, ``seconds`` are those of the last epoch's phases,
    and ``trigger`` what Spark said of the one before. A supervisor was ``refused``
    its lease at an instant, last. ``given_up`` is true after too many failures. ``disk_free`` is a share of 1.
    ``astray`` counts by topic and partition the records that were refused for their event times, of the newest
    epochs that are no older than ``ASTRAY_WITHIN``.
    """

    pipeline: str
    at: datetime
    desired: str = "unset"
    actor: str = ""
    reason: str = ""
    actual: Actual = Actual.UNKNOWN
    detail: str = ""
    epoch: int | None = None
    committed_at: datetime | None = None
    lag: Lag = Lag()
    watermark: datetime | None = None
    rows_per_second: float | None = None
    restarts: int | None = None
    strikes: int | None = None
    last_error: str = ""
    behind: Mapping[str, ViewBehind] = field(default_factory=dict)
    holes: tuple[str, ...] | None = None
    reconciled: datetime | None = None
    silenced: bool = False
    alerts: tuple[Standing, ...] = ()
    unread: tuple[str, ...] = ()
    frontiers: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    trigger: Mapping[str, float] = field(default_factory=dict)
    refused: datetime | None = None
    refusal: str = ""
    given_up: bool = False
    disk_free: float | None = None
    astray: Mapping[tuple[str, int], int] | None = None

    @property
    def epoch_age(self) -> timedelta | None:
        """Time since the last epoch."""
        return None if self.committed_at is None else self.at - self.committed_at

    @property
    def watermark_age(self) -> timedelta | None:
        """How far the watermark is behind the clock."""
        return None if self.watermark is None else self.at - self.watermark
