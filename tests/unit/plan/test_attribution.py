"""Why two answers differ: what explains a difference must explain all of it."""

from __future__ import annotations

import pytest

from seamline.plan.batch.attribution import (
    ChangeCause,
    DifferingPlace,
    KnownChanges,
    count_causes,
    find_difference_causes,
)

EXACT, ESTIMATED = "n", "planes"


def place(
    before: int, after: int, *, spare: int = 0, unsliced: int = 0, measures: str = EXACT
) -> DifferingPlace:
    """A place at which one measure differs."""
    return DifferingPlace(before, after, spare, unsliced, [measures])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (place(5, 3, spare=2), (ChangeCause.DUPLICATE,)),
        (place(5, 9, unsliced=4), (ChangeCause.BEHIND,)),
        (place(5, 8, unsliced=4, spare=1), (ChangeCause.DUPLICATE, ChangeCause.BEHIND)),
        (place(5, 5, measures=ESTIMATED), (ChangeCause.SKETCH,)),
        (place(5, 5), (ChangeCause.NONE,)),
        (place(5, 4), (ChangeCause.NONE,)),
        # Two duplicates explain two records less, not three.
        (place(5, 2, spare=2), (ChangeCause.NONE,)),
        (place(0, 3), (ChangeCause.NONE,)),
    ],
)
def test_a_cause_explains_all_of_a_difference(
    found: DifferingPlace, expected: tuple[ChangeCause, ...]
) -> None:
    """A duplicate somewhere is no excuse for a record that was lost."""
    assert find_difference_causes(found, KnownChanges(), [ESTIMATED]) == expected


def test_what_was_judged_again_may_change_any_number() -> None:
    """By a person's decision or another definition: both are named."""
    assert find_difference_causes(place(5, 2), KnownChanges(restated=True), []) == (ChangeCause.RESTATED,)
    assert find_difference_causes(place(5, 2), KnownChanges(restated=True, judged_again=True), []) == (
        ChangeCause.RESTATED,
        ChangeCause.VERSION,
    )


def test_places_are_counted_by_cause() -> None:
    """With each, where there are two."""
    some = [(ChangeCause.DUPLICATE,), (ChangeCause.DUPLICATE, ChangeCause.BEHIND), (ChangeCause.NONE,)]
    assert count_causes(some) == {"duplicates removed": 2, "view was behind": 1, "unattributed": 1}


@pytest.mark.parametrize("after", [2, 3, 8])
def test_what_a_view_lacks_of_emitted_rows_explains_any_number(after: int) -> None:
    """A late row may add rows, withdraw some, or put one in the place of another."""
    known = KnownChanges(behind=True)
    assert find_difference_causes(place(3, after), known, ()) == (ChangeCause.BEHIND,)
    assert find_difference_causes(place(3, after), KnownChanges(), ()) == (ChangeCause.NONE,)
