"""What audits of a sink have found: the last ones, and which of them is still to be mended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seamline.plan.spelling import format_quantity

KEPT = 20
"""Audits of a sink that are remembered."""


@dataclass(frozen=True)
class SinkVerdict:
    """What one audit of a sink has found."""

    at: str
    """When it was made, UTC."""
    actor: str
    """Who asked for it."""
    start: str
    """The first start of windows that were compared; empty for no bound."""
    end: str
    """The instant before which windows started; empty for no bound."""
    version: int | None
    """The version of the serving table that the target showed; None for none."""
    held: int
    """Rows that the target held."""
    wanted: int
    """Rows that it should have held as they were served."""
    found: Mapping[str, int]
    """How many rows, or files, were not as they should be, by kind."""
    lines: Sequence[str] = ()
    """Some of them."""

    @property
    def passed(self) -> bool:
        """True if nothing was wrong."""
        return not any(self.found.values())

    @property
    def said(self) -> str:
        """What was wrong, in a few words."""
        counts = (f"{count:,} {kind}" for kind, count in self.found.items() if count)
        return ", ".join(counts) or f"{format_quantity(self.held, 'row')}, nothing wrong"

    def covers(self, other: SinkVerdict) -> bool:
        """Return whether it has compared all windows that another one has."""
        begins = not self.start or (bool(other.start) and self.start <= other.start)
        ends = not self.end or (bool(other.end) and other.end <= self.end)
        return begins and ends


def find_open_verdict(verdicts: Sequence[SinkVerdict]) -> SinkVerdict | None:
    """Find the newest audit that found something wrong which no later one has found to be right; newest first."""
    for at, each in enumerate(verdicts):
        if not each.passed and not any(later.passed and later.covers(each) for later in verdicts[:at]):
            return each
    return None


def add_verdict(verdicts: Sequence[SinkVerdict], made: SinkVerdict) -> tuple[SinkVerdict, ...]:
    """Return the audits that are remembered once another is made: what is open is not forgotten for newer ones."""
    found = (made, *verdicts)
    last = find_open_verdict(found)
    kept = found[:KEPT]
    return kept if last is None or last in kept else (*kept[:-1], last)


def serialize_verdicts(verdicts: Sequence[SinkVerdict]) -> str:
    """Write audits as JSON; the inverse of ``parse_verdicts``."""
    return json.dumps([asdict(each) for each in verdicts])


def parse_verdicts(text: str | bytes) -> tuple[SinkVerdict, ...]:
    """Read what ``serialize_verdicts`` wrote."""
    rows: list[dict[str, Any]] = json.loads(text)
    return tuple(SinkVerdict(**{**row, "lines": tuple(row["lines"])}) for row in rows)
