"""Alerts by severity and notifier: who looks without Airflow queues them, and the next task of Airflow sends them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.shop import sales_pipeline

from seamline.lake.status.marks import REFUSED, leave_mark
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.compile.alerting.alert_rules import check_alerts
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.fingerprint import fingerprint_view
from seamline.model.compile.problems import Problems
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.alert_routes import AlertRoute
from seamline.model.errors import DefinitionError
from seamline.model.protocol.alert import AlertKind, AlertStatement, Severity
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.alert_routing import list_channels
from seamline.plan.stream.alerts import find_stream_problems
from seamline.plan.stream.observation import Observation
from seamline.supervisor import alert_notification
from seamline.supervisor.alert_notification import Notify, notify_alerts
from seamline.supervisor.board import read_board
from seamline.supervisor.sources.ageing_gaps import AGEING, read_ageing_gaps

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CALLS: list[dict[str, str]] = []


def remember(**said: str) -> None:
    """Stand for the user's function."""
    CALLS.append(said)


def routed(*routes: AlertRoute, on_alert: str = "") -> CompiledPipeline:
    """Declare routes."""
    return compile_pipeline(replace(sales_pipeline().definition, alerts=routes, on_alert=on_alert))


def said_of(kind: AlertKind, *, raised: bool = True) -> AlertStatement:
    """Say that something is wrong."""
    return AlertStatement(kind, "", raised=raised, message="m", at=NOW)


def test_each_alert_has_a_severity() -> None:
    """What stops answers or loses records is critical; the page of operating lists the same."""
    assert {each for each in AlertKind if each.severity is Severity.CRITICAL} == {
        AlertKind.STALE,
        AlertKind.HOLE,
        AlertKind.GAVE_UP,
        AlertKind.DISK,
        AlertKind.EXPIRY,
        AlertKind.SINK,
    }
    page = (Path(__file__).parents[3] / "docs" / "operating.md").read_text()
    for each in AlertKind:
        [line] = [line for line in page.splitlines() if line.startswith((f"| `{each}`", f"| `{each}/"))]
        assert line.split("|")[2].strip() == each.severity


def test_a_route_gets_what_it_asks_for() -> None:
    """The least severity, or by name; two routes of one notifier send an alert once."""
    routes = (
        AlertRoute("alerts.mail"),
        AlertRoute("alerts.pager", severity="critical"),
        AlertRoute("alerts.clock", alerts=["wrong_event_times", "hole"]),
        AlertRoute("alerts.pager", alerts=["lease_refused"]),
    )
    assert list_channels(routes, said_of(AlertKind.LAG)) == ("notifier alerts.mail",)
    assert list_channels(routes, said_of(AlertKind.LEASE)) == (
        "notifier alerts.mail",
        "notifier alerts.pager",
    )
    assert list_channels(routes, said_of(AlertKind.HOLE, raised=False)) == (
        "notifier alerts.mail",
        "notifier alerts.pager",
        "notifier alerts.clock",
    )
    twice = (AlertRoute("alerts.pager"), AlertRoute("alerts.pager", severity="critical"))
    assert list_channels(twice, said_of(AlertKind.DISK)) == ("notifier alerts.pager",)


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A stream whose supervisor was refused: that is told at once."""
    CALLS.clear()
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    made = Layout(tmp_path / "warehouse", "shop")
    ControlTable.ensure(made).want(Desired.STOPPED, actor="ada", reason="", now=NOW)
    leave_mark(made, REFUSED, now=NOW, why="b holds it")
    return made


def test_who_has_no_airflow_leaves_notifiers_to_its_next_task(layout: Layout) -> None:
    """The supervisor raises an alert and calls the function; Airflow's task sends it by the notifier, once."""
    pipeline = routed(
        AlertRoute("alerts.mail"),
        AlertRoute("alerts.pager", severity="critical"),
        on_alert=f"{__name__}.remember",
    )
    sent: list[tuple[str, str, str, str]] = []

    def look(seconds: float, *, airflow: bool) -> None:
        def notify(path: str, name: str, said: AlertStatement) -> None:
            sent.append((path, name, said.alert, said.state))

        at = NOW + timedelta(seconds=seconds)
        notify_alerts(
            pipeline, layout, broker=False, env={}, now=at, say=print, notify=notify if airflow else None
        )

    look(0, airflow=False)
    assert [each["alert"] for each in CALLS] == ["lease_refused"]
    assert sent == []
    assert [each.channel for each in read_board(layout).telling] == ["notifier alerts.mail"]
    look(30, airflow=True)
    look(60, airflow=True)
    assert sent == [("alerts.mail", "shop", "lease_refused", "raised")]
    look(700, airflow=True)
    assert sent[1:] == [("alerts.mail", "shop", "lease_refused", "cleared")]
    assert len(CALLS) == 2
    assert read_board(layout).telling == ()


