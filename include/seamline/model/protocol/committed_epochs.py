"""The numbers of the epochs that a master has committed, condensed to runs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from seamline.model.protocol.seam import NOTHING


@dataclass(frozen=True)
class EpochNumbers:
    """The epochs that are committed, as runs ``first..last`` (both in): what no master has is dead (rule 2)."""

    firsts: tuple[int, ...]
    """The first number of each run, ascending."""
    lasts: tuple[int, ...]
    """The last number of each run, in the same order."""

    @classmethod
    def of(cls, runs: Iterable[tuple[int, int]]) -> EpochNumbers:
        """Join runs that overlap or touch."""
        joined: list[list[int]] = []
        for first, last in sorted(runs):
            if joined and first <= joined[-1][1] + 1:
                joined[-1][1] = max(joined[-1][1], last)
            else:
                joined.append([first, last])
        return cls(tuple(first for first, _ in joined), tuple(last for _, last in joined))

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    def last(self, until: int) -> int:
        """Return the greatest number at or below ``until``; NOTHING where there is none."""
        at = bisect_right(self.firsts, until) - 1
        return min(until, self.lasts[at]) if at >= 0 else NOTHING

    def after(self, number: int) -> int | None:
        """Return the least number above one; None where there is none."""
        at = bisect_right(self.firsts, number)
        if at and number < self.lasts[at - 1]:
            return number + 1
        return self.firsts[at] if at < len(self.firsts) else None

    def plus(self, number: int) -> EpochNumbers:
        """Add the epoch that was committed next, unless a ledger that was read later has it already."""
        if number in self:
            return self
        if self.lasts and number == self.lasts[-1] + 1:
            return EpochNumbers(self.firsts, (*self.lasts[:-1], number))
        return EpochNumbers((*self.firsts, number), (*self.lasts, number))
