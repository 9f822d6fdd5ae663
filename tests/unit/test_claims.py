"""Claims: two runs never build the same interval at once, and nobody waits for the dead."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from seamline.lake import claims as table
from seamline.lake.claims import TTL, Claims, alive, claims_of, holding, myself
from seamline.lake.layout import Layout
from seamline.model.claims import Claim
from seamline.model.errors import IntervalRunning
from seamline.model.intervals import Interval

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
    with pytest.raises(
        IntervalRunning, match=r"2024-01-01T00:00:00Z/2024-01-02.* is being built by run a of owner of a"
    ):
        claims.take(claim("c", NEXT, DAY), now=NOW)
    assert claims_of(layout, now=NOW) == (claim("a", WEEK), claim("b", NEXT))
    claims.release("a", "elsewhere 1 0.0", now=NOW)
    claims.take(claim("c", DAY), now=NOW)
    assert [each.run for each in claims.read()] == ["b", "c"]


def test_a_retry_of_the_same_run_goes_on_at_once(layout: Layout) -> None:
    """A cleared or retried task is the same run; it must not wait for itself."""
    claims = Claims.ensure(layout)
    claims.take(claim("a", DAY), now=NOW)
    claims.take(claim("a", WEEK), now=NOW)
    assert [each.spans for each in claims.read()] == [(WEEK,)]


def test_what_nobody_renews_runs_out(layout: Layout) -> None:
    """A run whose host is gone must not block for ever."""
    claims, later = Claims.ensure(layout), NOW + TTL
    me = "elsewhere 1 0.0"
    claims.take(claim("a", DAY), now=NOW)
    half = NOW + TTL / 2
    assert claims.renew("a", me, now=half)
    with pytest.raises(IntervalRunning):
        claims.take(claim("b", DAY, at=later), now=later)
    claims.take(claim("b", DAY, at=half + TTL), now=half + TTL)
    assert not claims.renew("a", me, now=half + TTL)


def test_an_attempt_that_was_replaced_has_no_say(layout: Layout) -> None:
    """The scheduler may start a task again while its old process lives on."""
    claims = Claims.ensure(layout)
    claims.take(claim("a", DAY, process="elsewhere 1 0.0"), now=NOW)
    claims.take(claim("a", DAY, process="elsewhere 2 0.0"), now=NOW)
    assert not claims.renew("a", "elsewhere 1 0.0", now=NOW)
    claims.release("a", "elsewhere 1 0.0", now=NOW)
    assert [each.process for each in claims.read()] == ["elsewhere 2 0.0"]
    claims.hand_over("a", "elsewhere 2 0.0", now=NOW)
    claims.release("a", now=NOW)
    assert claims.read() == ()


def test_a_killed_process_of_this_host_holds_nothing() -> None:
    """After kill -9 the next run begins at once; a process id that was given again is another process."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    host = myself().partition(" ")[0]
    held = claim("a", DAY, process=f"{host} {child.pid} {psutil.Process(child.pid).create_time()}")
    assert alive([held], now=NOW) == (held,)
    assert alive([replace(held, process=f"{host} {child.pid} 1.5")], now=NOW) == ()
    child.kill()
    child.wait()
    assert child.stdin
    child.stdin.close()
    assert alive([held], now=NOW) == ()


def test_a_block_holds_renews_and_gives_back(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of hours is not taken for a dead one; a failed one is given back at once."""
    monkeypatch.setattr(table, "RENEWED_EVERY", 0.01)
    renewed = threading.Event()
    renew = Claims.renew

    def seen(self: Claims, run: str, process: str, *, now: datetime) -> bool:
        found = renew(self, run, process, now=now)
        renewed.set()
        return found

    monkeypatch.setattr(Claims, "renew", seen)

    def fail() -> None:
        with holding(layout, "a", "me", [DAY]):
            assert renewed.wait(30)
            with pytest.raises(IntervalRunning), holding(layout, "b", "you", [WEEK]):
                pass
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with holding(layout, "b", "you", [WEEK], hand_over=True):
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
            claims.take(claim(f"run {number}", DAY if number % 2 else WEEK), now=NOW)
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
