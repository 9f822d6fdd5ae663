"""How a build of joined rows is parted by time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from seamline.model.time.intervals import Interval
from seamline.plan.batch.join_slices import ROWS, Slice, TimedFile, plan_slices
from seamline.plan.batch.work_shares import LEAST

HOUR = timedelta(hours=1)
START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Reach:
    """How far rows may be."""

    before: timedelta
    after: timedelta


NEAR = Reach(timedelta(0), HOUR)


def hours(first: float, last: float) -> Interval:
    """Return a span of hours."""
    return Interval(START + first * HOUR, START + last * HOUR)


def file(first: float, last: float, *, rows: int = 10, size: int = 100) -> TimedFile:
    """Return a file with rows of some hours."""
    span = hours(first, last)
    return TimedFile(f"{first}-{last}", size, rows, span.start, span.end)


def planned(files: list[TimedFile], *, slots: int = 2, reach: Reach = NEAR) -> list[Slice]:
    """Plan the second day of three, with what its rows reach."""
    found = plan_slices(files, [hours(24, 48)], [hours(0, 72)], reach, slots)
    assert found is not None
    return found


def test_what_is_small_is_one_slice() -> None:
    """A task takes time by itself; days in reach are counted beside it."""
    built, *rest = planned([file(10, 20), file(30, 31), file(47, 50), file(60, 61)])
    assert (built.span, built.built) == (hours(24, 48), True)
    assert [each.path for each in built.files] == ["30-31", "47-50"]
    assert [(each.span, each.built) for each in rest] == [(hours(0, 24), False), (hours(48, 72), False)]
    assert [each.path for each in rest[1].files] == ["47-50", "60-61"]


def test_slices_are_the_whole_span_and_read_what_is_near() -> None:
    """Each left row is in one of them."""
    files = [file(at, at + 1, rows=ROWS // 4, size=LEAST) for at in range(72)]
    found = [each for each in planned(files, slots=4) if each.built]
    assert (found[0].span.start, found[-1].span.end) == (START + 24 * HOUR, START + 48 * HOUR)
    assert all(one.span.end == other.span.start for one, other in pairwise(found))
    assert len(found) == 8, "seven would keep four cores busy for as long"
    assert all(len(each.files) <= 5 for each in found)


def test_no_slice_is_shorter_than_its_reach() -> None:
    """Most of what it read would be read by others too."""
    files = [file(at, at + 1, rows=ROWS, size=LEAST) for at in range(72)]
    found = [each for each in planned(files, slots=1, reach=Reach(2 * HOUR, 6 * HOUR)) if each.built]
    assert len(found) == 3


def test_files_of_all_times_go_by_spark_itself() -> None:
    """Each task would read all of them."""
    mixed = [file(0, 72, rows=ROWS, size=LEAST) for _ in range(20)]
    assert plan_slices(mixed, [hours(24, 48)], [hours(0, 72)], NEAR, 8) is None
