"""Failovers in the log: one epoch closes what is left and begins the rest, and every fold over the log knows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from seamline.model.errors import OutOfStep
from seamline.model.protocol.clusters.failovers import (
    By,
    Failover,
    find_unregistered,
    list_kafka_ends,
    list_registered,
    require_fitting,
)
from seamline.model.protocol.condensed import condense_epochs, from_text, to_text
from seamline.model.protocol.control import Control
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import (
    Gap,
    find_gaps,
    is_ledger_contiguous,
    list_closed_lanes,
    list_end_offsets,
    list_missing_ranges,
    list_open_holes,
    to_register,
)
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = Interval(NOW, datetime(2026, 3, 2, tzinfo=UTC))
A, B, TABLE = Lane("a", 0), Lane("b", 0), Lane("table:x", 0)


def read(number: int, lane: Lane, start: int, end: int) -> Epoch:
    """Make an epoch that has read a range."""
    return Epoch(number, 1, NOW, "v", ranges=(OffsetRange(lane, start, end),))


def failover(to: str = "kafka_b", **facts: object) -> Failover:
    """Decide to go from A, read to 10, to B at 4."""
    made = Failover(
        "kafka_b", "kafka_a", By.OFFSETS, {A: 10}, {B: 4}, False, None, "exact", "ada", "fire", NOW
    )
    return replace(made, connection=to, **facts)  # type: ignore[arg-type]


BEFORE = [read(0, A, 0, 10), read(1, TABLE, 5, 6)]
MADE = failover().epoch(2, 1, NOW, record_version="v", last=BEFORE[-1])
LOG = [*BEFORE, MADE, read(3, B, 4, 9)]


@pytest.mark.parametrize("log", [LOG, condense_epochs(LOG), from_text(to_text(condense_epochs(LOG)))])
def test_a_failover_moves_the_ends_of_the_log(log: list[Epoch]) -> None:
    """What is left is closed, and no gap; the other lane goes on from where it was begun; tables are none of it."""
    assert list_end_offsets(log) == {TABLE: 6, B: 9}
    assert list_kafka_ends(log) == {B: 9}
    assert list_closed_lanes(log) == {A}
    assert is_ledger_contiguous(log)
    assert not list_open_holes(log) and not list_missing_ranges(log)
    assert find_gaps(log, {B: 0, TABLE: 5}) == ()
    assert find_gaps(log, {A: 0, TABLE: 5}) == (Gap(B, 9, None),)
    assert not is_ledger_contiguous([*log, read(4, B, 12, 13)])


def test_a_doubtful_one_is_a_hole_of_its_bounds() -> None:
    """Certificates ask the register of holes, and so does everybody else."""
    made = failover(doubtful=True, bounds=DAY).epoch(2, 1, NOW, record_version="v", last=None)
    log = [*BEFORE, made, read(3, B, 4, 9)]
    assert made.kind is EpochKind.HOLE
    assert [(hole.number, hole.bounds) for hole in list_open_holes(log)] == [(2, DAY)]
    assert list_end_offsets(log) == {TABLE: 6, B: 9}
    assert "exact" in made.reason


def test_who_goes_back_goes_on_in_the_lane_that_was_left() -> None:
    """It is closed no more, and begins above where it ended."""
    back = Failover("kafka_a", "kafka_b", By.OFFSETS, {B: 9}, {A: 15}, False, None, "", "ada", "", NOW)
    log = [*LOG, back.epoch(4, 1, NOW, record_version="v", last=None), read(5, A, 15, 16)]
    assert list_kafka_ends(log) == {A: 16}
    assert list_closed_lanes(log) == {B}
    assert is_ledger_contiguous(log) and is_ledger_contiguous(condense_epochs(log))
    both = (failover(), back)
    assert find_unregistered(both, LOG) == back and find_unregistered(both, log) is None
    assert list_registered(both, LOG) == both[:1] and list_registered(both, log) == both
    # The same once more is another decision.
    assert find_unregistered((*both, failover()), log) == failover()


def test_a_decision_fits_one_place_alone() -> None:
    """After a power cut, or with a log from a backup, what was decided would skip records or read them again."""
    require_fitting("shop", failover(), BEFORE, ["b"])
    for log, ids, words in (
        ([read(0, A, 0, 12)], ["b"], "a/0 was to be left at 10 and is read to 12"),
        ([read(0, A, 0, 10)], ["c"], "topic id b is not among those of connection 'kafka_b'"),
        ([read(0, A, 0, 10), read(1, Lane("a", 1), 0, 3)], ["b"], "a/1 was to be left at no offset"),
        ([], ["b"], "a/0 was to be left at 10 and is read to none"),
    ):
        with pytest.raises(OutOfStep, match=words):
            require_fitting("shop", failover(), log, ids)


def test_gaps_that_were_accepted_of_a_lane_are_over_once_it_is_left() -> None:
    """Nobody can read them there any more."""
    [closing] = failover().closings
    assert to_register(BEFORE, [replace(closing, gap=Gap(A, 10, 12))]) != []
    assert to_register(LOG, [replace(closing, gap=Gap(A, 10, 12))]) == []


def test_the_control_table_keeps_failovers_and_says_which_connection_is_in_force() -> None:
    """Whoever asks Kafka asks the cluster that is read; a pipeline without topics has no connection."""
    control = Control(failovers=(failover(), failover("kafka_c", doubtful=True, bounds=DAY)))
    found = Control.from_json(control.to_json())
    assert found.failovers == control.failovers
    assert found.find_connection("kafka_a") == "kafka_c" and found.find_connection("") == ""
    assert Control().find_connection("kafka_a") == "kafka_a"
    assert "failovers" not in Control().to_json()


def test_an_epoch_keeps_where_lanes_are_begun() -> None:
    """The ledger is made again from the master's commits."""
    assert Epoch.from_json(MADE.to_json()) == MADE
    assert "begun" not in BEFORE[0].to_json()
