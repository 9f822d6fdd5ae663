"""How a stream is, decided from facts: every state by hand, lag and rates computed on paper."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.shop import sales_pipeline

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.status.marks import find_stale_reconcile, leave_mark
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.protocol.alert import AlertKind, Standing
from seamline.model.protocol.epoch import Epoch
from seamline.plan.spelling import format_duration, last_line
from seamline.plan.stream.observation import (
    Lag,
    Observation,
    Sample,
    ViewBehind,
    compute_record_rates,
    rows_per_second,
)
from seamline.plan.stream.stream_state import Actual, Driven, Facts, Leased, Supervised, actual_of
from seamline.plan.wording.observation_text import (
    format_observation_notes,
    format_observation_row,
    serialize_observation,
)
from seamline.spark.stream.epoch_writer import Writer
from seamline.supervisor.observe import observe
from seamline.supervisor.stream_logs import follow_log, last_lines
from seamline.supervisor.supervisor_heartbeat import Heartbeat, Identity

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def before(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


LONG_AGO = before(999)
BEAT = Supervised("here", True, "running", 7, before(3))
SAID = Driven(7, "running", before(4), alive=True)
UP = Facts("here", wanted=True, lease=Leased("here", 7), supervisor=BEAT, driver=SAID, committed_at=before(4))
DOWN = replace(UP, lease=None, supervisor=replace(BEAT, running=False), driver=replace(SAID, alive=False))


def with_state(state: str) -> Facts:
    return replace(UP, supervisor=replace(BEAT, state=state))


def stalled(*, up: datetime = LONG_AGO, caught_up: datetime | None = None, **more) -> Facts:
    """Return a stream that is up; its driver's last word is of just now, or of when it had read everything."""
    driver = replace(SAID, up=up)
    driver = replace(driver, at=caught_up, caught_up=True) if caught_up else driver
    return replace(UP, driver=driver, **more)


@pytest.mark.parametrize(
    ("facts", "actual", "detail"),
    [
        (UP, Actual.RUNNING, ""),
        (with_state("starting"), Actual.STARTING, ""),
        (with_state("restarting"), Actual.STARTING, ""),
        (with_state("stopping"), Actual.STOPPING, ""),
        (with_state("waiting 4 s after exit code 1"), Actual.WAITING, "exit code 1"),
        (replace(UP, driver=None), Actual.STARTING, ""),
        # What an earlier driver said is no sign of this one.
        (replace(UP, driver=replace(SAID, token=6)), Actual.STARTING, ""),
        (replace(UP, driver=replace(SAID, state="paused")), Actual.PAUSED, ""),
        (replace(UP, driver=replace(SAID, state="paused"), lag=9, committed_at=before(999)), Actual.PAUSED, ""),
        # Without lag there is nothing to do, for however long; with some there is after two minutes.
        (replace(UP, lag=0, committed_at=before(900)), Actual.RUNNING, ""),
        (stalled(lag=9, committed_at=before(119)), Actual.RUNNING, ""),
        (stalled(lag=9, committed_at=before(121)), Actual.STUCK, "9 rec"),
        # The first record after a quiet night is no sign of trouble, nor is a start over an old backlog.
        (stalled(lag=9, committed_at=before(900), waiting=before(5)), Actual.RUNNING, ""),
        (stalled(lag=9, committed_at=before(900), waiting=before(300)), Actual.STUCK, "9 rec"),
        (stalled(lag=9, committed_at=before(900), up=before(60)), Actual.RUNNING, ""),
        (stalled(lag=9, committed_at=before(900), caught_up=before(60)), Actual.RUNNING, ""),
        (replace(UP, supervisor=replace(BEAT, at=before(31))), Actual.STUCK, "has not beaten"),
        (replace(UP, lease=Leased("there", 9, elsewhere=True)), Actual.UNKNOWN, "host there"),
        (replace(UP, lease=Leased("here", 9, elsewhere=True)), Actual.UNKNOWN, "another container or machine"),
        (replace(UP, lease=Leased("", 9, elsewhere=True)), Actual.UNKNOWN, "on another machine"),
        # What a supervisor elsewhere has put where everybody reads it is believed while its lease is seen to live.
        (replace(UP, lease=Leased("there", 7, elsewhere=True)), Actual.RUNNING, "runs on host there"),
        (
            replace(UP, lease=Leased("there", 7, elsewhere=True), supervisor=replace(BEAT, at=before(999))),
            Actual.RUNNING,
            "runs on host there",
        ),
        (replace(UP, unread="driver.json: JSONDecodeError"), Actual.UNKNOWN, "JSONDecodeError"),
        (DOWN, Actual.GONE, "died"),
        # The lease outlives its holder by some seconds, and belongs to another by then.
        (replace(DOWN, lease=Leased("here", 7)), Actual.GONE, "died"),
        (replace(DOWN, lease=Leased("here", 8)), Actual.STARTING, "has the lease"),
        (replace(DOWN, supervisor=replace(BEAT, running=False, state="gave up")), Actual.GONE, "gave up"),
        (replace(DOWN, supervisor=None), Actual.GONE, "ever started"),
        (replace(DOWN, driver=SAID), Actual.RUNNING, "no supervisor"),
        (replace(DOWN, driver=replace(SAID, state="stopped")), Actual.GONE, "died"),
        (replace(DOWN, wanted=False), Actual.STOPPED, ""),
        (Facts("here", wanted=False), Actual.STOPPED, ""),
    ],
)  # fmt: skip
def test_what_a_stream_does_follows_from_who_says_what(facts, actual, detail):
    """Whoever is called at night must be able to believe the word."""
    found, why = actual_of(facts, now=NOW)
    assert found is actual
    assert detail in why
    assert detail or not why


