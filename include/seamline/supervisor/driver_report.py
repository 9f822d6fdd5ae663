"""What a stream's processes have left in its folder: the driver's heartbeat and the marks of those who looked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.plan.stream.observation import Sample
from seamline.runtime.processes import Life, is_local_process, state_of

RECONCILED = "reconciled"
"""The mark of Airflow's last look."""
RECONCILES_WITHIN = timedelta(minutes=10)
REFUSED = "refused"
"""The mark of the last supervisor that was refused the lease, or lost it."""


@dataclass(frozen=True)
class DriverReport:
    """The driver's last heartbeat, read from its file."""

    pid: int
    """The driver's process."""
    token: int
    """The fencing token of its lease."""
    epoch: int
    """The newest committed epoch; -1 for none."""
    state: str
    """A word for people."""
    at: datetime
    """When it was written."""
    lag: Mapping[str, int]
    """Records not read, by ``topic id/partition``."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topic names by topic id."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """By view that is behind: why, as far as is known."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Duration of each phase of the last epoch, by phase."""
    earlier: Sample | None = None
    """How far it had read a minute before; None from a driver that does not say."""
    reached: Sample | None = None
    """How far it had read at the heartbeat; None from a driver that does not say."""
    up: datetime | None = None
    """Since when it reads; None if it does not say."""
    process: str = ""
    """The driver's process, as ``processes.own_process_name`` says; empty from a driver that does not say."""

    @classmethod
    def read(cls, home: Path, pipeline: str) -> DriverReport | None:
        """Read the file, None if there is none; ValueError, KeyError or TypeError if it is broken."""
        row = of_file(home / "streams" / pipeline / "driver.json")
        if row is None:
            return None
        return cls(
            int(row["pid"]),
            int(row["token"]),
            int(row["epoch"]),
            str(row["state"]),
            parse_moment(row["at"]),
            dict(row["lag"]),
            dict(row.get("topics", {})),
            dict(row.get("errors", {})),
            dict(row.get("seconds", {})),
            parse_heartbeat_sample(row.get("earlier")),
            parse_heartbeat_sample(row.get("reached")),
            parse_moment(row["up"]) if row.get("up") else None,
            str(row.get("process", "")),
        )

    @property
    def alive(self) -> bool:
        """Return whether its process is seen to live; its number alone may be another's here."""
        return is_local_process(self.process) and state_of(self.process) is not Life.GONE


def parse_heartbeat_sample(row: Mapping[str, Any] | None) -> Sample | None:
    """Parse a sample of a heartbeat."""
    return Sample(parse_moment(row["at"]), int(row["read"]), int(row["end"])) if row else None


def of_file(file: Path) -> dict[str, Any] | None:
    """Read a JSON object, None if there is no file."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    return found


def find_stale_reconcile(home: Path, pipeline: str, *, now: datetime) -> datetime | None:
    """Find Airflow's last look at a stream where that was long ago; None if it was not, or there never was one."""
    mark = mark_of(home, pipeline, RECONCILED)
    return mark[0] if mark and now - mark[0] > RECONCILES_WITHIN else None


def leave_mark(home: Path, pipeline: str, name: str, *, now: datetime, **said: Any) -> None:
    """Leave a small file that says when something happened last, replaced in one step.

    A full disk costs the mark, and nothing else of what its owner does.
    """
    file = home / "streams" / pipeline / f"{name}.json"
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps({"at": format_utc_instant(now), **said}))
        draft.replace(file)


def mark_of(home: Path, pipeline: str, name: str) -> tuple[datetime, Mapping[str, Any]] | None:
    """Return when something happened last, and what was said of it; None if it never did."""
    row = of_file(home / "streams" / pipeline / f"{name}.json")
    return (parse_moment(row["at"]), row) if row else None
