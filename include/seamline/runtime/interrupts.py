"""Signals that end a process, heard as Ctrl-C is: what a block has opened is closed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)


def raise_interrupt(signum: int, frame: FrameType | None) -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


@contextmanager
def ending_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt while the block runs; what is ignored stays so (nohup).

    Called by the main thread.
    """
    before = {each: signal.getsignal(each) for each in ENDING}
    heard = [each for each in ENDING if before[each] is signal.SIG_DFL]
    for each in heard:
        signal.signal(each, raise_interrupt)
    try:
        yield
    finally:
        for each in heard:
            signal.signal(each, signal.SIG_DFL)
