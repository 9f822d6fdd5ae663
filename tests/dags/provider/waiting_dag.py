"""Runs a DAG of somebody else's over a shop's tables, in a process of its own.

``python -m tests.dags.provider.waiting_dag FOLDER DAG [LOGICAL_DATE]``; the last line is JSON: states of tasks, XComs.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

DAGS = """
from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from seamline.orchestration.intervals.closed import StartBuild
from seamline.provider import SeamlineBackfillOperator, SeamlineCompleteSensor, SeamlineQueryOperator

with DAG("shop__batch", schedule=None, is_paused_upon_creation=False) as batch:
    pass
with DAG("report", schedule=None) as dag:
    wait = SeamlineCompleteSensor(
        task_id="wait", view="shop.sales", start="2013-01-01", end="2013-01-03", poke_interval=0.05
    )
    ask = SeamlineQueryOperator(
        task_id="ask", view="shop.sales", start="2013-01-01", end="{{ ti.xcom_pull('wait')['span'].split('/')[1] }}"
    )
    rebuild = SeamlineBackfillOperator(
        task_id="rebuild", pipeline="shop", start="2013-01-01", wait_for_completion=False
    )
    start = StartBuild.partial(task_id="start", max_active_tis_per_dag=1).expand_kwargs(
        [{"pipeline": "shop", "interval": "2013-01-01T00:00:00Z"}] * 2
    )
    wait >> ask >> rebuild >> start
with DAG(
    "daily",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
) as days:
    all_hours = SeamlineCompleteSensor(task_id="all_hours", view="shop.sales", poke_interval=0.05)
    ask = SeamlineQueryOperator(
        task_id="ask", view="shop.sales", start="{{ data_interval_start }}", end="{{ data_interval_end }}"
    )
    all_hours >> ask
"""


def main(folder: Path, dag: str, date: str = "") -> None:
    """Run it; when the trigger has looked once, ``looked`` appears, and whoever waits for that changes the tables."""
    from airflow import settings
    from airflow.dag_processing.dagbag import DagBag
    from airflow.models.dagrun import DagRun
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from seamline.provider.triggers import SeamlineCompleteTrigger

    dags = folder / "dags"
    dags.mkdir()
    (dags / "report.py").write_text(DAGS)
    settings.DAGS_FOLDER = str(dags)
    truly = SeamlineCompleteTrigger.look

    def look(self: SeamlineCompleteTrigger) -> Any:
        found = truly(self)
        (folder / "looked").touch()
        return found

    SeamlineCompleteTrigger.look = look  # type: ignore[method-assign]
    bag = DagBag(str(dags))
    assert bag.import_errors == {}
    done = bag.dags[dag].test(logical_date=datetime.fromisoformat(date) if date else None)
    with create_session() as session:
        found = session.scalars(select(XComModel).where(XComModel.run_id == done.run_id))
        kept = {f"{each.task_id}.{each.key}": XComModel.deserialize_value(each) for each in found}
        runs = session.scalars(select(DagRun).where(DagRun.dag_id == "shop__batch"))
        started = {each.run_id: each.conf for each in runs}
    states = sorted((each.task_id, each.map_index, str(each.state)) for each in done.get_task_instances())
    print(json.dumps({"states": states, "xcoms": kept, "started": started}), flush=True)
    # The engines and Airflow's threads need not agree on who ends first.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
