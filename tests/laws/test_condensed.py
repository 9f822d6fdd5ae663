"""Whatever is asked of a log is asked of it condensed with the same answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from seamline.model.compile.evolution import require_order
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.errors import ProtocolError, StraddlesCut
from seamline.model.protocol.condensed import (
    Summed,
    condense_epochs,
    count_of,
    find_last_refusal,
    first_of,
    from_text,
    runs_of,
    to_text,
)
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import (
    count_hole_offsets,
    is_ledger_contiguous,
    list_closed_lanes,
    list_end_offsets,
    list_missing_ranges,
    list_open_holes,
)
from seamline.model.protocol.manifest import Act, Statement, fold_statements
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Grid
from seamline.plan.batch.batch_plan import last_edge, plan_batch
from seamline.plan.batch.crossed_cuts import cuts_within
from seamline.plan.batch.interval_arrivals import Arrivals
from seamline.plan.batch.reprocessing_plan import list_outdated_epochs, records_of
from seamline.quality.log_until_cut import lookup_versions_by_interval
from seamline.spark.stream.progress import Progress

START = datetime(2013, 1, 1, tzinfo=UTC)
GRID = Grid(timedelta(hours=1), START)
HOURS = [GRID.of(START + timedelta(hours=number)) for number in range(4)]
LANES = [Lane("t", 0), Lane("t", 1)]
VERSIONS = st.sampled_from(["v", "v", "v", "v+x INT", "w"])
LOOKUPS = st.sampled_from([{}, {}, {"m": "1"}, {"m": "2"}])
COUNTS = st.dictionaries(st.sampled_from([each.id for each in HOURS]), st.integers(1, 9), max_size=2)
REASONS = st.dictionaries(st.sampled_from(["null", "rule"]), st.integers(1, 9), max_size=2)


@st.composite
def logs(draw: st.DrawFn) -> list[Epoch]:
    """Epochs of all kinds, with dead numbers, gaps that should not be, and whatever else may differ."""
    ends = dict.fromkeys(LANES, 0)
    found: list[Epoch] = []
    number, mark = draw(st.integers(0, 2)), START
    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from([EpochKind.READ] * 6 + [EpochKind.HOLE, EpochKind.AMEND]))
        lane, count = draw(st.sampled_from(LANES)), draw(st.integers(0, 3))
        start = ends[lane] + draw(st.sampled_from([0] * 9 + [1]))
        if kind is EpochKind.AMEND:
            start = draw(st.integers(0, ends[lane]))
        else:
            ends[lane] = start + count
        mark += timedelta(minutes=draw(st.integers(0, 40)))
        rows = draw(COUNTS) if kind is EpochKind.READ else {}
        found.append(
            Epoch(
                number,
                1,
                START + timedelta(seconds=number),
                draw(VERSIONS),
                kind=kind,
                edge=draw(st.booleans()),
                ranges=(OffsetRange(lane, start, start + count),) if count or kind is EpochKind.HOLE else (),
                accepted=rows,
                refused=draw(REASONS),
                max_event_time={lane: START + timedelta(minutes=draw(st.integers(0, 240)))},
                watermark=mark,
                frontiers={"a/1": number},
                lookups=draw(LOOKUPS),
                late=dict.fromkeys(rows, 1),
                before=found[-1].number if found else -1,
            )
        )
        number += draw(st.sampled_from([1, 1, 1, 2, 5000]))
    return found


@st.composite
def pieces(draw: st.DrawFn) -> tuple[list[Epoch], list[Epoch], list[int]]:
    """A log, the same condensed piece by piece and then together, as files are, and where it is parted."""
    log = draw(logs())
    cuts = draw(st.lists(st.sampled_from([each.number for each in log]), max_size=3)) if log else []
    bounds = sorted({0, len(log), *draw(st.lists(st.integers(0, len(log)), max_size=3))})
    parts = [condense_epochs(log[low:high], cuts) for low, high in pairwise(bounds)]
    written = [from_text(to_text(part)) for part in parts]
    assert written == parts
    return log, condense_epochs([row for part in written for row in part], cuts), cuts


def totals(log: list[Epoch], name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in log:
        for key, count in getattr(each, name).items():
            found[key] = found.get(key, 0) + count
    return found


def in_order(log: list[Epoch], version: str) -> bool:
    try:
        require_order(version, log)
    except ProtocolError:
        return False
    return True


@given(pieces())
def test_every_fold_over_a_log_is_the_same_over_sums(
    drawn: tuple[list[Epoch], list[Epoch], list[int]],
) -> None:
    """What a start, a plan, a certificate and a status ask: else they are wrong after the first upkeep."""
    log, short, _ = drawn
    assert count_of(short) == len(log)
    numbers = [number for row in short for first, last in runs_of(row) for number in range(first, last + 1)]
    assert numbers == [each.number for each in log]
    assert [first_of(row) for row in short] == sorted(first_of(row) for row in short)
    for fold_ in (
        list_end_offsets,
        list_closed_lanes,
        is_ledger_contiguous,
        list_missing_ranges,
        count_hole_offsets,
        lookup_versions_by_interval,
    ):
        assert fold_(short) == fold_(log)
    assert list_open_holes(short) == list_open_holes(log)
    for name in ("accepted", "refused", "late"):
        assert totals(short, name) == totals(log, name)
    for version in ("v", "v+y INT", "w"):
        assert in_force(short, version) == in_force(log, version)
        assert in_order(short, version) == in_order(log, version)
        assert sum(map(records_of, list_outdated_epochs(short, version, ()))) == sum(
            map(records_of, list_outdated_epochs(log, version, ()))
        )
    one, other = last_edge(short), last_edge(log)
    assert (one and (one.number, one.watermark)) == (other and (other.number, other.watermark))
    for reason in ("null", "rule"):
        last = [find_last_refusal(row, reason) for row in short if reason in row.refused][-1:]
        assert last == [find_last_refusal(row, reason) for row in log if reason in row.refused][-1:]
    if log:
        mine, theirs = (Progress.resume(some, {}, START) for some in (short, log))
        assert (mine.largest, mine.last_edge) == (theirs.largest, theirs.last_edge)
        assert replace(short[-1], took={}).frontiers == log[-1].frontiers


@given(pieces())
def test_rows_up_to_a_cut_are_told_or_refused(drawn: tuple[list[Epoch], list[Epoch], list[int]]) -> None:
    """A sum over a cut would count rows twice, or not at all: at the cuts it was parted at everything is told."""
    log, short, cuts = drawn
    until = log[-1].number if log else -1
    mine, theirs = Arrivals(short, until=until), Arrivals(log, until=until)
    assert set(mine.intervals) == set(theirs.intervals)
    for id in theirs.intervals:
        assert mine.total(id) == theirs.total(id)
        for number in {each.number for each in log} | {-1}:
            try:
                found = mine.rows(id, until=number), mine.since(id, after=number)
            except StraddlesCut:
                assert number not in cuts
            else:
                assert found == (theirs.rows(id, until=number), theirs.since(id, after=number))


@given(logs(), st.dictionaries(st.sampled_from([each.id for each in HOURS]), st.integers(0, 20)))
def test_a_plan_is_the_same(log: list[Epoch], cuts: dict[str, int]) -> None:
    """It asks for sums parted at the cuts of what is published and dirty, and for no others."""
    published = [Statement(Act.PUBLISH, "a/1", cut, id, "g", seq=1) for id, cut in cuts.items()]
    manifest = fold_statements([Statement(Act.BIRTH, "a/1", 0, seq=0), *published], 1)
    parted = condense_epochs(log, cuts_within(condense_epochs(log), manifest, ["a/1"], GRID))
    made = [plan_batch(some, manifest, GRID, ["a/1"], asked=HOURS[1], dirty=True) for some in (log, parted)]
    assert made[0] == made[1]


@given(logs())
def test_a_log_of_one_kind_becomes_two_rows(log: list[Epoch]) -> None:
    """What is condensed does not grow with the log: up to the newest edge, and from there."""
    ends = dict.fromkeys(LANES, 0)
    plain = []
    for each in log:
        ranges = tuple(
            OffsetRange(part.lane, ends[part.lane], ends[part.lane] + len(part)) for part in each.ranges
        )
        ends |= {part.lane: part.end for part in ranges}
        plain.append(replace(each, kind=EpochKind.READ, record_version="v", lookups={}, ranges=ranges))
    short = condense_epochs(plain)
    assert len(short) <= 2
    assert all(isinstance(row, Summed) or len(plain) <= 2 or row in plain for row in short)
