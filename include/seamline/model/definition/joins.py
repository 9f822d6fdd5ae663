"""Rows derived from those of two sources: pairs of equal keys that are near each other in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.definition.windows import Tumbling


@dataclass(frozen=True)
class Open:
    """A bound that is not itself within: a row exactly as far away is not joined."""

    duration: str
    """How far, as a duration: "5 seconds"."""


@dataclass(frozen=True)
class Join:
    """Pairs of a left and a right row with equal keys, the right one between ``before`` and ``after`` the left one.

    An interval join, at any lateness of either side. A pair has the event time of its left row, and the columns of
    both, each with its source's name and an underscore before it: ``orders_shop``. Where a source is joined with
    itself they are ``left_shop`` and ``right_shop``. A NULL key joins nothing.
    """

    name: str
    """The name of the pairs, which ``View(of=)`` takes."""
    left: str
    """The name of the source whose rows are on the left."""
    right: str
    """The name of the source whose rows are on the right, which may be the same."""
    on: Mapping[str, str]
    """The right column that each left column must equal, by the left one's name; one or more."""
    before: str | Open = "0 seconds"
    """How far the right row may be before the left one, as a duration; ``Open(...)`` leaves out the bound itself."""
    after: str | Open = "0 seconds"
    """How far it may be after it."""
    where: str = ""
    """A condition on the columns of a pair; all pairs if empty."""
    same: Tumbling | None = None
    """A window join instead: the right row is in the same window of this size, ``Tumbling("10 minutes")`` in UTC, as
    the left one; without ``before`` and ``after``."""
    null_safe: Sequence[str] = ()
    """Left columns of ``on`` of which NULL equals NULL."""
    copies: bool = False
    """Whether intervals are certified in which a row counts that repeats the event id of an earlier one: a copy that
    came more than ``dedup_within`` after it. Else they are held back."""
    origin: Origin = declare_origin_field()

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources whose rows it is made of."""
        return self.left, self.right
