"""Decisions to ask another system again about rows that have no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


@dataclass(frozen=True)
class AskDecision:
    """Let rows of some event times be asked about again, those that have no answer."""

    ask: str
    """The question's name."""
    span: Interval
    """The event times."""
    only_errors: bool
    """Whether those alone of which it is recorded why they have none; else also those that nobody asked about."""
    actor: str
    """Who decided it."""
    reason: str
    """Why."""
    at: datetime
    """When, UTC."""

    def __str__(self) -> str:
        which = "errors" if self.only_errors else "rows without an answer"
        return f"{self.ask}, {which} of {self.span}: {self.reason}"

    def to_row(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**vars(self), "span": str(self.span), "at": format_utc_instant(self.at)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> AskDecision:
        """Read what ``to_row`` returned."""
        return cls(**{**row, "span": Interval.parse(row["span"]), "at": parse_moment(row["at"])})
