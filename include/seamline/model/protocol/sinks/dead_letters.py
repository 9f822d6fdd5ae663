"""What a sink of dead letters sends of the log: whole epochs, in their order, each known by its commit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import format_utc_instant

REJECTED, LATE = "rejected", "late"
"""What is sent: refused records, or accepted ones that came behind the watermark. Else those of a side, by its name."""
MOST_EPOCHS, MOST_ROWS = 1_000, 200_000
"""Where one way ends: so many epochs, or the first of them with which there may be so many records."""


@dataclass(frozen=True)
class LettersOf:
    """An epoch that may have records to be sent."""

    number: int
    """The epoch."""
    mark: datetime | None
    """The watermark as it began, behind which a record is late; None for none."""


def name_commit(epoch: Epoch | None) -> str:
    """Name the commit of an epoch: a log that was restored counts anew, and makes other epochs of the same numbers."""
    if epoch is None:
        return ""
    ranges = [[str(each.lane), each.start, each.end] for each in epoch.ranges]
    facts = f"{epoch.number} {epoch.token} {format_utc_instant(epoch.committed_at)} {ranges}"
    return hashlib.sha256(facts.encode()).hexdigest()[:8]


def count_letters(of: str, epoch: Epoch) -> int:
    """Count the records of an epoch that are sent; of a side, those among which there may be some."""
    if of == REJECTED:
        return sum(epoch.refused.values())
    if of == LATE:
        return sum(epoch.late.values()) + sum(epoch.very_late.values())
    return epoch.rows


def choose_way(of: str, epochs: Iterable[Epoch]) -> list[Epoch]:
    """Choose the first of the epochs that are not sent yet, in order: those of one way."""
    chosen: list[Epoch] = []
    rows = 0
    for epoch in epochs:
        chosen.append(epoch)
        rows += count_letters(of, epoch)
        if len(chosen) == MOST_EPOCHS or rows >= MOST_ROWS:
            break
    return chosen


def list_letters(of: str, before: Epoch | None, way: Sequence[Epoch]) -> list[LettersOf]:
    """List the epochs of a way that may have records to be sent; ``before`` is the one before the first."""
    marks = [before.watermark if before else None, *(each.watermark for each in way)]
    return [
        LettersOf(each.number, mark)
        for each, mark in zip(way, marks, strict=False)
        if count_letters(of, each) and (of != LATE or mark is not None)
    ]
