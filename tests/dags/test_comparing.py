"""Where supervisors are started by somebody else, Airflow's tasks compare, say what they see, and start nothing."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from airflow.sdk.exceptions import AirflowSkipException
from tests.dags.test_reconcile_all import Events, control_of, events, give_up, reconcile, want

from seamline.lake.storage.layout import home_folder
from seamline.lake.tables.control_table import Desired
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.errors import GaveUp, SetupError
from seamline.orchestration import comparing, reconciling
from seamline.runtime.processes import own_process_name
from seamline.supervisor import resident
from seamline.supervisor.supervisor_heartbeat import Heartbeat, Identity

__all__ = ["events"]


@pytest.fixture
def started(events: Events, monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Let tasks only compare, and see what they would start."""
    start = Mock(return_value=77)
    monkeypatch.setenv("SEAMLINE_RECONCILE", "compare")
    monkeypatch.setattr("seamline.supervisor.outside.start_detached", start)
    monkeypatch.setattr(comparing, "WAITS", 0.3)
    return start


def beat(name: str, at: datetime, state: str = "running") -> None:
    """Leave a heartbeat of a supervisor that is no more."""
    me = Identity.of(psutil.Process().pid)
    Heartbeat(name, me, 1, state, at).write(home_folder(), now=at)


def test_a_stream_that_nobody_keeps_up_fails_and_is_not_started(started, events, capsys):
    """Its pod has been gone for an hour; two supervisors of one stream would only fence each other off."""
    want("mart", Desired.RUNNING)
    beat("mart", datetime.now(UTC) - timedelta(hours=1))
    with pytest.raises(SetupError, match="No supervisor keeps up the stream of mart") as told:
        reconcile()
    assert "last heard of" in told.value.message
    assert "seamline supervise mart" in (told.value.hint or "")
    assert not started.called and events.made == []


def test_what_runs_or_is_stopped_or_gave_up_is_told_as_ever(started, events, tmp_path, capsys):
    """Only the start is somebody else's."""
    give_up("bazaar", tmp_path)
    want("kiosk", Desired.STOPPED)
    want("mart", Desired.RUNNING)
    lease = control_of("mart").take("there:1:1", now=datetime.now(UTC))
    beating = keep_renewing(lambda: control_of("mart").try_renew(lease), 0.1)
    with beating, pytest.raises(GaveUp):
        reconcile()
    said = capsys.readouterr().out
    assert "kiosk: stopped by ada (so)" in said and "mart: up" in said
    assert not started.called


def test_a_pod_on_its_way_to_another_node_is_no_failure(started, capsys):
    """A minute without a beat is what a drained node costs."""
    want("mart", Desired.RUNNING)
    beat("mart", datetime.now(UTC) - timedelta(seconds=30), "stopped")
    reconcile()
    assert "mart: no supervisor for" in capsys.readouterr().out
    assert not started.called


def test_many_pods_on_their_way_are_not_waited_for(started, monkeypatch):
    """A lost zone had 200 streams, each was waited for, and the last of them were not looked at in time."""
    wait = Mock(return_value=False)
    monkeypatch.setattr(comparing, "wait_for_lease", wait)
    want("mart", Desired.RUNNING)
    beat("mart", datetime.now(UTC) - timedelta(seconds=30), "stopped")
    reconcile()
    assert not wait.called


def test_words_from_the_future_excuse_nothing(started):
    """A clock that was two hours ahead would hide a stream that is down for two hours."""
    want("mart", Desired.RUNNING)
    beat("mart", datetime.now(UTC) + timedelta(hours=2))
    with pytest.raises(SetupError):
        reconcile()


def test_no_connection_is_needed_for_a_look(started, monkeypatch):
    """Only who starts a supervisor hands it the connection."""
    from seamline.orchestration import reconciling_all

    monkeypatch.setattr(reconciling_all, "read_connection", lambda _: SetupError("none"))
    want("mart", Desired.RUNNING)
    with pytest.raises(SetupError, match="No supervisor keeps up"):
        reconcile()


def test_the_driver_is_not_started_either(started, events):
    """The resident driver would run in a worker's pod that nobody else can reach."""
    control_of(resident.NAME).want(Desired.RUNNING, actor="ada", reason="so", now=datetime.now(UTC))
    with pytest.raises(SetupError, match="resident driver"):
        reconciling.reconcile_driver()
    assert not started.called


@pytest.fixture
def asked(started, monkeypatch):
    """The run of a stream's own DAG."""
    from seamline.orchestration.orders import FORM

    manual = SimpleNamespace(value="manual")
    context = {
        "params": {name: param.value for name, param in FORM.items()},
        "task": SimpleNamespace(),
        "dag_run": SimpleNamespace(run_after=datetime.now(UTC), triggering_user_name=None, run_type=manual),
        "outlet_events": {None: SimpleNamespace(extra=None)},
    }
    monkeypatch.setattr(reconciling, "get_current_context", lambda: context)
    monkeypatch.setattr(reconciling, "connection_env_if_any", lambda _: {})
    monkeypatch.setattr(reconciling, "look_for_alerts", lambda *_: None)
    return context


def test_the_first_run_of_a_streams_dag_wants_it_and_waits_for_its_pod(asked, started, monkeypatch):
    """The pod stands by, and takes the lease some seconds later."""
    control, over = control_of("mart"), threading.Event()

    def stand_by() -> None:
        lease = control.take("pod:1:1", process=own_process_name(), now=datetime.now(UTC))
        while control.try_renew(lease) and not over.wait(0.1):
            continue

    pod, awaited = threading.Thread(target=stand_by, daemon=True), comparing.await_supervisor

    def wait(*given: Any) -> None:
        pod.start()
        awaited(*given)

    monkeypatch.setattr(reconciling, "await_supervisor", wait)
    try:
        reconciling.reconcile("mart", "kafka_default", None)  # type: ignore[arg-type]
    finally:
        over.set()
        pod.join(30)
    assert control.read().desired is Desired.RUNNING
    token = control.read().token
    assert asked["outlet_events"][None].extra == {"event": "stream started", "token": token}
    assert not started.called


def test_where_no_pod_takes_it_up_the_run_says_so(asked, started, monkeypatch):
    """Somebody has forgotten to list the pipeline in the chart's values."""
    monkeypatch.setattr(reconciling, "STARTS_WITHIN", 0.3)
    with pytest.raises(SetupError, match="No supervisor has taken up the stream of mart") as told:
        reconciling.reconcile("mart", "kafka_default", None)  # type: ignore[arg-type]
    assert "seamline supervise mart" in (told.value.hint or "")


def test_a_setting_that_is_none_is_refused(events, monkeypatch):
    """Whoever misspells it would have two supervisors for each stream."""
    monkeypatch.setenv("SEAMLINE_RECONCILE", "comparing")
    want("mart", Desired.RUNNING)
    with pytest.raises(SetupError, match="SEAMLINE_RECONCILE=comparing"):
        reconcile()


def test_a_stream_that_is_stopped_is_left_so(asked, started):
    """As where supervisors are started."""
    want("mart", Desired.STOPPED)
    with pytest.raises(AirflowSkipException, match="stopped by ada"):
        reconciling.reconcile("mart", "kafka_default", None)  # type: ignore[arg-type]
    assert Path(home_folder()).exists()
