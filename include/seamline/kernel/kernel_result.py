"""What a run of the kernel has made, and what it reports to the driver."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from seamline.lake.storage.data_files import DataFile
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.stream.hot_keys import HotKey, add_hot_keys


@dataclass
class KernelResult:
    """What one task, or all tasks of an epoch, did."""

    master: list[DataFile] = field(default_factory=list)
    """Files written for the master."""
    quarantine: list[DataFile] = field(default_factory=list)
    """Files written for the quarantine."""
    accepted: Counter[str] = field(default_factory=Counter)
    """Accepted rows, by interval id."""
    refused: Counter[str] = field(default_factory=Counter)
    """Refused records, by reason."""
    late: Counter[str] = field(default_factory=Counter)
    """Accepted rows behind the watermark, by interval id."""
    very_late: Counter[str] = field(default_factory=Counter)
    """Those further behind than ``very_late``."""
    max_event_time: dict[Lane, datetime] = field(default_factory=dict)
    """The largest event time, by lane."""
    states: dict[str, list[pa.Table]] = field(default_factory=dict)
    """Partial states, by view id; a table from each task."""
    joined: dict[str, list[pa.Table]] = field(default_factory=dict)
    """Rows that are joined, by the join's id, a slash, and the side's name; a table from each chunk of a task."""
    slices: dict[str, list[DataFile]] = field(default_factory=dict)
    """Files of merged states, by view id, where parts have written them."""
    state_rows: int = 0
    """Partial states that parts were given, of all views."""
    hot: dict[str, HotKey] = field(default_factory=dict)
    """The key with most rows, by view id, as far as parts have found: each names its own."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why a view has none, by view id."""
    record_bytes: int = 0
    """Bytes of a record with all that Kafka knows of it, on average where they are largest."""
    astray: Counter[Lane] = field(default_factory=Counter)
    """Records that were refused for their event times, by lane."""

    def add(self, other: KernelResult) -> None:
        """Take in the result of another task."""
        self.master += other.master
        self.quarantine += other.quarantine
        for name in ("accepted", "refused", "late", "very_late", "astray"):
            getattr(self, name).update(getattr(other, name))
        for lane, moment in other.max_event_time.items():
            self.max_event_time[lane] = max(moment, self.max_event_time.get(lane, moment))
        for view, tables in other.states.items():
            self.states.setdefault(view, []).extend(tables)
        for side, tables in other.joined.items():
            self.joined.setdefault(side, []).extend(tables)
        for view, files in other.slices.items():
            self.slices.setdefault(view, []).extend(files)
        self.state_rows += other.state_rows
        for view, key in other.hot.items():
            self.hot[view] = add_hot_keys(self.hot[view], key) if view in self.hot else key
        self.failed |= other.failed
        self.record_bytes = max(self.record_bytes, other.record_bytes)


def encode_result_facts(result: KernelResult) -> dict[str, Any]:
    """Return all but the states as JSON-like facts."""
    return {
        "master": [vars(file) for file in result.master],
        "quarantine": [vars(file) for file in result.quarantine],
        "accepted": dict(result.accepted),
        "refused": dict(result.refused),
        "late": dict(result.late),
        "very_late": dict(result.very_late),
        "max_event_time": {str(lane): format_utc_instant(at) for lane, at in result.max_event_time.items()},
        "astray": {str(lane): count for lane, count in result.astray.items()},
        "failed": result.failed,
        "slices": {view: [vars(file) for file in files] for view, files in result.slices.items()},
        "state_rows": result.state_rows,
        "hot": {view: vars(key) for view, key in result.hot.items()},
        "record_bytes": result.record_bytes,
    }
