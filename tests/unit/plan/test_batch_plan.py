"""Plans of batch runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.shop import Sale, Shop

from seamline.lake.publish import planning
from seamline.lake.publish.planning import master_files
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.model.errors import BadRange
from seamline.model.protocol.claims import Claim
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.manifest import Act, How, Manifest, Statement, fold_statements
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import Grid, Interval
from seamline.plan.batch.batch_plan import NAMED, BatchPlan, LeftOut, needs_approval, plan_batch
from seamline.plan.batch.build_causes import Cause, Kind
from seamline.plan.batch.estimates import Attempt, MasterFile, Pace, add_cost_estimates
from seamline.plan.batch.interval_arrivals import Arrivals, DerivedArrivals
from seamline.plan.stream.overdue_intervals import list_overdue_intervals
from seamline.plan.wording.plan_text import format_plan, format_plan_table, serialize_plan

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
    return fold_statements(
        [
            Statement(Act.PUBLISH, VIEW, epoch=cut, interval=day(int(at[1:])).id, generation="g", seq=1)
            for at, cut in cuts.items()
        ],
        1,
    )


def plan(
    ledger: list[Epoch],
    manifest: Manifest,
    asked: Interval | None = None,
    dirty: bool = True,
    most: int | None = None,
) -> BatchPlan:
    return plan_batch(ledger, manifest, GRID, [VIEW], asked=asked, dirty=dirty, most=most)


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


def test_an_interval_whose_floor_is_above_its_cut_is_built_without_a_late_row():
    """It has no answer: nothing else would bring it back, and nobody would see that it waits."""
    at, floor = day(1).id, Statement(Act.FLOOR, VIEW, epoch=7, interval=day(1).id, seq=2)
    stated = Statement(Act.PUBLISH, VIEW, epoch=4, interval=at, generation="g", seq=1)
    other = Statement(Act.PUBLISH, VIEW, epoch=7, interval=day(2).id, generation="g", seq=1)
    found = plan(LEDGER, fold_statements([stated, other, floor], 2))
    assert built(found) == [("01", "to be built above its floor")]
    told = "\n".join(format_plan(found, why=True))
    assert "what is published does not reach the interval's floor; cut 4" in told


def test_every_reason_of_every_view_is_told_with_the_epoch_that_gave_it():
    """Day 1 was built by both views, of another version of `totals`, to cuts 3 and 4; a look-up was restated since."""
    decision = Restatement("cities", "v2", day(1), 7, "me", "wrong", START)
    statements = [
        Statement(Act.BIRTH, "totals/new", epoch=6, seq=1),
        Statement(Act.PUBLISH, VIEW, epoch=3, interval=day(1).id, generation="g", seq=2),
        Statement(Act.PUBLISH, "totals/old", epoch=4, interval=day(1).id, generation="g", seq=2),
    ]
    views = [VIEW, "totals/new"]
    found = plan_batch(
        LEDGER,
        fold_statements(statements, 2),
        GRID,
        views,
        asked=day(1),
        dirty=True,
        restated=Restated(GRID, (decision,)),
        most=1,
    )
    first, second = found.builds
    assert first.causes == (
        Cause(Kind.ASKED),
        Cause(Kind.RESTATED, VIEW, 3, since=7, names=("cities",)),
        Cause(Kind.LATE, VIEW, 3, since=4, rows=1),
        Cause(Kind.CHANGED, "totals/new", since=6, names=("totals",)),
    )
    assert first.reason == "asked for, definition changed: totals, restated: cities, 1 late row"
    assert [(each.view, each.kind, each.since) for each in second.causes] == [
        (VIEW, Kind.NEVER, 4),
        ("totals/new", Kind.NEVER, 4),
    ]
    assert "\n".join(format_plan(found, why=True)).splitlines() == [
        "cut 7, watermark 2013-01-03T00:00:00Z",
        f"  build 2013-01-01T00:00:00Z  11 rows  0 B  {first.reason}",
        "    asked for",
        "    sales/abc: restated: cities, since epoch 7; cut 3",
        "    sales/abc: 1 late row since epoch 4; cut 3",
        "    totals/new: definition changed since epoch 6; this version has nothing published",
        "  build 2013-01-02T00:00:00Z  12 rows  0 B  never built",
        "    sales/abc: never built, 12 rows since epoch 4; nothing published",
        "    totals/new: never built, 12 rows since epoch 4; nothing published",
        "  leave 2013-01-03T00:00:00Z  open: the watermark is 2013-01-03T00:00:00Z at epoch 7",
        "  2 intervals, 23 rows, at most 0 B to read, no past run shows how long",
    ]


def test_the_oldest_debt_is_built_first_and_the_rest_is_named():
    """One late row a minute in the newest day must not keep an older correction waiting for ever."""
    ledger = [
        epoch(1, {1: 1, 2: 1, 3: 1, 4: 1}, mark=1),
        epoch(2, {3: 1}),
        epoch(3, {1: 1}),
        epoch(4, {2: 1, 3: 1}, edge=True, mark=9),
    ]
    found = plan(ledger, published(d1=1, d2=1, d3=1, d4=4), most=2)
    assert built(found) == [("01", "1 late row"), ("03", "2 late rows")]
    assert [(each.interval, each.reason) for each in found.left_out] == [(day(2), "next run: 1 late row")]


def test_junk_is_in_nobodys_way():
    """One producer with random event times has made thousands of intervals; late rows came after, and a day closed."""
    ledger = [
        epoch(1, dict.fromkeys(range(5, 5_000), 1), mark=1),
        epoch(2, {3: 20}),
        epoch(3, {5_001: 9}, edge=True, mark=6_000),
    ]
    found = plan(ledger, published(d3=1), most=3)
    assert [each.interval for each in found.builds] == [day(3), day(5), day(5_001)]
    assert (len(found.left_out), found.unnamed) == (NAMED, 4_994 - NAMED)
    assert f"  ... and {4_994 - NAMED} more" in list(format_plan(found))
    assert serialize_plan(found)["unnamed"] == 4_994 - NAMED


def test_the_bound_is_not_for_what_was_asked_for():
    """A backfill takes its interval, and a scheduled run its own besides the dirty ones."""
    span = Interval(START, day(2).end)
    assert [build.interval for build in plan(LEDGER, published(), span, most=1).builds] == [day(1), day(2)]
    assert built(plan(LEDGER, published(), day(1), most=0)) == [("01", "asked for, never built")]


def test_a_dirty_interval_that_another_run_builds_is_left_to_it():
    """What was asked for is planned all the same: its build says who is at it."""
    claim = Claim("r1", "cli:ada", (Interval(START, day(2).start),), START, START)
    found = plan_batch(
        LEDGER, published(), GRID, [VIEW], asked=None, dirty=True, claims=[claim, replace(claim, spans=())]
    )
    assert built(found) == [("02", "never built")]
    assert found.left_out[0] == LeftOut(day(1), "running: run r1 of cli:ada since 2013-01-01T00:00:00Z")
    asked = plan_batch(LEDGER, published(), GRID, [VIEW], asked=day(1), dirty=False, claims=[claim])
    assert [each.interval for each in asked.builds] == [day(1)]


def test_only_what_was_asked_for_needs_approval():
    """A schedule that waits for somebody's word would hold up every run behind it."""
    both = plan(LEDGER, published(), Interval(START, day(2).end))
    assert [needs_approval(both, above) for above in (0, 1, 2)] == [False, True, False]
    assert not needs_approval(plan(LEDGER, published()), 1)
    assert not needs_approval(plan(LEDGER, published(), day(1)), 1)


