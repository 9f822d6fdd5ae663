"""Claims: which run is building which intervals, so that no other begins them (one at a time, whoever asks)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from seamline.model.intervals import Interval, parse_moment, stamp


@dataclass(frozen=True)
class Claim:
    """The intervals in ``spans`` are ``run``'s until then; ``owner`` asked for it.

    ``process`` is who renews it (``host pid start``); nobody between two tasks of a run.
    """

    run: str
    owner: str
    spans: tuple[Interval, ...]
    since: datetime
    until: datetime
    process: str = ""

    def __str__(self) -> str:
        return f"run {self.run} of {self.owner} since {stamp(self.since)}"

    def meets(self, interval: Interval) -> bool:
        """Tell whether it is about an interval or a part of it."""
        return any(span.meets(interval) for span in self.spans)

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts."""
        spans = [str(span) for span in self.spans]
        return {**vars(self), "spans": spans, "since": stamp(self.since), "until": stamp(self.until)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Claim:
        """Read what ``to_row`` wrote."""
        spans = tuple(map(Interval.parse, row["spans"]))
        moments = {name: parse_moment(row[name]) for name in ("since", "until")}
        return cls(**{**row, **moments, "spans": spans})


def running(claims: Iterable[Claim], interval: Interval) -> Claim | None:
    """Give the claim that an interval is under, if any."""
    return next((each for each in claims if each.meets(interval)), None)


def conflicting(claims: Iterable[Claim], run: str, spans: Sequence[Interval]) -> Claim | None:
    """Give another run's claim that a run's spans would meet, if any."""
    return next((each for each in claims if each.run != run and any(map(each.meets, spans))), None)
