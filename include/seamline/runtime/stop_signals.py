"""An event that signals set: by a thread, because who waits for it may hold the event's own lock when one arrives."""

from __future__ import annotations

import signal
import threading
from queue import SimpleQueue

ASKED = (signal.SIGTERM, signal.SIGINT)


def set_when_asked(event: threading.Event) -> None:
    """Set an event when this process is asked to end; called by the main thread.

    A handler runs in the main thread, between any two steps of it. In the middle of ``event.wait`` that thread holds
    the lock that ``event.set`` takes, and would wait for itself; ``SimpleQueue.put`` may be called anywhere.
    """
    asked: SimpleQueue[None] = SimpleQueue()

    def pass_on() -> None:
        while True:
            asked.get()
            event.set()

    threading.Thread(target=pass_on, name="asked to end", daemon=True).start()
    for sign in ASKED:
        signal.signal(sign, lambda *_: asked.put(None))
