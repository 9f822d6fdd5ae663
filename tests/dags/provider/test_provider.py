"""Sensor, operators, hook and connection type of other people's DAGs, in a real Airflow over a shop's tables."""

from __future__ import annotations

import asyncio
import errno
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.bases.operator import TriggerFailureReason
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    DagRunTriggerException,
    TaskDeferred,
)
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
from tests.faults.rig.trial import eventually
from tests.unit.past import build
from tests.unit.shop import DAY, START, Sale, Shop

import seamline_provider
from seamline.lake.publish.interval_watch import Watch
from seamline.model.errors import BadRange, ConnectionMissing, SeamlineError, SetupError, StoreUnavailable
from seamline.model.time.intervals import Grid, Interval
from seamline.orchestration.intervals.links import CertificateLink, DriverLogLink, IntervalLink, RunLink
from seamline.plan.publish.awaited_intervals import Until
from seamline.provider import (
    SeamlineBackfillOperator,
    SeamlineCompleteSensor,
    SeamlineHook,
    SeamlineQueryOperator,
    triggers,
)
from seamline.provider.spans import span_of
from seamline.provider.triggers import SeamlineCompleteTrigger

SCHEMA = Path(sys.modules["airflow"].__file__ or "").parent / "provider_info.schema.json"
FIRST, SECOND = "2013-01-01", "2013-01-02"
ROOT = Path(__file__).parents[3]
GRID = Grid(DAY, START)


class Ti:
    """As much of a running task as operators use."""

    dag_id, task_id, run_id, map_index, try_number = "report", "rebuild", "manual__1", -1, 1

    def __init__(self, *, paused: bool = False) -> None:
        self.kept: dict[str, Any] = {}
        self.paused = paused

    def xcom_push(self, key: str, value: Any) -> None:
        self.kept[key] = value

    def xcom_pull(self, *, key: str, **_: Any) -> Any:
        return self.kept.get(key)

    def get_dag(self, dag_id: str) -> SimpleNamespace:
        return SimpleNamespace(is_paused=self.paused)


def context(ti: Ti | None = None, **more: Any) -> Any:
    """Return the context of a run without a data interval."""
    return {"ti": ti or Ti(), **more}


@pytest.fixture(autouse=True)
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no database of Airflow's for the default connection, which is not there."""
    monkeypatch.setenv("AIRFLOW_CONN_SEAMLINE_DEFAULT", json.dumps({"conn_type": "seamline"}))


