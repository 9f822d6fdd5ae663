"""How far sessions that are asked for reach beyond the end of what was asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from seamline.lake.engine.windowing import END, START, Numbers, read_numpy_column
from seamline.model.time.window_arithmetic import LAST, Bounds, Gaps


class Reach:
    """The time that sessions cover, added part by part; only its outlines are kept."""

    def __init__(self) -> None:
        self.starts: Numbers = np.zeros(0, np.int64)
        self.ends: Numbers = np.zeros(0, np.int64)

    def add(self, sessions: pa.Table) -> None:
        """Add some sessions: those that overlap are one outline."""
        starts = np.concatenate([self.starts, read_numpy_column(sessions, START)])
        ends = np.concatenate([self.ends, read_numpy_column(sessions, END)])
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        first = np.append(True, starts[1:] >= ends[:-1]) if len(starts) else np.zeros(0, np.bool_)
        self.starts, self.ends = starts[first], ends[np.append(first[1:], True)] if len(ends) else ends

    def extend(self, windows: Gaps, panes: Sequence[Bounds]) -> list[Bounds]:
        """Return the bounds that a read of the sessions alone comes to (``pane_ranges.extend_bounds_forward``)."""
        [(low, high)], attempt = panes, 0
        while high < LAST and ((self.starts >= low) & (self.starts < high) & (self.ends > high)).any():
            high += windows.interval << min(attempt, 16)
            attempt += 1
        return [(low, high)]
