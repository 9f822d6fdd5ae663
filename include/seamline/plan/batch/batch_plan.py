"""Which intervals a batch run builds, why, and to which cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import nlargest, nsmallest
from types import MappingProxyType

from seamline.model.errors import BadRange
from seamline.model.protocol.claims import Claim, find_running_claim
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest, Statement
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid, Interval, format_utc_instant
from seamline.model.time.reached_intervals import (
    Spanning,
    list_filled_intervals,
    list_shown_intervals,
)
from seamline.plan.batch.build_causes import Cause, Kind, causes_of, list_rowless_intervals
from seamline.plan.batch.interval_arrivals import Arrivals
from seamline.plan.spelling import format_duration

NAMED = 1_000
"""So many of the intervals that wait for another run are named."""


@dataclass(frozen=True)
class Build:
    """Build one interval: all views of the pipeline, rows up to the run's cut."""

    interval: Interval
    """The interval."""
    causes: tuple[Cause, ...]
    """Why it is built, one or more."""
    rows: int
    """Rows accepted up to the cut."""
    late: int
    """Those after the oldest cut that is published of any view."""
    bytes: int = 0
    """Bytes of the master's files that may contain its rows, and perhaps rows of other intervals."""

    @property
    def reason(self) -> str:
        """Say why in a few words; of late rows as many as the view lacks that lacks most."""
        late = max((each.rows for each in self.causes if each.kind is Kind.LATE), default=0)
        words = (f"{late} late row{'s' * (late > 1)}" if each == Kind.LATE else each for each in self.kinds)
        return ", ".join(words)

    @property
    def kinds(self) -> Iterator[str]:
        """Say each kind of reason once, with the names that belong to it."""
        for kind in Kind:
            mine = [each for each in self.causes if each.kind is kind]
            names = sorted({name for each in mine for name in each.names})
            if mine:
                yield f"{kind}: {', '.join(names)}" if names else kind.value

    @property
    def asked(self) -> bool:
        """Return whether somebody asked for it."""
        return any(each.kind is Kind.ASKED for each in self.causes)

    @property
    def debt(self) -> int:
        """Return the epoch since which what is published has been short."""
        return min((each.since for each in self.causes if each.kind is not Kind.ASKED), default=NOTHING)


@dataclass(frozen=True)
class LeftOut:
    """An interval that was asked for or is dirty and is not built."""

    interval: Interval
    """The interval."""
    reason: str
    """Why it is not built, in a sentence."""


@dataclass(frozen=True)
class BatchPlan:
    """What one run does."""

    cut: int
    """The edge up to which it reads; NOTHING when the log has none yet."""
    watermark: datetime | None
    """The watermark at the cut, None before the first."""
    builds: tuple[Build, ...]
    """What is built, in order."""
    left_out: tuple[LeftOut, ...]
    """What is not built, with the reason."""
    bytes: int = 0
    """Bytes of all files to read, each once."""
    seconds: float | None = None
    """An estimate of the run, None where no past run shows it."""
    planned: int = NOTHING
    """The version of the manifest that this was decided on."""
    again: int = 0
    """Records up to the cut that another record version read: they are reprocessed first."""
    unnamed: int = 0
    """Dirty intervals that wait and are not listed in ``left_out``."""

    @property
    def rows(self) -> int:
        """Rows to read, of all intervals."""
        return sum(each.rows for each in self.builds)


def needs_approval(plan: BatchPlan, above: int) -> bool:
    """Return whether a person must approve a plan first: more than ``above`` intervals (0: any number) were asked for.

    What is dirty needs nobody's word, and is bounded anyway.
    """
    return 0 < above < sum(each.asked for each in plan.builds)


def last_edge(ledger: Sequence[Epoch]) -> Epoch | None:
    """Return the newest epoch on which a cut may fall."""
    return next((epoch for epoch in reversed(ledger) if epoch.edge), None)


