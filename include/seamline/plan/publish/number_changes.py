"""How much a generation changes of what is answered, and whether a person must approve that before it is published."""

from __future__ import annotations

import math
from collections.abc import Iterable

from seamline.model.protocol.comparison import Comparison

NOT_COMPARED = (
    "it was not compared with what is answered, which approve_change= is about: a person must approve it"
)


def find_largest(numbers: Iterable[float | None]) -> float | None:
    """Return the number furthest from zero, with its sign; None without any. Nothing is further than what is none."""
    known = (each for each in numbers if each is not None)
    return max(known, key=lambda each: math.inf if math.isnan(each) else abs(each), default=None)


def find_largest_share(relative: Iterable[float | None], before: int, others: int) -> float:
    """Return the largest change as a share: of a number, or of how many numbers there are.

    ``before`` is how many places had numbers, ``others`` how many are new or gone: as a share of those there were.
    What is no number, or was zero, has no share: with that it is among the ``others``.
    """
    most = abs(find_largest(relative) or 0.0)
    return max(most, others / before if before else 0.0)


def find_comparison_share(found: Comparison) -> float:
    """Return the largest change of an interval as a share."""
    before = found.equal + found.changed + found.missing
    relative = (each.most for each in found.measures.values())
    bare = max((each.bare for each in found.measures.values()), default=0)
    return find_largest_share(relative, before, max(found.missing + found.extra, bare))


def describe_unapproved_change(found: Comparison | None, limit: float) -> str:
    """Say why a generation that replaces another waits for a person's approval; empty if it does not.

    ``limit`` is the change from which on it does, as a share; 0 for none.
    """
    if not limit:
        return ""
    if found is None:
        return NOT_COMPARED
    share = find_comparison_share(found)
    if share <= limit:
        return ""
    return f"it changes answers by {share:.1%}, more than approve_change={limit:g}: a person must approve it"
