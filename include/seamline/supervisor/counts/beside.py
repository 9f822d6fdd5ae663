"""Statements taken beside a stream, by whoever watches it: now and then, and never by the driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.supervisor.counts.taking import describe_taking

EVERY = 60.0
"""Seconds between two looks at the topics."""


class Taker:
    """Takes statements of a pipeline in a thread of its own, and tells what came of it if that is news.

    A topic that does not answer, or that has months of statements, keeps nobody waiting.
    """

    def __init__(self, layout: Layout, say: Callable[[str], object], *, every: float = EVERY) -> None:
        self.layout, self.say, self.every = layout, say, every
        self.next = time.monotonic()
        self.said = ""
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    def take_if_due(self, compiled: CompiledPipeline) -> None:
        """Begin to take what is new, unless that was begun a moment ago, or still goes on."""
        busy = self.thread is not None and self.thread.is_alive()
        if busy or self.over.is_set() or time.monotonic() < self.next or not list_counting_sources(compiled):
            return
        self.next = time.monotonic() + self.every
        self.thread = threading.Thread(target=self.take, args=(compiled,), name="taker", daemon=True)
        self.thread.start()

    def take(self, compiled: CompiledPipeline) -> None:
        """Take what is new, until there is no more or it is over."""
        said = "\n".join(describe_taking(compiled, self.layout, stopping=self.over.is_set))
        if said and said != self.said:
            self.say(said)
        self.said = said

    def close(self, *, within: float) -> None:
        """End the taking after what is being committed, which is not waited for longer than ``within`` seconds."""
        self.over.set()
        if self.thread:
            self.thread.join(within)
