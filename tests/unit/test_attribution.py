"""Why two answers differ: what explains a difference must explain all of it."""

from __future__ import annotations

import pytest

from seamline.plan.batch.attribution import Cause, Known, Place, count_causes, find_difference_causes

EXACT, ESTIMATED = "n", "planes"


def place(before: int, after: int, *, spare: int = 0, unsliced: int = 0, measures: str = EXACT) -> Place:
    """A place at which one measure differs."""
    return Place(before, after, spare, unsliced, [measures])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (place(5, 3, spare=2), (Cause.DUPLICATE,)),
        (place(5, 9, unsliced=4), (Cause.BEHIND,)),
        (place(5, 8, unsliced=4, spare=1), (Cause.DUPLICATE, Cause.BEHIND)),
        (place(5, 5, measures=ESTIMATED), (Cause.SKETCH,)),
        (place(5, 5), (Cause.NONE,)),
        (place(5, 4), (Cause.NONE,)),
        # Two duplicates explain two records less, not three.
        (place(5, 2, spare=2), (Cause.NONE,)),
        (place(0, 3), (Cause.NONE,)),
    ],
)
def test_a_cause_explains_all_of_a_difference(found: Place, expected: tuple[Cause, ...]) -> None:
    """A duplicate somewhere is no excuse for a record that was lost."""
    assert find_difference_causes(found, Known(), [ESTIMATED]) == expected


def test_what_was_judged_again_may_change_any_number() -> None:
    """By a person's decision or another definition: both are named."""
    assert find_difference_causes(place(5, 2), Known(restated=True), []) == (Cause.RESTATED,)
    assert find_difference_causes(place(5, 2), Known(restated=True, judged_again=True), []) == (
        Cause.RESTATED,
        Cause.VERSION,
    )


def test_places_are_counted_by_cause() -> None:
    """With each, where there are two."""
    some = [(Cause.DUPLICATE,), (Cause.DUPLICATE, Cause.BEHIND), (Cause.NONE,)]
    assert count_causes(some) == {"duplicates removed": 2, "view was behind": 1, "unattributed": 1}
