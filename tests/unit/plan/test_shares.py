"""How a build's files are shared out among tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seamline.plan.batch.work_shares import (
    IN_A_PART,
    LEAST,
    PLENTY,
    TURNS,
    Counts,
    count_parts,
    split_by_size,
)

SIZES = st.lists(st.integers(0, 4 * LEAST), max_size=60)


@given(SIZES, st.integers(1, 8))
def test_every_file_is_in_one_share(sizes: list[int], cores: int) -> None:
    """None twice, none left out, and no share without one."""
    made = split_by_size(sizes, cores)
    assert sorted(number for part in made for number in part) == list(range(len(sizes)))
    assert all(made)
    assert len(made) <= max(TURNS * cores, 1)


@given(SIZES, st.integers(1, 8))
def test_no_share_is_much_larger_than_another(sizes: list[int], cores: int) -> None:
    """The largest is above the smallest by one file at most: nobody waits for one task."""
    made = [sum(sizes[number] for number in part) for part in split_by_size(sizes, cores)]
    assert not made or max(made) - min(made) <= max(sizes)


def test_little_is_not_shared_and_much_keeps_all_cores_busy() -> None:
    """A task costs more than reading a small file."""
    assert split_by_size([1000] * 50, 2) == [list(range(50))]
    assert len(split_by_size([LEAST] * 50, 2)) == 3
    assert len(split_by_size([LEAST] * 5, 2)) == 2
    assert len(split_by_size([PLENTY] * 50, 2)) == TURNS * 2
    assert [len(split_by_size([LEAST], 2)), split_by_size([], 2)] == [1, []]


def test_parts_are_as_many_as_cores_until_each_has_much_to_sort() -> None:
    """A part costs something, and has a bound on what it holds."""
    assert [count_parts(rows, 2) for rows in (0, 1, 2 * IN_A_PART, 5 * IN_A_PART)] == [2, 2, 2, 5]
    assert [count_parts(bytes, 4, least=10) for bytes in (0, 10, 39, 40, 1000)] == [1, 1, 3, 4, 4]


def test_counts_of_tasks_add_up() -> None:
    """A view that one of them does not know counts nothing there."""
    one, other = Counts(3, 1, {"a": 1}, {}), Counts(4, 0, {"a": 2, "b": 5}, {"c": -1})
    assert one + other == Counts(7, 1, {"a": 3, "b": 5}, {"c": -1})
