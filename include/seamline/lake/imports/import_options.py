"""How the rows of files become records of a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from seamline.model.time.intervals import format_utc_instant, parse_moment

VALUE, KEY, TIME, PARTITION, OFFSET = "_value", "_key", "_kafka_timestamp", "_partition", "_offset"
SPECIAL = (VALUE, KEY, TIME, PARTITION, OFFSET)
"""What a column may be of a record beside a field: the names by which expressions know it."""


@dataclass(frozen=True)
class ImportOptions:
    """How a row becomes a record."""

    topic: str
    """The topic as whose records the rows are validated."""
    columns: tuple[tuple[str, str], ...] = ()
    """What is taken from a column of another name: field or one of ``SPECIAL``, and the column."""
    event_time: str = ""
    """The field that has the event time, which stands for Kafka's timestamp where no column has that."""
    until: datetime | None = None
    """Rows of this event time and later are left to the topic; None for no bound."""
    border: tuple[tuple[int, int], ...] = ()
    """By partition the offset from which on the topic is read: rows of such offsets are left to it."""
    bare: tuple[str, ...] = ()
    """Fields that are neither text nor instants: their text, where it is JSON, is taken as it is."""

    @property
    def named(self) -> Mapping[str, str]:
        """Return the columns by what is taken from them."""
        return dict(self.columns)

    def to_json(self) -> str:
        """Write them as JSON."""
        until = format_utc_instant(self.until) if self.until else None
        return json.dumps({**asdict(self), "until": until}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ImportOptions:
        """Read what ``to_json`` wrote."""
        row = json.loads(text)
        return cls(
            topic=row["topic"],
            columns=tuple((ours, theirs) for ours, theirs in row["columns"]),
            event_time=row["event_time"],
            until=parse_moment(row["until"]) if row["until"] else None,
            border=tuple((partition, offset) for partition, offset in row["border"]),
            bare=tuple(row["bare"]),
        )
