"""What a stream's driver last said of itself, in a file beside its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from seamline.lake.status.status_files import read_json_file
from seamline.model.time.intervals import parse_moment
from seamline.plan.stream.ask_counts import AskCount
from seamline.plan.stream.hot_keys import KeyShare
from seamline.plan.stream.observation import Sample
from seamline.plan.stream.rule_counts import RuleCount
from seamline.runtime.processes import Life, is_local_process, state_of


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
    hot: Mapping[str, KeyShare] = field(default_factory=dict)
    """The hot key of each view that has one, by version id."""
    indexed: Mapping[str, int] = field(default_factory=dict)
    """Rows that the index of each join keeps, by the join's name."""
    rules: Mapping[str, RuleCount] = field(default_factory=dict)
    """The rules that topics make, by the look-up's name."""
    asks: Mapping[str, AskCount] = field(default_factory=dict)
    """How far other systems have been asked, by the question's name."""
    process: str = ""
    """The driver's process, as ``processes.own_process_name`` says; empty from a driver that does not say."""

    @classmethod
    def read(cls, home: Path, pipeline: str) -> DriverReport | None:
        """Read the file, None if there is none; ValueError, KeyError or TypeError if it is broken."""
        row = read_json_file(home / "streams" / pipeline / "driver.json")
        return cls.parse(row) if row is not None else None

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> DriverReport:
        """Parse a heartbeat; ValueError, KeyError or TypeError if it is none."""
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
            {view: KeyShare(**each) for view, each in row.get("hot", {}).items()},
            dict(row.get("indexed", {})),
            {name: RuleCount(**each) for name, each in row.get("rules", {}).items()},
            {name: AskCount(**each) for name, each in row.get("asks", {}).items()},
            str(row.get("process", "")),
        )

    @property
    def alive(self) -> bool:
        """Return whether its process is seen to live; its number alone may be another's here."""
        return is_local_process(self.process) and state_of(self.process) is not Life.GONE


def parse_heartbeat_sample(row: Mapping[str, Any] | None) -> Sample | None:
    """Parse a sample of a heartbeat."""
    return Sample(parse_moment(row["at"]), int(row["read"]), int(row["end"])) if row else None
