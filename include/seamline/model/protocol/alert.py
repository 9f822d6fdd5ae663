"""An alert about a stream: what can be wrong, what is known of it, and what is sent about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from seamline.model.time.intervals import format_utc_instant


class Severity(StrEnum):
    """How bad something is."""

    WARNING = "warning"
    """Something is slower or poorer than declared; it may become critical."""
    CRITICAL = "critical"
    """Answers stand still, records are lost or may be soon, or others read wrong rows."""


class AlertKind(StrEnum):
    """What can be wrong: each has a subject, a view, partition, look-up, question or sink, or an empty one."""

    STALE = "stale_stream"
    LAG = "growing_lag"
    HOLE = "hole"
    VIEW = "view_set_aside"
    LEASE = "lease_refused"
    GAVE_UP = "stream_given_up"
    DISK = "disk_nearly_full"
    CLOCK = "wrong_event_times"
    RULES = "rules_not_in_force"
    ASKS = "no_answers"
    EXPIRY = "unread_records_expire"
    SINK = "wrong_sink"

    @property
    def severity(self) -> Severity:
        """Return how bad it is."""
        return Severity.CRITICAL if self in CRITICAL else Severity.WARNING


CRITICAL = frozenset(
    {
        AlertKind.STALE,
        AlertKind.HOLE,
        AlertKind.GAVE_UP,
        AlertKind.DISK,
        AlertKind.EXPIRY,
        AlertKind.SINK,
    }
)


@dataclass(frozen=True)
class Standing:
    """What is known of one alert."""

    kind: AlertKind
    """What it is about."""
    subject: str
    """The view or partition, empty for the stream."""
    message: str
    """What was seen, in a sentence."""
    raised: bool = False
    """Whether it is raised now."""
    at: datetime | None = None
    """When it was raised or cleared, None before the first time."""
    since: datetime | None = None
    """When things began to be other than it says, None while they are not."""

    def __str__(self) -> str:
        about = f" {self.subject}" if self.subject else ""
        began = f" (since {format_utc_instant(self.at.replace(microsecond=0))})" if self.at else ""
        return f"{self.kind}{about}: {self.message}{began}"


@dataclass(frozen=True)
class AlertStatement:
    """A notification to send: an alert is raised, or cleared."""

    kind: AlertKind
    """What it is about."""
    subject: str
    """The view or partition, empty for the stream."""
    raised: bool
    """True where it is raised, False where it is cleared."""
    message: str
    """What was seen, in a sentence."""
    at: datetime
    """When, UTC."""

    @property
    def state(self) -> str:
        """The word for it."""
        return "raised" if self.raised else "cleared"

    @property
    def alert(self) -> str:
        """The alert's name, with its subject if it has one."""
        return f"{self.kind}/{self.subject}" if self.subject else self.kind.value

    def describe(self, pipeline: str) -> dict[str, str]:
        """Say what everyone who is told of it is told: its kind, or name, is written beside it by who sends."""
        return {
            "pipeline": pipeline,
            "subject": self.subject,
            "severity": self.kind.severity.value,
            "state": self.state,
            "message": self.message,
            "at": format_utc_instant(self.at),
            "text": f"{pipeline}: {self}",
        }

    def __str__(self) -> str:
        return f"ALERT {self.state} {self.alert}: {self.message}"


Key = tuple[AlertKind, str]
"""An alert among those of a pipeline: its kind and its subject."""
