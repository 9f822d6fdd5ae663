"""What a target of a sink is able to do: everything else, such as what is to be written, is the runner's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from seamline.model.protocol.sinks.positions import SinkPosition


class ChangeBatch(NamedTuple):
    """Changes of rows, a bounded number of them; each row, by its keys and window, is in one batch once."""

    upserts: pa.Table
    """Rows as they are now: the columns of the serving table."""
    deletions: pa.Table
    """Rows that are no longer there: the keys, ``window_start`` and ``window_end``, and ``_grouping`` first where the
    view has grouping sets. What was never sent may be among them."""
    olds: pa.Table | None
    """For a sink that sends changes: the rows that were there before, of upserts and deletions, with the columns of
    the serving table; None for other sinks."""


class Target(Protocol):
    """One sink's place in another system, with the position that is kept there.

    Writing is fenced: after another process has taken over, each call raises Fenced and has changed nothing. Where the
    other system cannot be reached, a call raises a SeamlineError that says so; whether a write has happened is not
    known then, and the runner takes over again.
    """

    def take_over(self) -> SinkPosition | None:
        """Fence earlier writers; return what the target holds, None where it holds nothing."""

    def write(self, batches: Iterable[ChangeBatch], position: SinkPosition) -> None:
        """Write changes, and the position to which they lead, in one transaction."""

    def clear(self) -> None:
        """Forget the position and all rows of this sink, in one transaction where possible."""

    def close(self) -> None:
        """Let go of the connection; never raises."""


@runtime_checkable
class Tidied(Protocol):
    """A target with upkeep of its own, done by who writes to it, while there is nothing to write."""

    def tidy(self, stopping: Callable[[], bool]) -> None:
        """Do what is due, if anything is; what takes long is left off where it is to be stopped."""
