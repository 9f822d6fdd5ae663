"""What people ask of a stream in the form of its DAG, or by REST."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import psutil
import pytest
from airflow.sdk.exceptions import AirflowSkipException
from tests.unit.shop import opened

from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.errors import BadRange, GaveUp, MovedAway
from seamline.model.protocol.moving import Moved
from seamline.model.time.intervals import Interval, parse_moment
from seamline.orchestration import reconciling
from seamline.orchestration.orders import FORM, read_order
from seamline.orchestration.pipeline_dags import stream_dag
from seamline.plan.stream.start_positions import From, StartPlace
from seamline.supervisor.operations import Action, Upgrade
from seamline.supervisor.supervisor_heartbeat import GAVE_UP, Heartbeat, Identity

EMPTY = {name: param.value for name, param in FORM.items()}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_scheduled_run_asks_for_nothing():
    """It has the form's defaults."""
    assert read_order(EMPTY, "airflow") is None


def test_an_order_under_another_spelling_is_refused():
    """Airflow takes any configuration: a stream that somebody stops would be kept up in silence."""
    with pytest.raises(BadRange, match="Action: there is no such field"):
        read_order({**EMPTY, "Action": "stop"}, "airflow:ada")
    assert read_order({**EMPTY, "ticket": "OPS-7"}, "airflow:ada") is None


def test_every_field_of_the_form_is_meant():
    """The same order as by the command line."""
    given = {
        "action": "restart",
        "position": "latest",
        "then_backfill_gap": True,
        "upgrade": "savepoint",
        "name": "monday",
        "reason": "sale",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
    }
    order = read_order({**EMPTY, **given}, "airflow:ada")
    assert order is not None
    assert (order.action, order.actor, order.place) == (
        Action.RESTART,
        "airflow:ada",
        StartPlace(From.LATEST),
    )
    assert (order.fill, order.upgrade, order.name, order.reason) == (
        True,
        Upgrade.SAVEPOINT,
        "monday",
        "sale",
    )
    assert order.lost == Interval(parse_moment("2026-01-01"), parse_moment("2026-01-02"))


@pytest.mark.parametrize(
    "given",
    [
        {"action": "explode"},
        {"action": "savepoint"},
        {"action": "start", "position": "newest"},
        {"action": "start", "then_backfill_gap": "yes"},
        {"action": "restart", "upgrade": "gentle"},
        {"action": "start", "from": "2026-01-01T00:00:00Z"},
    ],
)
def test_a_wrong_field_is_named(given):
    """REST's conf is not checked by a form."""
    with pytest.raises(BadRange):
        read_order({**EMPTY, **given}, "airflow")


@pytest.fixture
def shop(tmp_path, warehouse, monkeypatch):
    """A pipeline, in a home of its own, and a run of its stream DAG whose form is ``params``."""
    made = opened(tmp_path, monkeypatch, warehouse)
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path))
    monkeypatch.setattr(reconciling, "connections_env", lambda _: {})
    made.params = dict(EMPTY)
    kind = SimpleNamespace(value="manual")
    made.run = run = SimpleNamespace(
        run_type=kind, triggering_user_name="ada", run_after=datetime.now(UTC) - timedelta(minutes=2)
    )
    outlets = {None: SimpleNamespace(extra=None)}
    context = {"dag_run": run, "params": made.params, "outlet_events": outlets, "task": SimpleNamespace()}
    monkeypatch.setattr(reconciling, "get_current_context", lambda: context)
    return made


def reconcile() -> None:
    reconciling.reconcile("shop", "kafka_default", None)


def test_an_order_is_carried_out_before_anything_is_started(shop, capsys):
    """The run that asks for a stop starts nothing."""
    shop.params |= {"action": "stop", "reason": "night"}
    with pytest.raises(AirflowSkipException, match=r"stopped by airflow:ada \(night\)"):
        reconcile()
    assert "shop: the stream should be stopped." in capsys.readouterr().out
    assert ControlTable.ensure(shop.layout).read().desired is Desired.STOPPED


@pytest.mark.parametrize("action", ["stop", "start"])
def test_an_order_of_long_ago_is_not_carried_out_by_a_run_that_is_cleared(shop, action):
    """Somebody clears what has failed, or unpauses the DAG: nobody wants last week's word to be the last."""
    control = ControlTable.ensure(shop.layout)
    control.want(Desired.PAUSED, actor="eve", reason="since then", now=NOW)
    shop.params |= {"action": action, "position": "latest"}
    shop.run.run_after = datetime.now(UTC) - timedelta(days=7)
    with pytest.raises(BadRange, match=f"action: {action} was requested at .*, which is too long ago"):
        reconcile()
    assert (control.read().desired, control.read().actor) == (Desired.PAUSED, "eve")


def test_who_has_given_up_is_not_started_until_somebody_says_so(shop, tmp_path, monkeypatch):
    """Loud, at every look, with the driver's words; a word of a person begins anew."""
    control = ControlTable.ensure(shop.layout)
    control.want(Desired.RUNNING, actor="ada", reason="", now=NOW)
    me = Identity.of(psutil.Process().pid)
    Heartbeat("shop", me, 3, GAVE_UP, NOW, strikes=20, last_error="no such topic").write(tmp_path, now=NOW)
    for _ in range(2):
        with pytest.raises(GaveUp, match="20 times in a row: no such topic"):
            reconcile()
    begun = []
    monkeypatch.setattr(reconciling, "start_supervisor", lambda *_: begun.append(1) or (4, 5))
    shop.params |= {"action": "start"}
    reconcile()
    assert begun == [1]


def test_a_paused_stream_is_kept_up(shop, monkeypatch):
    """Its driver waits; a host that was started again starts it too."""
    control = ControlTable.ensure(shop.layout)
    control.want(Desired.PAUSED, actor="ada", reason="", now=NOW)
    assert reconciling.reason_to_leave("shop", control) == ""
    lease = control.take("there:1:1", now=NOW)
    with keep_renewing(lambda: ControlTable.ensure(shop.layout).try_renew(lease), 0.01):
        assert reconciling.reason_to_leave("shop", control) == "up"
    control.want(Desired.STOPPED, actor="ada", reason="", now=NOW)
    assert "stopped by ada" in reconciling.reason_to_leave("shop", control)


def test_a_stream_that_has_moved_is_not_started_here(shop):
    """An Airflow that still has the old setting would read the same offsets a second time, into the old place."""
    control = ControlTable.ensure(shop.layout)
    control.want(Desired.RUNNING, actor="ada", reason="", now=NOW)
    row = {"state": "moved", "actor": "ada", "reason": "", "at": NOW}
    moved = Moved("s3://lake/warehouse", "1", "ada", "2026-01-01T00:00:00Z")
    control.decide(row, lambda found: replace(found, moved=moved), away=True)
    with pytest.raises(MovedAway, match="shop is being moved to s3://lake/warehouse"):
        reconciling.reason_to_leave("shop", control)


def test_the_dag_has_the_form(shop):
    """Its page tells what may be asked for."""
    dag = stream_dag(shop.compiled.definition)
    assert set(dag.params) == set(FORM)
    assert "never the stream" in dag.doc_md
