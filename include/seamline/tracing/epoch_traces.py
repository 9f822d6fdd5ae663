"""The traces of epochs: an epoch leaves its phases in a queue, and another thread makes spans of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from queue import Full, Queue

from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.phase_spans import list_epoch_spans
from seamline.tracing.exported_spans import Spans

log = logging.getLogger("seamline.tracing")
MOST = 1_000
"""How many epochs may wait; those that come then have no trace."""


class EpochTraces:
    """Making spans takes a third of a millisecond, and more beside an export: an epoch does not wait for it."""

    def __init__(self, pipeline: str, spans: Spans) -> None:
        self.pipeline, self.spans = pipeline, spans
        self.waiting: Queue[tuple[Epoch, Mapping[str, float], int]] = Queue(MOST)
        self.dropped = 0
        threading.Thread(target=self.work, name="traces", daemon=True).start()
        spans.before_flush.append(self.waiting.join)

    def tell(self, epoch: Epoch, seconds: Mapping[str, float]) -> None:
        """Take an epoch that ends now; the phases are not changed any more."""
        try:
            self.waiting.put_nowait((epoch, seconds, time.time_ns()))
        except Full:
            self.dropped += 1
            if self.dropped == 1:
                log.warning("Epochs come faster than spans are made of them: some have no trace.")

    def work(self) -> None:
        """Make spans of what waits."""
        while True:
            epoch, seconds, now = self.waiting.get()
            try:
                self.spans.add(list_epoch_spans(self.pipeline, epoch, seconds, now))
            except Exception:
                log.exception("Epoch %s has no trace", epoch.number)
            finally:
                self.waiting.task_done()
