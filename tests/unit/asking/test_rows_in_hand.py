"""Rows that have no record yet: up to which epoch all have one is what a restart believes."""

from __future__ import annotations

import random
from collections import Counter

from tests.unit.asking.payments import row

from seamline.asking.asked_rows import RowsInHand


def test_an_epoch_is_finished_when_its_last_row_is() -> None:
    """Whichever is answered first."""
    hand, first, second, third = RowsInHand(4), row(0, 5), row(1, 5), row(2, 7)
    assert hand.finished == 4
    hand.take([first, second, third], 9)
    assert hand.finished == 4
    hand.finish(third)
    hand.finish(first)
    assert hand.finished == 4
    hand.finish(second)
    assert hand.finished == 9
    assert not hand.places


def test_epochs_without_rows_are_finished_at_once() -> None:
    """As are those up to the first that has any; numbers jump where a line of the log begins."""
    hand = RowsInHand(4)
    hand.take([], 1_000_007)
    assert hand.finished == 1_000_007
    hand.take([row(0, 1_000_011)], 1_000_020)
    assert hand.finished == 1_000_010


def test_rows_that_are_asked_about_again_hold_nothing_back() -> None:
    """Their epochs are long finished: a position does not go back."""
    hand, again = RowsInHand(9), row(0, 3, decided=True)
    hand.add(again)
    assert (hand.finished, len(hand.places)) == (9, 1)
    hand.finish(again)
    assert (hand.finished, len(hand.places)) == (9, 0)


def test_any_order_of_answers_passes_no_row() -> None:
    """By hand: the oldest epoch that has a row without a record, less one."""
    dice = random.Random(3)
    for _ in range(50):
        hand, left = RowsInHand(0), []
        for taken in range(1, 40):
            rows = [row(taken * 10 + at, taken) for at in range(dice.randint(0, 3))]
            hand.take(rows, taken)
            left += rows
            while left and dice.random() < 0.6:
                hand.finish(left.pop(dice.randrange(len(left))))
            assert hand.finished == min((each.epoch - 1 for each in left), default=taken)
            assert {*hand.places} == {each.place for each in left}


def test_what_is_finished_passes_no_row_that_is_taken_up_meanwhile() -> None:
    """Another thread may save the position while the loop takes rows up: one that is passed is never asked about."""

    class Late(Counter[int]):
        """Rows that are taken up just after somebody has looked whether there are any."""

        def __bool__(self) -> bool:
            found = bool(len(self))
            if not self.taken:
                self.taken = True
                hand.take([row(0, 5)], 9)
            return found

        taken = False

    hand = RowsInHand(4)
    hand.epochs = Late()
    assert hand.finished == 4
