"""What a certificate makes of its producers' counts, in a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from seamline.model.protocol.counts.comparison import Outcome, ProducerCount, SourceCounts
from seamline.model.time.intervals import Interval

TOLD = 20
"""How many gaps, and spans without a statement, a line names."""


class Certified(Protocol):
    """A certificate, as far as it is about producers."""

    @property
    def interval(self) -> Interval:
        """The interval."""

    @property
    def counts(self) -> tuple[SourceCounts, ...]:
        """What producers said, and what was read, by source."""


@dataclass(frozen=True)
class Awaited:
    """Producers' counts of an interval, and whether its certificate needs them."""

    found: SourceCounts
    """What was found."""
    required: bool
    """Whether it does."""
    until: datetime | None
    """Until when statements that are missing are waited for, UTC; None for ever."""

    @property
    def name(self) -> str:
        """What a certificate calls it."""
        return f"producers' counts{f' of {self.found.source}' if self.found.source else ''}"

    def holds(self, *, now: datetime) -> bool:
        """Return whether the certificate may be green."""
        if not self.required or self.found.complete:
            return True
        over = self.until is not None and now >= self.until
        return over and self.found.only_unstated


def await_counts(
    found: SourceCounts, end: datetime, *, required: bool, patience: timedelta | None
) -> Awaited:
    """Say until when the statements of an interval that ends at an instant are waited for."""
    return Awaited(found, required, None if patience is None else end + patience)


def format_source_counts(found: SourceCounts) -> str:
    """Describe in a line what producers sent and what was read, with the gaps by name."""
    if not found.counts:
        return "no producer has said what it sent"
    many = sum(found.outcomes.values())
    parts = [f"{found.said} sent by {many} producer{'s' * (many != 1)}, {found.read} read"]
    if not found.complete:
        counted = (f"{count} {name}" for name, count in sorted(found.outcomes.items()))
        parts.append(", ".join(counted))
    named = [line for each in found.counts for line in list_gap_lines(each)]
    parts += named[:TOLD]
    if len(named) > TOLD:
        parts.append(f"and {len(named) - TOLD} more")
    repeated = sum(each.read.repeated for each in found.counts)
    refused = sum(each.read.refused for each in found.counts)
    parts += [
        f"{count} {what}"
        for count, what in (
            (repeated, "repeat an event id and are not counted"),
            (refused, "of those read are refused"),
            (found.others, "records are of nobody who is expected"),
        )
        if count
    ]
    if found.unplaced and Outcome.MISSING.value in found.outcomes:
        parts.append(
            f"{found.unplaced} records of about that time were refused without an event time or a producer: what is "
            "missing may be among them"
        )
    return "; ".join(parts)


def list_count_lines(certificates: Iterable[Certified]) -> Iterator[str]:
    """Describe the producers' counts of certificates where they are not complete, each source's interval once."""
    told: dict[str, None] = {}
    for certificate in certificates:
        for each in certificate.counts:
            if not each.complete:
                of = f" of {each.source}" if each.source else ""
                told[f"producers' counts{of}, {certificate.interval.id}: {format_source_counts(each)}"] = None
    yield from told


def list_gap_lines(count: ProducerCount) -> Iterator[str]:
    """Name each gap of a producer, and each span of which it has said nothing."""
    for gap in count.gaps:
        differ = gap.said - gap.read
        what = f"{differ} missing" if differ > 0 else f"{-differ} too many"
        yield f"{', '.join(count.producers)} {gap.window}: {what}, {gap.said} sent and {gap.read} read"
    for each in count.unstated:
        yield f"{each.producer} {each.window}: not stated"
