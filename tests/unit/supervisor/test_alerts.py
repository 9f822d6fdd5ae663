"""Alerts: what holds long enough is told once, and once more when it is over; whoever looks, and however often."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.shop import sales_pipeline

from seamline.lake.status.marks import REFUSED, leave_mark
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.fingerprint import fingerprint_view
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.protocol.alert import AlertKind, AlertStatement, Standing
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.alerts import PATIENCE, decide_alerts, find_stream_problems
from seamline.plan.stream.ask_counts import AskCount
from seamline.plan.stream.observation import Lag, Observation, ViewBehind, count_astray_records
from seamline.plan.stream.rule_counts import RuleCount
from seamline.plan.stream.stream_state import Actual
from seamline.supervisor import alert_notification as telling
from seamline.supervisor.alert_notification import WEBHOOK, channels_of, deliver_alerts, notify_alerts
from seamline.supervisor.board import Board, Notification

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FINE = Observation(
    "p", NOW, "running", actual=Actual.RUNNING, epoch=9, lag=Lag(0), holes=(), disk_free=0.5, committed_at=NOW
)
GROWS = Lag(900, 9.0, NOW, True, {}, arriving=30.0, drained=20.0)
AWAY = AskCount(waiting=7, away=120.0, trouble="timeout")


def kinds(observation: Observation) -> set[AlertKind]:
    return {kind for kind, subjects in find_stream_problems(observation).items() if subjects}


def test_the_partition_of_a_wrong_clock_is_named():
    """Of the newest epochs, by topic where the driver has told its name; a few wrong clocks are everybody's."""
    lanes = {Lane("T", 3): 90, Lane("U", 0): 200, Lane("T", 1): 7}
    old = Epoch(1, 1, NOW - timedelta(minutes=11), "v", astray={Lane("T", 1): 5_000})
    recent = [old, *(Epoch(at, 1, NOW - timedelta(minutes=3), "v", astray=lanes) for at in (2, 3))]
    counts = count_astray_records(recent, {"T": "sales"}, now=NOW)
    assert counts == {("sales", 3): 180, ("U", 0): 400, ("sales", 1): 14}
    assert set(find_stream_problems(replace(FINE, astray=counts))[AlertKind.CLOCK] or ()) == {
        "sales/3",
        "U/0",
    }
    assert find_stream_problems(FINE)[AlertKind.CLOCK] is None


def test_a_system_that_answers_is_no_finding():
    """However many rows wait, and whatever a call has failed with."""
    busy = AskCount(waiting=900, failures=3, trouble="timeout")
    assert find_stream_problems(replace(FINE, asks={"scored": busy}))[AlertKind.ASKS] == {}
    assert find_stream_problems(FINE)[AlertKind.ASKS] is None


def test_what_no_driver_says_of_rules_ends_no_alert():
    """A host whose report cannot be read has perhaps too many rules yet."""
    assert find_stream_problems(FINE)[AlertKind.RULES] is None
    assert find_stream_problems(replace(FINE, rules={"limits": RuleCount(9, 0)}))[AlertKind.RULES] == {}


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"actual": Actual.GONE, "detail": "its supervisor died"}, AlertKind.STALE, "gone (its supervisor died)"),
        ({"actual": Actual.WAITING}, AlertKind.STALE, "waiting"),
        ({"actual": Actual.STUCK, "lag": Lag(7)}, AlertKind.STALE, "7 records to read"),
        ({"lag": GROWS}, AlertKind.LAG, "900 records, 30 a second arrive and 20 are read"),
        ({"holes": ("offsets 3..5", "offsets 8..9")}, AlertKind.HOLE, "offsets 3..5; offsets 8..9"),
        ({"behind": {"v/1": ViewBehind(4, "boom")}}, AlertKind.VIEW, "complete to epoch 4 of 9: boom"),
        ({"refused": NOW - timedelta(minutes=9), "refusal": "held by b"}, AlertKind.LEASE, "held by b"),
        ({"given_up": True, "strikes": 20, "last_error": "exit code 1"}, AlertKind.GAVE_UP, "20 failures in a row: e"),
        ({"given_up": True, "strikes": 1, "last_error": "exit code 1"}, AlertKind.GAVE_UP, "1 failure: exit code 1"),
        ({"disk_free": 0.049}, AlertKind.DISK, "4.9% of"),
        ({"astray": {("sales", 3): 1234}}, AlertKind.CLOCK, "1,234 records of the newest epochs were"),
        ({"rules": {"limits": RuleCount(9, 1)}}, AlertKind.RULES, "1 rule is not in force in look-up limits"),
        ({"asks": {"scored": AWAY}}, AlertKind.ASKS, "no answer for 2 min, 7 rows wait: timeout"),
    ],
)  # fmt: skip
def test_each_trouble_is_found_and_named(change, kind, words):
    """The message is read on a telephone: it says what is wrong by itself."""
    found = replace(FINE, **change)
    assert kinds(found) == {kind}
    assert any(words in message for message in (find_stream_problems(found)[kind] or {}).values())