def test_runs_of_the_bound_get_everything_done():
    """Each run leaves less, whatever the order of arrivals; nothing is built twice."""
    ledger = [epoch(each, {each % 7 + 1: 1, each % 5 + 1: 1}, edge=True, mark=20) for each in range(30)]
    done: dict[str, int] = {}
    for _ in range(4):
        found = plan(ledger, published(**done), most=2)
        assert len(found.builds) == min(2, 7 - len(done))
        done |= {f"d{each.interval.start.day}": found.cut for each in found.builds}
    assert plan(ledger, published(**done), most=2).builds == ()


def test_an_interval_is_overdue_by_the_clock_until_every_served_view_has_it():
    """Day 1 has both views, day 2 one and one that is provisional, day 3 none; day 4 has no rows.

    The new version is not served yet.
    """
    served = [Statement(Act.FLIP, view, seq=1) for view in (VIEW, "totals/old")]
    built = [
        Statement(Act.PUBLISH, view, epoch=7, interval=day(at).id, generation="g", seq=2)
        for view, at in ((VIEW, 1), ("totals/old", 1), (VIEW, 2))
    ]
    early = Statement(
        Act.PUBLISH, "totals/old", interval=day(2).id, generation="g", seq=2, how=How.PROVISIONAL
    )
    manifest = fold_statements(
        [Statement(Act.BIRTH, "totals/new", epoch=9, seq=1), *served, *built, early], 2
    )

    def at(number: int, ahead: int = 0) -> list[Interval]:
        now, within = day(number).start + timedelta(hours=6), timedelta(hours=6)
        return list_overdue_intervals(
            LEDGER, manifest, GRID, within=within, now=now, ahead=timedelta(days=ahead)
        )

    assert at(3) == []
    assert at(4) == [day(2)]
    assert at(9) == [day(2), day(3)]
    assert at(9, ahead=6) == [], "rows that count in it may have come until just now"
    assert at(10, ahead=6) == [day(2)]


