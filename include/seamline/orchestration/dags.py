"""Definition -> DAGs: ``<pipeline>__batch``, ``__stream``, ``__upkeep``, ``__audit``, ``__import``;
``<file>__broken`` if wrong.

``seamline__reconcile`` keeps the streams of all of them running.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, AssetAlias, get_parsing_context, task

from seamline.model.compile.catalog import find_declarations
from seamline.model.errors import DefinitionError
from seamline.orchestration import reconciling, reconciling_all, tasks
from seamline.orchestration.checked_definitions import load_valid_definitions
from seamline.orchestration.dag_docs import name_of
from seamline.orchestration.intervals.closed import StartBuild, list_closed
from seamline.orchestration.pipeline_dags import LAYERS, dags_of, read_stream_queue
from seamline.orchestration.pools import STREAM
from seamline.plan.wording.observation_text import RECONCILER


def build_dags(folder: Path, home: Path, *, only: str | None = None) -> dict[str, DAG]:
    """Make every DAG by its id; for the start of a task ``only`` that of one id, which needs no other definition."""
    if only is not None and (one := build_one_dag(folder, only)):
        return {only: one}
    pipelines, found = load_valid_definitions(folder, home)
    problems = [*found]
    made: dict[str, DAG] = {}
    for pipeline in pipelines:
        if only is None or only.rpartition("__")[0] == pipeline.name:
            dags, wrong = dags_of(pipeline)
            made |= {dag.dag_id: dag for dag in dags}
            problems += wrong
    for stem, wrong in by_file(problems).items():
        dag = broken_dag(stem, wrong)
        made[dag.dag_id] = dag
    if made:
        made[RECONCILER] = reconcile_dag()
    return made


def build_one_dag(folder: Path, id: str) -> DAG | None:
    """Make one DAG; None if all definitions have to be loaded to find it."""
    if id == RECONCILER:
        return reconcile_dag()
    name, _, layer = id.rpartition("__")
    declared = next(find_declarations(folder, name), None) if layer in LAYERS else None
    dags, _ = dags_of(declared, [layer]) if declared else ([], [])
    return dags[0] if dags else None


def parsed_dags() -> dict[str, DAG]:
    """Make the DAGs that Airflow asks for, by the settings."""
    from seamline.lake.storage.layout import definitions_folder, home_folder

    return build_dags(definitions_folder(), home_folder(), only=get_parsing_context().dag_id)


def by_file(problems: Sequence[DefinitionError]) -> dict[str, list[DefinitionError]]:
    """Group problems by the definition file's name."""
    grouped: dict[str, list[DefinitionError]] = {}
    for problem in problems:
        grouped.setdefault(Path(problem.file).stem or "definitions", []).append(problem)
    return grouped


def reconcile_dag() -> DAG:
    """Keep running what should run: the streams of all pipelines, and the resident driver if there ever was one.

    It does only what somebody has asked for, so it is created unpaused.
    """
    started = AssetAlias("seamline streams", group="master")
    with DAG(
        dag_id=RECONCILER,
        description="Starts supervisors that are missing, sends alerts, and looks for overdue intervals.",
        tags=["seamline"],
        start_date=datetime(2013, 1, 1, tzinfo=UTC),
        schedule=read_reconcile_interval(),
        catchup=False,
        # A run whose host is lost lasts until its timeout; a lease keeps two runs from starting one stream twice.
        max_active_runs=2,
        dagrun_timeout=timedelta(minutes=5),
        # One stream that needs a person fails every run: Airflow must not pause the DAG of all streams for that.
        max_consecutive_failed_dag_runs=0,
        is_paused_upon_creation=False,
        default_args={"retries": 0, "pool": STREAM},
    ) as dag:
        queue = read_stream_queue()
        task(task_id="streams", queue=queue, outlets=[started])(reconciling_all.reconcile_streams)(started)
        task(task_id="driver", queue=queue)(reconciling.reconcile_driver)()
        task(task_id="freshness")(reconciling_all.report_all_overdue_intervals)()
        found: Any = task(task_id="closed")(list_closed)()
        StartBuild.partial(task_id="build_closed").expand_kwargs(found)
    return dag


def read_reconcile_interval() -> timedelta:
    """Return how often what should run is compared with what runs, by setting."""
    return timedelta(seconds=float(os.environ.get("SEAMLINE_RECONCILE_SECONDS", "120")))


def broken_dag(stem: str, problems: Sequence[DefinitionError]) -> DAG:
    """Make a DAG that shows, and fails with, what is wrong in a definition file."""
    text, file = "\n\n".join(map(str, problems)), Path(problems[0].file).name or stem
    with DAG(
        dag_id=f"{name_of(stem)}__broken",
        description=f"{file} cannot be used: {problems[0].message}"[:200],
        doc_md=f"# {file} cannot be used\n\n```\n{text}\n```",
        tags=["seamline", "broken"],
        start_date=datetime(2013, 1, 1, tzinfo=UTC),
        schedule=None,
        catchup=False,
    ) as dag:
        task(task_id="problem", retries=0)(tasks.fail_broken_definition)(text)
    return dag
