"""DAGs of another team, which know Seamline by its provider alone, and what they do on a live Airflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seamline.orchestration.airflow_api import AirflowApi
from seamline.orchestration.airflow_client import quote_path_segment

REPORT, HOURS = "other_team__report", "other_team__days"
DAY, NEXT = "2013-01-03T00:00:00Z", "2013-01-04T00:00:00Z"
VIEW, LAKE = "flights.delay_by_carrier", "lake"
DAGS = f"""
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable
from seamline.provider import SeamlineBackfillOperator, SeamlineCompleteSensor, SeamlineQueryOperator

LAKE = {{"seamline_conn_id": {LAKE!r}}}
with DAG({REPORT!r}, schedule=None, is_paused_upon_creation=False):
    wait = SeamlineCompleteSensor(
        task_id="wait", view={VIEW!r}, start={DAY!r}, end={NEXT!r}, poke_interval=1, timeout=900, **LAKE
    )
    rebuild = SeamlineBackfillOperator(
        task_id="rebuild", pipeline="flights", start={DAY!r}, end={NEXT!r}, poke_interval=2, **LAKE
    )
    ask = SeamlineQueryOperator(task_id="ask", view={VIEW!r}, start={DAY!r}, end={NEXT!r}, **LAKE)
    wait >> rebuild >> ask
with DAG(
    {HOURS!r},
    schedule=PartitionedAssetTimetable(assets=Asset("flights/intervals", "x-seamline://flights/intervals")),
    is_paused_upon_creation=True,
):
    SeamlineQueryOperator(task_id="ask", view={VIEW!r}, start="{{{{ partition_key }}}}", **LAKE)
"""
FIELDS = {"warehouse", "pipelines", "store_conn_id"}


def write_dags(folder: Path, ours: Path) -> Path:
    """Write the team's DAGs beside a copy of our file; return the folder."""
    folder.mkdir()
    (folder / ours.name).write_bytes(ours.read_bytes())
    (folder / "other_team.py").write_text(DAGS)
    return folder


def connect(api: AirflowApi, warehouse: Path, pipelines: Path) -> dict[str, Any]:
    """Make the connection by the fields of its form, as the form does, and return what its button Test says."""
    api.log_in()
    login = {"Authorization": f"Bearer {api.token}"}
    shown = json.loads(api.send("GET", "/ui/connections/hook_meta", None, login).content)
    [form] = [each for each in shown if each["connection_type"] == "seamline"]
    assert set(form["extra_fields"]) == FIELDS
    extra = {"warehouse": str(warehouse), "pipelines": str(pipelines), "store_conn_id": None}
    made = {"connection_id": LAKE, "conn_type": "seamline", "extra": json.dumps(extra)}
    api.call("POST", "/connections", made)
    return dict(api.call("POST", "/connections/test", made))


def links_of(api: AirflowApi, run: str, task: str) -> dict[str, str]:
    """Return where the buttons on a task's page lead, by their names."""
    return dict(api.call("GET", f"{place_of(run, task)}/links")["extra_links"])


def xcom_of(api: AirflowApi, run: str, task: str, dag: str = REPORT) -> Any:
    """Return what a task has handed on."""
    found = api.call("GET", f"{place_of(run, task, dag)}/xcomEntries/return_value?deserialize=true")
    return found["value"]


def place_of(run: str, task: str, dag: str = REPORT) -> str:
    """Return the path of a task's run."""
    return f"/dags/{dag}/dagRuns/{quote_path_segment(run)}/taskInstances/{task}"
