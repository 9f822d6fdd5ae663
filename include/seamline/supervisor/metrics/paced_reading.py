"""Readings that cost more than a scrape should: each pipeline is read now and then, and remembered meanwhile."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from seamline.model.compile.compiled_pipeline import CompiledPipeline

log = logging.getLogger("seamline.metrics")
EVERY = 60.0
"""Seconds after which a pipeline is read again: intervals are built by the hour or the day."""
T = TypeVar("T")


@dataclass(eq=False)
class PacedReader(ABC, Generic[T]):
    """Reads pipelines where the last reading is older than ``EVERY``; of the others it remembers."""

    budget: ClassVar[float] = 3.0
    """Seconds of a scrape after which no further pipeline is read: the next scrapes go on, the longest known first."""
    pipelines: Callable[[], Mapping[str, CompiledPipeline]]
    """Gives the pipelines as they are now, by name."""
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    known: dict[str, tuple[float, T | None]] = field(default_factory=dict)
    """What was read of a pipeline, and when; None if that was not possible."""

    @abstractmethod
    def look(self, name: str, pipeline: CompiledPipeline) -> T:
        """Read one pipeline; whatever it raises is logged."""

    def read(self) -> list[T]:
        """Read what is to be read again, within the budget; return what is known."""
        pipelines = self.pipelines()
        self.known = {name: each for name, each in self.known.items() if name in pipelines}
        began = self.clock()
        for name in sorted(pipelines, key=self.read_at):
            if self.clock() - began < self.budget:
                self.refresh(name, pipelines[name])
        return [each for _, each in self.known.values() if each]

    def list_unread(self) -> list[str]:
        """List the pipelines that could not be read when it was last tried."""
        return [name for name, (_, each) in self.known.items() if each is None]

    def read_at(self, name: str) -> float:
        """Return when a pipeline was read last; one that never was comes first."""
        return self.known[name][0] if name in self.known else float("-inf")

    def refresh(self, name: str, pipeline: CompiledPipeline) -> None:
        """Read a pipeline if it is time; one that cannot be read has no numbers, and ends no scrape."""
        now = self.clock()
        if now - self.read_at(name) < EVERY:
            return
        try:
            self.known[name] = now, self.look(name, pipeline)
        except Exception as error:  # noqa: BLE001 - whatever is broken, the rest is shown
            log.warning("%s: %s: %s", name, type(error).__name__, error)
            self.known[name] = now, None
