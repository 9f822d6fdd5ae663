"""Folds whose spans are of several intervals: which intervals may have rows, are built, and are known to a birth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Manifest, Statement, fold_statements
from seamline.model.time.intervals import LONGEST, Grid, Interval
from seamline.model.time.reached_intervals import (
    find_closing_mark,
    find_span_end,
    find_spanning_views,
    list_filled_intervals,
    list_reaching_intervals,
    list_shown_intervals,
    widen_by_reach,
)
from seamline.plan.batch.batch_plan import BatchPlan, plan_batch
from seamline.plan.batch.crossed_cuts import cuts_within
from seamline.plan.batch.estimates import MasterFile, add_cost_estimates
from seamline.plan.batch.interval_arrivals import Arrivals, DerivedArrivals, find_first_arrival
from seamline.plan.batch.reprocessing_plan import (
    Verdict,
    find_birth_marks,
    list_later_intervals,
    plan_raised_floors,
)
from seamline.plan.batch.restating_plan import may_show_rows
from seamline.plan.batch.view_upgrade import find_common_intervals
from seamline.plan.publish.publication import plan_births
from seamline.plan.stream.overdue_intervals import list_overdue_intervals

START = datetime(2026, 1, 5, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
GRID = Grid(HOUR, START)
NOW = datetime(2026, 1, 9, tzinfo=UTC)
VIEW = "left/abc"


@dataclass(frozen=True)
class Folded:
    """A view of emitted rows."""

    id: str = VIEW
    before: timedelta = timedelta(0)
    after: timedelta = timedelta(0)
    span: timedelta = 6 * HOUR


FOLDED = Folded()


def hour(number: int) -> Interval:
    """Return an hour of the first day; spans begin at 0, 6, 12 and 18."""
    return GRID.of(datetime(2026, 1, 5, tzinfo=UTC) + number * HOUR)


def ids(*numbers: int) -> list[str]:
    """Return the ids of hours."""
    return [hour(each).id for each in numbers]


def epoch(number: int, mark: float | None, *hours: int) -> Epoch:
    """Return an edge with a row in each of some hours; ``mark`` is the hour where the watermark is."""
    at = None if mark is None else hour(0).start + mark * HOUR
    return Epoch(number, 1, START, "v", edge=True, accepted=dict.fromkeys(ids(*hours), 1), watermark=at)


def plan(manifest: Manifest, *log: Epoch, provisional: bool = False, **changes: DerivedArrivals) -> BatchPlan:
    """Plan what is dirty of the view."""
    return plan_batch(
        log,
        manifest,
        GRID,
        [VIEW],
        asked=None,
        dirty=True,
        provisional=provisional,
        derived={VIEW: changes.get("derived", DerivedArrivals([]))},
        spanning={VIEW: FOLDED},
    )


def published(*hours: int, cut: int = 0) -> list[Statement]:
    """Return the publications of hours."""
    return [Statement(Act.PUBLISH, VIEW, cut, each, "g", seq=1) for each in ids(*hours)]


def test_an_hour_is_made_of_its_span_up_to_its_end() -> None:
    """None is before the pipeline's start, and hours of it may change all later ones of their span."""
    assert widen_by_reach(GRID, hour(9), FOLDED) == Interval(hour(6).start, hour(9).end)
    assert widen_by_reach(GRID, hour(3), FOLDED) == Interval(START, hour(3).end)
    assert [each.id for each in list_reaching_intervals(GRID, hour(9), FOLDED)] == ids(9, 10, 11)
    both = Interval(hour(5).start, hour(7).end)
    assert [each.id for each in list_reaching_intervals(GRID, both, FOLDED)] == ids(5, 6, 7, 8, 9, 10, 11)
    assert list_filled_intervals(GRID, FOLDED, ids(4, 3, 10)) == {*ids(3, 4, 5, 10, 11)}
    assert list_filled_intervals(GRID, None, ids(4)) == {*ids(4)}
    short = Folded(span=HOUR / 2)
    assert [each.id for each in list_reaching_intervals(GRID, hour(9), short)] == ids(9)
    assert find_spanning_views(GRID, [FOLDED, short, Folded(span=HOUR)]) == {VIEW: FOLDED}


def test_a_span_at_the_end_of_the_calendar_ends_there() -> None:
    """Nothing is behind it."""
    last = Interval(LONGEST - HOUR, LONGEST)
    assert find_span_end(last, Folded(span=timedelta(days=4_000))) == LONGEST


