"""The accepted rows of every interval by the epochs that brought them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from operator import itemgetter

from seamline.model.errors import StraddlesCut
from seamline.model.protocol.condensed import find_arrival_epochs
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING


class Arrivals:
    """The accepted rows of every interval by the epochs that brought them, indexed once.

    Of a condensed log it knows what no sum hides: StraddlesCut for a number within a sum's arrivals.
    """

    def __init__(self, ledger: Sequence[Epoch], *, until: int) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = {}
        self._totals: dict[str, list[int]] = {}
        for epoch in ledger:
            if epoch.number > until:
                break
            for interval, rows in epoch.accepted.items():
                totals = self._totals.setdefault(interval, [0])
                totals.append(totals[-1] + rows)
                self._spans.setdefault(interval, []).append(find_arrival_epochs(epoch, interval))

    @property
    def intervals(self) -> Collection[str]:
        """The ids of the intervals that have rows."""
        return self._spans.keys()

    def rows(self, interval: str, *, until: int) -> int:
        """Count the rows of an interval in epochs up to ``until``, that one included."""
        return self._totals.get(interval, [0])[self._at(interval, until)]

    def total(self, interval: str) -> int:
        """Count all rows of an interval."""
        return self._totals.get(interval, [0])[-1]

    def since(self, interval: str, *, after: int) -> int:
        """Return the first epoch above ``after`` that brought rows of an interval; NOTHING for none."""
        spans, at = self._spans.get(interval, []), self._at(interval, after)
        return spans[at][0] if at < len(spans) else NOTHING

    def may_hide_rows(self, interval: str, number: int) -> bool:
        """Return whether some rows of a sum came up to an epoch, and others above it."""
        spans = self._spans.get(interval, [])
        at = bisect_right(spans, number, key=itemgetter(1))
        return at < len(spans) and spans[at][0] <= number

    def _at(self, interval: str, number: int) -> int:
        if self.may_hide_rows(interval, number):
            raise StraddlesCut(
                f"A sum over the log crosses epoch {number}, up to which {interval} was requested.",
                hint="this is a bug: a log is condensed only between the cuts that are requested.",
            )
        return bisect_right(self._spans.get(interval, []), number, key=itemgetter(1))


def by_arrival(ledger: Sequence[Epoch]) -> dict[str, dict[int, int]]:
    """Return the rows of each interval by the epoch that brought them, those of a sum by the last that did."""
    found: dict[str, dict[int, int]] = {}
    for epoch in ledger:
        for interval, rows in epoch.accepted.items():
            found.setdefault(interval, {})[find_arrival_epochs(epoch, interval)[1]] = rows
    return found