def test_a_notifier_that_fails_is_tried_again(layout: Layout) -> None:
    """A mail server that is away must not lose an alert, nor end the look."""
    said: list[str] = []
    sent: list[str] = []

    def fail(path: str, name: str, statement: AlertStatement) -> None:
        raise OSError("no mail server")

    for at, notify in enumerate((fail, lambda path, name, statement: sent.append(statement.alert))):
        notify_alerts(
            routed(AlertRoute("alerts.mail")),
            layout,
            broker=False,
            env={},
            now=NOW + timedelta(seconds=at),
            say=said.append,
            notify=notify,
        )
    assert sent == ["lease_refused"]
    assert "not sent by notifier alerts.mail, to be retried: OSError: no mail server" in said


def test_a_notifier_that_hangs_has_no_other_channel_send_again(layout: Layout) -> None:
    """The task is ended while it waits; what was sent before is noted, though the notifier's alert came first."""
    pipeline = routed(AlertRoute("alerts.mail"), on_alert=f"{__name__}.remember")

    def hang(path: str, name: str, statement: AlertStatement) -> None:
        raise KeyboardInterrupt

    for seconds in (0, 100, 700, 800):
        at = NOW + timedelta(seconds=seconds)
        with pytest.raises(KeyboardInterrupt):
            notify_alerts(pipeline, layout, broker=False, env={}, now=at, say=print, notify=hang)
    assert [each["state"] for each in CALLS] == ["raised", "cleared"]
    assert {each.channel for each in read_board(layout).telling} == {"notifier alerts.mail"}


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Is set at the test's end, for what hangs till then."""
    event = threading.Event()
    yield event
    event.set()


def test_a_notifier_that_hangs_holds_up_no_other(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, released: threading.Event
) -> None:
    """The pager that is declared after it is what wakes somebody; a second call beside the first would hang, too."""
    monkeypatch.setattr(alert_notification, "TELLS_WITHIN", timedelta(seconds=1))
    pipeline = routed(AlertRoute("alerts.mail"), AlertRoute("alerts.pager"))
    sent: list[str] = []
    said: list[str] = []

    def notify(path: str, name: str, statement: AlertStatement) -> None:
        if path == "alerts.mail":
            released.wait()
        sent.append(f"{path} {statement.state}")

    def look(seconds: float) -> None:
        at = NOW + timedelta(seconds=seconds)
        notify_alerts(pipeline, layout, broker=False, env={}, now=at, say=said.append, notify=notify)

    for seconds in (0, 100, 700):
        look(seconds)
    assert sent == ["alerts.pager raised", "alerts.pager cleared"]
    assert said.count("not sent by notifier alerts.mail: it has not returned within 1 s") == 1
    released.set()
    [hanging] = [each for each in threading.enumerate() if "alerts.mail" in each.name]
    hanging.join()
    look(800)
    assert sent[2:] == ["alerts.mail raised", "alerts.mail cleared"]
    assert read_board(layout).telling == ()


def test_a_function_that_hangs_has_the_supervisor_look_on(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, released: threading.Event
) -> None:
    """Its look keeps the sinks, and a webhook would send."""
    monkeypatch.setattr(alert_notification, "TELLS_WITHIN", timedelta(seconds=1))
    monkeypatch.setitem(globals(), "remember", lambda **_: released.wait())
    said: list[str] = []
    for seconds in (0, 100):
        notify_alerts(
            routed(on_alert=f"{__name__}.remember"),
            layout,
            broker=False,
            env={},
            now=NOW + timedelta(seconds=seconds),
            say=said.append,
        )
    assert [each for each in said if "returned" in each] == [
        "not sent by on_alert: it has not returned within 1 s"
    ]


async def remember_later(**said: str) -> None:
    """Stand for a user's function that is declared with async."""
    CALLS.append(said)


def test_a_function_that_is_asynchronous_is_awaited(layout: Layout) -> None:
    """A coroutine that nobody awaits has sent nothing."""
    pipeline = routed(on_alert=f"{__name__}.remember_later")
    notify_alerts(pipeline, layout, broker=False, env={}, now=NOW, say=print)
    assert [each["alert"] for each in CALLS] == ["lease_refused"]


