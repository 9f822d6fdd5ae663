"""What was read beside what was said: the decision by itself, and what a certificate makes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.quality.test_certificate import GREEN

from seamline.model.protocol.certificate_checks import Certificate, validate_evidence
from seamline.model.protocol.counts.comparison import Read, SourceCounts, compare_counts
from seamline.model.protocol.counts.statement import SentCount
from seamline.model.protocol.counts.verdict import TOLD, await_counts, format_source_counts, list_count_lines
from seamline.model.time.intervals import Interval

START = datetime(2013, 1, 1, tzinfo=UTC)
DAY, HOUR = Interval(START, START + timedelta(days=1)), timedelta(hours=1)
WHOLE = {"eu": [SentCount("eu", DAY, 5)]}


def compared(
    read: int, stated: dict[str, list[SentCount]] | None = None, *expected: str, **more: int
) -> SourceCounts:
    """Compare what was read of the producer eu with some statements."""
    found = {"eu": {START: Read(read)}}
    return compare_counts("", DAY, WHOLE if stated is None else stated, expected, found, named=True, **more)


@pytest.mark.parametrize(
    ("found", "required", "grace", "passed", "words"),
    [
        (compared(5), True, None, True, "5 sent by 1 producer, 5 read"),
        (
            compared(4),
            True,
            0,
            False,
            "eu 2013-01-01T00:00:00Z/2013-01-02T00:00:00Z: 1 missing, 5 sent and 4 read",
        ),
        (compared(4), False, None, True, "noted, not required: 5 sent by 1 producer, 4 read; 1 missing"),
        (compared(7), True, 0, False, "2 too many, 5 sent and 7 read"),
        (
            compared(0, {}, "eu"),
            True,
            None,
            False,
            "eu 2013-01-01T00:00:00Z/2013-01-02T00:00:00Z: not stated",
        ),
        (compared(0, {}, "eu"), True, 2, False, "not stated"),
        (compared(0, {}, "eu"), True, 1, True, "no longer waited for"),
        (compared(0, {}), True, None, False, "no producer has said what it sent"),
        (compared(0, {}), False, None, True, "noted, not required: no producer has said"),
        (
            compared(4, None, unplaced=3),
            True,
            None,
            False,
            "3 records of about that time were refused without",
        ),
        (
            compared(5, None, unplaced=3, others=2),
            True,
            None,
            True,
            "2 records are of nobody who is expected",
        ),
    ],
)
def test_a_certificate_needs_counts_or_notes_them(
    found: SourceCounts, required: bool, grace: int | None, passed: bool, words: str
) -> None:
    """Statements that are missing are waited for so long, those that do not agree for ever."""
    patience = None if grace is None else grace * HOUR
    awaited = await_counts(found, DAY.end, required=required, patience=patience)
    evidence = replace(GREEN, counts=[awaited], now=DAY.end + HOUR)
    [check] = [each for each in validate_evidence(evidence) if "counts" in each.name]
    assert check.passed is passed
    assert words in check.found
    assert [each.passed for each in validate_evidence(evidence)].count(False) == (not passed)


def test_of_an_open_interval_nobody_can_say_that_yet() -> None:
    """It is red for being open, and for nothing else: a provisional interval may be published."""
    awaited = await_counts(compared(4), DAY.end, required=True, patience=None)
    checks = validate_evidence(replace(GREEN, counts=[awaited], watermark=DAY.start))
    assert [each.name for each in checks if not each.passed] == ["watermark has passed the end"]


def test_a_certificate_keeps_its_counts() -> None:
    """Gaps by name, for programs, and in the words of a check."""
    hours = [SentCount("eu", Interval(START, START + HOUR), 9), SentCount("us", DAY, 0)]
    counts = compared(4, {"eu": hours[:1], "us": hours[1:]}, "eu", "us", "mars", others=1, unplaced=2)
    made = Certificate("v", "f", "g", DAY, 7, "r", "", START, validate_evidence(GREEN), counts=(counts,))
    kept = Certificate.from_json(made.to_json())
    assert kept == made
    assert kept.counts[0].outcomes == {"missing": 1, "not stated": 1, "complete": 1}
    [line] = list_count_lines([made, replace(made, view="w")])
    assert line.startswith("producers' counts, 2013-01-01T00:00:00Z: 9 sent by 3 producers, 4 read")
    assert Certificate.from_json(made.to_json().replace('"counts"', '"of later"')).counts == ()


def test_a_line_names_so_many_gaps_and_counts_the_rest() -> None:
    """A day of minutes would be a page of them."""
    minutes = [
        SentCount("eu", Interval(START + at * HOUR / 60, START + (at + 1) * HOUR / 60), 1)
        for at in range(1440)
    ]
    found = compared(0, {"eu": minutes})
    assert f"and {100 - TOLD} more" in format_source_counts(found)
    assert found.said == 1440
    assert len(found.counts[0].gaps) == 100


CUTS = st.sets(st.integers(1, 23), max_size=5).map(sorted)


@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 23)), max_size=20),
    cuts=st.fixed_dictionaries(dict.fromkeys("abc", CUTS)),
    withheld=st.integers(0, 25),
    named=st.booleans(),
)
def test_true_statements_find_exactly_what_was_withheld(
    rows: list[tuple[str, int]], cuts: dict[str, list[int]], withheld: int, named: bool
) -> None:
    """However each producer cuts its day: the gaps are the records that were not read, and none without one."""
    stated = {}
    for name, points in cuts.items():
        bounds = [0, *points, 24]
        stated[name] = [
            SentCount(
                name,
                Interval(START + start * HOUR, START + end * HOUR),
                sum(each == name and start <= hour < end for each, hour in rows),
            )
            for start, end in zip(bounds, bounds[1:], strict=False)
        ]
    lost = rows[withheld : withheld + 1]
    read = rows[:withheld] + rows[withheld + 1 :]
    found: dict[str, dict[datetime, Read]] = {}
    for name, hour in read:
        steps = found.setdefault(name if named else "", {})
        steps[START + hour * HOUR] = steps.get(START + hour * HOUR, Read()) + Read(1)
    counts = compare_counts("", DAY, stated, [], found, named=named)
    gaps = [(each.producers, gap) for each in counts.counts for gap in each.gaps]
    assert counts.complete is (not lost)
    assert sum(gap.said - gap.read for _, gap in gaps) == len(lost)
    for name, hour in lost:
        [(producers, gap)] = gaps
        assert name in producers
        assert START + hour * HOUR in gap.window
