"""What is still wrong after several audits of a sink: only an audit of the same windows can say that it is mended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from seamline.plan.stream.sink_verdicts import (
    KEPT,
    SinkVerdict,
    add_verdict,
    find_open_verdict,
    parse_verdicts,
    serialize_verdicts,
)

MARCH, APRIL, MAY = "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"


def make(wrong: int = 0, **more: Any) -> SinkVerdict:
    """Make up an audit."""
    known: dict[str, Any] = {"at": MARCH, "actor": "ada", "start": "", "end": "", "version": 3, "held": 9}
    return SinkVerdict(**{**known, "wanted": 9, "found": {"missing": wrong, "extra": 0}, **more})


RED, GREEN = make(2), make()
RED_APRIL = make(1, start=APRIL, end=MAY)


@pytest.mark.parametrize(
    ("verdicts", "still"),
    [
        ([], None),
        ([GREEN], None),
        ([RED], RED),
        ([GREEN, RED], None),
        ([RED, GREEN], RED),
        ([make(start=APRIL), RED], RED),
        ([make(end=MAY), RED], RED),
        ([make(start=APRIL, end=MAY), RED_APRIL], None),
        ([make(start=MARCH), RED_APRIL], None),
        ([make(start=MARCH, end=APRIL), RED_APRIL], RED_APRIL),
        ([make(start=MAY), RED_APRIL, RED], RED_APRIL),
        ([make(start=APRIL, end=MAY), RED_APRIL, RED], RED),
    ],
)
def test_only_an_audit_of_the_same_windows_ends_an_alarm(
    verdicts: list[SinkVerdict], still: SinkVerdict | None
) -> None:
    """Who looks at another day, and finds nothing, has not mended this one."""
    assert find_open_verdict(verdicts) == still


def test_what_is_remembered_is_bounded_and_keeps_the_alarm() -> None:
    """An audit each hour of the last hour must neither grow for ever nor push out what is wrong elsewhere."""
    verdicts: tuple[SinkVerdict, ...] = (RED,)
    for _ in range(2 * KEPT):
        verdicts = add_verdict(verdicts, make(start=APRIL, end=MAY))
    assert len(verdicts) == KEPT
    assert find_open_verdict(verdicts) == RED
    assert find_open_verdict(add_verdict(verdicts, GREEN)) is None


def test_no_alarm_is_forgotten_for_a_newer_one() -> None:
    """Of two ranges that are wrong, the one that was found first stays wrong when the other is mended."""
    june = make(3, start="2026-06-01T00:00:00Z", end="2026-07-01T00:00:00Z")
    verdicts: tuple[SinkVerdict, ...] = (june, RED_APRIL)
    for _ in range(2 * KEPT):
        verdicts = add_verdict(verdicts, make(start=MAY, end="2026-06-01T00:00:00Z"))
    verdicts = add_verdict(verdicts, make(start=june.start, end=june.end))
    assert (len(verdicts), find_open_verdict(verdicts)) == (KEPT, RED_APRIL)


def test_very_many_alarms_end_with_an_audit_of_everything() -> None:
    """What is remembered is bounded, and no range that is wrong is taken to be right for that."""
    days = [
        {"start": f"2026-03-{day:02}T00:00:00Z", "end": f"2026-03-{day + 1:02}T00:00:00Z"}
        for day in range(1, 31)
    ]
    verdicts: tuple[SinkVerdict, ...] = ()
    for day in days:
        verdicts = add_verdict(verdicts, make(1, **day))
    for day in days:
        verdicts = add_verdict(verdicts, make(**day))
        assert len(verdicts) <= KEPT
    assert find_open_verdict(verdicts)
    assert find_open_verdict(add_verdict(verdicts, GREEN)) is None


def test_an_audit_that_began_before_a_red_one_ended_has_mended_nothing() -> None:
    """A long one may have read a row before it went wrong, and ends after a short one that has seen it wrong."""
    red = make(1, at="2026-03-01T10:10:00Z", ended="2026-03-01T10:15:00Z", start=APRIL)
    long = make(at="2026-03-01T10:00:00Z", ended="2026-03-01T10:30:00Z")
    assert find_open_verdict([long, red]) == red
    assert find_open_verdict([replace(long, at="2026-03-01T10:15:00Z"), long, red]) is None


def test_windows_are_compared_as_instants() -> None:
    """A bound with a fraction is after the whole second, which as a text comes after it."""
    red = make(1, start="2026-04-01T00:00:00Z")
    assert find_open_verdict([make(start="2026-04-01T00:00:00.500000Z"), red]) == red


def test_an_audit_is_read_as_it_was_written() -> None:
    """All of it: who, when, what."""
    written = (make(1, lines=("missing ada",)), GREEN)
    assert parse_verdicts(serialize_verdicts(written)) == written
    assert [each.said for each in written] == ["1 missing", "9 rows, nothing wrong"]
