"""How a stream is: what it should do, what it does, and how far behind it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from seamline.model.protocol.alert import Standing
from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.ask_counts import AskCount
from seamline.plan.stream.hot_keys import KeyShare
from seamline.plan.stream.rule_counts import RuleCount
from seamline.plan.stream.sink_facts import SinkFacts
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
    """How a stream is at an instant; None is not known."""

    pipeline: str
    """Its name."""
    at: datetime
    """The instant."""
    desired: str = "unset"
    """What the stream should do, as the control log has it."""
    actor: str = ""
    """Who last wanted it so; empty if nobody did."""
    reason: str = ""
    """Why, as recorded in the control log."""
    actual: Actual = Actual.UNKNOWN
    """What the stream does."""
    detail: str = ""
    """More of that, in words."""
    epoch: int | None = None
    """E, the newest committed epoch; -1 before the first."""
    committed_at: datetime | None = None
    """When that epoch was committed."""
    lag: Lag = Lag()
    """What Kafka has and the stream has not read."""
    watermark: datetime | None = None
    """Of the newest epoch."""
    rows_per_second: float | None = None
    """Records read, over the newest epochs of the last minute."""
    restarts: int | None = None
    """Starts of the driver under its supervisor but the first."""
    strikes: int | None = None
    """Failures in a row."""
    last_error: str = ""
    """The driver's last error; empty if there was none."""
    behind: Mapping[str, ViewBehind] = field(default_factory=dict)
    """Views whose slices are not complete to E, by the id of the version."""
    holes: tuple[str, ...] | None = None
    """Gaps in the offsets that nobody has decided on, in words."""
    reconciled: datetime | None = None
    """When Airflow last reconciled the stream."""
    silenced: bool = False
    """Whether Airflow has not reconciled the stream for long, as when its DAG is paused."""
    alerts: tuple[Standing, ...] = ()
    """Alerts that stand."""
    unread: tuple[str, ...] = ()
    """What could not be read, and why, a line each."""
    frontiers: Mapping[str, int] = field(default_factory=dict)
    """W(v), the last epoch in the slices of each view, by the id of the version."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds that each phase of the newest epoch took, by its name."""
    trigger: Mapping[str, float] = field(default_factory=dict)
    """Seconds of Spark's trigger before the newest epoch, by Spark's names."""
    refused: datetime | None = None
    """When a supervisor was last refused the lease."""
    refusal: str = ""
    """What it was told; empty if none was refused."""
    given_up: bool = False
    """Whether the supervisor has given up after too many failures."""
    disk_free: float | None = None
    """The share of the disk that is free, 0 to 1."""
    astray: Mapping[tuple[str, int], int] | None = None
    """Records that were refused for their event times by epochs no older than ``ASTRAY_WITHIN``, by topic and
    partition.
    """
    hot: Mapping[str, KeyShare] = field(default_factory=dict)
    """The key that has a tenth or more of the last epoch's rows, by the id of the version."""
    indexed: Mapping[str, int] = field(default_factory=dict)
    """Rows that the driver's index of each join keeps, by the join's name."""
    rules: Mapping[str, RuleCount] | None = None
    """The rules that topics make, by the look-up's name; None where no driver says."""
    asks: Mapping[str, AskCount] | None = None
    """How far other systems have been asked, by the question's name; None where no driver says."""
    sinks: tuple[SinkFacts, ...] | None = None
    """How the pipeline's sinks are; None where that cannot be read."""
    ageing: tuple[str, ...] | None = None
    """Unread offsets that Kafka may delete soon, in words: those that upkeep found last, and nobody has read since."""

    @property
    def epoch_age(self) -> timedelta | None:
        """Time since the last epoch."""
        return None if self.committed_at is None else self.at - self.committed_at

    @property
    def watermark_age(self) -> timedelta | None:
        """How far the watermark is behind the clock."""
        return None if self.watermark is None else self.at - self.watermark
