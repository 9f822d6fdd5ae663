"""What a running driver says of itself: one small JSON file, replaced whole after each epoch."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from seamline.model.time.intervals import format_utc_instant
from seamline.plan.stream.ask_counts import AskCount
from seamline.plan.stream.hot_keys import KeyShare
from seamline.plan.stream.rule_counts import RuleCount

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Heartbeat:
    """The driver's state after an epoch. Instants are ISO text."""

    pid: int
    """The driver's process."""
    token: int
    """The fencing token of its lease."""
    epoch: int
    """The newest committed epoch; -1 for none."""
    watermark: str
    """Empty before the first event."""
    rows: int
    """Accepted rows of the epoch."""
    refused: int
    """Refused records of the epoch."""
    lag: Mapping[str, int]
    """Records not read, by ``topic id/partition``."""
    seconds: Mapping[str, float]
    """Duration of each phase of the epoch, by phase."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """W(v), the last epoch in the slices, of each view that is behind, by version id."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Why a view is behind, as far as is known, by version id."""
    hot: Mapping[str, KeyShare] = field(default_factory=dict)
    """The key that has a tenth or more of the rows of the last epoch of some size, by version id."""
    indexed: Mapping[str, int] = field(default_factory=dict)
    """Rows that the index of each join keeps, by the join's name."""
    rules: Mapping[str, RuleCount] = field(default_factory=dict)
    """The rules that topics make, by the look-up's name."""
    asks: Mapping[str, AskCount] = field(default_factory=dict)
    """How far other systems have been asked, by the question's name."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topic names by topic id."""
    reached: Mapping[str, int | str] = field(default_factory=dict)
    """``at``, ``read`` and ``end``: how far all lanes together were read, and where they ended, in offsets."""
    earlier: Mapping[str, int | str] = field(default_factory=dict)
    """The same of a minute before."""
    up: str = ""
    """Since when it reads."""
    state: str = "running"
    """A word for people."""
    at: str = ""
    """When it was written."""
    process: str = ""
    """The driver's process, as ``processes.own_process_name`` says."""


class Trail:
    """How far the stream had read in the last minute, and where its topics ended: what rates are made of."""

    def __init__(self) -> None:
        self.samples: deque[tuple[datetime, int, int]] = deque()

    def add(self, at: datetime, read: int, end: int) -> tuple[dict[str, int | str], dict[str, int | str]]:
        """Add a sample; return it and the one of a minute before, or the oldest since the start."""
        self.samples.append((at, read, end))
        while len(self.samples) > 2 and at - self.samples[1][0] >= MINUTE:
            self.samples.popleft()
        return encode_sample(self.samples[-1]), encode_sample(self.samples[0])


def encode_sample(sample: tuple[datetime, int, int]) -> dict[str, int | str]:
    """Encode a sample as JSON has it."""
    at, read, end = sample
    return {"at": format_utc_instant(at), "read": read, "end": end}


def write_heartbeat(file: Path, heartbeat: Heartbeat) -> None:
    """Replace the file in one step: a reader sees the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(asdict(heartbeat), sort_keys=True))
    draft.replace(file)
