"""What of a serving table is behind: the intervals whose rows the log, or a publication, has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Statement
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import Reaching, list_reaching_intervals

MOST = 10_000
"""Intervals that are shown again one by one; of more the whole table is."""
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class ServingLack:
    """What a serving table lacks."""

    intervals: frozenset[str] | None
    """Ids of the intervals to show again; None for all of them."""
    epoch: int
    """Once they are shown, every row counts each event of epochs up to this one."""
    manifest: int
    """Once they are shown, rows have what the manifest had published by this version."""


def list_changed_intervals(
    rows: Sequence[Epoch], since: int, grid: Grid, view: Reaching, gap: timedelta
) -> frozenset[str] | None:
    """List the intervals in whose reach rows of epochs above ``since`` are, and those that have closed meanwhile.

    ``rows`` are the ledger's from the one of ``since`` on. A window is complete once the watermark is past its end and
    the reach behind it, a session ``gap`` after its last event, though nothing more comes. None for all: where it is
    not known how far the watermark was, or is of another clock by now, or where it has jumped over too many.
    """
    if not rows or rows[0].number != since:
        return None
    named = {id for row in rows[1:] for id in row.accepted}
    touched = {each.id for id in named for each in list_reaching_intervals(grid, grid.named(id), view)}
    before, now = rows[0].watermark, rows[-1].watermark
    if rows[0].clock and rows[0].clock != rows[-1].clock:
        return None
    if now is not None and now != before:
        if before is None or (now - before) // grid.length > MOST:
            return None
        passed = Interval(before - view.after - gap - MICROSECOND, now - view.after + MICROSECOND)
        touched.update(each.id for each in grid.touching(passed))
    return frozenset(touched)


def list_published_intervals(statements: Iterable[Statement], view: str, since: int) -> frozenset[str]:
    """List the intervals of a view version whose generation was published, or withdrawn, after a manifest version."""
    return frozenset(each.interval for each in statements if each.view == view and each.seq > since)
