"""A sink in a thread of its own: it sends what is new, and after a failure takes over its target again."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from seamline.lake.status.sink_words import SinkWords, write_sink_words
from seamline.lake.storage.layout import Layout
from seamline.lake.store.promises import is_on_disk
from seamline.lineage.configuration import is_configured
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.model.errors import Fenced, SeamlineError
from seamline.model.protocol.sinks.rolling import Waiting
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.lineage.lineage_events import spell_error
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.sinks.feeds import AnySending, Opening, open_feed
from seamline.sinks.target import Tidied

if TYPE_CHECKING:
    from seamline.sinks.lineage.sink_lineage import SinkLineage

log = logging.getLogger("seamline.sinks")
LOOKS_EVERY, LOOKS_EVERY_IN_A_BUCKET = 0.1, 1.0
"""Seconds between two looks for a new version: on disk a file that is there or not, in a bucket a request."""
SAYS_EVERY = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds until a sink that has failed tries again: twice as long each time."""


class SinkRunner:
    """Keeps one target as the serving table is, until it is stopped, or, with ``once``, until it is."""

    def __init__(
        self,
        pipeline: CompiledPipeline,
        layout: Layout,
        sink: AnySink,
        stop: threading.Event,
        *,
        once: bool = False,
        opening: Opening | None = None,
    ) -> None:
        self.pipeline, self.sink, self.stop, self.once = pipeline, sink, stop, once
        self.feed = open_feed(pipeline, layout, sink, opening)
        self.every = LOOKS_EVERY if is_on_disk(self.feed.root) else LOOKS_EVERY_IN_A_BUCKET
        self.sending: AnySending | None = None
        self.wanted = ""
        self.error: SeamlineError | None = None
        self.lineage = self.open_lineage(layout) if is_configured() else None
        self.waiting = Waiting()
        self.sent, self.seconds, self.pause, self.said_at = 0, 0.0, FIRST_PAUSE, float("-inf")

    def open_lineage(self, layout: Layout) -> SinkLineage:
        """Open what tells the lineage; without a server nothing of it is imported."""
        from seamline.sinks.lineage.sink_lineage import SinkLineage

        return SinkLineage(self.pipeline, layout, self.sink, lambda: self.sending, lambda: self.sent)

    def run(self) -> None:
        """Send until stopped, and then what is there by then."""
        while not self.stop.is_set():
            failed = not self.try_to_send()
            if self.once:
                break
            self.stop.wait(self.pause if failed else self.every)
            self.pause = min(2 * self.pause, LONGEST_PAUSE) if failed else FIRST_PAUSE
        if not self.once and self.error is None:
            self.try_to_send()
        if self.lineage:
            self.lineage.end(spell_error(self.error) if self.error else "")
        self.close()
        self.say("failed" if self.error else "ended", now=True)

    def try_to_send(self) -> bool:
        """Send what is new; false where that failed, which is noted."""
        try:
            if self.sending is not None and self.sending.told.is_another():
                log.info("%s was asked to send something again", self.sink.id)
                self.close()
            if self.is_due():
                self.send_all()
            if self.sending is not None and isinstance(self.sending.target, Tidied):
                self.sending.target.tidy(self.is_stopping)
        except Exception as error:  # noqa: BLE001 - no sink is in the way of another
            self.fail(error)
            return False
        return True

    def is_due(self) -> bool:
        """Return whether to send what is new, or to look for it: it may wait for more, as the sink says."""
        if self.sending is None or self.stop.is_set():
            return True
        now = time.monotonic()
        self.waiting = self.waiting.see(self.feed.find_newest(), self.sending.shown, now)
        if self.waiting.since is None or self.waiting.is_due(self.sink.waits, now):
            return True
        self.say("waiting")
        return False

    def send_all(self) -> None:
        """Take over where that is to be done, and go on to the newest version."""
        if self.feed.find_newest() < 0:
            self.say("waiting")
            return
        while True:
            sending = self.sending = self.sending or self.feed.take_over(self.wanted, self.is_stopping)
            if self.lineage:
                self.lineage.begin()
            began, sent, moved = time.monotonic(), sending.sent, False
            while sending.send_next():
                moved, self.error = True, None
                self.say("sending")
                if self.stop.is_set() and sending.position and not sending.position.settled:
                    break
            if moved:
                self.seconds, self.sent = time.monotonic() - began, self.sent + sending.sent - sent
                log.info("%s shows version %s", self.sink.id, sending.shown)
            if not sending.wanted:
                break
            self.wanted = sending.wanted
            self.close()
        self.error = None
        self.say("waiting", now=moved)

    def is_stopping(self) -> bool:
        """Return whether to stop, and say that it sends: a difference may take hours."""
        self.say("sending")
        return self.stop.is_set()

    def fail(self, error: Exception) -> None:
        """Note why it has failed, and let go of the target; what is no failure of ours to foresee is logged whole."""
        ours = error if isinstance(error, SeamlineError) else explain_storage_failure(error)
        if ours is None:
            log.error("%s failed", self.sink.id, exc_info=error)
            ours = SeamlineError(f"{type(error).__name__}: {error}")
        else:
            log.warning("%s: %s", self.sink.id, ours)
        self.error = ours
        self.close()
        self.say("fenced off" if isinstance(ours, Fenced) else "failed", now=True)

    def close(self) -> None:
        """Let go of the target."""
        if self.sending is not None:
            self.sending.target.close()
            self.sending = None

    def say(self, state: str, *, now: bool = False) -> None:
        """Say how it does, once a second, or at once."""
        if not now and time.monotonic() - self.said_at < SAYS_EVERY:
            return
        self.said_at = time.monotonic()
        words = SinkWords(
            format_utc_instant(datetime.now(UTC)),
            state,
            self.sending.shown if self.sending else -1,
            self.feed.newest,
            self.sent,
            round(self.seconds, 3),
            self.error.message if self.error else "",
        )
        try:
            write_sink_words(self.pipeline.name, self.sink.id, words)
        except OSError as error:
            # A full disk here is no reason to send nothing there, or to end the thread: nobody would start it again.
            log.warning("%s cannot say how it does: %s", self.sink.id, error)
