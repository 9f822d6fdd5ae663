"""What audits of a sink have found: the last ones, and which of them is still to be mended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from seamline.model.time.intervals import parse_moment
from seamline.plan.spelling import format_quantity

KEPT = 20
"""Audits of a sink that are remembered."""


@dataclass(frozen=True)
class SinkVerdict:
    """What one audit of a sink has found."""

    at: str
    """When it began, UTC."""
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
    ended: str = ""
    """When it ended, UTC; empty where that was not written down."""

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
        begins = not self.start or (bool(other.start) and is_in_order(self.start, other.start))
        ends = not self.end or (bool(other.end) and is_in_order(other.end, self.end))
        return begins and ends

    def mends(self, other: SinkVerdict) -> bool:
        """Return whether it has found to be right what another one has found wrong.

        One that began while the other looked may have read a row before it went wrong.
        """
        return self.passed and self.covers(other) and is_in_order(other.ended or other.at, self.at)


def is_in_order(first: str, second: str) -> bool:
    """Return whether an instant is not after another; as texts, 00Z would be after 00.5Z."""
    return parse_moment(first) <= parse_moment(second)


def list_open_verdicts(verdicts: Sequence[SinkVerdict]) -> list[SinkVerdict]:
    """List the audits that found something wrong which no later one has found to be right; all newest first.

    One whose windows a later one of them has compared too is left out: what ends that one ends both.
    """
    found: list[SinkVerdict] = []
    for at, each in enumerate(verdicts):
        mended = any(later.mends(each) for later in verdicts[:at])
        if not (each.passed or mended or any(later.covers(each) for later in found)):
            found.append(each)
    return found


def find_open_verdict(verdicts: Sequence[SinkVerdict]) -> SinkVerdict | None:
    """Find the newest audit that found something wrong which no later one has found to be right; newest first."""
    return next(iter(list_open_verdicts(verdicts)), None)


def add_verdict(verdicts: Sequence[SinkVerdict], made: SinkVerdict) -> tuple[SinkVerdict, ...]:
    """Return the audits that are remembered once another is made: none that is open is forgotten for newer ones.

    If almost all of them are open, the oldest that is kept stands for those before it: it is of all windows then.
    """
    found = [made, *verdicts]
    own = [id(each) for each in list_open_verdicts(found)]
    standing = [at for at, each in enumerate(found) if id(each) in own]
    if len(standing) >= KEPT:
        standing = standing[: KEPT - 1]
        found[standing[-1]] = replace(found[standing[-1]], start="", end="")
    settled = [at for at in range(len(found)) if at not in standing][: KEPT - len(standing)]
    return tuple(found[at] for at in sorted([*standing, *settled]))


def serialize_verdicts(verdicts: Sequence[SinkVerdict]) -> str:
    """Write audits as JSON; the inverse of ``parse_verdicts``."""
    return json.dumps([asdict(each) for each in verdicts])


def parse_verdicts(text: str | bytes) -> tuple[SinkVerdict, ...]:
    """Read what ``serialize_verdicts`` wrote."""
    rows: list[dict[str, Any]] = json.loads(text)
    return tuple(SinkVerdict(**{**row, "lines": tuple(row["lines"])}) for row in rows)
