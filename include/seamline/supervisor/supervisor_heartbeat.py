"""What a supervisor last said of itself, in a file beside the driver's log."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.runtime.places import host_name
from seamline.runtime.processes import Life, is_local_process, name_process, state_of


@dataclass(frozen=True)
class Identity:
    """A process, not to be mistaken for another of the same id."""

    host: str
    """The machine's name."""
    pid: int
    """The process id."""
    born: float = 0.0
    """In heartbeats of earlier releases: its start in seconds since 1970. It identifies nothing."""
    name: str = ""
    """As ``processes.name_process`` returns it; empty in heartbeats of earlier releases."""

    @classmethod
    def of(cls, pid: int) -> Identity:
        """Identify a process of this place; psutil.NoSuchProcess where there is none."""
        return cls(host_name(), pid, name=name_process(pid))

    def alive(self) -> bool:
        """Return whether it runs; one of another place cannot be seen and counts as gone.

        So does one that is known by host and number alone: containers and machines may share both.
        """
        return is_local_process(self.name) and state_of(self.name) is not Life.GONE


FILE = "supervisor.json"
STOPPED, LOST, GAVE_UP = "stopped", "lease lost", "gave up"


@dataclass(frozen=True)
class Heartbeat:
    """The last that a supervisor said of itself."""

    pipeline: str
    """Its name."""
    supervisor: Identity
    """The process that writes it."""
    token: int
    """The fencing token of its lease."""
    state: str
    """A word for people; the last of a supervisor is STOPPED, LOST or GAVE_UP."""
    at: datetime
    """When it was written."""
    driver: Identity | None = None
    """None while no driver runs."""
    strikes: int = 0
    """The driver's failures in a row."""
    last_error: str = ""
    """Why the driver failed last, with the end of its log; empty once a driver works."""
    starts: int = 0
    """Drivers that this supervisor has started."""
    restarts: int = 0
    """Restarts that people had asked for, as the control table counts them."""

    @property
    def running(self) -> bool:
        """True if the supervisor is at work: its process may outlive it."""
        return not self.last and self.supervisor.alive()

    @property
    def last(self) -> bool:
        """True if the supervisor says nothing after it."""
        return self.state in (STOPPED, LOST, GAVE_UP)

    def write(self, home: Path, *, now: datetime) -> Heartbeat:
        """Replace the file whole, and return the heartbeat that was written."""
        beat = replace(self, at=now)
        file = locate_heartbeat_file(home, self.pipeline)
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({**asdict(beat), "at": format_utc_instant(now)}, indent=2))
        os.replace(fresh, file)  # noqa: PTH105
        return beat

    @classmethod
    def read(cls, home: Path, pipeline: str) -> Heartbeat | None:
        """Read the last heartbeat, None if there never was one; nothing is made by looking."""
        try:
            return cls.parse(json.loads((home / "streams" / pipeline / FILE).read_text()))
        except FileNotFoundError:
            return None

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Heartbeat:
        """Parse a heartbeat; KeyError, TypeError or ValueError if it is none."""
        driver = row["driver"]
        return cls(
            **{
                **row,
                "supervisor": Identity(**row["supervisor"]),
                "driver": Identity(**driver) if driver else None,
                "at": parse_moment(row["at"]),
            }
        )


def ensure_stream_folder(home: Path, pipeline: str) -> Path:
    """Return the folder of a stream's heartbeat and logs, made if need be."""
    place = home / "streams" / pipeline
    place.mkdir(parents=True, exist_ok=True)
    return place


def locate_heartbeat_file(home: Path, pipeline: str) -> Path:
    """Locate the heartbeat's file."""
    return ensure_stream_folder(home, pipeline) / FILE