def test_what_is_as_it_should_be_is_no_finding():
    """A stream that somebody has stopped is not stale, nor is what happened long ago."""
    assert kinds(FINE) == set()
    stopped = replace(FINE, desired="stopped", actual=Actual.STOPPED, lag=GROWS, given_up=True)
    assert kinds(stopped) == set()
    assert kinds(replace(FINE, refused=NOW - timedelta(minutes=11))) == set()


def test_what_nobody_can_tell_is_neither_found_nor_over():
    """A broker that is away for a minute must not clear a hole, nor a broken file the rest."""
    told = find_stream_problems(Observation("p", NOW))
    assert {kind for kind, found in told.items() if found is None} == {
        AlertKind.STALE,
        AlertKind.LAG,
        AlertKind.HOLE,
        AlertKind.VIEW,
        AlertKind.DISK,
        AlertKind.CLOCK,
        AlertKind.RULES,
        AlertKind.ASKS,
        AlertKind.EXPIRY,
        AlertKind.SINK,
    }
    raised = {(AlertKind.HOLE, ""): Standing(AlertKind.HOLE, "", "gone", raised=True, at=NOW)}
    assert decide_alerts(told, raised, now=NOW + timedelta(days=1)) == (raised, [])
    # Between full and free it stays what it was.
    assert find_stream_problems(replace(FINE, disk_free=0.06))[AlertKind.DISK] is None


def run(kind: AlertKind, looks: str, *, every: float = 10) -> str:
    """Look every so many seconds (``x`` holds, ``.`` does not, ``?`` cannot be told); draw what was told."""
    standing, drawn = {}, ""
    for number, look in enumerate(looks):
        found = {kind: None if look == "?" else {"": "m"} if look == "x" else {}}
        standing, told = decide_alerts(found, standing, now=NOW + timedelta(seconds=number * every))
        drawn += {(): " ", (True,): "R", (False,): "C"}[tuple(each.raised for each in told)]
    return drawn


def test_an_alert_is_raised_and_cleared_once_and_does_not_flap():
    """Two minutes before it is told, half a minute before it is over; in between nothing is said."""
    assert run(AlertKind.STALE, "xxxxxxxxxxxxxxxx......") == "            R      C  "
    # Nothing of this lasts long enough.
    assert run(AlertKind.STALE, "xxxxxxxxxxx.xxxxxxxxxxx.") == " " * 24
    assert run(AlertKind.STALE, "xxxxxxxxxxxxx..x..x..x..") == "            R           "
    assert run(AlertKind.HOLE, "x..x") == "RC R"


def test_not_knowing_keeps_what_was_begun():
    """A minute without an answer neither proves nor ends anything."""
    assert run(AlertKind.STALE, "x?????????????x") == "              R"
    assert run(AlertKind.HOLE, "x????.") == "R    C"


@given(
    looks=st.text("x.?", max_size=80),
    kind=st.sampled_from(list(AlertKind)),
    every=st.sampled_from([1, 7, 40, 200]),
)
def test_raised_and_cleared_alternate_and_follow_what_was_seen(looks, kind, every):
    """Whatever is seen: raised first, never twice, and never while the opposite was just seen."""
    drawn = run(kind, looks, every=every)
    told = drawn.replace(" ", "")
    assert told == ("RC" * len(told))[: len(told)]
    assert all(looks[at] == ("x" if said == "R" else ".") for at, said in enumerate(drawn) if said != " ")
    # What holds from some moment on, for long enough, is raised in the end.
    tail = len(looks) - len(looks.rstrip("x"))
    if (tail - 1) * every >= PATIENCE[kind].before.total_seconds() and tail:
        assert told.endswith("R")


