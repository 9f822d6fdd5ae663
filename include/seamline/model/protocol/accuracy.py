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
    """One measure at one age, over all keys and panes that were looked at."""

    measure: str
    """The measure's name."""
    age: timedelta
    """How long after the end of its pane an answer was given."""
    places: int
    """How many keys and panes were looked at."""
    there: float
    """The share of them, 0 to 1, that had an answer by then."""
    typical: float | None
    """The median of what came later, as a share of what was answered: +0.008 is 0.8 % more in the end. None
    where the measure is no number, or nothing was answered."""
    most: float | None
    """The 90th percentile of the same."""
