"""What is said of refused records: an alarm when a reason appears, and a summary while it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from seamline.model.time.intervals import format_utc_instant


@dataclass
class Refusals:
    """Chooses the lines; the caller logs them, and says what time it is.

    A reason appears when none of it has come for ``every``. Between two summaries lies as much at least.
    """

    pipeline: str
    """Its name."""
    every: timedelta = timedelta(minutes=10)
    """How long none of a reason has come when the next is reported at once; summaries are as far apart at least."""
    seen: dict[str, datetime] = field(default_factory=dict)
    """When each reason came last."""
    since: Counter[str] = field(default_factory=Counter)
    """Records refused after the last summary, by reason."""
    told: datetime | None = None
    """When the last summary was given; None before the first."""

    def add(self, epoch: int, counts: Mapping[str, int], now: datetime) -> list[str]:
        """Take in what an epoch refused, by reason; return the lines that are due."""
        lines = []
        if not self.since and (self.told is None or now - self.told >= self.every):
            self.told = now
        for reason, count in sorted(counts.items()):
            if reason not in self.seen or now - self.seen[reason] >= self.every:
                lines.append(f"Records are refused: {reason} ({count} in epoch {epoch}). {self.hint}")
            else:
                self.since[reason] += count
            self.seen[reason] = now
        return [*lines, *self.take_due(now)]

    def take_due(self, now: datetime, *, ending: bool = False) -> list[str]:
        """Return the summary if it is time for one, or if nothing follows: ``ending``."""
        if not self.since or self.told is None or (now - self.told < self.every and not ending):
            return []
        counts = ", ".join(f"{count} {reason}" for reason, count in self.since.most_common())
        line = f"Since {format_utc_instant(self.told)} more records were refused: {counts}. {self.hint}"
        self.since.clear()
        self.told = now
        return [line]

    @property
    def hint(self) -> str:
        """Say where they are."""
        return f"See `seamline quarantine list {self.pipeline}`."
