"""Headers of a dead letter: those that its record was read with, and then, in a block of their own, why it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seamline.model.errors import SetupError

Header = tuple[str, bytes | None]
PREFIX = "__seamline.errors."
FIRST = f"{PREFIX}pipeline"
"""The header with which our block begins."""


@dataclass(frozen=True)
class Cause:
    """Why a record is a dead letter, and where it was read."""

    pipeline: str
    """The pipeline."""
    of: str
    """What it is: "rejected", "late", or the name of a side."""
    reason: str
    """The reason for which it was refused, "late", or ``side NAME``."""
    message: str
    """What was wrong with it, in more words; empty if the reason says all."""
    topic: str
    """The topic that it was read from."""
    topic_id: str
    """Kafka's id of that topic; ``import:`` or ``table:`` and an id for a row of files or of a table."""
    partition: int
    """The partition."""
    offset: int
    """The offset."""
    timestamp: int
    """Kafka's timestamp of the record, in milliseconds since 1970."""
    epoch: int
    """The epoch that read it."""
    record_version: str
    """What records meant then."""
    event_time: str = ""
    """Its event time, UTC; empty where it has none."""
    watermark: str = ""
    """The watermark behind which it was, UTC; empty for one that is not late."""
    unread: bool = False
    """Whether its bytes are in its own topic only: no process could read it."""

    def to_headers(self) -> list[Header]:
        """Write it as headers; what is empty is left out."""
        facts: Mapping[str, object] = {
            "pipeline": self.pipeline,
            "of": self.of,
            "reason": self.reason,
            "message": self.message,
            "topic": self.topic,
            "topic.id": self.topic_id,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "epoch": self.epoch,
            "record.version": self.record_version,
            "event.time": self.event_time,
            "watermark": self.watermark,
            "unread": "true" if self.unread else "",
        }
        return [(f"{PREFIX}{name}", str(value).encode()) for name, value in facts.items() if value != ""]


def split_headers(headers: Sequence[Header]) -> tuple[list[Header], Cause]:
    """Part the headers of a dead letter from those that its record was read with; SetupError without ours.

    A record may have been a dead letter before, of another pipeline: only the last block is ours.
    """
    begins = max((at for at, (name, _) in enumerate(headers) if name == FIRST), default=None)
    told = {} if begins is None else {name.removeprefix(PREFIX): value for name, value in headers[begins:]}
    try:
        texts = {name: (value or b"").decode() for name, value in told.items()}
        cause = Cause(
            texts["pipeline"],
            texts["of"],
            texts["reason"],
            texts.get("message", ""),
            texts["topic"],
            texts["topic.id"],
            int(texts["partition"]),
            int(texts["offset"]),
            int(texts["timestamp"]),
            int(texts["epoch"]),
            texts["record.version"],
            texts.get("event.time", ""),
            texts.get("watermark", ""),
            texts.get("unread") == "true",
        )
    except (KeyError, ValueError) as error:
        raise SetupError(
            f"A record is no dead letter of ours: its headers lack {PREFIX}{error.args[0]}."
            if isinstance(error, KeyError)
            else f"A record is no dead letter of ours: {error}.",
            hint="nobody but the sink may write to its topic.",
        ) from error
    return [*headers[:begins]], cause