def test_a_topic_that_ends_is_closed_with_its_span() -> None:
    """The last timers fire, and the state is told that it ends."""
    joined = Folded(span=timedelta(0), after=2 * HOUR)
    assert find_closing_mark(hour(9).end, [FOLDED, joined]) == hour(12).start
    assert find_closing_mark(hour(11).end, [FOLDED, joined]) == hour(14).start
    assert find_closing_mark(hour(11).end, [FOLDED]) == hour(12).start
    assert find_closing_mark(hour(9).end, []) == hour(10).start


def test_hours_without_rows_are_built_once_they_have_closed() -> None:
    """A timer may have fired in them; an open one is not even named."""
    log = [epoch(0, 9.5, 6, 10)]
    found = plan(fold_statements([], 0), *log)
    assert [each.interval.id for each in found.builds] == ids(6, 7, 8)
    assert [each.interval.id for each in found.left_out] == ids(10)
    assert {each.causes[0].since for each in found.builds} == {0}
    open_ = plan(fold_statements([], 0), *log, provisional=True)
    assert [each.interval.id for each in open_.builds] == ids(6, 7, 8, 9, 10)
    built = fold_statements(published(6, 7, 8), 1)
    assert plan(built, *log).builds == ()
    changed = DerivedArrivals([(hour(8).id, 1, 1, 2)])
    late = plan(built, *log, epoch(1, 9.5, 6), derived=changed)
    assert [each.interval.id for each in late.builds] == ids(8)


def test_the_first_arrival_is_that_of_the_reach() -> None:
    """Of an hour without rows it is the first of its span's earlier ones."""
    arrivals = Arrivals([epoch(3, None, 7), epoch(5, None, 6)], until=9)
    assert [find_first_arrival(arrivals, GRID, hour(each), FOLDED) for each in (5, 6, 7, 11, 12)] == [
        -1,
        5,
        3,
        3,
        -1,
    ]
    assert find_first_arrival(arrivals, GRID, hour(8), None) == -1


def test_a_birth_knows_the_hour_of_the_watermark() -> None:
    """Timers have fired up to there, if the span of the last row reaches so far; what comes later is in slices."""

    def later(*log: Epoch, last: int | None = None, below: int = 9) -> list[str]:
        found = list_later_intervals(log, hour(last).id if last else "", GRID, {VIEW: FOLDED}, below=below)
        return [*found.values()]

    assert later(epoch(0, 9.5, 6), last=6) == ids(9)
    assert later(epoch(0, 6.1, 8), last=8) == ids(8)
    assert later(epoch(0, 20, 8), last=8) == ids(11)
    assert later(epoch(0, 9, 6), epoch(4, 10, 7), last=6, below=4) == ids(9)
    assert later(epoch(0, None, 6), last=6) == []
    assert later(epoch(0, 9.5), last=None) == []
    nothing = GRID.of(START - HOUR).id
    assert list_later_intervals([epoch(0, 9.5)], nothing, GRID, {VIEW: FOLDED}, below=9) == {}
    made = plan_births(
        Manifest(),
        {VIEW: "", "other/1": ""},
        held=0,
        now=NOW,
        filled=hour(6).id,
        later={VIEW: hour(9).id},
    )
    born = fold_statements([each for at, each in enumerate(made)], 0)
    assert born.filled == {VIEW: hour(9).id, "other/1": hour(6).id}
    building = plan(born, epoch(0, 9.5, 6))
    assert [each.interval.id for each in building.builds] == ids(6, 7, 8)


def test_what_validating_again_has_brought_raises_later_floors() -> None:
    """Its rows may have timers fire in them."""
    born = fold_statements([Statement(Act.BIRTH, VIEW, 5, hour(3).id, definition="{}", seq=0)], 0)
    verdicts = {2: Verdict(2, "a", {hour(9).id: 1})}
    log = [epoch(3, 10.5), epoch(7, 20)]
    marks = find_birth_marks(log, born.births, {VIEW: FOLDED})
    assert marks == {VIEW: hour(10).start + HOUR / 2}
    raised = plan_raised_floors(born, [VIEW], verdicts, GRID, {VIEW: FOLDED}, marks, now=NOW)
    assert [(each.interval, each.epoch) for each in raised] == [(each, 4) for each in ids(9, 10)]
    assert find_birth_marks([epoch(7, 20)], born.births, {VIEW: FOLDED}) == {}
    alone = plan_raised_floors(born, [VIEW], verdicts, GRID, now=NOW)
    assert [each.interval for each in alone] == ids(9)


