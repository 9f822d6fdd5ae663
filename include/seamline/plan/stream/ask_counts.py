"""How far the asking of other systems has come, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from seamline.model.time.intervals import parse_moment
from seamline.plan.spelling import format_duration

LOGS = "see `seamline stream logs PIPELINE`"
SILENT_AFTER = timedelta(minutes=1)
"""A process that asks says every second how that goes."""


@dataclass(frozen=True)
class AskCount:
    """What a process that asks has done since it was started, and what it has before it."""

    answered: int = 0
    """Rows whose answers are in the topic."""
    errors: int = 0
    """Rows of which the topic says why there is no answer."""
    reused: int = 0
    """Those among both that shared the call of an equal request."""
    waiting: int = 0
    """Rows that wait for an answer, as far as they are in hand: so many more may follow."""
    behind: int = 0
    """Epochs that have rows without an answer, or were not looked at yet."""
    flying: int = 0
    """Calls that are being made."""
    calls: int = 0
    """Calls that were made."""
    failures: int = 0
    """Those of them that have failed."""
    oldest: float = 0.0
    """Seconds that the oldest of the rows in hand has waited."""
    p50: float = 0.0
    """Half of the last thousand calls took no longer, in seconds."""
    p99: float = 0.0
    """Nor did 99 of 100."""
    away: float = 0.0
    """Seconds since the other system has stopped answering; 0 while it answers. Calls are then tried one at a time."""
    trouble: str = ""
    """What the last call has failed with; empty once one has succeeded."""
    held: str = ""
    """Why no more rows are taken up; empty while they are."""
    waits: str = ""
    """What a decision to ask again waits for; empty while there is none, or it is carried out."""
    ended: str = ""
    """Why the process keeps ending; empty while it stays up."""
    at: str = ""
    """When this was said; ISO 8601."""


def describe_silence(count: AskCount, now: datetime) -> str:
    """Say why rows get no answer: the process ends, is held or says nothing, or the system is away; else empty."""
    if count.ended or count.held:
        return count.ended or count.held
    if count.at and (since := now - parse_moment(count.at)) > SILENT_AFTER:
        return f"the process that asks has said nothing for {format_duration(since.total_seconds())}; {LOGS}"
    if not count.away:
        return ""
    rows = "1 row waits" if count.waiting == 1 else f"{count.waiting:,} rows wait"
    return f"no answer for {format_duration(count.away)}, {rows}: {count.trouble}"
