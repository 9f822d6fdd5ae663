"""One run looks at the streams of all pipelines: what is wrong with one is in no other's way."""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSkipException
from tests.unit.shop import DEFINITION

from seamline.lake.status.marks import RECONCILED, read_mark
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, locate_tables
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import ConnectionMissing, DiskFull, GaveUp, SeamlineError, SetupError
from seamline.orchestration import reconciling, reconciling_all
from seamline.supervisor import resident
from seamline.supervisor.supervisor_heartbeat import GAVE_UP, Heartbeat, Identity

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("bazaar", "kiosk", "mart", "stall")
CALLED: list[BaseException] = []
OF: list[str] = []


def called(context: Any) -> None:
    """Do what a definition may have done when a task fails."""
    CALLED.append(context["exception"])
    OF.append(context["pipeline"])


def leave(context: Any) -> None:
    """End the process, as a script would."""
    sys.exit("no such channel")


class Events:
    """The events of an alias."""

    def __init__(self) -> None:
        self.made: list[tuple[str, dict[str, object]]] = []

    def add(self, asset: Any, extra: dict[str, object]) -> None:
        """Take one."""
        self.made.append((asset.name, extra))


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Events:
    """Four pipelines of which nobody has started any; a supervisor that is started takes the lease, and no more."""
    for name in NAMES:
        text = DEFINITION.replace('name="shop"', f'name="{name}"')
        text = text.replace("batch=Batch", 'on_failure="tests.dags.test_reconcile_all.called", batch=Batch')
        (tmp_path / f"{name}.py").write_text(text)
    for name in ("SEAMLINE_PIPELINES", "SEAMLINE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    made = Events()
    context = {"outlet_events": {None: made}}
    monkeypatch.setattr(reconciling_all, "get_current_context", lambda: context)
    monkeypatch.setattr(reconciling_all, "connection_env", lambda _: {"AIRFLOW_CONN_KAFKA_DEFAULT": "{}"})
    monkeypatch.setattr(
        reconciling_all, "send_alerts", lambda pipeline, env, say, ask: say("raised: nothing")
    )
    monkeypatch.setattr("seamline.supervisor.outside.start_detached", start_detached)
    CALLED.clear()
    OF.clear()
    return made


def start_detached(name: str, env: dict[str, str]) -> int:
    """Take the lease, as a supervisor does first."""
    assert env == {"AIRFLOW_CONN_KAFKA_DEFAULT": "{}"}
    control_of(name).take(f"there:{name}:1", now=datetime.now(UTC))
    return 77


def control_of(name: str) -> ControlTable:
    """Open a pipeline's control table."""
    return ControlTable.ensure(locate_tables(name))


def want(name: str, state: Desired) -> None:
    """Ask for a state of a stream."""
    control_of(name).want(state, actor="ada", reason="so", now=NOW)


def give_up(name: str, home: Path) -> None:
    """Let a supervisor have given up a stream that should run."""
    want(name, Desired.RUNNING)
    me = Identity.of(psutil.Process().pid)
    Heartbeat(name, me, 3, GAVE_UP, NOW, strikes=20, last_error="no such topic").write(home, now=NOW)


def reconcile() -> None:
    reconciling_all.reconcile_streams(None)  # type: ignore[arg-type]


def test_what_should_run_is_started_beside_what_cannot(events, tmp_path, capsys):
    """One is started, one was stopped, one needs a person, and of one nobody has ever asked."""
    give_up("bazaar", tmp_path)
    want("kiosk", Desired.STOPPED)
    want("mart", Desired.RUNNING)
    with pytest.raises(GaveUp, match="20 times in a row: no such topic"):
        reconcile()
    said = capsys.readouterr().out
    assert "bazaar: GaveUp: The driver of bazaar has failed 20 times in a row: no such topic" in said
    assert "kiosk: stopped by ada (so)" in said
    assert "mart: raised: nothing" in said
    assert "mart: started supervisor 77" in said
    assert "stall" not in said
    assert not Table.exists(locate_tables("stall").table("control"))
    assert events.made == [("mart/master", {"event": "stream started", "token": 2, "pid": 77})]
    assert [type(each) for each in CALLED] == [GaveUp]
    assert [read_mark(locate_tables(name), RECONCILED) is not None for name in NAMES] == [
        True,
        True,
        True,
        False,
    ]


def test_several_that_cannot_be_reconciled_are_named(events, tmp_path):
    """The log has the reason of each."""
    give_up("bazaar", tmp_path)
    give_up("stall", tmp_path)
    with pytest.raises(SeamlineError, match="2 pipelines: bazaar, stall"):
        reconcile()
    assert len(CALLED) == 2


def test_a_callback_is_told_whose_stream_it_is(events, tmp_path):
    """The context is that of a task for all; what a callback keeps of one is not changed by the next."""
    for name in ("bazaar", "stall"):
        give_up(name, tmp_path)
    with pytest.raises(SeamlineError):
        reconcile()
    assert OF == ["bazaar", "stall"]
    assert [each.message.split()[3] for each in CALLED] == OF


def test_of_several_that_failed_the_log_has_hints_and_tracebacks(events, tmp_path, monkeypatch, capsys):
    """Nobody raises each of them: what its own task would have said has to stand here."""
    monkeypatch.setattr(
        reconciling_all, "start_supervisor", Mock(side_effect=OSError(28, "No space left on device"))
    )
    give_up("bazaar", tmp_path)
    want("mart", Desired.RUNNING)
    with pytest.raises(SeamlineError) as failed:
        reconcile()
    said = capsys.readouterr().out
    assert (
        "Hint: fix the cause, then run `seamline stream start bazaar` (or use the form of bazaar__stream)."
        in said
    )
    assert "mart: DiskFull: " in said
    assert isinstance(failed.value.__cause__, ExceptionGroup)
    assert [type(each) for each in failed.value.__cause__.exceptions] == [GaveUp, DiskFull]


@pytest.mark.parametrize("leaving", ["alert", "failure"])
def test_a_function_that_ends_the_process_is_in_no_others_way(events, tmp_path, monkeypatch, leaving):
    """A user's function calls ``sys.exit``."""
    give_up("kiosk", tmp_path)
    want("mart", Desired.RUNNING)
    file = tmp_path / "kiosk.py"
    if leaving == "failure":
        file.write_text(file.read_text().replace("test_reconcile_all.called", "test_reconcile_all.leave"))
    else:
        alerts = Mock(side_effect=lambda pipeline, *_: leave(None) if pipeline.name == "kiosk" else None)
        monkeypatch.setattr(reconciling_all, "send_alerts", alerts)
    with pytest.raises(SeamlineError):
        reconcile()
    assert [name for name, _ in events.made] == ["mart/master"]


def test_a_stream_that_takes_too_long_is_in_no_others_way(events, monkeypatch):
    """A function of its definition never comes back; the run would be ended before it says anything."""
    hang = threading.Event()
    alerts = Mock(side_effect=lambda pipeline, *_: hang.wait(60) if pipeline.name == "kiosk" else None)
    monkeypatch.setattr(reconciling_all, "send_alerts", alerts)
    monkeypatch.setattr(reconciling_all, "ENDS_WITHIN", 3.0)
    for name in ("kiosk", "mart"):
        want(name, Desired.RUNNING)
    try:
        with pytest.raises(SetupError, match="kiosk was not reconciled within 3 s"):
            reconcile()
    finally:
        hang.set()
    assert [name for name, _ in events.made] == ["kiosk/master", "mart/master"]
    assert OF == ["kiosk"]


def test_all_are_started_before_anything_is_asked_of_kafka(events, monkeypatch):
    """With two hundred pipelines on a busy machine a killed stream waited for the alerts of all others."""
    running = []
    alerts = Mock(
        side_effect=lambda *_: running.append(
            sum(control_of(name).read().lease is not None for name in NAMES)
        )
    )
    monkeypatch.setattr(reconciling_all, "send_alerts", alerts)
    monkeypatch.setattr(reconciling_all, "AT_ONCE", 1)
    for name in NAMES:
        want(name, Desired.RUNNING)
    reconcile()
    assert running == [len(NAMES)] * len(NAMES)


def test_what_cannot_be_used_is_said(events, tmp_path, capsys):
    """Its stream may have been asked to run, and nobody else says why it does not."""
    (tmp_path / "kiosk.py").write_text("nonsense")
    want("kiosk", Desired.RUNNING)
    reconcile()
    assert "kiosk.py:1: NameError: name 'nonsense' is not defined" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (AirflowNotFoundException("none"), ConnectionMissing, "no connection kafka_default"),
        (TimeoutError("the vault is sealed"), TimeoutError, "the vault is sealed"),
    ],
)
def test_a_connection_that_is_not_there_is_in_the_way_of_its_own_stream(
    events, tmp_path, monkeypatch, raised, kind, message
):
    """What needs no broker is done, and other streams are started."""
    read = reconciling_all.connection_env

    def connection(name: str) -> dict[str, str]:
        if name == "kafka_default":
            raise raised
        return read(name)

    other = tmp_path / "bazaar.py"
    other.write_text(other.read_text().replace("topic=", 'connection="kafka_other", topic='))
    monkeypatch.setattr(reconciling_all, "connection_env", connection)
    for name in ("bazaar", "mart"):
        want(name, Desired.RUNNING)
    want("kiosk", Desired.STOPPED)
    with pytest.raises(kind, match=message):
        reconcile()
    assert [name for name, _ in events.made] == ["bazaar/master"]
    assert control_of("mart").read().lease is None