def test_a_dag_of_others_waits_in_the_triggerer_and_reads(database: None, shop: Shop, tmp_path: Path) -> None:
    """One day is certified as the run begins; the other is built while the sensor is deferred, which then goes on.

    A run that is asked for is there once it is, and one for an interval that has closed once, however often.
    """
    command = [sys.executable, "-m", "tests.dags.provider.waiting_dag", str(tmp_path), "report"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        eventually("a look", lambda: (tmp_path / "looked").exists() or running.poll() is not None)
        shop.epoch([], watermark=START + 2 * DAY)
        build(shop, "h", cut=0, day=1)
        said, _ = running.communicate(timeout=120)
    found = json.loads(said.splitlines()[-1])
    # Which of the two that are mapped comes first is Airflow's to choose.
    assert sorted((task, state) for task, _, state in found["states"]) == [
        ("ask", "success"),
        ("rebuild", "success"),
        ("start", "skipped"),
        ("start", "success"),
        ("wait", "success"),
    ]
    kept = found["xcoms"]
    waited = kept["wait.return_value"]
    assert (waited["intervals"], waited["cut"], waited["until"]) == (2, 0, "certified")
    assert sum(row["orders"] for row in kept["ask.return_value"]) == 4
    assert kept["ask.answer"]["final"]
    page = "/seamline/pipelines/shop/completeness?view=sales&interval=2013-01-01T00%3A00%3A00Z"
    assert kept["wait._link_IntervalLink"].endswith(page)
    assert kept["wait._link_DriverLogLink"].endswith("/seamline/pipelines/shop/log")
    asked, closed = sorted(found["started"])
    assert kept["rebuild.return_value"] == asked
    assert kept["rebuild._link_RunLink"].endswith(f"/dags/shop__batch/runs/{asked}".replace(":", "%3A"))
    assert found["started"][asked]["to"] == "2013-01-02T00:00:00Z"
    assert (closed, found["started"][closed]) == (
        "closed__2013-01-01T00:00:00Z",
        {"reason": "closed: 2013-01-01T00:00:00Z"},
    )


def test_the_sensor_takes_its_run_for_what_it_waits_for(shop: Shop) -> None:
    """A scheduled run its data interval, a partitioned one its partition: the same task in both kinds of DAG."""
    day = {"data_interval_start": START, "data_interval_end": START + DAY}
    assert span_of(day, "", "", GRID) == GRID.named(FIRST)
    assert span_of({**day, "partition_key": "2013-01-02T00:00:00"}, "", "", GRID) == GRID.named(SECOND)
    hours = Grid(DAY / 24, START)
    assert span_of({"partition_key": SECOND}, "", "", hours) == GRID.named(SECOND)
    assert span_of({"partition_key": "2013-01-02T05:00:00"}, "", "", hours).id == "2013-01-02T05:00:00Z"
    assert span_of(day, SECOND, "", GRID) == GRID.named(SECOND)
    assert span_of({}, START, START + 2 * DAY, GRID) == Interval(START, START + 2 * DAY)
    for given in ({"partition_key": "europe"}, {}):
        with pytest.raises(BadRange, match="start"):
            raise_hint(lambda given=given: span_of(given, "", "", GRID))
    with pytest.raises(BadRange, match="start is missing"):
        span_of(day, "", SECOND, GRID)


def raise_hint(call: Callable[[], object]) -> None:
    """Raise an error with its hint as its message."""
    try:
        call()
    except BadRange as error:
        raise BadRange(str(error)) from None


def test_the_sensor_ends_at_once_where_nothing_is_lacking(shop: Shop) -> None:
    """No trigger is made for what is there already; its XCom says what answers."""
    sensor = SeamlineCompleteSensor(task_id="wait", view="shop.sales", start=FIRST)
    found = sensor.execute(context())
    assert (found["view"], found["intervals"], found["cut"]) == ("shop.sales", 1, 0)
    for deferrable in (True, False):
        early = SeamlineCompleteSensor(
            task_id="wait",
            view="shop.sales",
            start=SECOND,
            deferrable=deferrable,
            mode="reschedule",
            timeout=7,
            until="complete",
        )
        if deferrable:
            with pytest.raises(TaskDeferred) as left:
                early.execute(context())
            assert left.value.timeout.total_seconds() == 7
            assert isinstance(left.value.trigger, SeamlineCompleteTrigger)
        else:
            assert not early.poke(context())
    shop.epoch([], watermark=START + 2 * DAY)
    assert early.poke(context()).xcom_value["until"] == "complete"


@pytest.mark.parametrize(
    ("view", "until", "said"),
    [
        ("shop.nothing", "certified", "no view"),
        ("shop", "certified", "is no view"),
        ("nothing.sales", "certified", "nothing"),
        ("shop.sales", "done", "available: complete, certified"),
    ],
)
def test_what_can_never_come_fails_for_good(shop: Shop, view: str, until: str, said: str) -> None:
    """Not after the week that sensors wait; ``soft_fail`` skips, as of every sensor."""
    for deferrable in (True, False):
        given = {"task_id": "wait", "view": view, "start": FIRST, "until": until, "deferrable": deferrable}
        with pytest.raises(AirflowFailException, match=said):
            SeamlineCompleteSensor(**given).execute(context())
        with pytest.raises(AirflowSkipException, match=said):
            SeamlineCompleteSensor(**given, soft_fail=True).execute(context())


def test_time_that_is_up_fails_the_sensor_or_skips_it(shop: Shop) -> None:
    """Airflow's scheduler ends a deferral; what becomes of the task is as of every sensor."""
    given = {"task_id": "wait", "view": "shop.sales", "start": SECOND}
    up = ("__fail__", {"error": TriggerFailureReason.TRIGGER_TIMEOUT}, context())
    with pytest.raises(AirflowSensorTimeout):
        SeamlineCompleteSensor(**given).resume_execution(*up)
    with pytest.raises(AirflowSkipException):
        SeamlineCompleteSensor(**given, soft_fail=True).resume_execution(*up)


def fired(trigger: SeamlineCompleteTrigger) -> Mapping[str, Any]:
    """Run a trigger to its event."""
    name, given = trigger.serialize()
    again = json.loads(json.dumps(given))
    assert name.rpartition(".")[2] == type(trigger).__name__

    async def first() -> Any:
        async for event in SeamlineCompleteTrigger(**again).run():
            return event.payload

    found: Mapping[str, Any] = asyncio.run(first())
    return found


def test_a_trigger_waits_out_a_store_that_is_away(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait of days meets a minute without the store; what stays wrong ends it."""
    watch = Watch.of(shop.compiled, shop.layout, "sales", GRID.named(FIRST), Until.CERTIFIED)
    troubles: list[Exception] = [StoreUnavailable("away"), StoreUnavailable("away")]
    truly = Watch.look

    def look(self: Watch) -> Any:
        if troubles:
            raise troubles.pop()
        return truly(self)

    monkeypatch.setattr(Watch, "look", look)
    trigger = SeamlineCompleteTrigger(watch.to_json(), poke_interval=0.01)
    assert fired(trigger)["found"]["intervals"] == 1
    troubles.append(SetupError("a setting is gone"))
    event = fired(trigger)
    assert event == {"error": "SetupError: a setting is gone", "lasting": True}
    sensor = SeamlineCompleteSensor(task_id="wait", view="shop.sales", start=FIRST)
    with pytest.raises(AirflowFailException, match="a setting is gone"):
        sensor.execute_complete(context(), event)


def test_a_wait_is_tried_again_after_an_error_that_is_not_ours(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A triggerer that is out of file handles says nothing of the intervals: the task's retries are for that."""
    watch = Watch.of(shop.compiled, shop.layout, "sales", GRID.named(FIRST), Until.CERTIFIED)

    def look(self: Watch) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Watch, "look", look)
    event = fired(SeamlineCompleteTrigger(watch.to_json(), poke_interval=0.01))
    sensor = SeamlineCompleteSensor(task_id="wait", view="shop.sales", start=FIRST)
    with pytest.raises(RuntimeError, match="Too many open files"):
        sensor.execute_complete(context(), event)


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_store_that_is_away_at_the_first_look_is_waited_out(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, deferrable: bool
) -> None:
    """As at any later one: the wait has no retries, and a week's time."""
    truly, troubles = Watch.look, [StoreUnavailable("away")]

    def look(self: Watch) -> Any:
        if troubles:
            raise troubles.pop()
        return truly(self)

    monkeypatch.setattr(Watch, "look", look)
    sensor = SeamlineCompleteSensor(
        task_id="wait", view="shop.sales", start=FIRST, deferrable=deferrable, poke_interval=0.01
    )
    if not deferrable:
        assert not sensor.poke(context())
        assert sensor.poke(context()).xcom_value["intervals"] == 1
        return
    with pytest.raises(TaskDeferred) as left:
        sensor.execute(context())
    event = fired(left.value.trigger)
    assert event == {"again": True}
    assert sensor.execute_complete(context(), event)["intervals"] == 1


def test_a_wait_goes_on_by_the_clock_of_an_edited_definition(shop: Shop) -> None:
    """A watermark of another clock says nothing, so the old one would wait for its whole time."""
    sensor = SeamlineCompleteSensor(
        task_id="wait", view="shop.sales", start=SECOND, until="complete", poke_interval=0.01
    )
    with pytest.raises(TaskDeferred) as left:
        sensor.execute(context())
    trigger = left.value.trigger
    trigger.watch["clock"] = ["of an earlier definition", "another"]
    trigger.watch["seen"] = ["of an earlier definition", "another"]
    shop.epoch([], watermark=START + 2 * DAY)
    event = fired(trigger)
    assert event == {"again": True}
    assert sensor.execute_complete(context(), event)["until"] == "complete"
    trigger.watch["seen"] = None
    watch = Watch.from_json(trigger.watch)
    assert watch.look().lacking and watch.look().lacking and not watch.outdated


def test_a_trigger_runs_no_definition(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of Airflow's waits share the triggerer's process: a definition that hangs would stop them all."""
    watch = Watch.of(shop.compiled, shop.layout, "sales", GRID.named(FIRST), Until.CERTIFIED)
    for name in ("SEAMLINE_WAREHOUSE", "SEAMLINE_PIPELINES"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    event = fired(SeamlineCompleteTrigger(watch.to_json(), poke_interval=0.01))
    assert event["found"] == {"cut": 0, "rows": 3, "intervals": 1, "run": ""}
    assert triggers.LOOKS._max_workers == 1


def test_a_backfill_starts_a_run_of_the_batch_dag(shop: Shop) -> None:
    """As by the form of that DAG: the span, its end exclusive, and who asked."""
    shop.epoch([Sale(2)], watermark=START + 2 * DAY)
    task, ti = SeamlineBackfillOperator(task_id="rebuild", pipeline="shop", start=FIRST), Ti()
    with pytest.raises(DagRunTriggerException) as asked:
        task.execute(context(ti))
    run = asked.value
    assert (run.trigger_dag_id, run.deferrable, run.wait_for_completion) == ("shop__batch", True, True)
    assert run.conf == {
        "from": "2013-01-01T00:00:00Z",
        "to": "2013-01-02T00:00:00Z",
        "reason": "asked for by report",
    }
    assert run.dag_run_id.startswith("asked__2013-01-01T00:00:00Z__")
    assert any("build 2013-01-01T00:00:00Z" in line for line in ti.kept["plan"])
    again = Ti()
    again.try_number = 2
    with pytest.raises(DagRunTriggerException) as other:
        task.execute(context(again))
    assert other.value.dag_run_id != run.dag_run_id

    def event(state: str) -> Any:
        return ("class", {"run_ids": [run.dag_run_id], run.dag_run_id: state})

    resumed = SeamlineBackfillOperator(task_id="rebuild", pipeline="shop", start=FIRST)
    assert resumed.execute_complete(context(ti), event("success")) == run.dag_run_id
    for link, end in (
        (RunLink(), f"/dags/shop__batch/runs/{run.dag_run_id}"),
        (CertificateLink(), f"/seamline/reports/shop__batch/{run.dag_run_id}/index.html"),
        (IntervalLink(), "/seamline/pipelines/shop/completeness?view=sales&interval=2013-01-01T00:00:00Z"),
    ):
        assert link.get_link(resumed, ti_key=ti).replace("%3A", ":").endswith(end)
    assert DriverLogLink().get_link(resumed, ti_key=ti) == ""
    with pytest.raises(SeamlineError, match="has failed"):
        resumed.execute_complete(context(ti), event("failed"))


def test_a_backfill_of_nothing_is_skipped_and_of_a_paused_dag_fails(shop: Shop) -> None:
    """A run that nobody lets start would be waited for without end."""
    with pytest.raises(AirflowSkipException, match="nothing"):
        SeamlineBackfillOperator(task_id="r", pipeline="shop", start=SECOND).execute(context())
    shop.epoch([], watermark=START + 2 * DAY)
    with pytest.raises(SetupError, match="paused"):
        SeamlineBackfillOperator(task_id="r", pipeline="shop", start=FIRST).execute(context(Ti(paused=True)))


def test_rows_go_into_an_xcom_within_limits(shop: Shop) -> None:
    """Airflow keeps it in its database; who wants more names a file."""
    ti = Ti()
    ask = SeamlineQueryOperator(task_id="ask", view="shop.sales", where="customer = 'a'", end=SECOND)
    [row] = ask.execute(context(ti))
    assert (row["customer"], row["total"], row["window_start"]) == ("a", 10, "2013-01-01T00:00:00Z")
    assert ti.kept["answer"]["rows"] == 1
    assert "2013-01-01" in IntervalLink().get_link(ask, ti_key=ti)
    text = SeamlineQueryOperator(task_id="ask", view="shop.sales", as_json=True).execute(context())
    assert len(json.loads(text)) == 4
    for limit in ({"max_rows": 3}, {"max_bytes": 100}):
        with pytest.raises(BadRange, match="more than"):
            SeamlineQueryOperator(task_id="ask", view="shop.sales", **limit).execute(context())


def test_rows_go_into_a_file_that_is_there_when_it_is_whole(shop: Shop, tmp_path: Path) -> None:
    """A reader who looks for the file finds all of it, or none."""
    place = tmp_path / "out" / "sales.parquet"
    ask = SeamlineQueryOperator(task_id="ask", view="shop.sales", path=str(place), max_rows=1)
    assert ask.execute(context()) == str(place)
    assert pq.read_table(place).num_rows == 4
    assert [each.name for each in place.parent.iterdir()] == ["sales.parquet"]
    with pytest.raises(BadRange, match="does not end as a format"):
        SeamlineQueryOperator(task_id="ask", view="shop.sales", path=str(place.with_suffix(".xls"))).execute(
            context()
        )


def test_a_connection_says_where_the_tables_are(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two warehouses in one Airflow; without one the settings of its processes apply."""
    assert SeamlineHook().read("shop.sales").num_rows == 4
    places = {"warehouse": str(shop.warehouse), "pipelines": str(tmp_path / "definitions")}
    for name in ("SEAMLINE_WAREHOUSE", "SEAMLINE_PIPELINES"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "seamline", "extra": places}))
    assert SeamlineHook("lake").read("shop.sales", start=SECOND).num_rows == 1
    assert SeamlineHook("lake").test_connection() == (True, "1 pipelines: shop")
    assert not SeamlineHook().test_connection()[0]
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps({"conn_type": "http"}))
    with pytest.raises(SetupError, match="of type 'http'"):
        SeamlineHook("other").read("shop.sales")