def test_a_lag_ends_after_lag_over_what_is_read_more_than_arrives():
    """600 records wait, 30 arrive in a second and 50 are read: 600 / 20 = 30 s."""
    assert compute_record_rates(Sample(before(10), 100, 300), Sample(NOW, 600, 600)) == (30.0, 50.0)
    assert Lag(600, arriving=30.0, drained=50.0).catch_up == 30.0
    # As much as is read in five seconds is no backlog: the next epochs take it.
    assert Lag(250, arriving=50.0, drained=50.0).catch_up == 5.0
    assert Lag(251, arriving=50.0, drained=50.0).catch_up == math.inf
    assert Lag(251, arriving=50.0, drained=0.0).growing
    # Nothing comes and nothing is read: it does not end, and does not grow.
    assert Lag(251, arriving=0.0, drained=0.0).catch_up == math.inf
    assert not Lag(251, arriving=0.0, drained=0.0).growing
    assert Lag(0).catch_up == 0.0
    assert Lag(600).catch_up is None
    assert Lag().catch_up is None


def test_a_rate_needs_two_instants():
    """Two samples of the same moment tell nothing, and a division by zero less."""
    assert compute_record_rates(None, Sample(NOW, 1, 1)) == (None, None)
    assert compute_record_rates(Sample(NOW, 0, 0), Sample(NOW, 1, 1)) == (None, None)


def epoch(number: int, at: datetime, rows: int, **more) -> Epoch:
    return Epoch(number, 1, at, "v", accepted={"2026-03-01": rows}, **more)


def test_rows_per_second_are_those_of_the_last_minute():
    """A stream that has stopped an hour ago reads nothing now."""
    log = [epoch(n, before(120 - 30 * n), 600) for n in range(4)]
    # -120    -90    -60    -30    now: after the minute's start only the last is counted.
    assert rows_per_second(log, now=NOW) == 10.0
    # A stream that is half a minute old: its first epoch only says since when.
    assert rows_per_second([*log[3:], epoch(4, before(10), 300)], now=NOW) == 10.0
    assert rows_per_second(log, now=NOW + timedelta(hours=1)) == 0.0
    assert rows_per_second([], now=NOW) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (12, "12 s"), (99, "99 s"), (180, "3 min"), (7200, "2 h"), (7500, "2 h 5 min"),
     (3 * 86400, "3 d")],
)  # fmt: skip
def test_spans_are_written_for_people(seconds, text):
    """Nobody divides 7500 by 3600 at night."""
    assert format_duration(seconds) == text


RAISED = Standing(AlertKind.LAG, "", "1,234 records", raised=True, at=before(60))
OBSERVED = Observation(
    "orders", NOW, "running", "ada", "sale", Actual.WAITING, "waiting 4 s after exit code 1", 41, before(30),
    Lag(1234, 95.0, NOW, True, {("shop.orders", 0): 1234}, 50.0, 10.0), before(600), 12.4, 3, 2,
    "exit code 1\nTraceback\nKafkaUnavailable: no broker", {"by_customer/ab": ViewBehind(30, "overflow")},
    ("partition 0 of topic id T: offsets 3..5",), before(3600), True, (RAISED,),
    ("ledger: gone",),
)  # fmt: skip


