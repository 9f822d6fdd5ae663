"""Rows derived from those of two sources: each left one with the version of its key that was valid then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field


@dataclass(frozen=True)
class AsOf:
    """Each left row, once, with its key's latest version at or before it: an order with the price of its time.

    Versions are rows of a source, valid from their event time until the next one of the key, and for ``at_most`` so
    long; of several at one time the last in its partition is. A row has the event time of its left row, and the
    columns of both, each with its source's name and an underscore before it, as those of ``Join``: ``prices_price``.
    Those of the version are NULL where there is none. A version that comes late takes the place of the older one:
    views of such rows take only measures from which rows can be taken again.
    """

    name: str
    """The name of the rows, which ``View(of=)`` takes."""
    left: str
    """The name of the source whose rows each are there once."""
    versions: str
    """The name of the source whose rows are the versions."""
    on: Mapping[str, str]
    """The column of versions that each left column must equal, by the left one's name; one or more."""
    at_most: str = ""
    """How much older than its left row a version may be, as a duration: "7 days"."""
    left_where: str = ""
    """The left rows that are there; all if empty."""
    versions_where: str = ""
    """The rows that are versions; all if empty."""
    null_safe: Sequence[str] = ()
    """Left columns of ``on`` of which NULL equals NULL."""
    copies: bool = False
    """Whether intervals are certified in which a row counts that repeats the event id of an earlier one: a copy that
    came more than ``dedup_within`` after it. Else they are held back."""
    origin: Origin = declare_origin_field()

    @property
    def right(self) -> str:
        """The name of the source of versions, as a join calls it."""
        return self.versions

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources whose rows it is made of."""
        return self.left, self.versions
