"""Why an answer differs from the table that another job made of the same topic: what the answer would be without some
records, or with copies, is what that table says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

QUARTER = 15 * 60
"""Seconds: zones differ by multiples of it."""
FURTHEST = 14 * 3600
"""Seconds: the most by which a zone differs from UTC."""


class TableCause(StrEnum):
    """What distinguishes an answer and a table."""

    LATE = "came late: the table has no records that came once the watermark had passed their window"
    """Records that came after an edge at which the watermark had passed the end of their window."""
    OVERDUE = "reached Kafka late: the table has no records that reached Kafka when their window was over"
    """Records with a Kafka timestamp later than the end of their window by more than the watermark's bound."""
    AFTER = "came after the table was written"
    """Records of epochs that were committed later."""
    COPIES = "copies there: the table counts records whose event id an earlier one has"
    """Records whose event id an earlier one of their interval has, counted by the table alone."""
    COPIES_HERE = (
        "copies here: the speed layer counts records whose event id an earlier one has, until a build"
    )
    """The same, counted by the answer alone."""
    ESTIMATE = "estimates: only measures that are not exact differ"
    """A sketch; another implementation of it has another error."""
    NONE = "unexplained"
    """Nothing explains it."""


@dataclass(frozen=True)
class Variant:
    """What a number could be made of."""

    left_out: tuple[TableCause, ...] = ()
    """The kinds of records that it lacks: LATE, OVERDUE, AFTER."""
    copies: bool = False
    """Whether copies are counted."""


def list_variants(left_out: Iterable[TableCause], *, copies: bool) -> list[Variant]:
    """List what numbers could be made of, of the kinds of records that there are; by ever more causes."""
    known = [*left_out]
    some = [kinds for count in range(len(known) + 1) for kinds in combinations(known, count)]
    return [Variant(kinds, each) for kinds in some for each in ((False, True) if copies else (False,))]


def list_causes(answer: Variant, table: Variant) -> tuple[TableCause, ...]:
    """List what distinguishes a table's number from the answer's, which lacks nothing."""
    copies = {(False, True): TableCause.COPIES, (True, False): TableCause.COPIES_HERE}
    found = copies.get((answer.copies, table.copies))
    return (*table.left_out, *([found] if found else []))


def choose_causes(
    answers: Iterable[Variant],
    tables: Iterable[Variant],
    *,
    measures: Iterable[str] = (),
    estimates: Iterable[str] = (),
) -> tuple[TableCause, ...]:
    """Return why a row differs: the fewest causes that distinguish two variants, of which each says what its side says.

    ``answers`` are those that say what the answer says, ``tables`` what the table does: without any of the first it
    cannot be made again of the log, and nothing is proven. ``measures`` are those that differ, ``estimates`` those
    that are not exact.
    """
    seen = [*tables]
    found = [causes for one in answers for other in seen if (causes := list_causes(one, other))]
    if found:
        return min(found, key=len)
    differing = {*measures}
    return (TableCause.ESTIMATE,) if differing and differing <= {*estimates} else (TableCause.NONE,)


def find_shift(equal: int, rows: int, shifted: Mapping[int, int]) -> int | None:
    """Return by how many seconds a table's windows begin later than the answer's; None if they do not seem to.

    ``equal`` of ``rows`` rows say the same as they are, ``shifted`` how many would where the windows of a table were so
    many seconds earlier. More than nine of ten must, and fewer than half as they are.
    """
    if not rows or not shifted or equal * 2 >= rows:
        return None
    best = max(shifted, key=lambda seconds: (shifted[seconds], -abs(seconds)))
    return best if shifted[best] * 10 > rows * 9 else None


def list_shifts(size: int) -> list[int]:
    """List the seconds by which windows of so many may begin later or earlier, were it for zones and names alone."""
    spans = dict.fromkeys([size, *range(QUARTER, FURTHEST + 1, QUARTER)])
    return [sign * seconds for seconds in spans for sign in (1, -1)]
