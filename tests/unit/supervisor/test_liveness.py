"""A driver that lives is not yet one that gets on."""

from __future__ import annotations

import json
from concurrent.futures import Future

import pytest
from tests.unit.shop import opened

from seamline.plan.stream.driver_progress import LastSeen, choose_patience, find_restart_reason, is_check_due
from seamline.supervisor import driver_watch
from seamline.supervisor.driver_watch import Watch

BEGAN = "2026-01-01T00:00:00Z"


def test_every_epoch_begins_the_time_anew():
    """Two minutes without one, and not two minutes since the start."""
    behind = LastSeen("", 0).add_look("7", 10).add_look("7", 50).add_lag(5, 55).add_look("8", 60)
    assert behind == LastSeen("8", 60, signs=2)
    assert not is_check_due(behind, 89, 120)
    assert is_check_due(behind, 90, 120)
    assert choose_patience(behind, stuck_after=120, starts_within=300) == 120
    for cold in (LastSeen("", 0), LastSeen("7", 0, signs=1)):
        assert choose_patience(cold, stuck_after=120, starts_within=300) == 300


@pytest.mark.parametrize(
    ("mark", "lags", "why"),
    [
        ("7", {30: 0, 60: 0, 90: 0, 200: 0}, ""),
        ("7", {30: None, 60: None, 200: None}, ""),
        ("7", {30: 5, 60: 5, 90: 9, 120: 9, 150: 9}, "stuck: no epoch for 150 s, with 9 records to read"),
        ("7", {30: 0, 149: 0, 150: 60}, ""),
        ("7", {30: 5, 60: None, 150: 5}, ""),
        ("", {}, "not up within 150 s"),
    ],
)
def test_a_driver_is_stuck_only_where_there_was_something_to_read_all_the_time(mark, lags, why):
    """An idle topic makes no epochs, and a broker that does not answer is not the driver's fault."""
    seen = LastSeen(mark, 0)
    for at, lag in lags.items():
        seen = seen.add_lag(lag, at)
    assert why in find_restart_reason(seen, 150, 120)
    assert bool(find_restart_reason(seen, 150, 120)) == bool(why)


def test_records_that_come_to_an_idle_topic_are_given_their_time(watch):
    """A topic is quiet for an hour; the driver that reads its next record a second later is not to be killed."""
    beat(watch)
    watch.is_stuck(1)
    beat(watch, epoch=2)
    watch.told = 0
    assert not any(watch.is_stuck(at) for at in range(2, 3600))
    watch.told = 60
    assert not any(watch.is_stuck(at) for at in range(3600, 3700))
    beat(watch, epoch=3)
    watch.told = 0
    assert not any(watch.is_stuck(at) for at in range(3700, 4000))


@pytest.fixture
def watch(tmp_path, warehouse, monkeypatch):
    """A watch over token 3, with a broker that tells of 5 records to read."""
    shop = opened(tmp_path, monkeypatch, warehouse)
    made = Watch(shop.compiled, shop.layout, tmp_path, 3, 0.0)
    made.told = 5
    heartbeat(made).parent.mkdir(parents=True)

    def asked(*_):
        answer: Future[int | None] = Future()
        answer.set_result(made.told)
        return answer

    monkeypatch.setattr(made.threads, "submit", asked)
    yield made
    made.close()


def heartbeat(watch):
    return watch.home / "streams" / watch.pipeline.name / "driver.json"


def beat(watch, **facts):
    said = {"pid": 1, "token": 3, "epoch": 1, "at": BEGAN, "state": "running", "lag": {}, **facts}
    heartbeat(watch).write_text(json.dumps(said))


def test_a_driver_that_holds_no_epoch_is_found(watch):
    """By its heartbeat; the one that an earlier driver left says nothing."""
    beat(watch, token=2)
    assert not watch.is_stuck(2)
    assert watch.seen.mark == ""
    beat(watch)
    assert [watch.is_stuck(at) for at in (4, 100, 123)] == [False, False, False]
    beat(watch, epoch=2)
    assert not any(watch.is_stuck(at) for at in range(125, 270))
    assert any(watch.is_stuck(at) for at in range(270, 280))
    assert "5 records" in watch.why


def test_a_driver_has_got_on_once_it_holds_an_epoch(watch):
    """Also where it ended before the next look: then its strikes are forgiven."""
    beat(watch)
    assert not watch.is_stuck(2)
    assert not watch.held
    beat(watch, epoch=2)
    assert watch.held


def test_a_paused_driver_gets_on_by_saying_so(watch):
    """It holds no epoch, and shall not."""
    for at in range(0, 1000, 100):
        beat(watch, state="paused", at=BEGAN.replace("00:00:00", f"00:00:{at // 100:02}"))
        assert not watch.is_stuck(at)


def test_a_broken_heartbeat_is_none(watch):
    """A disk that was full leaves half a file."""
    heartbeat(watch).write_text("{")
    assert watch.mark() == ""
    heartbeat(watch).write_text('{"token": 3}')
    assert watch.mark() == ""
    assert driver_watch.STARTS_WITHIN > 60
