"""What a start decides from the tables' words alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from seamline.model.protocol.condensed import LEAP
from seamline.model.protocol.epoch import Epoch
from seamline.plan.maintain.repair_steps import (
    Bring,
    Go,
    MasterState,
    Step,
    Stop,
    SyncedState,
    TableState,
    Trim,
    list_unchained_epochs,
    plan_repair_steps,
)

VIEW = "v/1"
MASTER = MasterState(5, line=3, boot=1, taken=2, marks={VIEW: 5}, frontiers={VIEW: 5})
WHOLE = TableState(5, 3)


def decided(
    master: MasterState = MASTER,
    quarantine: TableState = WHOLE,
    ledger: TableState = WHOLE,
    slices: TableState = WHOLE,
    *,
    boot: int = 1,
    published: int = -1,
) -> list[Step]:
    """Decide for a start of token 7."""
    return plan_repair_steps(
        master, quarantine, ledger, {VIEW: slices}, boot=boot, token=7, published=published
    )


def test_a_start_on_tables_that_agree_goes_on() -> None:
    """A restart after a kill costs no commit more; its number is above every one that was taken."""
    assert decided() == [Go(5, {VIEW: 5})]
    assert decided(slices=TableState(6, 3)) == [Go(6, {VIEW: 5})]


def test_a_table_that_is_new_joins_the_line() -> None:
    """A view that was born, or a ledger that somebody deleted: the line goes on."""
    fresh = replace(MASTER, marks={VIEW: -1}, frontiers={VIEW: 5})
    assert decided(fresh, slices=TableState()) == [Bring(VIEW, 3), Go(5, {VIEW: 5})]


@pytest.mark.parametrize(
    ("change", "frontier", "named"),
    [
        ({"boot": 2}, 5, False),
        ({"slices": TableState(4, 3)}, 4, False),
        ({"slices": TableState()}, -1, False),
        ({"ledger": TableState(6, 3)}, 5, False),
        ({"ledger": TableState(5, 2)}, 5, True),
        ({"quarantine": TableState(5, None)}, 5, False),
    ],
    ids=["another boot", "short slices", "no slices", "a ledger ahead", "an older ledger", "of no line"],
)
def test_a_line_begins_where_anything_may_be_lost(
    change: dict[str, TableState], frontier: int, named: bool
) -> None:
    """The master says so first; numbers jump over all that were ever told."""
    steps = decided(**change)  # type: ignore[arg-type]
    number = max(5, *(each.epoch for each in change.values() if isinstance(each, TableState)), 5) + LEAP
    assert steps == [
        SyncedState(7, change.get("boot", 1), number, {VIEW: frontier}),  # type: ignore[arg-type]
        Trim(5, 7, named=named),
        Bring("quarantine", 7),
        Bring(VIEW, 7),
        Go(number, {VIEW: frontier}),
    ]


def test_a_line_begins_where_epochs_were_taken_out_of_the_master() -> None:
    """Others have read them in the same run of the machine; what was set aside is there for a while after."""
    assert decided(replace(MASTER, aside=7))[0] == SyncedState(7, 1, 7 + LEAP, {VIEW: 5})
    assert decided(replace(MASTER, aside=7, taken=7 + LEAP)) == [Go(7 + LEAP, {VIEW: 5})]
    assert decided(replace(MASTER, aside=4)) == [Go(5, {VIEW: 5})]


def test_what_a_repair_has_skipped_is_not_ahead_of_the_master() -> None:
    """The ledger's newest number stays that of a row that is gone: the next start begins no line for it."""
    assert decided(replace(MASTER, taken=9), ledger=TableState(9, 3)) == [Go(9, {VIEW: 5})]


def test_the_first_start_of_all_begins_at_nothing() -> None:
    """Nothing was told of, so that no number is skipped; tables of an older release begin a line."""
    state, *_, last = decided(MasterState(frontiers={VIEW: -1}), TableState(), TableState(), TableState())
    assert state == SyncedState(7, 1, -1, {VIEW: -1})
    assert last == Go(-1, {VIEW: -1})
    older = MasterState(5, frontiers={VIEW: 5})
    assert decided(older, TableState(5), TableState(5), TableState(5))[-1] == Go(5 + LEAP, {VIEW: 5})


def test_what_no_power_cut_does_is_left_to_a_person() -> None:
    """What is served was synced, and the log before it; the master is the first that a line is stated in."""
    assert decided(published=6) == [Stop("a generation is served at epoch 6, but the master ends at 5")]
    assert decided(ledger=TableState(5, 4)) == [Stop("ledger is of line 4, but the master of line 3")]


def test_rows_that_the_next_one_does_not_name_are_out_of_the_chain() -> None:
    """Rows of before they named one are believed."""

    def row(number: int, before: int | None) -> Epoch:
        return Epoch(number, 1, datetime(2024, 1, 1, tzinfo=UTC), "r", before=before)

    assert list_unchained_epochs([row(0, -1), row(1, 0), row(2, 1), row(9, 0), row(12, 9)]) == {1, 2}
    assert list_unchained_epochs([row(0, None), row(1, None), row(3, 1)]) == set()
    assert list_unchained_epochs([]) == set()
