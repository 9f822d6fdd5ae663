"""The record that ends its process is found among many, and nothing is blamed that is not to blame."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from seamline.model.protocol.imported.table_rows import TableRow
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.session.attempt_notes import KEPT, Note
from seamline.spark.tasks.deadly_records import find_deadly_record, halve_ranges
from seamline.spark.tasks.kernel_attempts import make_unread_record

RANGES = st.lists(
    st.builds(
        lambda lane, start, count: OffsetRange(Lane("t", lane), start, start + count),
        st.integers(0, 3),
        st.integers(0, 9),
        st.integers(0, 50),
    ),
    max_size=5,
    unique_by=lambda part: part.lane,
)


def places(ranges: Sequence[OffsetRange]) -> list[tuple[Lane, int]]:
    return [(part.lane, at) for part in ranges for at in range(part.start, part.end)]


def ends(ranges: Sequence[OffsetRange]) -> set[tuple[Lane, int]]:
    """The records by which it is told that not every one is deadly."""
    return {(part.lane, at) for part in ranges if len(part) for at in (part.start, part.end - 1)}


@given(RANGES)
def test_halves_have_every_record_once(ranges: list[OffsetRange]) -> None:
    """Or a record would be judged by nobody."""
    one, other = halve_ranges(ranges)
    assert sorted(places([*one, *other]), key=str) == sorted(places(ranges), key=str)
    assert len(places(one)) == len(places(ranges)) // 2


@given(RANGES, st.data())
def test_the_culprit_is_found_in_few_trials(ranges: list[OffsetRange], data: st.DataObject) -> None:
    """Each of them costs a job of Spark's."""
    every = places(ranges)
    deadly = set(data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=3)) if every else [])
    trials = []

    def dies(some: Sequence[OffsetRange]) -> bool:
        trials.append(some)
        return not deadly.isdisjoint(places(some))

    found = find_deadly_record(ranges, dies)
    assert (
        (found.lane, found.start) in deadly if found else len(every) == len(deadly) or ends(ranges) <= deadly
    )
    assert len(trials) <= len(every).bit_length() + 7
    assert find_deadly_record(ranges, lambda _: True) is None
    assert find_deadly_record(ranges, lambda some: len(places(some)) > 1) is None


def test_a_tables_row_is_found_among_offsets_of_no_row() -> None:
    """A range of a table begins where the version before ends: most of its offsets stand for nothing."""
    lane = Lane("table:one", 0)
    start, first = TableRow(3, 5, done=True).offset, TableRow(4, 0).offset
    part = OffsetRange(lane, start, TableRow(4, 1_000, done=True).offset)
    trials = 0

    def dies(some: Sequence[OffsetRange]) -> bool:
        nonlocal trials
        trials += 1
        return any(each.start <= first + 700 < each.end for each in some)

    assert find_deadly_record([part], dies) == OffsetRange(lane, first + 700, first + 701)
    assert trials < 20


def test_what_stands_for_an_unread_row_has_its_place() -> None:
    """The first row of a version is not where the range begins that has it."""
    lane = Lane("table:one", 0)
    part = OffsetRange(lane, TableRow(3, 5, done=True).offset, TableRow(4, 1).offset)
    record = make_unread_record(Note((part,), KEPT, {}), {"delta:/t": "table:one"})
    assert record["offset"].to_pylist() == [TableRow(4, 0).offset]