def test_what_a_definition_calls_for_a_failure_hides_none(events, tmp_path, capsys):
    """It raises by itself; the next one's is called all the same."""
    file = tmp_path / "bazaar.py"
    file.write_text(file.read_text().replace("test_reconcile_all.called", "test_reconcile_all.no_such"))
    for name in ("bazaar", "mart"):
        give_up(name, tmp_path)
    with pytest.raises(SeamlineError, match="2 pipelines: bazaar, mart"):
        reconcile()
    assert len(CALLED) == 1
    assert "no_such failed: AttributeError" in capsys.readouterr().out


def test_what_a_definition_calls_for_a_failure_may_hang(events, tmp_path, monkeypatch, capsys):
    """The task still fails, and those of the others are called."""
    released = threading.Event()
    monkeypatch.setattr(reconciling_all, "CALLED_WITHIN", 1.0)
    monkeypatch.setitem(globals(), "leave", lambda context: released.wait())
    file = tmp_path / "bazaar.py"
    file.write_text(file.read_text().replace("test_reconcile_all.called", "test_reconcile_all.leave"))
    for name in ("bazaar", "mart"):
        give_up(name, tmp_path)
    with pytest.raises(SeamlineError, match="2 pipelines: bazaar, mart"):
        reconcile()
    released.set()
    assert OF == ["mart"]
    assert (
        "bazaar: tests.dags.test_reconcile_all.leave has not returned within 1 s" in capsys.readouterr().out
    )


