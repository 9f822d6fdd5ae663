"""Renewing a lease or a claim for as long as a block of work runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError


@contextmanager
def keep_renewing(renew: Callable[[], bool], every: float) -> Iterator[None]:
    """Call ``renew`` every so many seconds, in a thread of its own, until the block ends or it returns false."""
    ended = threading.Event()
    thread = threading.Thread(target=renew_until, args=(ended, renew, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def renew_until(ended: threading.Event, renew: Callable[[], bool], every: float) -> None:
    """Renew until it is ended, or lost."""
    while not ended.wait(every):
        try:
            if not renew():
                return
        except (DeltaError, OSError):
            # A disk that is full for a moment must not end the work; what is not renewed only runs out.
            continue
