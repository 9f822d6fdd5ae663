"""Certificates: each lie about completeness has a check that finds it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from seamline.model.errors import CertificateFailed
from seamline.model.protocol.certificate_checks import Certificate, Evidence, validate_evidence
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import count_touching_holes
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval
from seamline.quality.certify import require_passed
from seamline.quality.log_until_cut import Log

START = datetime(2013, 1, 1, tzinfo=UTC)
DAY = Interval(START, START + timedelta(days=1))
GREEN = Evidence(
    interval=DAY,
    cut=7,
    cut_is_edge=True,
    watermark=DAY.end,
    contiguous=True,
    holes=0,
    ledger_rows=10,
    rows_read=10,
    duplicates=2,
    not_selected=3,
    state_rows=5,
    expectations_checked=1,
)
LANE = Lane("t", 0)


def failed(evidence: Evidence) -> list[str]:
    return [check.name for check in validate_evidence(evidence) if not check.passed]


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"cut_is_edge": False}, "cut is an edge"),
        ({"holes": 1}, "offsets without a hole"),
        ({"contiguous": False}, "offsets without a hole"),
        ({"watermark": None}, "watermark has passed the end"),
        ({"watermark": DAY.end - timedelta(microseconds=1)}, "watermark has passed the end"),
        ({"ledger_rows": 11}, "rows read = rows in the ledger"),
        ({"state_rows": 6}, "rows in states = rows read less rows left out"),
        ({"expectations": ("too few",)}, "expectations"),
        ({"copies": 1, "copied": "shown/0@7"}, "no copies of rows count"),
    ],
)
def test_each_fault_turns_exactly_its_check_red(change: dict, check: str):
    """A check that never fails proves nothing; one that fails for another reason misleads."""
    assert failed(GREEN) == []
    assert failed(replace(GREEN, **change)) == [check]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"copies": 0}, "0 rows in reach repeat an event id"),
        (
            {"copies": 2, "copied": "a/0@7", "copies_allowed": True},
            "2 rows in reach repeat an event id beyond dedup_within, the first at a/0@7; copies=True lets them count",
        ),
    ],
)
def test_copies_are_named_where_they_are_allowed(change: dict, words: str):
    """Who lets them count still sees how many there are; of a view without ids nothing is said."""
    [check] = [each for each in validate_evidence(replace(GREEN, **change)) if "copies" in each.name]
    assert (check.passed, check.found) == (True, words)
    assert not [each for each in validate_evidence(GREEN) if "copies" in each.name]


def test_lost_rows_are_found_even_if_read_and_states_agree():
    """Both counts of one stale read agree: only the ledger can tell (H4)."""
    assert failed(replace(GREEN, rows_read=0, duplicates=0, not_selected=0, state_rows=0)) == [
        "rows read = rows in the ledger"
    ]


def epoch(number: int, start: int, end: int, **more) -> Epoch:
    ranges = (OffsetRange(LANE, start, end),)
    return Epoch(number, 1, START, "v", ranges=ranges, accepted={DAY.id: end - start}, **more)


def test_the_log_is_judged_at_the_cut_and_not_as_of_today():
    """Today's watermark would certify a generation that lacks what came since (H1)."""
    ledger = [
        epoch(1, 0, 5, edge=True, watermark=START),
        epoch(2, 5, 9, edge=True, watermark=DAY.end),
    ]
    log = Log.sum_until(1, ledger)
    assert (log.watermark, log.arrivals.rows(DAY.id, until=1)) == (START, 5)
    assert not Log.sum_until(0, ledger).is_edge


def test_a_gap_between_ranges_and_a_registered_hole_are_both_seen():
    """A hole is never silent, never green."""
    assert not Log.sum_until(2, [epoch(1, 0, 5), epoch(2, 6, 9)]).contiguous
    hole = epoch(2, 5, 9, kind=EpochKind.HOLE)
    found = Log.sum_until(2, [epoch(1, 0, 5), hole])
    assert (found.contiguous, list(found.holes)) == (True, [hole])


def test_a_bounded_hole_touches_only_what_it_may_have_held():
    """Until somebody states bounds, a row that is lost may have been of any day."""
    bounded = epoch(2, 5, 9, kind=EpochKind.HOLE, bounds=Interval(DAY.start, DAY.end))
    following = Interval(DAY.end, DAY.end + (DAY.end - DAY.start))
    assert [count_touching_holes([bounded], day) for day in (DAY, following)] == [1, 0]
    assert count_touching_holes([replace(bounded, bounds=None)], following) == 1


def test_what_is_red_is_named_and_a_certificate_survives_its_table():
    """The operator reads the error, not the table."""
    red = Certificate("v", "f", "g", DAY, 7, "r", "", START, validate_evidence(replace(GREEN, holes=2)))
    assert Certificate.from_json(red.to_json()) == red
    with pytest.raises(CertificateFailed, match="v 2013-01-01T00:00:00Z: offsets without a hole: 2 holes"):
        require_passed([red])
    require_passed([replace(red, checks=validate_evidence(GREEN))])