def test_a_resident_driver_that_gave_up_is_started_by_its_own_command(events, tmp_path):
    """It is no stream, and no DAG of its own has a form."""
    ControlTable.ensure(resident.resident_layout()).want(Desired.RUNNING, actor="ada", reason="so", now=NOW)
    give_up(resident.NAME, tmp_path)
    with pytest.raises(GaveUp, match="The resident driver has failed 20 times in a row") as told:
        reconciling.reconcile_driver()
    assert told.value.hint == "fix the cause, then run `seamline driver start`."


def test_overdue_intervals_are_looked_for_where_a_definition_says_when(events, tmp_path, monkeypatch):
    """A pipeline that nobody has started is late for nobody; one that cannot be read hides no other."""
    for name in NAMES[:3]:
        file = tmp_path / f"{name}.py"
        file.write_text(file.read_text().replace("interval=", 'fresh_within="6 hours", interval='))
    looked = []

    def overdue(pipeline: CompiledPipeline, _: Layout) -> list[SimpleNamespace]:
        looked.append(pipeline.name)
        if pipeline.name == "bazaar":
            raise SeamlineError("its log is gone")
        return [SimpleNamespace()] if len(looked) > 2 else []

    monkeypatch.setattr(reconciling_all, "tell_overdue", overdue)
    for name in ("kiosk", "stall"):
        want(name, Desired.RUNNING)
    with pytest.raises(AirflowSkipException, match="nothing is overdue"):
        reconciling_all.report_all_overdue_intervals()
    assert looked == ["kiosk"]
    want("bazaar", Desired.RUNNING)
    with pytest.raises(SeamlineError, match="its log is gone"):
        reconciling_all.report_all_overdue_intervals()
    assert looked == ["kiosk", "bazaar", "kiosk"]
