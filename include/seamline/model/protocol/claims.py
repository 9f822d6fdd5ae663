"""Claims: which run is building which intervals, so that no other begins them (one at a time, whoever asks)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


@dataclass(frozen=True)
class Claim:
    """A run's claim on intervals: no other run builds them meanwhile."""

    run: str
    """The run's id."""
    owner: str
    """Who asked for the run."""
    spans: tuple[Interval, ...]
    """The intervals."""
    since: datetime
    """When it was taken, UTC."""
    until: datetime
    """Where no process renews it, as between two tasks, it is valid until then by everybody's clock."""
    process: str = ""
    """Who renews it, as ``own_process_name`` says; empty between two tasks."""
    slot: int = 0
    """A number that no two claims have at once."""
    beat: int = 0
    """Rises with each renewal."""

    @property
    def mark(self) -> tuple[str, str, datetime, int]:
        """What is another after each renewal, and under each holder."""
        return self.run, self.process, self.until, self.beat

    def __str__(self) -> str:
        return f"run {self.run} of {self.owner} since {format_utc_instant(self.since)}"

    def overlaps(self, interval: Interval) -> bool:
        """Return whether it is about an interval or a part of it."""
        return any(span.overlaps(interval) for span in self.spans)

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts; what a renewal changes is not among them."""
        spans, moments = [str(span) for span in self.spans], {"since": self.since, "until": self.until}
        kept = {name: value for name, value in vars(self).items() if name != "beat"}
        return {**kept, "spans": spans, **{name: format_utc_instant(at) for name, at in moments.items()}}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Claim:
        """Read what ``to_row`` wrote."""
        spans = tuple(map(Interval.parse, row["spans"]))
        moments = {name: parse_moment(row[name]) for name in ("since", "until")}
        return cls(**{**row, **moments, "spans": spans})


def find_running_claim(claims: Iterable[Claim], interval: Interval) -> Claim | None:
    """Return the claim that an interval is under, if any."""
    return next((each for each in claims if each.overlaps(interval)), None)


def find_conflicting_claim(claims: Iterable[Claim], run: str, spans: Sequence[Interval]) -> Claim | None:
    """Return another run's claim that a run's spans would meet, if any."""
    return next((each for each in claims if each.run != run and any(map(each.overlaps, spans))), None)
