"""Builds that begin because an interval has closed: once for each, beside the schedule."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException
from airflow.serialization.serialized_objects import DagSerialization
from tests.unit.past import build
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop

from seamline.lake.tables.control_table import ControlTable
from seamline.model.errors import SeamlineError
from seamline.orchestration.dags import reconcile_dag
from seamline.orchestration.intervals import closed
from seamline.orchestration.intervals.closed import StartBuild, find_just_closed, list_closed
from seamline.orchestration.run_intervals import RunRequest, resolve_run_request
from seamline.plan.stream.overdue_intervals import NEWEST

IDS = [f"{START + day * DAY:%Y-%m-%dT%H:%M:%SZ}" for day in range(9)]


def sold(*days: int) -> list[Sale]:
    """Sell something on some days."""
    return [Sale(1440 * day + 1) for day in days]


def test_an_interval_is_built_once_an_edge_is_past_its_end(tmp_path: Path) -> None:
    """The watermark of a later epoch is no help: a cut falls on an edge."""
    shop = Shop(tmp_path)
    shop.epoch(sold(0), watermark=START + DAY / 2)
    shop.epoch([], watermark=START + DAY, edge=False)
    assert find_just_closed(shop.compiled, shop.layout) == []
    shop.epoch([], watermark=START + DAY)
    assert [each.id for each in find_just_closed(shop.compiled, shop.layout)] == IDS[:1]
    build(shop, "g", cut=2)
    assert find_just_closed(shop.compiled, shop.layout) == []


def test_late_rows_start_nothing(tmp_path: Path) -> None:
    """They would start a run every two minutes; the schedule takes them together."""
    shop = Shop(tmp_path)
    shop.epoch(sold(0), watermark=START + DAY)
    build(shop, "g", cut=0)
    shop.epoch(sold(0), watermark=START + DAY)
    assert find_just_closed(shop.compiled, shop.layout) == []


def test_the_past_is_left_to_the_schedule(tmp_path: Path) -> None:
    """A pipeline that reads three years at its first start would ask for a thousand runs."""
    shop = Shop(tmp_path)
    shop.epoch(sold(*range(8)), watermark=START + 8 * DAY)
    assert [each.id for each in find_just_closed(shop.compiled, shop.layout)] == IDS[8 - NEWEST : 8]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A shop that builds when a day has closed, another whose tables are broken, and one that does not ask for it."""
    folder = tmp_path / "definitions"
    folder.mkdir()
    text = DEFINITION.replace('start="2013-01-01"', 'start="2013-01-01", when="closed"')
    (folder / "shop.py").write_text(text)
    (folder / "slow.py").write_text(DEFINITION.replace("shop", "slow"))
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(folder))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "w"))
    shop = Shop(tmp_path / "w")
    ControlTable.ensure(shop.layout)
    dags = SimpleNamespace(paused=False)
    ti = SimpleNamespace(get_dag=lambda dag_id: SimpleNamespace(is_paused=dags.paused, dag_id=dag_id))
    monkeypatch.setattr(closed, "get_current_context", lambda: {"ti": ti})
    return SimpleNamespace(shop=shop, dags=dags)


def test_the_task_names_what_has_closed(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow starts a mapped task for each; of a paused DAG no run is made, which would come with all others later."""
    with pytest.raises(AirflowSkipException, match="nothing has closed"):
        list_closed()
    asked.shop.epoch(sold(0), watermark=START + DAY)
    assert list_closed() == [{"pipeline": "shop", "interval": IDS[0]}]
    asked.dags.paused = True
    with pytest.raises(AirflowSkipException):
        list_closed()
    asked.dags.paused = False

    def broken(*_: object) -> None:
        raise SeamlineError("no tables")

    monkeypatch.setattr(closed, "find_just_closed", broken)
    with pytest.raises(SeamlineError, match="no tables"):
        list_closed()


def test_a_run_is_started_once_for_an_interval() -> None:
    """Its id is the interval: Airflow refuses a second one, and the task is skipped."""
    with pytest.raises(DagRunTriggerException) as started:
        StartBuild(task_id="b", pipeline="shop", interval=IDS[0]).execute({})  # type: ignore[arg-type]
    run = started.value
    assert (run.trigger_dag_id, run.dag_run_id) == ("shop__batch", f"closed__{IDS[0]}")
    assert run.skip_when_already_exists
    assert not run.wait_for_completion
    assert run.conf is not None
    found = resolve_run_request("operator_triggered", run.conf)
    assert found == RunRequest(None, True, f"closed: {IDS[0]}")


def test_the_tasks_are_in_the_dag_for_all_pipelines() -> None:
    """Beside the others, of which none waits for them."""
    dag = reconcile_dag()
    assert dag.get_task("build_closed").upstream_task_ids == {"closed"}
    assert dag.get_task("closed").upstream_task_ids == set()
    DagSerialization.serialize_dag(dag)