def test_who_looks_last_clears_at_once_and_raises_nothing_sooner():
    """A stream that is stopped has nobody who would take its alert back half a minute later."""
    raised = {(AlertKind.STALE, ""): Standing(AlertKind.STALE, "", "m", raised=True, at=NOW)}
    standing, told = decide_alerts(
        {AlertKind.STALE: {}, AlertKind.LAG: {"": "m"}}, raised, now=NOW, last=True
    )
    assert [(each.alert, each.state) for each in told] == [("stale_stream", "cleared")]
    assert [each.raised for each in standing.values()] == [False]


def test_each_view_has_an_alert_of_its_own():
    """One that is mended says so while another is still behind; one that is retired is over."""
    both = replace(FINE, behind={"a/1": ViewBehind(4), "b/1": ViewBehind(5)})
    standing, _ = decide_alerts(find_stream_problems(both), {}, now=NOW)
    standing, told = decide_alerts(find_stream_problems(both), standing, now=NOW + timedelta(minutes=1))
    assert [each.alert for each in told] == ["view_set_aside/a/1", "view_set_aside/b/1"]
    left = replace(FINE, behind={"b/1": ViewBehind(5)})
    standing, told = decide_alerts(find_stream_problems(left), standing, now=NOW + timedelta(minutes=3))
    assert [(each.alert, each.state, each.message) for each in told] == [
        ("view_set_aside/a/1", "cleared", "over after 2 min: complete to epoch 4 of 9")
    ]
    assert list(standing) == [(AlertKind.VIEW, "b/1")]


def test_the_board_is_written_and_read_back(tmp_path):
    """It survives restarts of everybody; a broken one costs a repetition, not the alerts."""
    statement = AlertStatement(AlertKind.VIEW, "v/1", raised=True, message="m", at=NOW)
    board = Board(
        {(AlertKind.VIEW, "v/1"): Standing(AlertKind.VIEW, "v/1", "m", raised=True, at=NOW, since=None)},
        (Notification(statement, "webhook", NOW), Notification(statement, "on_alert")),
    )
    (tmp_path / "alerts.json").write_text(board.to_json())
    assert Board.read(tmp_path) == board
    (tmp_path / "alerts.json").write_text("{")
    assert Board.read(tmp_path) == Board({})
    assert Board.read(tmp_path / "nowhere") == Board({})


def test_a_kind_that_only_another_release_knows_costs_no_other_alert() -> None:
    """While machines are upgraded one after the other, each look of the older ones would have all sent again."""
    statement = AlertStatement(AlertKind.VIEW, "v/1", raised=True, message="m", at=NOW)
    known = Standing(AlertKind.VIEW, "v/1", "m", raised=True, at=NOW, since=None)
    board = Board({(AlertKind.VIEW, "v/1"): known}, (Notification(statement, "webhook", NOW),))
    rows = json.loads(board.to_json())
    for name in ("standing", "telling"):
        rows[name].append({**rows[name][0], "kind": "new_in_another_release"})
    assert Board.parse(rows) == board


class Hook(HTTPServer):
    """A webhook that keeps what it gets, and fails while it is told to."""

    def __init__(self) -> None:
        self.got: list[dict[str, str]] = []
        self.fails = False
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not hook.fails:
                    hook.got.append(row)
                self.send_response(500 if hook.fails else 204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def hook():
    made = Hook()
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


CALLS: list[dict[str, str]] = []


def remember(**said: str) -> None:
    """Stand for the user's function."""
    CALLS.append(said)


@pytest.fixture
def stream(tmp_path, monkeypatch, hook):
    """A stream that is wanted, whose supervisor was refused: that is told at once."""
    CALLS.clear()
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    layout = Layout(tmp_path / "warehouse", "shop")
    ControlTable.ensure(layout).want(Desired.STOPPED, actor="ada", reason="", now=NOW)
    leave_mark(layout, REFUSED, now=NOW, why="b holds it")
    definition = replace(sales_pipeline().definition, on_alert=f"{__name__}.remember")
    env = {WEBHOOK: f"http://127.0.0.1:{hook.server_port}/"}
    said: list[str] = []

    def look(seconds: float = 0, **env_more: str):
        return notify_alerts(
            compile_pipeline(definition),
            layout,
            broker=False,
            env={**env, **env_more},
            now=NOW + timedelta(seconds=seconds),
            say=said.append,
        )

    look.said = said
    return look


def test_an_alert_is_told_once_by_each_way_and_cleared_when_it_is_over(stream, hook):
    """The reconcile task looks every two minutes and the supervisor four times in one: one message."""
    for seconds in (0, 15, 30, 120):
        [raised] = stream(seconds)
        assert raised.kind is AlertKind.LEASE
    assert stream(601) == ()
    stream(700)
    assert [(each["alert"], each["state"]) for each in CALLS] == [
        ("lease_refused", "raised"),
        ("lease_refused", "cleared"),
    ]
    assert CALLS[0]["pipeline"] == "shop"
    assert "b holds it" in CALLS[0]["message"]
    assert [(each["pipeline"], each["alert"], each["state"]) for each in hook.got] == [
        ("shop", "lease_refused", "raised"),
        ("shop", "lease_refused", "cleared"),
    ]
    assert [line.partition(":")[0] for line in stream.said] == [
        "ALERT raised lease_refused",
        "ALERT cleared lease_refused",
    ]


def test_what_could_not_be_told_is_told_at_the_next_look_in_order(stream, hook):
    """A webhook that is down for an hour must not lose an alert; the other way is not told twice for it."""
    hook.fails = True
    stream(0)
    stream(601)
    assert hook.got == []
    hook.fails = False
    stream(602)
    assert [each["state"] for each in hook.got] == ["raised", "cleared"]
    assert [each["state"] for each in CALLS] == ["raised", "cleared"]
    assert "500" in "".join(stream.said)


def test_ten_who_look_at_once_tell_once(stream, hook):
    """Supervisor and reconcile task are two processes; the file decides who tells."""
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(stream, [0.0] * 10))
    assert len(hook.got) == len(CALLS) == 1


