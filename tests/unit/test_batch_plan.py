"""Plans of batch runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seamline.model.epoch import Epoch
from seamline.model.errors import BadRange
from seamline.model.intervals import Grid, Interval
from seamline.model.manifest import Act, Manifest, Statement, fold
from seamline.plan.batch import Arrivals, BatchPlan, plan_batch

START = datetime(2013, 1, 1, tzinfo=UTC)
GRID = Grid(timedelta(days=1), START)
VIEW = "sales/abc"


def day(number: int) -> Interval:
    return GRID.of(START + timedelta(days=number - 1))


def epoch(number: int, rows: dict[int, int], *, edge: bool = False, mark: int | None = None) -> Epoch:
    """Accepted rows by day; ``mark`` is the day at whose start the watermark stands."""
    return Epoch(
        number,
        1,
        START,
        "v",
        edge=edge,
        accepted={day(at).id: count for at, count in rows.items()},
        watermark=day(mark).start if mark else None,
    )


def published(**cuts: int) -> Manifest:
    return fold(
        [
            Statement(Act.PUBLISH, VIEW, epoch=cut, interval=day(int(at[1:])).id, generation="g", seq=1)
            for at, cut in cuts.items()
        ],
        1,
    )


def plan(
    ledger: list[Epoch], manifest: Manifest, asked: Interval | None = None, dirty: bool = True
) -> BatchPlan:
    return plan_batch(ledger, manifest, GRID, [VIEW], asked=asked, dirty=dirty)


def built(found: BatchPlan) -> list[tuple[str, str]]:
    return [(each.interval.id[8:10], each.reason) for each in found.builds]


LEDGER = [
    epoch(3, {1: 10}, mark=1),
    epoch(4, {2: 10, 1: 1}, edge=True, mark=2),
    epoch(7, {3: 5, 2: 2}, edge=True, mark=3),
    epoch(8, {1: 99}, mark=5),
]


def test_the_cut_is_the_last_edge_and_later_rows_wait_for_the_next():
    """Epoch 8 is no edge: its 99 rows must not be promised."""
    found = plan(LEDGER, published())
    assert found.cut == 7
    assert [(each.rows, each.late) for each in found.builds] == [(11, 11), (12, 12)]


def test_an_open_interval_is_left_out_and_named():
    """A day whose watermark has not passed its end cannot be certified."""
    found = plan(LEDGER, published())
    assert [each.interval for each in found.left_out] == [day(3)]
    assert "2013-01-03T00:00:00Z" in found.left_out[0].reason


def test_dirty_intervals_are_those_with_late_rows_or_never_built():
    """A late event must bring its old interval back into the batch layer."""
    assert built(plan(LEDGER, published(d1=3))) == [("01", "1 late row"), ("02", "never built")]
    assert built(plan(LEDGER, published(d1=4, d2=4))) == [("02", "2 late rows")]
    assert built(plan(LEDGER, published(d1=7, d2=7))) == []


def test_an_asked_span_is_built_whole_and_nothing_else():
    """A backfill takes exactly its own intervals, clean, dirty or without any row."""
    found = plan(LEDGER, published(d1=7), Interval(START, day(2).start), dirty=False)
    assert built(found) == [("01", "asked for")]
    quiet = [epoch(1, {2: 4}, edge=True, mark=4)]
    assert [each.rows for each in plan(quiet, published(), day(1), dirty=False).builds] == [0]


def test_a_scheduled_run_takes_its_interval_and_the_dirty_ones_once():
    """An interval that is both asked for and dirty must not be built twice."""
    assert built(plan(LEDGER, published(), day(1))) == [("01", "asked for"), ("02", "never built")]


def test_a_span_before_the_start_is_refused():
    """Events before the start are in quarantine: such an interval can hold nothing."""
    with pytest.raises(BadRange, match="before the pipeline's start"):
        plan(LEDGER, published(), day(0))


def test_without_an_edge_nothing_is_built():
    """Cuts fall on edges only."""
    found = plan([epoch(1, {1: 4}, mark=9)], published(), day(1))
    assert (found.cut, found.builds, found.left_out[0].reason) == (-1, (), "no edge yet")


def test_the_index_counts_like_a_loop_over_the_ledger():
    """The fast count must be the dull count at every epoch."""
    arrivals = Arrivals(LEDGER, until=7)
    for until in range(-1, 10):
        for number in (1, 2, 3, 4):
            dull = sum(e.accepted.get(day(number).id, 0) for e in LEDGER if e.number <= min(until, 7))
            assert arrivals.rows(day(number).id, until=until) == dull