def plan_batch(
    ledger: Sequence[Epoch],
    manifest: Manifest,
    grid: Grid,
    views: Collection[str],
    *,
    asked: Interval | None,
    dirty: bool,
    restated: Restated | None = None,
    most: int | None = None,
    claims: Sequence[Claim] = (),
    provisional: bool = False,
    reaches: Mapping[str, int] = MappingProxyType({}),
    ahead: timedelta = timedelta(0),
    derived: Mapping[str, Arrivals] = MappingProxyType({}),
    spanning: Spanning = MappingProxyType({}),
) -> BatchPlan:
    """Plan a run over the intervals in ``asked``, over the ``dirty`` ones, or over both.

    An interval is dirty if accepted rows are newer than its cut, if it has rows and was never built, or if what is
    published of a view does not know all that was ``restated`` of it, or was ``provisional`` and it has closed; and
    one without rows is where windows of a view wait for it, which reach so many intervals further (``reaches``). An
    open one (the watermark at the cut is not past its end) is left out and named, unless it may be published as
    provisional, and so is one that was rolled back, unless just its range was asked for. Of those that are dirty and
    were not asked for at ``most`` so many are built, in turns (``in_turns``). The first of the others are named, as
    are those that are dirty and under one of the ``claims`` of other runs. An interval has closed once the
    watermark is ``ahead`` of its end: so far behind it are rows that views join with its own. Of those views
    ``derived`` says which epochs changed an interval; ``spanning`` are those that may have rows in one that has closed
    because of earlier ones. Raises BadRange for a span before the pipeline's start.
    """
    if asked is not None and asked.start < grid.start:
        raise BadRange(
            f"{format_utc_instant(asked.start)} is before the pipeline's start {format_utc_instant(grid.start)}.",
            hint=f"ask from {format_utc_instant(grid.start)} on.",
        )
    edge, decided = last_edge(ledger), restated or Restated(grid)
    named = list(grid.within(asked)) if asked else []
    if edge is None:
        return BatchPlan(NOTHING, None, (), tuple(LeftOut(each, "no edge yet") for each in named))
    arrivals = Arrivals(ledger, until=edge.number)
    wanted = {each.id for each in named}
    others = [grid.named(id) for id in arrivals.intervals if id not in wanted] if dirty else []
    if dirty:
        waited = list_waited_intervals(
            manifest, views, edge, arrivals, grid, reaches, spanning, ahead, provisional=provisional
        )
        others += [each for each in waited if each.id not in wanted]
    built = {(view.partition("/")[0], id) for view, id in manifest.published}
    builds: list[Build] = []
    debts: list[Build] = []
    left_out: list[LeftOut] = []
    for interval, own in [(each, True) for each in named] + [(each, False) for each in others]:
        causes = [Cause(Kind.ASKED)] if own else []
        closes = interval.end + ahead
        closed = edge.watermark is not None and edge.watermark >= closes
        causes += causes_of(
            manifest, views, interval, arrivals, decided, built, derived, spanning, closed=closed
        )
        cut = min(manifest.cut(view, interval.id) for view in views)
        total = arrivals.total(interval.id)
        build = Build(interval, tuple(causes), total, total - arrivals.rows(interval.id, until=cut))
        hold = manifest.hold(views, interval.id) if causes and dirty else None
        if why := find_build_blocker(edge, hold, ahead, closed=closed or provisional):
            left_out.append(LeftOut(interval, why))
        elif own:
            builds.append(build)
        elif causes and (claim := find_running_claim(claims, interval)):
            left_out.append(LeftOut(interval, f"running: {claim}"))
        elif causes:
            debts.append(build)
    plan = BatchPlan(
        edge.number,
        edge.watermark,
        tuple(sorted([*builds, *debts], key=lambda each: each.interval)),
        tuple(sorted(left_out, key=lambda each: each.interval)),
        planned=manifest.version,
    )
    return bound_plan(plan, most)