def test_a_connection_that_is_named_and_missing_is_an_error(database: None, shop: Shop) -> None:
    """Without it another warehouse would be read than the one that was meant."""
    with pytest.raises(ConnectionMissing, match="lake"):
        SeamlineHook("lake").read("shop.sales")


def test_airflow_knows_the_provider_and_its_form() -> None:
    """The form is made of what the entry point says, without any import of ours."""
    info = seamline_provider.get_provider_info()
    jsonschema.validate(info, json.loads(SCHEMA.read_text()))
    for kind in ("operators", "sensors", "hooks", "triggers"):
        for each in info[kind]:
            for module in each["python-modules"]:
                __import__(module)
    manager = ProvidersManager()
    assert manager.providers["seamline"].data["connection-types"] == info["connection-types"]
    assert ProvidersManagerTaskRuntime().hooks["seamline"].hook_name == "Seamline"
    fields = [name for name in manager.connection_form_widgets if name.startswith("extra__seamline__")]
    assert {each.rpartition("__")[2] for each in fields} == {"warehouse", "pipelines", "store_conn_id"}
    assert manager.field_behaviours["seamline"]["hidden_fields"]
    assert {each.rpartition(".")[2] for each in manager.extra_links_class_names} >= {
        "IntervalLink",
        "CertificateLink",
        "DriverLogLink",
    }
