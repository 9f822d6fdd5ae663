"""How often a scoring service was asked, and what for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamline.local.scoring.manners import Asked, Manners

MOST = 100_000
"""Distinct requests that are counted one by one, and those that are known to have failed."""


class Counts:
    """Counts of calls that were not ignored, failed ones among them."""

    def __init__(self) -> None:
        self.calls, self.requests = 0, 0
        self.asked: dict[str, int] = {}
        """How often each request was asked, by name, of the first 100,000."""
        self.failed: dict[Asked, None] = {}

    def add(self, requests: Sequence[Asked]) -> None:
        """Count a call."""
        self.calls += 1
        self.requests += len(requests)
        for each in requests:
            if each.name in self.asked or len(self.asked) < MOST:
                self.asked[each.name] = self.asked.get(each.name, 0) + 1

    def fails(self, requests: Sequence[Asked], manners: Manners) -> bool:
        """Tell whether a call fails: a request of it fails its first call, which this one is."""
        first = [each for each in requests if manners.draws("fails", each) and each not in self.failed]
        self.failed.update(dict.fromkeys(first))
        while len(self.failed) > MOST:
            del self.failed[next(iter(self.failed))]
        return bool(first)

    def to_dict(self) -> dict[str, Any]:
        """Return what was counted, the most asked requests first."""
        most = sorted(self.asked.items(), key=lambda each: -each[1])
        return {"calls": self.calls, "requests": self.requests, "asked": dict(most)}
