"""What a running driver says of itself: one small JSON file, replaced whole after each epoch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Heartbeat:
    """The state after an epoch.

    ``at`` and ``watermark`` are ISO, ``lag`` is records per partition, ``behind`` is W(v) per view behind.
    """

    pid: int
    token: int
    epoch: int
    watermark: str
    rows: int
    refused: int
    lag: Mapping[str, int]
    seconds: Mapping[str, float]
    behind: Mapping[str, int] = field(default_factory=dict)
    state: str = "running"
    at: str = ""


def beat(file: Path, heartbeat: Heartbeat) -> None:
    """Replace the file in one step: a reader sees the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(asdict(heartbeat), sort_keys=True))
    draft.replace(file)