def bound_plan(plan: BatchPlan, most: int | None) -> BatchPlan:
    """Leave of what nobody asked for all but ``most`` intervals to the next runs, in turns; nothing without a bound."""
    debts = [each for each in plan.builds if not each.asked]
    if most is None or most >= len(debts):
        return plan
    now = in_turns(debts, most)
    later = [each for at, each in enumerate(debts) if at not in now]
    waiting = nsmallest(NAMED, later, key=lambda each: (each.debt, each.interval.start))
    more = [LeftOut(each.interval, f"next run: {each.reason}") for each in waiting]
    taken = {each.interval for each in later}
    return replace(
        plan,
        builds=tuple(each for each in plan.builds if each.interval not in taken),
        left_out=tuple(sorted([*plan.left_out, *more], key=lambda each: each.interval)),
        unnamed=plan.unnamed + len(later) - len(waiting),
    )


def add_left_out(plan: BatchPlan, reasons: Mapping[str, str], grid: Grid) -> BatchPlan:
    """Name more intervals that are not built, by id with the reason; not those that a plan builds or names."""
    known = {each.interval.id for each in plan.builds} | {each.interval.id for each in plan.left_out}
    waiting = sorted(reasons.keys() - known)
    more = (LeftOut(grid.named(each), reasons[each]) for each in waiting[:NAMED])
    left_out = sorted([*plan.left_out, *more], key=lambda each: each.interval)
    return replace(plan, left_out=tuple(left_out), unnamed=plan.unnamed + len(waiting[NAMED:]))


def list_waited_intervals(
    manifest: Manifest,
    views: Collection[str],
    edge: Epoch,
    arrivals: Arrivals,
    grid: Grid,
    reaches: Mapping[str, int],
    spanning: Spanning,
    ahead: timedelta,
    *,
    provisional: bool,
) -> list[Interval]:
    """List the intervals without accepted rows of which something is to be built.

    Those that have not closed, ``ahead`` after their ends, are let be, unless they may be published as ``provisional``.
    """
    found: set[str] = set()
    for view in views:
        own = spanning.get(view)
        found |= {
            *list_rowless_intervals(
                manifest,
                view,
                grid,
                list_filled_intervals(grid, own, arrivals.intervals),
                reaches.get(view, 0),
            )
        }
        shown = list_shown_intervals(grid, own, arrivals.intervals, edge.watermark)
        later = map(grid.named, shown.difference(arrivals.intervals))
        mark = edge.watermark
        found |= {each.id for each in later if provisional or (mark and each.end + ahead <= mark)}
    return [grid.named(id) for id in sorted(found)]


def in_turns(debts: Sequence[Build], most: int) -> Collection[int]:
    """Choose up to ``most`` by number: the oldest debt, the one of most rows, the newest interval, and so on in turns.

    Each of the three waits for the two others at most. Intervals without number that someone's random event times
    have made are in the way of neither late rows nor hours that have just closed; and no debt waits for ever.
    """
    if most >= len(debts):
        return range(len(debts))
    orders = (
        nsmallest(most, range(len(debts)), key=lambda at: (debts[at].debt, debts[at].interval.start)),
        nsmallest(most, range(len(debts)), key=lambda at: (-debts[at].late, debts[at].debt)),
        nlargest(most, range(len(debts)), key=lambda at: debts[at].interval.start),
    )
    chosen = dict.fromkeys(at for turn in zip(*orders, strict=True) for at in turn)
    return set(list(chosen)[:most])


def find_build_blocker(edge: Epoch, rollback: Statement | None, ahead: timedelta, *, closed: bool) -> str:
    """Say why an interval is not to be built: it is open, or a person rolled it back; empty if it may be.

    ``ahead`` is how far behind its end rows may be that count in it.
    """
    if not closed:
        mark = format_utc_instant(edge.watermark) if edge.watermark else "unknown"
        reach = format_duration(ahead.total_seconds())
        joined = f"; rows up to {reach} after its end count in it" if ahead else ""
        return f"open: the watermark is {mark} at epoch {edge.number}{joined}"
    return f"rolled back by {rollback.actor}: {rollback.reason}" if rollback else ""
