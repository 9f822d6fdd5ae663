"""Statements taken beside a stream, by whoever watches it: now and then, and never by the driver."""

from __future__ import annotations

import time
from collections.abc import Callable

from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.supervisor.counts.taking import describe_taking

EVERY = 60.0
"""Seconds between two looks at the topics."""


class Taker:
    """Takes statements of a pipeline, and tells what came of it if that is news."""

    def __init__(self, layout: Layout, say: Callable[[str], object], *, every: float = EVERY) -> None:
        self.layout, self.say, self.every = layout, say, every
        self.next = time.monotonic()
        self.said = ""

    def take_if_due(self, compiled: CompiledPipeline) -> None:
        """Take what is new, unless that was done a moment ago."""
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + self.every
        said = "\n".join(describe_taking(compiled, self.layout))
        if said and said != self.said:
            self.say(said)
        self.said = said
