"""What the warehouse is told of a sink, and whether somebody else has told it something since."""

from __future__ import annotations

import time

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.recorded_positions import (
    SinkCopy,
    begin_copy,
    forget_copy,
    read_known_copy,
    replace_copy,
)

LOOKS_EVERY = 5.0
"""Seconds between two looks: in a bucket each is a request."""


class ToldCopy:
    """The copy of a sink's position, as the process has it that has taken over the target.

    Where another one is there, somebody has taken over since, and has asked that something be sent again.
    """

    def __init__(self, layout: Layout, sink: str) -> None:
        self.layout, self.sink = layout, sink
        self.last, self.looked_at = read_known_copy(layout, sink), time.monotonic()

    def begin(self, copy: SinkCopy) -> None:
        """Write the copy of a sink that has none of this view: one that it has needs as much, or more."""
        if self.last is not None and self.last.view != copy.view:
            forget_copy(self.layout, self.sink)
        begin_copy(self.layout, self.sink, copy)
        self.last = read_known_copy(self.layout, self.sink)

    def replace(self, copy: SinkCopy) -> None:
        """Write the copy."""
        replace_copy(self.layout, self.sink, copy)
        self.last = copy

    def is_another(self) -> bool:
        """Return whether another copy is there, as far as it is time to look."""
        now = time.monotonic()
        if now - self.looked_at < LOOKS_EVERY:
            return False
        self.looked_at = now
        return read_known_copy(self.layout, self.sink) != self.last