def test_a_row_and_its_notes_say_everything():
    """The list is the first and often the only thing that is looked at."""
    assert format_observation_row(OBSERVED) == {
        "pipeline": "orders",
        "desired": "running",
        "actual": "waiting",
        "epoch": "41",
        "committed": "30 s ago",
        "lag": "1,234",
        "oldest unread": "95 s",
        "caught up in": "growing",
        "watermark": "2026-03-01T11:50:00Z",
        "behind by": "10 min",
        "rows/s": "12",
        "restarts": "3",
    }
    assert list(format_observation_notes(OBSERVED)) == [
        "waiting 4 s after exit code 1",
        "running by ada: sale",
        "ALERT growing_lag: 1,234 records (since 2026-03-01T11:59:00Z)",
        "2 failures in a row",
        "last error: exit code 1; KafkaUnavailable: no broker",
        "view by_customer/ab is complete to epoch 30 only: overflow",
        "hole, not decided: partition 0 of topic id T: offsets 3..5; see `seamline holes list orders`",
        "not reconciled since 2026-03-01T11:00:00Z: is the DAG seamline__reconcile paused?",
        "not known, ledger: gone",
    ]
    assert set(format_observation_row(Observation("p", NOW)).values()) == {"p", "unset", "unknown", "?"}


def test_json_has_all_of_it():
    """Scripts read it; an infinite number is no JSON."""
    told = json.loads(json.dumps(serialize_observation(OBSERVED), allow_nan=False))
    assert told["lag"]["partitions"] == {"shop.orders/0": 1234}
    assert told["lag"]["growing"] is True
    assert told["lag"]["catch_up_seconds"] is None
    assert told["watermark_age"] == 600.0
    assert json.loads(json.dumps(serialize_observation(Observation("p", NOW))))["lag"]["records"] is None


def test_an_errors_last_words_are_its_own():
    """Between exit code and message lies a stack that nobody reads in a list."""
    text = "exit code 13\nTraceback\nKafka has deleted records.\n\nHint: accept the hole."
    assert last_line(text) == "exit code 13; Kafka has deleted records.; Hint: accept the hole."
    assert last_line("") == ""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_looking_at_what_is_not_there_makes_nothing(home, tmp_path):
    """A list of streams is no reason for folders and tables to appear."""
    found = observe("p", Layout(tmp_path / "warehouse", "p"), None)
    assert (found.actual, found.epoch, found.lag.records, found.unread) == (Actual.STOPPED, None, None, ())
    assert not list(tmp_path.iterdir())


def test_a_broken_heartbeat_is_unknown_and_no_traceback(home, tmp_path):
    """A file that is half written, or another release's, must not take the list of all the others away."""
    layout = Layout(tmp_path / "warehouse", "p")
    folder = home / "streams" / "p"
    folder.mkdir(parents=True)
    ControlTable.ensure(layout).want(Desired.RUNNING, actor="ada", reason="", now=NOW)
    for name, text in [("supervisor.json", "{"), ("driver.json", "[]"), ("supervisor.json", '{"pid": 1}')]:
        (folder / name).write_text(text)
        found = observe("p", layout, None)
        assert found.actual is Actual.UNKNOWN
        assert any(each.startswith(name) for each in found.unread)
        (folder / name).unlink()
    assert observe("p", layout, None).actual is Actual.GONE


def test_a_broken_table_is_unknown_too(home, tmp_path):
    """Whatever is wrong with the warehouse, the list says what it still can."""
    layout = Layout(tmp_path / "warehouse", "p")
    log = layout.table("control") / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("no JSON\n")
    found = observe("p", layout, None)
    assert (found.actual, found.desired) == (Actual.UNKNOWN, "unknown")
    assert found.unread[0].startswith("control: ")


