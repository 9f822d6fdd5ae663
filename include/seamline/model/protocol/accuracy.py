"""How much first answers moved until they were final, by the age of their window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

AGES = (
    timedelta(0),
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
    timedelta(days=1),
)
"""Since the end of a window's pane."""


@dataclass(frozen=True)
class Accuracy:
    """One measure at one age, over all keys and panes that were looked at.

    ``there`` is the share of them that had an answer by then. ``typical`` and ``most`` are the median and the 90th
    percentile of what came later, as a share of what was answered: +0.008 is 0.8 % more in the end. None where nothing
    can be said: the measure is no number, or nothing was answered.
    """

    measure: str
    age: timedelta
    places: int
    there: float
    typical: float | None
    most: float | None
