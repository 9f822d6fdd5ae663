"""What a rebuild would change of published numbers, found out over sampled intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seamline.plan.publish.number_changes import find_largest, find_largest_share

EXAMPLES = 3
"""Rows that are shown of a measure: those that change most."""


@dataclass(frozen=True)
class Example:
    """A row whose number would change."""

    place: Mapping[str, str]
    """Its grouping set, keys and window, as text."""
    before: Any
    """The number that is published."""
    after: Any
    """What would be published."""
    absolute: float | None
    """The difference; None where it is no number."""
    relative: float | None
    """The difference as a share of what is published; None where that is no number, or zero."""

    @property
    def size(self) -> tuple[float, float]:
        """How much it changes: by its share first. A change from zero has no share, and is larger than any."""
        absolute = abs(self.absolute or 0.0)
        return (float("inf") if self.relative is None and absolute else abs(self.relative or 0.0), absolute)


@dataclass(frozen=True)
class MeasureChange:
    """What would change of a measure."""

    name: str
    """The measure."""
    rows: int
    """Rows that have another number; those that are new or gone are not among them."""
    absolute: float | None
    """The largest difference, with its sign; None where none is a number."""
    relative: float | None
    """The largest difference as a share of what is published, with its sign; None where none is a number."""
    examples: tuple[Example, ...] = ()
    """The rows that change most."""
    bare: int = 0
    """Rows in which a number changes that was zero, or is nothing on one side: it has no share."""


@dataclass(frozen=True)
class IntervalPreview:
    """What would change of an interval."""

    interval: str
    """Its id."""
    cut: int
    """The last epoch that the rebuilt numbers have seen."""
    equal: int
    """Rows that stay."""
    changed: int
    """Rows that have other numbers."""
    gone: int
    """Rows that are published and would not be."""
    new: int
    """Rows that are not published and would be."""
    measures: tuple[MeasureChange, ...] = ()
    """What changes of each measure that both have; those that do not change are left out."""


@dataclass(frozen=True)
class ViewPreview:
    """What would change of a view."""

    view: str
    """PIPELINE.VIEW."""
    before: str
    """The version that is served, ``name/fingerprint``."""
    after: str
    """The version that would be built."""
    intervals: tuple[IntervalPreview, ...] = ()
    """The intervals that were looked at."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By interval id: why one that was chosen was not looked at."""
    published: int = 0
    """How many intervals it might have been."""
    why: str = ""
    """Why nothing was looked at; empty where something was."""
    lost: tuple[str, ...] = ()
    """Measures that only the served version has."""
    added: tuple[str, ...] = ()
    """Measures that only the other one has."""
    limit: float = 0.0
    """The change from which on a person must approve it (``approve_change``); 0 for none."""

    @property
    def equal(self) -> int:
        """Rows that stay."""
        return sum(each.equal for each in self.intervals)

    @property
    def changed(self) -> int:
        """Rows that have other numbers."""
        return sum(each.changed for each in self.intervals)

    @property
    def gone(self) -> int:
        """Rows that would be gone."""
        return sum(each.gone for each in self.intervals)

    @property
    def new(self) -> int:
        """Rows that would be new."""
        return sum(each.new for each in self.intervals)

    @property
    def differs(self) -> bool:
        """Return whether published numbers would change, as far as was looked."""
        return bool(self.changed or self.gone or self.new or (self.lost and self.intervals))

    @property
    def measures(self) -> tuple[MeasureChange, ...]:
        """What changes of each measure, over all intervals that were looked at."""
        found: dict[str, list[MeasureChange]] = {}
        for interval in self.intervals:
            for each in interval.measures:
                found.setdefault(each.name, []).append(each)
        return tuple(map(merge_measure_changes, found.values()))

    @property
    def largest(self) -> float:
        """The largest change of any interval, as ``find_largest_share`` has it."""
        return max(map(find_interval_share, self.intervals), default=0.0)

    @property
    def waits(self) -> bool:
        """Return whether a person would have to approve it."""
        return 0 < self.limit < self.largest


def merge_measure_changes(found: Iterable[MeasureChange]) -> MeasureChange:
    """Add up what changes of one measure in several intervals."""
    some = list(found)
    examples = sorted((one for each in some for one in each.examples), key=lambda one: one.size, reverse=True)
    return MeasureChange(
        some[0].name,
        sum(each.rows for each in some),
        find_largest(each.absolute for each in some),
        find_largest(each.relative for each in some),
        tuple(examples[:EXAMPLES]),
        sum(each.bare for each in some),
    )


def find_interval_share(interval: IntervalPreview) -> float:
    """Return the largest change of an interval, as a share."""
    before = interval.equal + interval.changed + interval.gone
    bare = max((each.bare for each in interval.measures), default=0)
    return find_largest_share(
        (each.relative for each in interval.measures), before, max(interval.gone + interval.new, bare)
    )
