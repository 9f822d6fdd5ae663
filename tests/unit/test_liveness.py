"""A driver that lives is not yet one that gets on."""

from __future__ import annotations

import json
from concurrent.futures import Future

import pytest
from tests.unit.shop import opened

from seamline.plan.liveness import Seen, overdue, verdict
from seamline.supervisor import liveness
from seamline.supervisor.liveness import Watch

BEGAN = "2026-01-01T00:00:00Z"


def test_every_epoch_begins_the_time_anew():
    """Two minutes without one, and not two minutes since the start."""
    seen = Seen("", 0).look("7", 10).look("7", 50).look("8", 60)
    assert seen == Seen("8", 60, signs=2)
    assert not overdue(seen, 179, stuck_after=120, starts_within=300)
    assert overdue(seen, 180, stuck_after=120, starts_within=300)
    for cold in (Seen("", 0), Seen("7", 0, signs=1)):
        assert not overdue(cold, 299, stuck_after=120, starts_within=300)
        assert overdue(cold, 300, stuck_after=120, starts_within=300)


@pytest.mark.parametrize(
    ("mark", "lag", "why"),
    [
        ("7", 0, ""),
        ("7", None, ""),
        ("7", 5, "stuck: no epoch for 120 s, with 5 records to read"),
        ("", None, "not up within 120 s"),
    ],
)
def test_a_driver_is_stuck_only_where_there_is_something_to_read(mark, lag, why):
    """An idle topic makes no epochs, and a broker that does not answer is not the driver's fault."""
    assert why in verdict(Seen(mark, 0), 120, lag)
    assert bool(verdict(Seen(mark, 0), 120, lag)) == bool(why)


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """A watch over token 3, with a broker that tells of 5 records to read."""
    shop = opened(tmp_path, monkeypatch)
    told: Future[int | None] = Future()
    told.set_result(5)
    made = Watch(shop.compiled, shop.layout, tmp_path, 3, 0.0)
    heartbeat(made).parent.mkdir(parents=True)
    monkeypatch.setattr(made.threads, "submit", lambda *_: told)
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
    assert not watch.stuck(2)
    assert watch.seen.mark == ""
    beat(watch)
    assert [watch.stuck(at) for at in (4, 100, 123)] == [False, False, False]
    beat(watch, epoch=2)
    assert [watch.stuck(at) for at in (125, 200, 244)] == [False, False, False]
    assert not watch.stuck(245), "Kafka is asked"
    assert watch.stuck(247)
    assert "5 records" in watch.why


def test_a_driver_has_got_on_once_it_holds_an_epoch(watch):
    """Also where it ended before the next look: then its strikes are forgiven."""
    beat(watch)
    assert not watch.stuck(2)
    assert not watch.held
    beat(watch, epoch=2)
    assert watch.held


def test_a_paused_driver_gets_on_by_saying_so(watch):
    """It holds no epoch, and shall not."""
    for at in range(0, 1000, 100):
        beat(watch, state="paused", at=BEGAN.replace("00:00:00", f"00:00:{at // 100:02}"))
        assert not watch.stuck(at)


def test_a_broken_heartbeat_is_none(watch):
    """A disk that was full leaves half a file."""
    heartbeat(watch).write_text("{")
    assert watch.mark() == ""
    heartbeat(watch).write_text('{"token": 3}')
    assert watch.mark() == ""
    assert liveness.STARTS_WITHIN > 60
