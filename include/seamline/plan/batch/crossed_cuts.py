"""Where a condensed log is parted: at the cuts of generations that a sum over the log would cross."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from seamline.model.protocol.condensed import Summed
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import EPOCH, Grid
from seamline.model.time.reached_intervals import Reaching
from seamline.plan.batch.interval_arrivals import Arrivals


def cuts_within(
    ledger: Sequence[Epoch],
    manifest: Manifest,
    views: Collection[str],
    grid: Grid,
    derived: Collection[Reaching] = (),
) -> set[int]:
    """List the cuts of published generations that a condensed log must be parted at, for a plan to be made of it.

    ``derived`` are those of the views, by their ids, that are made of rows of other intervals, too.
    """
    found = {
        cut
        for epoch in ledger
        if isinstance(epoch, Summed)
        for id, (first, last) in epoch.arrived.items()
        if first < last
        for view in views
        if first <= (cut := manifest.cut(view, id)) < last
    }
    if not derived:
        return found
    arrivals = Arrivals(ledger, until=ledger[-1].number if ledger else NOTHING)
    for own in derived:
        built = {id: each.epoch for (name, id), each in manifest.published.items() if name == own.id}
        found.update(find_crossed_cuts(arrivals, built, grid, own))
    return found


def find_crossed_cuts(
    arrivals: Arrivals, built: Mapping[str, int], grid: Grid, view: Reaching
) -> Iterator[int]:
    """Find the cuts of intervals that a sum over the rows of another interval in their reach crosses.

    ``built`` are the cuts by interval id. Intervals go by their numbers from 1970: there may be years of hours. Of a
    fold the cuts of a whole span are looked at together, as all of its intervals may read the same rows.
    """
    size = grid.length
    before, after = -(-view.before // size), -(-view.after // size)
    together = max(view.span // size, 1)
    cuts: dict[int, set[int]] = {}
    for id, cut in built.items():
        at = (grid.named(id).start - EPOCH) // size
        for reached in range((at - before) // together, (at + after) // together + 1):
            cuts.setdefault(reached, set()).add(cut)
    ordered = {number: sorted(some) for number, some in cuts.items()}
    for id in arrivals.intervals:
        if own := ordered.get((grid.named(id).start - EPOCH) // size // together):
            yield from arrivals.list_hiding(id, own)
