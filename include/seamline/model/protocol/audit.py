"""What an audit finds in its evidence: Kafka against ledger, ledger against log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from seamline.model.protocol.accuracy import Accuracy
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import CLOSING, list_missing_ranges
from seamline.model.protocol.offset_runs import (
    Run,
    Runs,
    count_run_offsets,
    format_offset_runs,
    intersect_offset_runs,
    merge_offset_runs,
    subtract_offset_runs,
)
from seamline.model.protocol.offsets import Lane, OffsetRange


class Wrong(StrEnum):
    """Kinds of findings, each an alarm."""

    LOST = "lost"
    """Kafka has records that epochs have read, but the log does not contain them."""
    DUPLICATE = "duplicate"
    """The log contains records more than once."""
    TRUNCATED = "truncated"
    """Kafka ends before what was read: it has lost records, and assigns their offsets to others."""
    UNSTATED = "unstated"
    """The log contains records that no epoch has read by the ledger."""
    MISCOUNTED = "miscounted"
    """The log contains more or fewer rows of an epoch than the ledger says."""
    BEHIND = "behind"
    """A view's slices end before the log does."""
    SLICES = "slices"
    """Slices are not what the log's records make."""
    GENERATION = "generation"
    """A published generation is not what its build wrote, or the log no longer what it was built from."""
    MISSING = "missing"
    """Fewer records were read than a producer says that it has sent."""
    SURPLUS = "surplus"
    """More records were read than a producer says that it has sent."""
    SINK = "sink"
    """A sink's target holds something else than is served, or cannot be read."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    wrong: Wrong
    """The kind of contradiction."""
    place: str
    """The lane, epoch, interval or view."""
    count: int
    """How many records or rows it is about."""
    said: str
    """The finding in a sentence."""

    def __str__(self) -> str:
        return f"{self.wrong}: {self.place}: {self.said}"


@dataclass(frozen=True)
class LaneEvidence:
    """What is known of one lane, as runs of offsets ``[start, end)``."""

    lane: Lane
    """The lane."""
    kept: Run | None
    """What Kafka has, None where the lane is gone."""
    read: Runs
    """Offsets that epochs have read."""
    passed: Runs
    """Offsets of holes."""
    held: Runs
    """Offsets of records in master or quarantine."""
    twice: Mapping[int, int] = field(default_factory=dict)
    """How often each offset is in the log that is there more than once."""
    there: Runs = ()
    """Offsets in neither table for which Kafka, asked again, returned a record."""
    read_to: int | None = None
    """Where the lane was read to, where not all that was read is looked at."""

    @property
    def absent(self) -> list[Run]:
        """Offsets that were read and of which the log has no record."""
        return subtract_offset_runs(self.read, self.held)

    @property
    def askable(self) -> list[Run]:
        """Those of them that Kafka can still be asked about."""
        kept = [self.kept] if self.kept and self.kept[0] < self.kept[1] else []
        return intersect_offset_runs(self.absent, kept)


@dataclass(frozen=True)
class LaneAudit:
    """One lane in numbers of offsets."""

    lane: Lane
    """The lane."""
    first: int | None
    """The first offset that Kafka has, None where the lane is gone."""
    end: int | None
    """The exclusive end that Kafka has, None where the lane is gone."""
    read_to: int
    """The exclusive end of what was read."""
    records: int
    """Offsets with a record in the log."""
    blank: int
    """Offsets that never were a record (markers, aborted, compacted), as far as Kafka still knows."""
    untold: int
    """Offsets that Kafka no longer knows."""
    holes: int
    """Offsets that were passed over."""
    waiting: int
    """Offsets that are not read yet."""


def audit_lane(evidence: LaneEvidence) -> tuple[LaneAudit, list[Finding]]:
    """Judge a lane."""
    kept, read, held = evidence.kept, evidence.read, evidence.held
    read_to = max((end for runs in (read, evidence.passed) for _, end in runs), default=0)
    read_to = max(read_to, evidence.read_to or 0)
    lost = intersect_offset_runs(evidence.absent, evidence.there)
    askable = count_run_offsets(evidence.askable)
    audit = LaneAudit(
        lane=evidence.lane,
        first=kept[0] if kept else None,
        end=kept[1] if kept else None,
        read_to=read_to,
        records=count_run_offsets(held),
        blank=askable - count_run_offsets(lost),
        untold=count_run_offsets(evidence.absent) - askable,
        holes=count_run_offsets(evidence.passed),
        waiting=len(OffsetRange(evidence.lane, max(read_to, kept[0]), max(kept[1], read_to, kept[0])))
        if kept
        else 0,
    )
    return audit, [*of_lane(evidence, lost, read_to)]


def of_lane(evidence: LaneEvidence, lost: Runs, read_to: int) -> Iterator[Finding]:
    """List what is wrong with a lane that was read to an offset."""
    place = f"partition {evidence.lane.partition} of topic id {evidence.lane.topic_id}"
    if evidence.kept and evidence.kept[1] < read_to:
        said = (
            f"the log was read to {read_to}, and Kafka ends at {evidence.kept[1]}: it has lost what was read"
        )
        yield Finding(Wrong.TRUNCATED, place, read_to - evidence.kept[1], said)
    if lost:
        said = (
            f"{count_run_offsets(lost)} records that Kafka has were read and are not in the log: "
            + format_offset_runs(lost)
        )
        yield Finding(Wrong.LOST, place, count_run_offsets(lost), said)
    if evidence.twice:
        runs = merge_offset_runs((offset, offset + 1) for offset in evidence.twice)
        more = sum(evidence.twice.values()) - len(evidence.twice)
        said = f"{count_run_offsets(runs)} records are in the log more than once, {more} times too often: "
        said += format_offset_runs(runs)
        yield Finding(Wrong.DUPLICATE, place, more, said)
    if unstated := subtract_offset_runs(evidence.held, evidence.read):
        said = (
            f"{count_run_offsets(unstated)} records in the log are of no epoch's ranges: "
            + format_offset_runs(unstated)
        )
        yield Finding(Wrong.UNSTATED, place, count_run_offsets(unstated), said)


def ranges_of(ledger: Iterable[Epoch]) -> tuple[dict[Lane, list[Run]], dict[Lane, list[Run]]]:
    """Return what epochs have read of each lane, and what was passed over and not filled since."""
    epochs = list(ledger)
    read = (part for epoch in epochs if epoch.kind not in CLOSING for part in epoch.ranges)
    passed = (part for parts in list_missing_ranges(epochs).values() for part in parts)
    return by_lane(read), by_lane(passed)


def by_lane(parts: Iterable[OffsetRange]) -> dict[Lane, list[Run]]:
    """Sort ranges by their lanes; of a table without the offsets before, which stand for no row."""
    found: dict[Lane, list[Run]] = {}
    for part in parts:
        found.setdefault(part.lane, []).append(part.rows)
    return {lane: merge_offset_runs(runs) for lane, runs in found.items()}


@dataclass(frozen=True)
class Rows:
    """Rows of the log by epoch."""

    accepted: Mapping[int, Mapping[str, int]]
    """The master's rows, by epoch and interval id."""
    refused: Mapping[int, Mapping[str, int]]
    """The quarantine's rows, by epoch and reason."""


