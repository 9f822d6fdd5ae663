"""What a plan is whatever the log holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Manifest, Statement, fold_statements
from seamline.model.time.intervals import Grid
from seamline.plan.batch.batch_plan import plan_batch
from seamline.plan.batch.estimates import Attempt, MasterFile, Pace, add_cost_estimates

START = datetime(2013, 1, 1, tzinfo=UTC)
GRID = Grid(timedelta(hours=1), START)
HOURS = [GRID.of(START + timedelta(hours=number)) for number in range(6)]
VIEWS = ["a/1", "b/1"]

accepted = st.dictionaries(st.sampled_from([each.id for each in HOURS]), st.integers(1, 9), max_size=3)
ledgers = st.lists(accepted, min_size=1, max_size=12).map(
    lambda found: [
        Epoch(number, 1, START, "v", edge=True, accepted=rows, watermark=HOURS[4].end)
        for number, rows in enumerate(found)
    ]
)
manifests = st.dictionaries(
    st.tuples(st.sampled_from(VIEWS), st.sampled_from([each.id for each in HOURS])), st.integers(0, 11)
).map(
    lambda cuts: fold_statements(
        [Statement(Act.PUBLISH, view, cut, id, "g", seq=1) for (view, id), cut in cuts.items()], 1
    )
)


@given(ledger=ledgers, manifest=manifests, most=st.integers(0, 6))
def test_a_bound_gives_every_debt_its_turn_and_forgets_none(
    ledger: list[Epoch], manifest: Manifest, most: int
) -> None:
    """What a run leaves is named; a third of what it takes are the oldest debts, so that none waits for ever."""
    whole = plan_batch(ledger, manifest, GRID, VIEWS, asked=None, dirty=True)
    bound = plan_batch(ledger, manifest, GRID, VIEWS, asked=None, dirty=True, most=most)
    assert len(bound.builds) == min(most, len(whole.builds))
    taken = {each.interval for each in bound.builds}
    later = [each for each in whole.builds if each.interval not in taken]
    named = {each.interval for each in bound.left_out} - {each.interval for each in whole.left_out}
    assert {each.interval for each in later} == named
    oldest = sorted(whole.builds, key=lambda each: (each.debt, each.interval))
    assert {each.interval for each in oldest[: -(-most // 3)]} <= taken


@given(ledger=ledgers, manifest=manifests)
def test_what_is_dirty_is_what_a_cut_does_not_cover(ledger: list[Epoch], manifest: Manifest) -> None:
    """The dull way: an hour is dirty if some view of it lacks rows."""
    found = plan_batch(ledger, manifest, GRID, VIEWS, asked=None, dirty=True)
    dull = set()
    for hour in HOURS[:5]:
        for view in VIEWS:
            cut = manifest.cut(view, hour.id)
            late = sum(each.accepted.get(hour.id, 0) for each in ledger if each.number > cut)
            read = any(hour.id in each.accepted for each in ledger)
            if late or (read and (view, hour.id) not in manifest.published):
                dull.add(hour)
    assert {each.interval for each in found.builds} == dull


files = st.builds(
    lambda size, first, length, epoch: MasterFile(
        size, START + timedelta(minutes=first), START + timedelta(minutes=first + length), epoch
    ),
    st.integers(1, 99),
    st.integers(-90, 400),
    st.integers(0, 200),
    st.integers(0, 14),
)


@given(ledger=ledgers, found=st.lists(files, max_size=8))
def test_bytes_are_counted_like_a_loop_over_files_and_intervals(
    ledger: list[Epoch], found: list[MasterFile]
) -> None:
    """The fast count must be the dull count."""
    plan = add_cost_estimates(
        plan_batch(ledger, fold_statements([], 0), GRID, VIEWS, asked=None, dirty=True), found, []
    )
    met = [
        [
            file
            for file in found
            if file.epoch <= plan.cut and file.first < each.interval.end and file.last >= each.interval.start
        ]
        for each in plan.builds
    ]
    assert [each.bytes for each in plan.builds] == [sum(file.size for file in some) for some in met]
    assert plan.bytes == sum(file.size for file in found if any(file in some for some in met))


@given(
    fixed=st.integers(0, 60),
    per_row=st.integers(0, 100),
    rows=st.lists(st.integers(1, 100_000), min_size=2, max_size=40, unique=True),
    asked=st.integers(0, 1_000_000),
)
def test_past_builds_on_a_line_give_the_line(fixed: int, per_row: int, rows: list[int], asked: int) -> None:
    """The model is right where it holds."""
    made = Pace.of([Attempt(each, fixed + per_row / 1000 * each) for each in rows])
    assert made is not None
    assert abs(made.seconds(asked) - (fixed + per_row / 1000 * asked)) < 1e-3 * (1 + asked)
