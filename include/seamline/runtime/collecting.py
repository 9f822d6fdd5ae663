"""Python's collector of cycles, which looks at every object there is where many are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, WHOLE = 8, 1_000
"""After how many turns new objects are looked at, and all of them."""
MOST_NEW = 2_000_000
"""New objects that wait for no turn."""


@contextmanager
def without_collector() -> Iterator[None]:
    """Turn the collector off while a block makes many objects without cycles, which are freed by their references."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class SparingCollector:
    """The collector of a process that keeps very many objects without cycles, beside code that may make some.

    Python's own would look at all objects whenever their number has grown by a quarter. This one looks at those that
    are new, each few turns, and seldom at all.
    """

    def __init__(self) -> None:
        gc.disable()
        self.turns = 0

    def collect(self) -> None:
        """Take a turn: free what is in cycles of objects that were made since the last look, or of any."""
        self.turns += 1
        if not self.turns % WHOLE:
            gc.collect()
        elif not self.turns % YOUNG or gc.get_count()[0] > MOST_NEW:
            gc.collect(0)
