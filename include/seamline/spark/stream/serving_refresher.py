"""Keeps the serving tables fresh beside the stream: in its own thread, never in an epoch's way."""

from __future__ import annotations

import logging
import threading
import time

from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.lookups.lookup_tables import read_lookup_mark
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.live_versions import list_primary_views
from seamline.model.time.intervals import parse_duration

log = logging.getLogger("seamline.stream")
MOVES = ("ledger", "manifest")
"""The tables by whose commits a serving table may fall behind."""


class Refresher:
    """Brings the served version of every view up to date, at most every ``serve_every``.

    It keeps nothing of what is to be done: the tables say that, also to the one after it. ``at_end`` it does so once,
    when it is closed.
    """

    def __init__(self, pipeline: CompiledPipeline, layout: Layout, *, at_end: bool = False) -> None:
        self.pipeline, self.layout, self.at_end = pipeline, layout, at_end
        self.every = parse_duration(pipeline.definition.stream.serve_every).total_seconds()
        self.seen: list[object] = []
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self.work, name="serving", daemon=True)
        self.thread.start()

    def work(self) -> None:
        """Refresh until closed."""
        while not self.closed.wait(self.every):
            if not self.at_end:
                self.refresh()

    def refresh(self) -> None:
        """Refresh every view once, if anything was committed or a look-up that they show has changed.

        A view that fails is logged, and is in the way of no other; the next time tries again.
        """
        began = time.monotonic()
        try:
            seen = self.read_sources()
        except Exception as error:  # noqa: BLE001 - serving is a cache: never fatal
            log.warning("Serving not refreshed: %s: %s", type(error).__name__, error)
            return
        if seen == self.seen:
            return
        moved = [self.refresh_view(view) for view in list_primary_views(self.pipeline)]
        if not any(moved):
            self.seen = seen
            return
        log.info("Refreshed the serving tables in %.2f s", time.monotonic() - began)

    def read_sources(self) -> list[object]:
        """Read what the serving tables are made of, as versions and marks of files."""
        views = list_primary_views(self.pipeline)
        tables = [
            read_cached_table(self.layout.table(name), "version", lambda table: table.version)
            for name in MOVES
        ]
        return [*tables, *(read_lookup_mark(join) for view in views for join in view.decorations)]

    def refresh_view(self, view: CompiledView) -> bool:
        """Refresh a view; false if nothing was to be done."""
        from seamline.lake.read import serving_table

        try:
            return serving_table.refresh_serving_table(self.pipeline, self.layout, view)
        except Exception as error:  # noqa: BLE001 - serving is a cache: never fatal
            log.warning("Serving of %s not refreshed: %s: %s", view.name, type(error).__name__, error)
            return True

    def close(self) -> None:
        """Stop, with one last refresh."""
        self.closed.set()
        self.thread.join(timeout=30)
        self.refresh()