def test_an_hour_may_show_rows_up_to_the_watermark() -> None:
    """Of a fold; what is ahead of it has shown nothing, and a decision about rows need not wait for it."""
    arrivals = Arrivals([epoch(0, None, 7)], until=9)
    mark = hour(9).start
    shown = [may_show_rows(arrivals, GRID, hour(each), FOLDED, mark) for each in (6, 7, 8, 9, 10)]
    assert shown == [False, True, True, True, False]
    assert [may_show_rows(arrivals, GRID, hour(each), None, mark) for each in (7, 8)] == [True, False]
    assert not may_show_rows(arrivals, GRID, hour(8), FOLDED, None)


def test_a_log_is_parted_where_an_earlier_hour_got_rows_above_a_cut() -> None:
    """An hour is made of rows of its span, at its own cut: no sum may go over that."""
    log = [epoch(0, 9, 6, 8), epoch(1, 9, 6), epoch(2, 9, 7)]
    manifest = fold_statements([*published(8, cut=0), *published(6, 7, cut=2)], 1)
    whole = condense_epochs(log)
    joined = Folded(span=timedelta(0), before=2 * HOUR)
    assert cuts_within(whole, manifest, [VIEW], GRID, [joined]) == {0}
    assert cuts_within(whole, manifest, [VIEW], GRID, [replace(joined, before=HOUR)]) == set()
    assert cuts_within(whole, manifest, [VIEW], GRID) == set()
    assert cuts_within(whole, manifest, [VIEW], GRID, [FOLDED]) == {0}
    parted = condense_epochs(log, {0})
    assert cuts_within(parted, manifest, [VIEW], GRID, [FOLDED]) == set()
    assert Arrivals(parted, until=2).rows(hour(6).id, until=0) == 1


def test_a_view_may_show_rows_up_to_the_hour_of_the_watermark() -> None:
    """Pages list these; what a row is in has shown it."""
    shown = partial(list_shown_intervals, GRID, FOLDED, ids(6, 10))
    assert shown(hour(8).start) == {*ids(6, 7, 8, 10)}
    assert shown(None) == {*ids(6, 10)}
    assert list_shown_intervals(GRID, None, ids(6), hour(8).start) == {*ids(6)}


def test_hours_are_overdue_where_a_timer_may_have_fired() -> None:
    """And nothing is published; those that the watermark has not passed are none."""
    manifest = fold_statements([Statement(Act.FLIP, VIEW, 0, seq=0), *published(6, 7)], 1)
    served = replace(manifest, serving={"left": VIEW})

    def overdue(spanning: dict[str, Folded], ahead: timedelta = 0 * HOUR) -> list[str]:
        found = list_overdue_intervals(
            [epoch(0, 10, 6)], served, GRID, within=HOUR, now=NOW, spanning=spanning, ahead=ahead
        )
        return [each.id for each in found]

    assert overdue({VIEW: FOLDED}) == ids(8, 9)
    assert overdue({VIEW: FOLDED}, HOUR) == ids(8)
    assert overdue({}) == []


def test_an_estimate_is_of_the_files_of_the_span() -> None:
    """What a build of an hour reads began before it."""
    files = [MasterFile(100, hour(6).start, hour(6).end - HOUR / 60, 0)]
    found = plan(fold_statements([], 0), epoch(0, 9.5, 6))
    assert add_cost_estimates(found, files, [], GRID, [FOLDED]).builds[-1].bytes == 100
    assert add_cost_estimates(found, files, []).builds[-1].bytes == 0


def test_versions_compare_where_no_row_of_the_span_came_between_their_cuts() -> None:
    """A late row of an earlier hour changes what is emitted in a later one."""
    log = [epoch(0, 12, 6, 8), epoch(1, 12, 7)]
    statements = [
        Statement(Act.PUBLISH, name, cut, each, "g", certified=True, seq=1)
        for name, cut in ((VIEW, 0), ("left/new", 1))
        for each in ids(6, 8, 9)
    ]
    arrivals, manifest = Arrivals(log, until=1), fold_statements(statements, 1)
    both = (FOLDED, Folded("left/new"))
    found = find_common_intervals(manifest, VIEW, "left/new", arrivals, GRID, views=both, mark=hour(12).start)
    assert found.intervals == tuple(ids(6))
    assert found.others["rows came between the cuts of the two versions"] == ids(8, 9)
    assert found.others["not built of the new version"] == ids(7, 10, 11)
    early = find_common_intervals(manifest, VIEW, "left/new", arrivals, GRID, views=both, mark=hour(10).start)
    assert early.others["not built of the new version"] == ids(7, 10)