def test_a_teller_that_dies_is_followed_by_another(stream, hook, monkeypatch):
    """Whoever is killed between the decision and the telling takes no alert along."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(telling, "deliver_alerts", die)
        with pytest.raises(KeyboardInterrupt):
            stream(0)
    # It may only be slow: another waits a minute before it takes over.
    stream(30)
    assert hook.got == []
    stream(61)
    assert [each["state"] for each in hook.got] == ["raised"]
    assert len(CALLS) == 1


def test_a_function_that_cannot_be_imported_is_said_and_tried_again(tmp_path, monkeypatch):
    """It may be one that only Airflow's tasks can import: they will."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    layout = Layout(tmp_path / "warehouse", "shop")
    leave_mark(layout, REFUSED, now=NOW, why="b holds it")
    definition = replace(sales_pipeline().definition, on_alert="no.such.thing")
    said: list[str] = []
    notify_alerts(compile_pipeline(definition), layout, broker=False, env={}, now=NOW, say=said.append)
    assert "on_alert" in said[-1]
    assert len(Board.read(tmp_path / "home" / "streams" / "shop").telling) == 1


def leave(**_: str) -> None:
    """End the process, as a script would."""
    sys.exit("no such channel")


def test_a_function_that_ends_the_process_is_said_and_ends_nothing():
    """It would end the thread that looks after the stream's alerts, or the task of all streams."""
    definition = replace(sales_pipeline().definition, on_alert=f"{__name__}.leave")
    said: list[str] = []
    send = channels_of(compile_pipeline(definition), {})
    statement = AlertStatement(AlertKind.LAG, "", raised=True, message="m", at=NOW)
    told = Notification(statement, "on_alert")
    assert deliver_alerts((told,), send, said.append) == {told: False}
    assert said == ["not sent by on_alert, to be retried: SystemExit: no such channel"]


def test_many_that_wait_are_sent_in_several_looks():
    """What was sent is noted before others may send it, or a task that is ended sends the same again and again."""
    statement = AlertStatement(AlertKind.LAG, "", raised=True, message="m", at=NOW)
    waiting = tuple(Notification(statement, f"notifier alerts.{number}") for number in range(5))
    seconds = [0.0]

    def send(_: AlertStatement) -> None:
        seconds[0] += 25

    send_all = {each.channel: send for each in waiting}
    done = deliver_alerts(waiting, send_all, print, until=60, clock=lambda: seconds[0])
    assert list(done.values()) == [True, True, True, False, False]


def test_who_is_told_changes_no_version_of_a_view():
    """`on_alert` is in no fingerprint, and in the definition that is stored with a birth."""
    plain = sales_pipeline().definition
    told = replace(plain, on_alert="alerts.page")
    assert [fingerprint_view(plain, view) for view in plain.views] == [
        fingerprint_view(told, view) for view in told.views
    ]
    assert from_json(to_json(told)).on_alert == "alerts.page"
    older = json.loads(to_json(plain))
    del older["of"]["on_alert"]
    assert from_json(json.dumps(older)) == plain