def test_what_waits_for_a_route_that_is_gone_is_dropped(layout: Layout) -> None:
    """It would wait for ever, and two hundred of its kind keep others from the board."""
    routes = (AlertRoute("alerts.gone"), AlertRoute("alerts.mail"), AlertRoute("alerts.pager"))
    sent: list[str] = []

    def fail(path: str, name: str, statement: AlertStatement) -> None:
        raise OSError("no mail server")

    def look(pipeline: CompiledPipeline, seconds: float, notify: Notify | None, url: str = "") -> set[str]:
        at, env = NOW + timedelta(seconds=seconds), {"SEAMLINE_ALERT_WEBHOOK": url} if url else {}
        notify_alerts(pipeline, layout, broker=False, env=env, now=at, say=print, notify=notify)
        return {each.channel for each in read_board(layout).telling}

    waiting = {"notifier alerts.gone", "notifier alerts.mail", "notifier alerts.pager"}
    assert look(routed(*routes, on_alert="no.such"), 0, fail, "file:///no") == {
        *waiting,
        "webhook",
        "on_alert",
    }
    left = routed(AlertRoute("alerts.mail"), AlertRoute("alerts.pager", severity="critical"))
    # A supervisor may have the definition of before the edit.
    assert look(left, 1, None) == {*waiting, "webhook", "on_alert"}
    assert look(left, 2, lambda path, name, said: sent.append(path)) == {"webhook"}
    assert sent == ["alerts.mail"]


def test_what_kafka_may_delete_is_an_alert_until_it_is_read(layout: Layout) -> None:
    """Upkeep looks once an hour; what the stream has read since is no reason to wake anybody."""
    lane, read = Lane("T", 0), {}
    assert read_ageing_gaps(layout, lambda lanes: read) is None
    leave_mark(layout, AGEING, now=NOW, gaps=[["T", 0, 3, 9]])
    [soon] = read_ageing_gaps(layout, lambda lanes: read) or ()
    assert soon.startswith("partition 0 of topic id T: offsets 3..8: unread")
    found = Observation("shop", NOW, ageing=(soon,))
    assert find_stream_problems(found)[AlertKind.EXPIRY] == {"": soon}
    read[lane] = 5
    [soon] = read_ageing_gaps(layout, lambda lanes: read) or ()
    assert "offsets 5..8" in soon
    read[lane] = 9
    assert read_ageing_gaps(layout, lambda lanes: read) == ()
    assert find_stream_problems(Observation("shop", NOW, ageing=()))[AlertKind.EXPIRY] == {}
    assert find_stream_problems(Observation("shop", NOW))[AlertKind.EXPIRY] is None


def test_wrong_routes_are_refused_where_they_were_written() -> None:
    """A route that nobody can take would be found out in the night in which it should have woken somebody."""
    problems = Problems()
    wrong = (AlertRoute("pager", severity="fatal", alerts=["holes"]), AlertRoute("alerts.", alerts=["hole"]))
    check_alerts(replace(sales_pipeline().definition, alerts=wrong), problems)
    found = {each.field: each.message for each in problems.found}
    assert found == {
        "alerts[0].notifier": "'pager' is not the name of a notifier.",
        "alerts[0].severity": "'fatal' is not a severity.",
        "alerts[0].alerts": "There is no alert 'holes'.",
        "alerts[1].notifier": "'alerts.' is not the name of a notifier.",
    }


def test_a_name_that_the_severity_excludes_is_refused() -> None:
    """The route has to meet both: such an alert would never be sent."""
    problems = Problems()
    names = ["hole", "growing_lag"]
    routes = (
        AlertRoute("alerts.pager", severity="critical", alerts=names),
        AlertRoute("alerts.mail", alerts=names),
    )
    check_alerts(replace(sales_pipeline().definition, alerts=routes), problems)
    assert [(each.field, each.message) for each in problems.found] == [
        ("alerts[0].alerts", "'growing_lag' is a warning, and this route sends only what is critical.")
    ]


@pytest.mark.parametrize(
    ("wrong", "said"), [("hole", "a list of alert routes"), (["hole"], "an alert route")]
)
def test_what_is_no_route_is_named(wrong: Any, said: str) -> None:
    """A name without a notifier is what somebody writes first."""
    with pytest.raises(DefinitionError, match=f"is not {said}"):
        compile_pipeline(replace(sales_pipeline().definition, alerts=wrong))


def test_routes_change_no_version_of_a_view() -> None:
    """They are stored with a birth, and a definition of before them is one without."""
    plain = sales_pipeline().definition
    told = replace(plain, alerts=(AlertRoute("alerts.pager", severity="critical", alerts=("hole",)),))
    assert [fingerprint_view(plain, view) for view in plain.views] == [
        fingerprint_view(told, view) for view in told.views
    ]
    assert from_json(to_json(told)) == told
