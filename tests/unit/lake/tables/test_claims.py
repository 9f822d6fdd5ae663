"""Claims: two runs never build the same interval at once, and nobody waits for the dead."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.unit.clocks import Clock

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables import claims_table as module
from seamline.lake.tables.claims_table import (
    APP,
    BEAT,
    STATES,
    TTL,
    Claims,
    Waiting,
    claim_intervals,
    claims_of,
)
from seamline.lake.tables.decision_rows import compact_decision_rows
from seamline.model.errors import IntervalRunning
from seamline.model.protocol.claims import Claim
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.runtime.processes import name_process, own_process_name

NOW = datetime(2024, 1, 1, tzinfo=UTC)
DAY = Interval.parse("2024-01-01/2024-01-02")
WEEK = Interval.parse("2024-01-01/2024-01-08")
NEXT = Interval.parse("2024-01-08/2024-01-09")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path, "shop")


def claim(run: str, *spans: Interval, process: str = "elsewhere 1 0.0", at: datetime = NOW) -> Claim:
    return Claim(run, f"owner of {run}", spans, at, at + TTL, process)


def test_an_interval_is_one_runs_at_a_time(layout: Layout) -> None:
    """A range that holds the day meets it; another day does not."""
    claims = Claims.ensure(layout)
    claims.take(claim("a", WEEK), now=NOW)
    claims.take(claim("b", NEXT), now=NOW)
    clock = Clock(meanwhile=lambda: claims.renew("a", "elsewhere 1 0.0"))
    with pytest.raises(
        IntervalRunning, match=r"2024-01-01T00:00:00Z/2024-01-02.* is being built by run a of owner of a"
    ):
        claims.take(claim("c", DAY), now=NOW, waiting=Waiting(clock, clock.wait))
    assert [(each.run, each.spans) for each in claims.read()] == [("a", (WEEK,)), ("b", (NEXT,))]
    claims.release("a", "elsewhere 1 0.0")
    claims.take(claim("c", DAY), now=NOW)
    assert [each.run for each in claims.read()] == ["b", "c"]


def test_a_retry_of_the_same_run_goes_on_at_once(layout: Layout) -> None:
    """A cleared or retried task is the same run; it must not wait for itself."""
    claims = Claims.ensure(layout)
    claims.take(claim("a", DAY), now=NOW)
    claims.take(claim("a", WEEK), now=NOW)
    assert [each.spans for each in claims.read()] == [(WEEK,)]


def test_what_nobody_renews_runs_out(layout: Layout) -> None:
    """A run whose host is gone must not block for ever, whatever its clock said."""
    claims, me = Claims.ensure(layout), "elsewhere 1 0.0"
    claims.take(claim("a", DAY, at=NOW + timedelta(hours=2)), now=NOW)
    clock = Clock()
    clock.meanwhile = lambda: claims.renew("a", me) if clock.now == 1080 else None
    with pytest.raises(IntervalRunning):
        claims.take(claim("b", DAY), now=NOW, waiting=Waiting(clock, clock.wait))
    assert sum(clock.waits) == 80
    clock.meanwhile = lambda: None
    claims.take(claim("b", DAY), now=NOW, waiting=Waiting(clock, clock.wait))
    assert sum(clock.waits) == 170
    assert not claims.renew("a", me)
    assert [each.run for each in claims.read()] == ["b"]


def test_what_is_elsewhere_is_in_nobodys_way_for_nothing(layout: Layout) -> None:
    """Only a claim of the same intervals is worth waiting for."""
    claims, clock = Claims.ensure(layout), Clock()
    claims.take(claim("a", DAY), now=NOW)
    claims.take(claim("b", NEXT), now=NOW, waiting=Waiting(clock, clock.wait))
    assert clock.waits == []


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_a_claim_of_another_clock_is_judged_by_its_beat(layout: Layout, hours: int) -> None:
    """Its process may be on a host whose clock is ahead or behind."""
    claims = Claims.ensure(layout)
    claims.take(claim("a", DAY, at=NOW + timedelta(hours=hours)), now=NOW)
    beating, still = Clock(), Clock()
    beating.meanwhile = lambda: claims.renew("a", "elsewhere 1 0.0")
    assert len(claims_of(layout, now=NOW, waiting=Waiting(beating, beating.wait))) == 1
    assert claims_of(layout, now=NOW, waiting=Waiting(still, still.wait)) == ()
    assert (len(beating.waits), sum(still.waits)) == (1, 90)


def test_beats_leave_no_more_ids_behind_than_were_held_at_once(layout: Layout) -> None:
    """An id for each run would stay in every checkpoint for ever."""
    claims = Claims.ensure(layout)
    for number in range(6):
        for run in (f"{number}", f"{number} beside"):
            claims.take(claim(run, DAY if run.isdigit() else NEXT, process=own_process_name()), now=NOW)
            assert claims.renew(run, own_process_name())
        assert [each.beat for each in claims.read()] == [number + 1, number + 1]
        for run in (f"{number}", f"{number} beside"):
            claims.release(run, own_process_name())
    table = claims.decisions.table
    log = (table.root / "_delta_log").glob("*.json")
    ids = {
        json.loads(line).get("txn", {}).get("appId") for file in log for line in file.read_text().splitlines()
    }
    assert ids == {None, "seamline.claims", "seamline.decided", f"{BEAT}1", f"{BEAT}2"}


def test_between_two_tasks_a_claim_holds_for_a_while_and_no_longer(layout: Layout) -> None:
    """Nobody beats then: clocks have to do, and none that is hours ahead."""
    claims = Claims.ensure(layout)
    for hours, ago, holds in ((0, 9, True), (0, 0, True), (0, 10, False), (2, 0, False), (-2, 0, False)):
        claims.take(claim("a", DAY, process=own_process_name()), now=NOW)
        claims.keep("a", own_process_name(), now=NOW + timedelta(hours=hours, milliseconds=3))
        assert bool(claims_of(layout, now=NOW + timedelta(minutes=ago, milliseconds=ago))) is holds


def test_a_foreign_optimize_takes_no_claim_away(layout: Layout) -> None:
    """Two would build the same interval."""
    claims = Claims.ensure(layout)
    claims.take(claim("a", DAY, process=own_process_name()), now=NOW)
    claims.take(claim("b", NEXT, process=own_process_name()), now=NOW)
    before = claims.read()
    DeltaTable(str(claims.decisions.table.root)).optimize.compact()
    assert Claims.ensure(layout).read() == before


def test_claims_of_an_earlier_release_hold(layout: Layout) -> None:
    """A build that was begun before an upgrade goes on, and renews in its own way."""
    old = pa.schema([("run", pa.string())])
    table, me = Table.ensure(layout.table("claims"), old), "elsewhere 1 0.0"
    first = {
        "run": "a",
        "owner": "o",
        "spans": [str(DAY)],
        "since": format_utc_instant(NOW),
        "until": format_utc_instant(NOW),
        "process": me,
    }
    table.append([], txns={APP: 1}, metadata={APP: json.dumps([first])})
    clock, claims = Clock(), Claims.ensure(layout)

    def renew() -> None:
        later = {**first, "until": format_utc_instant(NOW + timedelta(seconds=len(clock.waits)))}
        table.append([], txns={APP: table.refresh().version + 1}, metadata={APP: json.dumps([later])})

    clock.meanwhile = renew
    with pytest.raises(IntervalRunning):
        claims.take(claim("b", DAY), now=NOW, waiting=Waiting(clock, clock.wait))
    assert len(clock.waits) == 1
    clock.meanwhile = lambda: None
    claims.take(claim("b", DAY), now=NOW, waiting=Waiting(clock, clock.wait))
    assert [each.run for each in Claims.ensure(layout).read()] == ["b"]


def test_upkeep_keeps_the_newest_row_alone(layout: Layout) -> None:
    """What was claimed is of no use to anybody once it is given back."""
    claims = Claims.ensure(layout)
    for number in range(9):
        claims.take(claim(f"{number}", DAY, process=own_process_name()), now=NOW)
        claims.release(f"{number}", own_process_name())
    claims.take(claim("last", DAY, process=own_process_name()), now=NOW)
    before = claims.read()
    assert compact_decision_rows(claims.decisions, passing=STATES).packed == {"claims": 18}
    assert claims.decisions.table.actions().num_rows == 1
    assert Claims.ensure(layout).read() == before


def test_an_attempt_that_was_replaced_has_no_say(layout: Layout) -> None:
    """The scheduler may start a task again while its old process lives on."""
    claims = Claims.ensure(layout)
    claims.take(claim("a", DAY, process="elsewhere 1 0.0"), now=NOW)
    claims.take(claim("a", DAY, process="elsewhere 2 0.0"), now=NOW)
    assert not claims.renew("a", "elsewhere 1 0.0")
    claims.release("a", "elsewhere 1 0.0")
    assert [each.process for each in claims.read()] == ["elsewhere 2 0.0"]
    claims.keep("a", "elsewhere 2 0.0", now=NOW)
    claims.release("a")
    assert claims.read() == ()


def test_a_killed_process_of_this_host_holds_nothing(layout: Layout) -> None:
    """After kill -9 the next run begins at once."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    claims, clock = Claims.ensure(layout), Clock()
    claims.take(claim("a", DAY, process=name_process(child.pid)), now=NOW)
    with pytest.raises(IntervalRunning):
        claims.take(claim("b", DAY), now=NOW, waiting=Waiting(clock, clock.wait))
    child.kill()
    child.wait()
    assert child.stdin
    child.stdin.close()
    claims.take(claim("b", DAY), now=NOW, waiting=Waiting(clock, clock.wait))
    assert clock.waits == []


