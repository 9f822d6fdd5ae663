"""Until when this thread may work on an answer. Loops look at it; whoever sets it breaks off DuckDB's queries too.

One call of Arrow, NumPy or a user's function cannot be broken off: it ends, and what would follow it does not begin.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from seamline.model.errors import TooSlow

T = TypeVar("T")


class Deadline(threading.local):
    """This thread's: an instant of the monotonic clock, None without one, and the seconds that there were."""

    at: float | None = None
    seconds: float = 0.0


_own = Deadline()


@contextmanager
def limit_thread_time(seconds: float) -> Iterator[None]:
    """Let this thread work for so long."""
    before = _own.at, _own.seconds
    _own.at, _own.seconds = time.monotonic() + seconds, seconds
    try:
        yield
    finally:
        _own.at, _own.seconds = before


def require_time_left() -> None:
    """Raise TooSlow where this thread's time is over."""
    if _own.at is not None and time.monotonic() >= _own.at:
        raise too_slow()


def in_time(items: Iterable[T]) -> Iterator[T]:
    """Give items while there is time; TooSlow."""
    for each in items:
        require_time_left()
        yield each


def too_slow() -> TooSlow:
    """Say that the time is over."""
    return TooSlow(
        f"There was no answer within {_own.seconds:g} s.",
        hint="ask for fewer windows or keys, or use seamline.read.",
    )
