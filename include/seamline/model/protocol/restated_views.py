"""Which restatements the rows of a view are made with; of views of joins those that epochs name (rule 22).

A joined row is made of rows of any epoch in reach, and slices of later epochs are made with it. An epoch therefore
names a decision, no view of such a join takes that epoch, and slices go on where each interval with rows in reach of
the decision has been built above it: what is answered is made with one set of decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from seamline.model.protocol.condensed import first_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.restatement import Restatement, list_interval_restatements
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import Reaching, widen_by_reach


class RestatedJoin(Protocol):
    """What makes rows of rows: a join, or a process."""

    @property
    def lookups(self) -> Collection[str]:
        """The look-ups that its rows are made with, by name."""


class RestatedView(Reaching, Protocol):
    """A version of a view."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def derived(self) -> RestatedJoin | None:
        """What makes the rows that it counts, if they are derived."""


@dataclass(frozen=True)
class Restated:
    """What was decided, as it is for each view."""

    grid: Grid
    """The pipeline's intervals."""
    decisions: tuple[Restatement, ...] = ()
    """All restatements, in their order."""
    named: int = 0
    """How many of them joined rows are made with."""
    joined: Mapping[str, RestatedView] = field(default_factory=dict)
    """The views of joins, by their ids."""

    @classmethod
    def of(
        cls, grid: Grid, decisions: Sequence[Restatement], views: Iterable[RestatedView], named: int
    ) -> Restated:
        """Take decisions as they are for some views."""
        return cls(grid, tuple(decisions), named, {view.id: view for view in views if view.derived})

    def is_joined(self, decision: Restatement) -> bool:
        """Return whether rows of a join are made with a decision's look-up."""
        return any(view.derived and decision.lookup in view.derived.lookups for view in self.joined.values())

    def list_since(self, view: str, interval: Interval, known: int) -> list[Restatement]:
        """List what was decided about a view's rows of an interval after the first so many decisions."""
        if view in self.joined:
            made = self.decisions[known : self.named]
            return list_view_restatements(self.joined[view], self.grid, interval, made)
        return list_interval_restatements(self.decisions[known:], interval)

    def list_between(self, view: str, interval: Interval, one: int, other: int) -> list[Restatement]:
        """List the decisions about an interval that one of two builds knew, and the other did not."""
        first, last = sorted((one, other))
        later = self.list_since(view, interval, last)
        return [each for each in self.list_since(view, interval, first) if each not in later]

    def list_joined_between(self, view: str, interval: str, one: int, other: int) -> list[Restatement]:
        """List the same of an interval, by its id, of a view of a join; none of other views."""
        return self.list_between(view, self.grid.named(interval), one, other) if view in self.joined else []

    def list_new(self, manifest: Manifest, views: Collection[str], interval: Interval) -> list[Restatement]:
        """List what was decided about an interval since what is published of some view was built, in order."""
        found = {
            each
            for view in views
            if (published := manifest.published.get((view, interval.id)))
            for each in self.list_since(view, interval, published.restated)
        }
        return [each for each in self.decisions if each in found]


def list_view_restatements(
    view: RestatedView, grid: Grid, interval: Interval, decisions: Iterable[Restatement]
) -> list[Restatement]:
    """List the decisions about rows that a view's interval is made of: those in reach, where it is one of a join."""
    if view.derived is None:
        return list_interval_restatements(decisions, interval)
    mine = (each for each in decisions if each.lookup in view.derived.lookups)
    return list_interval_restatements(mine, widen_by_reach(grid, interval, view))


def count_named_restatements(log: Iterable[Epoch], number: int) -> int:
    """Return how many decisions the epochs of a log up to a number name; the log may be condensed."""
    return max((each.restated for each in log if first_of(each) <= number), default=0)


def find_naming_epoch(log: Iterable[Epoch], above: int) -> Epoch | None:
    """Return the first row of a log whose epochs, all above a number, name decisions that those up to it do not."""
    rows = list(log)
    known = count_named_restatements(rows, above)
    return next((each for each in rows if first_of(each) > above and each.restated > known), None)


def find_restating_epochs(
    view: RestatedView,
    grid: Grid,
    intervals: Iterable[str],
    log: Sequence[Epoch],
    decisions: Sequence[Restatement],
) -> dict[str, int]:
    """Find the last epoch that names one of some decisions about a view's interval, by the interval's id."""
    found: dict[str, int] = {}
    naming = [next(each for each in log if each.restated > at) for at in range(len(decisions))]
    for id in intervals:
        for decision, epoch in zip(decisions, naming, strict=True):
            if list_view_restatements(view, grid, grid.named(id), [decision]):
                found[id] = first_of(epoch)
    return found
