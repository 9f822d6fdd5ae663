"""Keeps the serving tables fresh beside the stream: in its own thread, never in an epoch's way."""

from __future__ import annotations

import logging
import threading
import time

from seamline.lake.layout import Layout
from seamline.lake.lookups import mark
from seamline.lake.pins import look
from seamline.model.compiled import CompiledPipeline
from seamline.model.intervals import parse_duration
from seamline.model.live import foremost

log = logging.getLogger("seamline.stream")
MOVES = ("ledger", "manifest")
"""The tables by whose commits a serving table may fall behind."""


class Refresher:
    """Brings the served version of every view up to date, at most every ``serve_every``.

    It keeps nothing of what is to be done: the tables say that, also to the one after it.
    """

    def __init__(self, pipeline: CompiledPipeline, layout: Layout) -> None:
        self.pipeline, self.layout = pipeline, layout
        self.every = parse_duration(pipeline.definition.stream.serve_every).total_seconds()
        self.seen: list[object] = []
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self.work, name="serving", daemon=True)
        self.thread.start()

    def work(self) -> None:
        """Refresh until closed."""
        while not self.closed.wait(self.every):
            self.refresh()

    def refresh(self) -> None:
        """Refresh every view once, if anything was committed or a look-up that they show has changed.

        A failure is logged; the next time tries again.
        """
        views = foremost(self.pipeline)
        began = time.monotonic()
        try:
            seen: list[object] = [
                look(self.layout.table(name), "version", lambda table: table.version) for name in MOVES
            ]
            seen += [mark(join) for view in views for join in view.decorations]
            if seen == self.seen:
                return
            from seamline.lake import serving

            replaced = [serving.refresh(self.pipeline, self.layout, view) for view in views]
        except Exception as error:  # noqa: BLE001 - serving is a cache: never fatal
            log.warning("Serving not refreshed: %s: %s", type(error).__name__, error)
            return
        if not any(replaced):
            self.seen = seen
            return
        log.info("Refreshed the serving tables in %.2f s", time.monotonic() - began)

    def close(self) -> None:
        """Stop, with one last refresh."""
        self.closed.set()
        self.thread.join(timeout=30)
        self.refresh()
