"""Runs of offsets beside plain sets of numbers."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from seamline.model.protocol.offset_runs import (
    Run,
    count_run_offsets,
    format_offset_runs,
    intersect_offset_runs,
    merge_offset_runs,
    subtract_offset_runs,
)

RUNS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)))


def numbers(runs: Iterable[Run]) -> set[int]:
    """Return the numbers of runs."""
    return {number for start, end in runs for number in range(start, end)}


def apart(runs: list[Run]) -> bool:
    """Return whether runs are as all functions give and take them."""
    return all(start < end for start, end in runs) and all(
        a[1] < b[0] for a, b in zip(runs, runs[1:], strict=False)
    )


@given(RUNS, RUNS)
def test_runs_are_sets(left: list[Run], right: list[Run]) -> None:
    """An audit that loses an offset in its own arithmetic would prove nothing."""
    one, other = merge_offset_runs(left), merge_offset_runs(right)
    assert apart(one) and numbers(one) == numbers(left) and count_run_offsets(one) == len(numbers(left))
    assert apart(subtract_offset_runs(one, other)) and numbers(subtract_offset_runs(one, other)) == numbers(
        left
    ) - numbers(right)
    assert apart(intersect_offset_runs(one, other)) and numbers(intersect_offset_runs(one, other)) == numbers(
        left
    ) & numbers(right)


def test_runs_are_named() -> None:
    """The last offset that is in, as people count."""
    assert format_offset_runs([(3, 4), (7, 10)]) == "3, 7..9"
    assert format_offset_runs([(at, at + 1) for at in (1, 3, 5)], most=2) == "1, 3 and 1 runs more"
