"""An event that signals set: by a thread, because who waits for it may hold the event's own lock when one arrives."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from queue import SimpleQueue

ASKED = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Setter:
    """A handler of signals."""

    event: threading.Event
    """What is set in the end."""
    asked: SimpleQueue[None]
    """Who sets it waits for this."""

    def __call__(self, *_: object) -> None:
        """Pass a signal on."""
        self.asked.put(None)


def set_when_asked(event: threading.Event) -> None:
    """Set an event when this process is asked to end; called by the main thread.

    A handler runs in the main thread, between any two steps of it. In the middle of ``event.wait`` that thread holds
    the lock that ``event.set`` takes, and would wait for itself; ``SimpleQueue.put`` may be called anywhere.
    Nothing changes where the signals set this event already.
    """
    if all(isinstance(heard := signal.getsignal(sign), Setter) and heard.event is event for sign in ASKED):
        return
    asked: SimpleQueue[None] = SimpleQueue()

    def pass_on() -> None:
        while True:
            asked.get()
            event.set()

    threading.Thread(target=pass_on, name="asked to end", daemon=True).start()
    for sign in ASKED:
        signal.signal(sign, Setter(event, asked))
