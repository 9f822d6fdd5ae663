"""Which intervals a batch run builds, why, and to which cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from seamline.model.epoch import Epoch
from seamline.model.errors import BadRange
from seamline.model.intervals import Grid, Interval, stamp
from seamline.model.manifest import Manifest
from seamline.model.restated import Restatement, about
from seamline.model.seam import NOTHING


@dataclass(frozen=True)
class Build:
    """Build one interval: all views of the pipeline, rows up to the run's cut.

    ``rows`` were accepted up to the cut, ``late`` of them after the oldest cut published of any view.
    """

    interval: Interval
    reason: str
    rows: int
    late: int


@dataclass(frozen=True)
class LeftOut:
    """An interval that was asked for and is not built, and why."""

    interval: Interval
    reason: str


@dataclass(frozen=True)
class BatchPlan:
    """What one run does. ``cut`` is an edge; NOTHING when the log has none yet."""

    cut: int
    watermark: datetime | None
    builds: tuple[Build, ...]
    left_out: tuple[LeftOut, ...]


def last_edge(ledger: Sequence[Epoch]) -> Epoch | None:
    """Give the newest epoch on which a cut may fall."""
    return next((epoch for epoch in reversed(ledger) if epoch.edge), None)


class Arrivals:
    """The accepted rows of every interval by the epoch that brought them, indexed once."""

    def __init__(self, ledger: Sequence[Epoch], *, until: int) -> None:
        self._epochs: dict[str, list[int]] = {}
        self._totals: dict[str, list[int]] = {}
        for epoch in ledger:
            if epoch.number > until:
                break
            for interval, rows in epoch.accepted.items():
                totals = self._totals.setdefault(interval, [0])
                totals.append(totals[-1] + rows)
                self._epochs.setdefault(interval, []).append(epoch.number)

    @property
    def intervals(self) -> Collection[str]:
        """The ids of the intervals that have rows."""
        return self._epochs.keys()

    def rows(self, interval: str, *, until: int) -> int:
        """Count the rows of an interval in epochs up to ``until``, that one included."""
        return self._totals.get(interval, [0])[bisect_right(self._epochs.get(interval, []), until)]


def plan_batch(
    ledger: Sequence[Epoch],
    manifest: Manifest,
    grid: Grid,
    views: Collection[str],
    *,
    asked: Interval | None,
    dirty: bool,
    restated: Sequence[Restatement] = (),
) -> BatchPlan:
    """Plan a run over the intervals in ``asked``, over the ``dirty`` ones, or over both.

    An interval is dirty if accepted rows are newer than its cut, if it has rows and was never built, or if what is
    published of a view does not know all that was ``restated`` of it. An open one (the watermark at the cut is not
    past its end) is left out and named. Raises BadRange for a span before the pipeline's start.
    """
    if asked is not None and asked.start < grid.start:
        raise BadRange(
            f"{stamp(asked.start)} is before the pipeline's start {stamp(grid.start)}.",
            hint=f"ask from {stamp(grid.start)} on.",
        )
    edge = last_edge(ledger)
    wanted = list(grid.within(asked)) if asked else []
    if edge is None:
        return BatchPlan(NOTHING, None, (), tuple(LeftOut(each, "no edge yet") for each in wanted))
    named = set(wanted)
    arrivals = Arrivals(ledger, until=edge.number)
    if dirty:
        wanted += {grid.named(id) for id in arrivals.intervals} - named
    builds, left_out = [], []
    for interval in sorted(wanted):
        cut = min(manifest.cut(view, interval.id) for view in views)
        never = any((view, interval.id) not in manifest.published for view in views)
        total = arrivals.rows(interval.id, until=edge.number)
        late = total - arrivals.rows(interval.id, until=cut)
        unmade = sorted({each.lookup for each in unknown(manifest, views, interval, restated)})
        if edge.watermark is None or edge.watermark < interval.end:
            mark = stamp(edge.watermark) if edge.watermark else "unknown"
            left_out.append(LeftOut(interval, f"open: the watermark is {mark} at epoch {edge.number}"))
        elif interval in named:
            builds.append(Build(interval, "asked for", total, late))
        elif never:
            builds.append(Build(interval, "never built", total, late))
        elif unmade:
            builds.append(Build(interval, f"restated: {', '.join(unmade)}", total, late))
        elif late:
            builds.append(Build(interval, f"{late} late row{'s' * (late > 1)}", total, late))
    return BatchPlan(edge.number, edge.watermark, tuple(builds), tuple(left_out))


def unknown(
    manifest: Manifest, views: Collection[str], interval: Interval, restated: Sequence[Restatement]
) -> list[Restatement]:
    """List the restatements of an interval since what is published of some view was built."""
    published = (manifest.published.get((view, interval.id)) for view in views)
    known = min((each.restated for each in published if each), default=len(restated))
    return about(restated[known:], interval)
