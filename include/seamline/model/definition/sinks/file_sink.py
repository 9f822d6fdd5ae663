"""Files that have the changed rows of a view, in folders by time and key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.protocol.sinks.rolling import Pace
from seamline.model.time.intervals import parse_duration

PARQUET, JSON = "parquet", "json"
FILE_FORMATS = (PARQUET, JSON)


@dataclass(frozen=True)
class FileSink(Sink):
    """Files of a view's changed rows, in a folder or in a bucket of a store; manifests say which files count.

    Files never change. What is written again and again is merged into fewer and larger ones. Each commit is a manifest
    with a number, created where there is none: one writer wins, and a reader sees each change once.
    """

    path: str
    """The folder, whole, or the URL of a place in a bucket; it is nobody else's."""
    format: str = PARQUET
    """What files are: "parquet", or "json" for a JSON object in each line."""
    buckets: Sequence[str] = ("1 day",)
    """The folders that files are in, the outer one first: a duration for pieces of time in which windows start, the
    name of a key for its values."""
    roll_age: str = "1 minute"
    """How long a change waits for others at most, as a duration."""
    roll_idle: str = "10 seconds"
    """How long nothing changes before what waits is written all the same, as a duration."""
    roll_megabytes: int = 64
    """How large merged files become, about."""
    history: bool = False
    """Whether earlier values of rows stay when files are merged; otherwise the newest of each row does."""

    kind: ClassVar[str] = "files"

    @property
    def place(self) -> str:
        return f"files below {self.path.rstrip('/')}"

    @property
    def form(self) -> str:
        return f"{self.when}, {self.format} by {', '.join(self.buckets) or 'nothing'}"

    @property
    def fixes_types(self) -> bool:
        # Engines read columns of two types as texts, in part of their digits, or not at all; so would merges.
        return self.format == PARQUET

    @property
    def waits(self) -> Pace:
        return Pace(parse_duration(self.roll_age), parse_duration(self.roll_idle))