def test_a_driver_s_words_are_taken_with_their_age(home, tmp_path):
    """While no broker is asked the lag is the heartbeat's, and says of when it is."""
    layout = Layout(tmp_path / "warehouse", "p")
    control = ControlTable.ensure(layout)
    control.want(Desired.RUNNING, actor="ada", reason="", now=NOW)
    now = datetime.now(UTC)
    token = control.take("here:1:1", now=now).token
    Heartbeat("p", Identity.of(os.getpid()), token, "running", now, starts=3).write(
        (home / "streams" / "p").mkdir(parents=True) or home, now=now
    )
    said = {"pid": os.getpid(), "token": token, "epoch": 4, "state": "running", "lag": {"T/0": 40, "T/1": 2}}
    said |= {"topics": {"T": "shop.orders"}, "errors": {"v/1": "boom"}}
    said |= {"earlier": {"at": "2026-03-01T11:59:00Z", "read": 0, "end": 60}}
    said |= {"reached": {"at": "2026-03-01T12:00:00Z", "read": 120, "end": 162}, "at": "2026-03-01T12:00:00Z"}
    (home / "streams" / "p" / "driver.json").write_text(json.dumps(said))
    leave_mark(Layout(tmp_path, "p"), "reconciled", now=now - timedelta(hours=1))
    found = observe("p", layout, None)
    assert found.lag == Lag(
        42, None, NOW, False, {("shop.orders", 0): 40, ("shop.orders", 1): 2}, arriving=1.7, drained=2.0
    )
    assert "ago" in format_observation_row(found)["lag"]
    assert found.restarts == 2
    assert found.silenced


def test_logs_go_on_in_rotated_files(tmp_path):
    """What happened an hour ago is in the file that was moved away meanwhile."""
    log = tmp_path / "driver.log"
    assert last_lines(log, 5) is None
    for name, text in [(".2", "1\n2\n"), (".1", "3\n4\n"), ("", "5\nlast without an end")]:
        (tmp_path / f"driver.log{name}").write_text(text)
    assert last_lines(log, 4) == ["3", "4", "5", "last without an end"]
    assert last_lines(log, 99) == ["1", "2", "3", "4", "5", "last without an end"]
    assert last_lines(log, 0) == []
    (tmp_path / "driver.log.1").write_text("long\n" * 50_000)
    assert last_lines(log, 30_000) == ["long"] * 29_998 + ["5", "last without an end"]


def test_following_a_log_follows_its_rotation(tmp_path):
    """A driver that is started anew may write into another file, and one that runs has its own emptied."""
    log = tmp_path / "driver.log"
    log.write_text("before\n")

    def add(text):
        with log.open("a") as file:
            file.write(text)

    steps = iter(
        [
            lambda: add("one\n"),
            lambda: (add("two\n"), log.rename(tmp_path / "driver.log.1")),
            lambda: add("three\n"),
            lambda: (os.truncate(log, 0), add("4\n")),
        ]
    )
    found = follow_log(log, wait=lambda: next(steps)())
    assert "".join(next(found) for _ in range(4)) == "one\ntwo\nthree\n4\n"
    found.close()


def test_whoever_shows_state_says_that_nobody_reconciles(home, tmp_path):
    """A DAG that was paused a week ago looks like everything is well, until the stream dies."""
    assert find_stale_reconcile(Layout(tmp_path, "p"), now=NOW) is None
    leave_mark(Layout(tmp_path, "p"), "reconciled", now=NOW)
    assert find_stale_reconcile(Layout(tmp_path, "p"), now=NOW + timedelta(minutes=10)) is None
    assert find_stale_reconcile(Layout(tmp_path, "p"), now=NOW + timedelta(minutes=11)) == NOW


def test_a_view_that_is_set_aside_is_named_with_its_error(home, tmp_path):
    """The rest goes on; whoever mends the view must learn of it without reading logs."""
    pipeline, layout = sales_pipeline(), Layout(tmp_path / "warehouse", "shop")
    writer = Writer(layout, pipeline, 1)
    (view,) = writer.pipeline.views
    for failed in ({}, {view.id: "DivideByZero: boom"}):
        epoch = Epoch(writer.take_number(), 1, NOW, pipeline.record_version)
        writer.commit(epoch, KernelResult(failed=failed), writer.current)
    said = {"pid": 1, "token": 1, "epoch": 1, "state": "running", "at": "2026-03-01T12:00:00Z", "lag": {}}
    (home / "streams" / "shop").mkdir(parents=True)
    (home / "streams" / "shop" / "driver.json").write_text(json.dumps({**said, "errors": writer.errors}))
    found = observe("shop", layout, pipeline, broker=False)
    assert found.epoch == 1
    assert found.behind == {view.id: ViewBehind(0, "DivideByZero: boom")}
    assert found.rows_per_second == 0.0
