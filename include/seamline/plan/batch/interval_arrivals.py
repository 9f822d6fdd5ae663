"""The accepted rows of every interval by the epochs that brought them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter

from seamline.model.errors import StraddlesCut
from seamline.model.protocol.condensed import find_arrival_epochs
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import Reaching, list_reaching_intervals, widen_to_intervals


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

    def list_hiding(self, interval: str, numbers: Sequence[int]) -> Iterator[int]:
        """List those of some numbers, which ascend, up to which some rows of a sum came, and others above them."""
        for first, last in self._spans.get(interval, []):
            if first < last:
                yield from numbers[bisect_left(numbers, first) : bisect_left(numbers, last)]

    def _at(self, interval: str, number: int) -> int:
        if self.may_hide_rows(interval, number):
            raise StraddlesCut(
                f"A sum over the log crosses epoch {number}, up to which {interval} was requested.",
                hint="this is a bug: a log is condensed only between the cuts that are requested.",
            )
        return bisect_right(self._spans.get(interval, []), number, key=itemgetter(1))


def find_first_arrival(arrivals: Arrivals, grid: Grid, interval: Interval, view: Reaching | None) -> int:
    """Return the first epoch that brought rows because of which a view may have some in an interval; NOTHING for none.

    Rows of other intervals in reach are asked for where it has none. ``view`` is None for one that has rows where there
    are accepted ones.
    """
    own = arrivals.since(interval.id, after=NOTHING)
    if view is None or own > NOTHING:
        return own
    reached = grid.within(widen_to_intervals(grid, interval, view))
    found = (arrivals.since(each.id, after=NOTHING) for each in reached)
    return min((number for number in found if number > NOTHING), default=NOTHING)


def by_arrival(ledger: Sequence[Epoch]) -> dict[str, dict[int, int]]:
    """Return the rows of each interval by the epoch that brought them, those of a sum by the last that did."""
    found: dict[str, dict[int, int]] = {}
    for epoch in ledger:
        for interval, rows in epoch.accepted.items():
            found.setdefault(interval, {})[find_arrival_epochs(epoch, interval)[1]] = rows
    return found


class DerivedArrivals(Arrivals):
    """The derived rows of every interval by the epochs that added them; a block of epochs counts with its last one."""

    def __init__(self, changes: Iterable[tuple[str, int, int, int]]) -> None:
        super().__init__((), until=NOTHING)
        for interval, first, last, rows in sorted(
            changes, key=lambda change: (change[0], change[2], change[1])
        ):
            totals = self._totals.setdefault(interval, [0])
            totals.append(totals[-1] + rows)
            self._spans.setdefault(interval, []).append((first, last))

    def since(self, interval: str, *, after: int) -> int:
        found = super().since(interval, after=after)
        return found if found == NOTHING else max(found, after + 1)

    def may_hide_rows(self, interval: str, number: int) -> bool:
        return False


def list_reached_changes(
    ledger: Sequence[Epoch], grid: Grid, view: Reaching, *, until: int
) -> Iterator[tuple[str, int, int, int]]:
    """List what rows may have changed: every interval in whose reach theirs is, by the epochs of the rows."""
    for epoch in ledger:
        if epoch.number > until:
            break
        for id, rows in epoch.accepted.items():
            for each in list_reaching_intervals(grid, grid.named(id), view):
                yield each.id, *find_arrival_epochs(epoch, id), rows


def list_timed_changes(
    ledger: Sequence[Epoch],
    grid: Grid,
    view: Reaching,
    watermark_at: Callable[[Epoch], datetime | None],
    *,
    until: int,
) -> Iterator[tuple[str, int, int, int]]:
    """List what watermarks may have changed: every interval that has rows and had not closed yet.

    Of processes, whose timers fire by them. ``watermark_at`` returns an epoch's watermark, None for one of another
    clock.
    """
    open_, mark = dict[str, datetime](), None
    for epoch in ledger:
        if epoch.number > until:
            break
        for id in epoch.accepted:
            for each in list_reaching_intervals(grid, grid.named(id), view):
                if mark is None or each.end + view.after > mark:
                    open_[each.id] = each.end + view.after
        now = watermark_at(epoch)
        if now is None or (mark is not None and now <= mark):
            continue
        mark = now
        for id in list(open_):
            yield id, epoch.number, epoch.number, 1
            if open_[id] <= mark:
                del open_[id]
