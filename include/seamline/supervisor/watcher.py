"""The definitions as they are now, and a supervisor's own look at its stream, and at statements, now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from seamline.lake.storage.layout import Layout, definitions_folder
from seamline.model.compile import catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.supervisor.alert_notification import notify_alerts
from seamline.supervisor.counts.beside import Taker
from seamline.supervisor.sinks.sink_keeper import SinkKeeper

SINKS_WITHIN = 10.0
"""Seconds that sinks have to send what the stream has shown last."""


class Definitions:
    """The definitions of a folder, loaded again only when one of its files has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: tuple[tuple[str, int, int], ...] | None = None
        self.found: Mapping[str, CompiledPipeline] = {}

    def now(self) -> Mapping[str, CompiledPipeline]:
        """Return the pipelines that can be used, by name."""
        stats = {}
        for file in catalog.source_files(self.folder):
            # An editor, or git, may have replaced it meanwhile: then the next look finds the one that is there.
            with suppress(FileNotFoundError):
                stats[str(file)] = file.stat()
        seen = tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats.items())
        if seen != self.seen:
            self.found, self.seen = catalog.load_catalog(self.folder).pipelines, seen
        return self.found


class Watcher:
    """Observes a stream every so many seconds and sends its alerts in a thread of its own.

    It lets statements be taken, and keeps the process of the sinks. Neither a broker that does not answer nor a webhook
    that is slow costs the lease, and no topic of statements costs an alert.
    """

    def __init__(self, layout: Layout, *, every: float, say: Callable[[str], object]) -> None:
        self.layout, self.every, self.say = layout, every, say
        self.definitions = Definitions(definitions_folder())
        self.over = threading.Event()
        self.said = ""
        self.compiled: CompiledPipeline | None = None
        self.taker = Taker(layout, say)
        self.sinks = SinkKeeper(layout, say)
        self.thread = threading.Thread(target=self.run, name="watcher", daemon=True)
        self.thread.start()

    def run(self) -> None:
        """Look until it is over, and then once more."""
        while not self.over.wait(self.every):
            self.watch_once()
        self.watch_once(last=True)

    def watch_once(self, *, last: bool = False) -> None:
        """Look once, the last time without waiting for a broker; what goes wrong is said once."""
        try:
            # A definition that is broken while it is edited is looked at as it was.
            self.compiled = self.definitions.now().get(self.layout.pipeline) or self.compiled
            if self.compiled:
                if not last:
                    self.keep_sinks(self.compiled)
                notify_alerts(self.compiled, self.layout, broker=not last, say=self.log_once, last=last)
                if not last:
                    self.taker.take_if_due(self.compiled)
        except Exception as error:  # noqa: BLE001 - the stream does not end because nobody can look at it
            self.log_once(f"not looked at: {type(error).__name__}: {error}")

    def keep_sinks(self, compiled: CompiledPipeline) -> None:
        """Keep the process of the sinks; alerts are sent where it cannot be started."""
        try:
            self.sinks.keep(compiled)
        except Exception as error:  # noqa: BLE001 - no sink is in the way of an alert
            self.log_once(f"sinks not looked at: {type(error).__name__}: {error}")

    def log_once(self, text: str) -> None:
        """Log something, unless it was the last that was said."""
        if text != self.said:
            self.said = text
            self.say(text)

    def close(self, *, within: float = 2.0) -> None:
        """Have a last look, and end the taking; neither is waited for longer than ``within`` seconds.

        Sinks get ``SINKS_WITHIN`` more, to send what the stream has shown last.
        """
        self.over.set()
        until = time.monotonic() + within
        self.thread.join(within)
        self.taker.close(within=max(until - time.monotonic(), 0.0))
        self.sinks.end(within=SINKS_WITHIN)