@dataclass(frozen=True)
class Stated:
    """What the ledger says of one interval, all epochs together, beside the master."""

    accepted: int
    """Accepted rows by the ledger."""
    late: int
    """Those behind the watermark."""
    very_late: int
    """Those further behind than ``very_late``."""
    rows: int
    """Rows of the interval in the master."""


def list_miscounted_epochs(ledger: Iterable[Epoch], rows: Rows) -> list[Finding]:
    """List the epochs of which the log has other rows than the ledger says."""
    found = []
    for epoch in ledger:
        for said, counted, what in (
            (epoch.accepted, rows.accepted.get(epoch.number, {}), "rows of interval"),
            (epoch.refused, rows.refused.get(epoch.number, {}), "records refused for"),
        ):
            for name in sorted(said.keys() | counted.keys()):
                stated, held = said.get(name, 0), counted.get(name, 0)
                if stated != held:
                    words = f"{held} {what} {name}, the ledger says {stated}"
                    place = f"epoch {epoch.number}"
                    found.append(Finding(Wrong.MISCOUNTED, place, abs(held - stated), words))
    return found


def by_interval(ledger: Iterable[Epoch], rows: Rows) -> dict[str, Stated]:
    """Add up what the ledger and the master say of each interval."""
    said: dict[str, Counter[str]] = {name: Counter() for name in ("accepted", "late", "very_late")}
    for epoch in ledger:
        for name, counter in said.items():
            counter.update(getattr(epoch, name))
    held: Counter[str] = Counter()
    for counted in rows.accepted.values():
        held.update(counted)
    return {
        id: Stated(said["accepted"][id], said["late"][id], said["very_late"][id], held[id])
        for id in sorted(said["accepted"].keys() | held.keys())
    }


@dataclass(frozen=True)
class ViewAudit:
    """What was looked at of a view version."""

    view: str
    """The view version, ``name/fingerprint``."""
    until: int
    """The last epoch of which its slices count."""
    states: int
    """How many states were made again."""
    generations: int
    """How many generations were compared."""


@dataclass(frozen=True)
class Audit:
    """What the log contains as of an epoch, beside Kafka and the ledger, and what the views make of it."""

    pipeline: str
    """The pipeline's name."""
    at: datetime
    """When it began, UTC."""
    seconds: float
    """How long it took."""
    actor: str
    """Who asked for it."""
    epoch: int
    """E at its begin."""
    lanes: tuple[LaneAudit, ...]
    """Each lane in numbers."""
    intervals: Mapping[str, Stated]
    """Each interval's rows, by its id."""
    reasons: Mapping[str, int]
    """Refused records, by reason."""
    views: tuple[ViewAudit, ...]
    """What was looked at of each view version."""
    findings: tuple[Finding, ...]
    """What is wrong; empty where nothing is."""
    span: str = ""
    """The span it was of, ``start/end``; empty for all that was ever read."""
    producers: tuple[str, ...] = ()
    """A line for each interval of which producers' counts are not complete, or not what its certificate says."""
    accuracy: Mapping[str, tuple[Accuracy, ...]] = field(default_factory=dict)
    """How far early answers of views were from the final ones, over the span or the newest intervals, by view."""
    sinks: tuple[str, ...] = ()
    """A line for each sink of a view: what its target holds, or what was found when it was last read."""

    @property
    def passed(self) -> bool:
        """True if nothing is wrong."""
        return not self.findings