FILES = [
    MasterFile(100, day(1).start, day(1).start, epoch=3),
    MasterFile(10, day(1).start, day(2).start, epoch=4),
    MasterFile(1, day(2).end, day(3).end, epoch=4),
    MasterFile(1000, day(1).start, day(1).start, epoch=8),
]


def test_bytes_are_those_of_the_files_that_may_hold_the_rows():
    """A file of two days is named in both and read once; the last was written after the cut."""
    found = add_cost_estimates(plan(LEDGER, published()), FILES, [])
    assert [each.bytes for each in found.builds] == [110, 10]
    assert (found.bytes, found.seconds) == (110, None)


def test_a_build_is_small_where_the_files_that_it_meets_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the log as its cut has it; a file belongs to every span that it has a row of."""
    shop, hour = Shop(tmp_path), timedelta(hours=1)
    shop.epoch([Sale(1)])
    shop.epoch([Sale(1)])
    file, other = master_files(shop.layout)
    touched, after = (
        Interval(file.first, file.first + hour),
        Interval(file.first + hour, file.first + 2 * hour),
    )
    for most, cut, spans, expected in (
        (file.size + other.size, 1, [after, touched], True),
        (file.size + other.size - 1, 1, [after, touched], False),
        (0, 1, [after], True),
        (max(file.size, other.size), 0, [touched], True),
    ):
        monkeypatch.setattr(planning, "SMALL", most)
        assert planning.is_small_build(shop.layout, BuildJob("shop", "r", cut, tuple(spans))) is expected


def test_seconds_are_what_past_builds_took():
    """By hand: 2 s and 1 s per 100 rows; one attempt that had to wait for a disk changes nothing."""
    past = [Attempt(100, 3), Attempt(300, 5), Attempt(500, 7), Attempt(700, 9), Attempt(200, 60)]
    made = Pace.of(past)
    assert made is not None
    assert (made.fixed, made.per_row) == (2, pytest.approx(0.01))
    assert add_cost_estimates(plan(LEDGER, published()), [], past).seconds == pytest.approx(2.23)


def test_past_builds_are_read_once_however_many_views_they_had(tmp_path: Path) -> None:
    """Two views read the same rows in one pass; the seconds of an attempt are in each of its rows."""
    builds = Builds.ensure(Layout(tmp_path, "shop"))
    for generation, days, seconds in (("g2", (1, 2), 9.0), ("g1", (3,), 4.0)):
        builds.append(
            BuildRow(
                run="r",
                view=view,
                interval=day(number).id,
                generation=generation,
                cut=7,
                rows=1,
                state_rows=1,
                rows_read=10 * number,
                duplicates=0,
                not_selected=0,
                expected="",
                seconds=seconds,
                reason="",
                at=START + timedelta(seconds=seconds),
            )
            for number in days
            for view in (VIEW, "totals/new")
        )
    assert builds.attempts() == [Attempt(30, 4.0), Attempt(30, 9.0)]


def test_a_single_past_build_promises_no_faster_one():
    """Nothing tells a start's seconds from a row's: fewer rows may take as long."""
    made = Pace.of([Attempt(100, 30), Attempt(0, 9)])
    assert made is not None
    assert [made.seconds(rows) for rows in (0, 100, 200)] == [30, 30, 60]
    assert Pace.of([Attempt(0, 9)]) is None


def test_an_asked_span_is_built_whole_and_nothing_else():
    """A backfill takes exactly its own intervals, clean, dirty or without any row."""
    found = plan(LEDGER, published(d1=7), Interval(START, day(2).start), dirty=False)
    assert built(found) == [("01", "asked for")]
    quiet = [epoch(1, {2: 4}, edge=True, mark=4)]
    assert [each.rows for each in plan(quiet, published(), day(1), dirty=False).builds] == [0]


def test_a_scheduled_run_takes_its_interval_and_the_dirty_ones_once():
    """An interval that is both asked for and dirty must not be built twice."""
    assert built(plan(LEDGER, published(), day(1))) == [
        ("01", "asked for, never built"),
        ("02", "never built"),
    ]


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


def test_an_open_interval_is_planned_where_it_may_be_provisional_and_again_when_it_has_closed():
    """Without new rows it is let be until then; a provisional number may not stay one for ever."""

    def planned(ledger: list[Epoch], how: How | None = None, cut: int = 0) -> list[tuple[str, str]]:
        said = Statement(
            Act.PUBLISH, VIEW, epoch=cut, interval=day(1).id, generation="g", seq=1, how=how or How.CERTIFIED
        )
        manifest = fold_statements([said] if how else [], 1)
        return built(plan_batch(ledger, manifest, GRID, [VIEW], asked=None, dirty=True, provisional=True))

    open_ = [epoch(0, {1: 3}, edge=True, mark=1)]
    assert planned(open_) == [("01", "never built")]
    assert planned(open_, How.PROVISIONAL) == []
    more = [*open_, epoch(1, {1: 2}, edge=True, mark=1)]
    assert planned(more, How.PROVISIONAL) == [("01", "2 late rows")]
    closed = [*open_, epoch(1, {}, edge=True, mark=2)]
    assert planned(closed, How.PROVISIONAL) == [("01", "closed since it was published")]
    assert planned(closed, How.CERTIFIED) == []
    assert plan(open_, published()).builds == ()


def test_an_interval_of_joined_rows_is_built_for_what_its_reach_has_brought() -> None:
    """Late rows that join nothing make nothing dirty; what they add is named as what it is."""
    manifest = published(d1=3)
    nothing = plan_batch(
        LEDGER, manifest, GRID, [VIEW], asked=None, dirty=True, derived={VIEW: DerivedArrivals([])}
    )
    assert "2013-01-01T00:00:00Z" not in [each.interval.id for each in nothing.builds]
    changes = [("2013-01-01T00:00:00Z", 2, 3, 5), ("2013-01-01T00:00:00Z", 4, 6, 2)]
    found = plan_batch(
        LEDGER, manifest, GRID, [VIEW], asked=None, dirty=True, derived={VIEW: DerivedArrivals(changes)}
    )
    [build] = [each for each in found.builds if each.interval.id == "2013-01-01T00:00:00Z"]
    assert build.causes == (Cause(Kind.JOINED, VIEW, 3, since=4, rows=2),)
    assert build.reason == "derived rows changed"
    told = "\n".join(format_plan(found, why=True))
    assert (
        "2 changes of derived rows since epoch 4, by records of this interval or of one in reach; cut 3"
        in told
    )


def test_an_interval_closes_when_its_reach_has_passed() -> None:
    """Until then rows may come that are joined with its last ones."""
    found = plan_batch(LEDGER, published(), GRID, [VIEW], asked=None, dirty=True, ahead=timedelta(days=1))
    near = plan_batch(LEDGER, published(), GRID, [VIEW], asked=None, dirty=True)
    assert len(found.builds) == len(near.builds) - 1
    assert found.left_out
    for each in found.left_out:
        assert each.reason.endswith("; rows up to 24 h after its end count in it")


def test_intervals_that_are_open_for_one_reason_have_one_line() -> None:
    """A join that reaches a fortnight ahead keeps a fortnight of days open, at any time."""
    found = plan_batch(LEDGER, published(), GRID, [VIEW], asked=None, dirty=True, ahead=timedelta(days=14))
    first, last = found.left_out[0].interval.id, found.left_out[-1].interval.id
    assert found.left_out[1:] and not found.builds
    reason = found.left_out[0].reason
    assert reason.endswith("; rows up to 14 d after its end count in it")
    span = f"{first} to {last} ({len(found.left_out)} intervals)"
    assert list(format_plan(found))[1:] == [f"  leave {span}  {reason}"]
    assert format_plan_table(found).splitlines()[-1] == f"{len(found.left_out)} left out: {span} {reason}"


def test_a_published_interval_that_has_closed_says_so() -> None:
    """It was built before, while it was open."""
    statement = Statement(
        Act.PUBLISH, VIEW, epoch=7, interval="2013-01-01T00:00:00Z", generation="g", how=How.PROVISIONAL
    )
    found = plan_batch(LEDGER, fold_statements([statement], 1), GRID, [VIEW], asked=None, dirty=True)
    assert f"    {VIEW}: closed since it was published; cut 7" in list(format_plan(found, why=True))
