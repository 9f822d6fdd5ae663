"""Which intervals a preview looks at: a few, spread over all, within a bound of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SAMPLED = 5
"""So many intervals are looked at where nobody says how many."""
MOST_ROWS = 2_000_000
"""Rows of the log that a preview reads of an interval at most: they are in memory once."""


@dataclass(frozen=True)
class Sampled:
    """An interval that may be looked at."""

    interval: str
    """Its id."""
    weight: int = 0
    """How much may change in it: its late rows, where those are why it is built."""


def choose_samples(candidates: Iterable[Sampled], most: int) -> tuple[Sampled, ...]:
    """Choose up to ``most`` intervals: those with a weight first, the heaviest; then some spread over the others.

    The first and the last of these are among them. They are returned in order.
    """
    known = sorted(candidates, key=lambda each: each.interval)
    heavy = sorted((each for each in known if each.weight), key=lambda each: -each.weight)[:most]
    light = [each for each in known if not each.weight]
    return tuple(sorted([*heavy, *spread_evenly(light, most - len(heavy))], key=lambda each: each.interval))


def spread_evenly(known: Sequence[Sampled], most: int) -> list[Sampled]:
    """Choose some of a sequence, as far apart as they can be; one alone is the last."""
    if most <= 0 or not known:
        return []
    if most >= len(known):
        return list(known)
    if most == 1:
        return [known[-1]]
    return [known[at * (len(known) - 1) // (most - 1)] for at in range(most)]
