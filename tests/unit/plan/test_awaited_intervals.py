"""What somebody waits for: how far intervals have come, decided from a manifest and the newest epoch."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.shop import DAY, START

from seamline.model.errors import BadRange
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, How, Manifest, Statement, fold_statements
from seamline.model.time.intervals import Grid, Interval
from seamline.plan.publish.awaited_intervals import MOST, Awaited, Until, assess

VIEW = "sales/f1"
GRID = Grid(DAY, START)
DAYS = [GRID.of(START + number * DAY) for number in range(4)]
WAIT = Awaited("sales", GRID, Interval(START, START + 2 * DAY), Until.CERTIFIED)
BORN = (
    Statement(Act.BIRTH, VIEW, epoch=0, seq=0),
    Statement(Act.FLIP, VIEW, epoch=0, seq=1),
)


def newest(number: int = 9, frontier: int = 9) -> Epoch:
    """Return an epoch at which the view's slices have come so far."""
    return Epoch(number, 0, START, "r", frontiers={VIEW: frontier})


def manifest(*published: Statement) -> Manifest:
    """Return a manifest with some publications."""
    return fold_statements([*BORN, *(replace(each, seq=at + 2) for at, each in enumerate(published))], 9)


def built(day: int, how: How = How.CERTIFIED, *, certified: bool = True) -> Statement:
    """Publish a generation of a day."""
    return Statement(
        Act.PUBLISH, VIEW, epoch=5, interval=DAYS[day].id, generation=f"g{day}", certified=certified, how=how
    )


@pytest.mark.parametrize("until", Until)
def test_nothing_has_come_before_the_stream_has_started(until: Until) -> None:
    """A DAG that waits may be older than what it waits for."""
    awaited = replace(WAIT, until=until)
    assert assess(awaited, Manifest(), newest(), START + 9 * DAY).lacking
    assert assess(awaited, manifest(), None, None).lacking


def test_an_interval_is_complete_once_the_watermark_has_passed_its_end() -> None:
    """At the very instant, and not a microsecond before."""
    awaited = replace(WAIT, until=Until.COMPLETE)
    tick = timedelta(microseconds=1)
    assert "open" in assess(awaited, manifest(), newest(), None).lacking
    assert "open" in assess(awaited, manifest(), newest(), awaited.closes - tick).lacking
    assert assess(awaited, manifest(), newest(), awaited.closes).lacking == ""


def test_slices_that_are_behind_the_log_are_not_complete() -> None:
    """The watermark is that of the log: what a read counts are slices."""
    awaited = replace(WAIT, until=Until.COMPLETE)
    assert "behind" in assess(awaited, manifest(), newest(9, 8), START + 9 * DAY).lacking


def test_an_interval_that_is_still_to_be_built_is_not_complete() -> None:
    """A version that was born late has no slices of the days before."""
    late = Manifest(births={VIEW: 5}, serving={"sales": VIEW})
    awaited = replace(WAIT, until=Until.COMPLETE)
    found = assess(awaited, late, newest(), START + 9 * DAY)
    assert found.lacking == f"not built yet: {DAYS[0].id} and 1 more"


def test_each_interval_must_have_a_certified_generation() -> None:
    """What is provisional, or was published despite its certificate, is not what somebody waits for."""
    mark = START + 9 * DAY
    filled = {each.id for each in DAYS}
    for other in (
        built(1, How.PROVISIONAL),
        built(1, How.DESPITE, certified=False),
    ):
        found = assess(WAIT, manifest(built(0), other), newest(), mark, filled)
        assert found.lacking == f"not certified yet: {DAYS[1].id}"
    found = assess(WAIT, manifest(built(0), built(1)), newest(), mark, filled)
    assert found.lacking == ""
    assert [each.generation for each in found.statements] == ["g0", "g1"]


def test_what_is_certified_already_waits_for_no_watermark() -> None:
    """The generation says by itself that its interval had closed, also where the stream reads the past again."""
    assert assess(WAIT, manifest(built(0), built(1)), newest(), None).lacking == ""


def test_an_interval_without_rows_is_waited_for_until_it_closes() -> None:
    """Nobody builds it: a shop that was shut for a day would hold up every report for ever."""
    known = manifest(built(0))
    assert "open" in assess(WAIT, known, newest(), START + DAY, set()).lacking
    assert assess(WAIT, known, newest(), START + 2 * DAY).unbuilt == (DAYS[1],)
    assert assess(WAIT, known, newest(), START + 2 * DAY, {DAYS[0].id}).lacking == ""
    assert assess(WAIT, known, newest(), START + 2 * DAY, {DAYS[1].id}).lacking


def test_what_functions_emit_is_built_without_rows() -> None:
    """Timers of earlier rows fire there."""
    awaited = replace(WAIT, emits=True)
    assert assess(awaited, manifest(built(0)), newest(), START + 9 * DAY, {DAYS[0].id}).lacking


def test_windows_that_reach_further_are_waited_for_to_their_ends() -> None:
    """A window that begins on the second day is built with the third, which may have no rows of its own."""
    awaited = replace(WAIT, reach=1, ahead=timedelta(hours=1))
    assert awaited.intervals == DAYS[:3]
    assert awaited.closes == START + 3 * DAY + timedelta(hours=1)
    known = manifest(built(0), built(1))
    assert assess(awaited, known, newest(), awaited.closes, {DAYS[1].id}).lacking
    assert assess(awaited, known, newest(), awaited.closes, {DAYS[0].id}).lacking == ""


def test_a_span_that_is_never_answered_is_refused() -> None:
    """It would time out after a week."""
    with pytest.raises(BadRange, match="before the pipeline's start"):
        replace(WAIT, span=Interval(START - DAY, START + DAY))
    with pytest.raises(BadRange, match=str(MOST)):
        replace(WAIT, span=Interval(START, START + (MOST + 1) * DAY))
