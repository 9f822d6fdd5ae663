"""Keeps the serving tables fresh beside the stream: in its own thread, never in an epoch's way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable

from seamline.lake.layout import Layout
from seamline.lake.lookups import mark
from seamline.model.compiled import CompiledPipeline
from seamline.model.intervals import parse_duration
from seamline.model.live import foremost

log = logging.getLogger("seamline.stream")


class Refresher:
    """Refreshes the intervals touched since the last time, at most every ``serve_every``."""

    def __init__(self, pipeline: CompiledPipeline, layout: Layout) -> None:
        self.pipeline, self.layout = pipeline, layout
        self.every = parse_duration(pipeline.definition.stream.serve_every).total_seconds()
        self.touched: set[str] = set()
        self.shown: list[object] = []
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self.work, name="serving", daemon=True)
        self.thread.start()

    def touch(self, intervals: Iterable[str]) -> None:
        """Note intervals with new rows."""
        with self.lock:
            self.touched.update(intervals)

    def work(self) -> None:
        """Refresh until closed."""
        while not self.closed.wait(self.every):
            self.refresh()

    def refresh(self) -> None:
        """Refresh the served version of every view once, if rows came or a look-up that they show has changed.

        A failure is logged and the intervals are tried again.
        """
        with self.lock:
            intervals, self.touched = self.touched, set()
        views = foremost(self.pipeline)
        shown = [mark(join) for view in views for join in view.decorations]
        if not intervals and shown == self.shown:
            return
        began = time.monotonic()
        try:
            from seamline.lake import serving

            for view in views:
                serving.refresh(self.pipeline, self.layout, view, sorted(intervals))
        except Exception as error:  # noqa: BLE001 - serving is a cache: never fatal
            log.warning("Serving not refreshed: %s: %s", type(error).__name__, error)
            self.touch(intervals)
            return
        self.shown = shown
        log.info("Refreshed %s intervals in %.2f s", len(intervals), time.monotonic() - began)

    def close(self) -> None:
        """Stop, with one last refresh."""
        self.closed.set()
        self.thread.join(timeout=30)
        self.refresh()
