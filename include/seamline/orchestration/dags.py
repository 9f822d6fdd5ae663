"""Definition -> DAGs: ``<pipeline>__batch``, ``__stream``, ``__upkeep``, ``__audit``; ``<file>__broken`` if wrong.

``seamline__driver`` where a resident Spark driver was ever wanted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context, task

from seamline.model.compile.catalog import find_declarations
from seamline.model.errors import DefinitionError, StoreRefused, StoreUnavailable
from seamline.orchestration import reconciling, tasks
from seamline.orchestration.checked_definitions import load_valid_definitions
from seamline.orchestration.dag_docs import name_of
from seamline.orchestration.pipeline_dags import LAYERS, dags_of, read_reconcile_interval, read_stream_queue
from seamline.orchestration.pools import STREAM
from seamline.orchestration.store_connection import SETTING as STORE_CONNECTION
from seamline.supervisor import resident


def build_dags(folder: Path, home: Path, *, only: str | None = None) -> dict[str, DAG]:
    """Make every DAG by its id, or, for the start of a task, that of one id, which needs no other definition."""
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
    if is_driver_wanted():
        made[resident.DAG] = driver_dag()
    return made


def build_one_dag(folder: Path, id: str) -> DAG | None:
    """Make one DAG; None where that takes a look at all definitions."""
    if id == resident.DAG:
        return driver_dag()
    name, _, layer = id.rpartition("__")
    declared = next(find_declarations(folder, name), None) if layer in LAYERS else None
    dags, _ = dags_of(declared, [layer]) if declared else ([], [])
    return dags[0] if dags else None


def is_driver_wanted() -> bool:
    """Return whether the resident driver has a DAG: where one was ever wanted, or nobody can tell.

    Who parses may have no keys of the store that knows it, and is not to wait for that.
    """
    if os.environ.get(STORE_CONNECTION):
        return True
    try:
        return resident.is_resident_requested()
    except (StoreRefused, StoreUnavailable):
        return True


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


def driver_dag() -> DAG:
    """Keep the resident driver up; the DAG is there once someone has wanted one (`seamline driver start`)."""
    with DAG(
        dag_id=resident.DAG,
        description="Starts the supervisor of the resident Spark driver where none lives.",
        tags=["seamline", "driver"],
        start_date=datetime(2013, 1, 1, tzinfo=UTC),
        schedule=read_reconcile_interval(),
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=timedelta(minutes=5),
    ) as dag:
        task(task_id="reconcile", pool=STREAM, queue=read_stream_queue(), retries=0)(
            reconciling.reconcile_driver
        )()
    return dag


def broken_dag(stem: str, problems: Sequence[DefinitionError]) -> DAG:
    """Make a DAG that shows, and fails with, what is wrong in a definition file."""
    text = "\n\n".join(map(str, problems))
    with DAG(
        dag_id=f"{name_of(stem)}__broken",
        description=f"{stem}.py cannot be used: {problems[0].message}"[:200],
        doc_md=f"# {stem}.py cannot be used\n\n```\n{text}\n```",
        tags=["seamline", "broken"],
        start_date=datetime(2013, 1, 1, tzinfo=UTC),
        schedule=None,
        catchup=False,
    ) as dag:
        task(task_id="problem", retries=0)(tasks.fail_broken_definition)(text)
    return dag
