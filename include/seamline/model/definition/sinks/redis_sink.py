"""Keys of Redis or Valkey that have the newest row of each key and window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seamline.model.definition.sinks.sink_base import Sink


@dataclass(frozen=True)
class RedisSink(Sink):
    """A string of JSON per row of a view in Redis or Valkey: set when the row changes, deleted when it is gone.

    A key is ``{PIPELINE.SINK}``, the row's keys and the start of its window, with colons between. Rows and the sink's
    position change in scripts.
    """

    connection: str = "redis_default"
    """The id of the Airflow connection to Redis or Valkey."""
    prefix: str = ""
    """What all keys begin with."""
    expire: str | None = None
    """How long after the end of its window a row is kept, as a duration; None for ever."""

    at_once: int = 100
    """Rows that one script changes. Whoever reads waits for a script, and sees all of its rows or none; if more have
    changed they are written by several scripts."""

    kind: ClassVar[str] = "redis"

    @property
    def form(self) -> str:
        return f"{self.when}, expire={self.expire}" if self.expire else self.when

    @property
    def place(self) -> str:
        return self.name_target("PIPELINE")

    def name_target(self, pipeline: str) -> str:
        return f"keys {self.prefix}{{{pipeline}.{self.id}}} of {self.connection}"