def test_a_block_holds_renews_and_gives_back(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of hours is not taken for a dead one; a failed one is given back at once."""
    monkeypatch.setattr(module, "RENEWED_EVERY", 0.01)
    renewed = threading.Event()
    renew = Claims.renew

    def seen(self: Claims, run: str, process: str) -> bool:
        found = renew(self, run, process)
        renewed.set()
        return found

    monkeypatch.setattr(Claims, "renew", seen)

    def fail() -> None:
        with claim_intervals(layout, "a", "me", [DAY]):
            assert renewed.wait(30)
            with pytest.raises(IntervalRunning), claim_intervals(layout, "b", "you", [WEEK]):
                pass
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with claim_intervals(layout, "b", "you", [WEEK], hand_over=True):
        pass
    now = datetime.now(UTC)
    [left] = claims_of(layout, now=now)
    assert (left.run, left.process) == ("b", "")
    assert claims_of(layout, now=now + timedelta(hours=1)) == ()


def test_of_many_at_once_one_gets_it(layout: Layout) -> None:
    """The commit decides, not the reading before it."""
    Claims.ensure(layout)
    start, took = threading.Barrier(6), []

    def one(number: int) -> None:
        claims = Claims.ensure(layout)
        start.wait()
        try:
            claims.take(
                claim(f"run {number}", DAY if number % 2 else WEEK, process=own_process_name()), now=NOW
            )
        except IntervalRunning:
            return
        took.append(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(took) == 1
    assert [each.run for each in claims_of(layout, now=NOW)] == [f"run {took[0]}"]
