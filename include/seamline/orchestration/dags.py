"""Definition -> DAGs: ``<pipeline>__batch``, ``__stream``, ``__upkeep``, ``__audit``; ``<file>__broken`` if wrong.

``seamline__driver`` where a resident Spark driver was ever wanted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator

# The stub of airflow.sdk lacks them.
from airflow.sdk import (  # type: ignore[attr-defined]
    DAG,
    CronDataIntervalTimetable,
    DeadlineAlert,
    DeadlineReference,
    SyncCallback,
    TriggerRule,
    chain,
    get_parsing_context,
    task,
)

from seamline.model.compile.compiled_pipeline import grid_of
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError, StoreRefused, StoreUnavailable
from seamline.model.time.intervals import parse_duration, parse_moment
from seamline.orchestration import reconciling, tasks
from seamline.orchestration.assets import Assets
from seamline.orchestration.build_task import BuildOperator
from seamline.orchestration.checked_definitions import load_valid_definitions
from seamline.orchestration.dag_docs import format_cron, format_dag_doc, name_of
from seamline.orchestration.failures import DELAY, WAITS, ByKind
from seamline.orchestration.forms import AUDIT, FORM
from seamline.orchestration.freshness_deadline import report_overdue_intervals
from seamline.orchestration.orders import FORM as ORDER
from seamline.orchestration.pools import BATCH, STREAM
from seamline.orchestration.store_connection import SETTING as STORE_CONNECTION
from seamline.supervisor import resident


def build_dags(folder: Path, home: Path, *, only: str | None = None) -> dict[str, DAG]:
    """Make every DAG by its id, or only those of the definition that ``only`` belongs to."""
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


def dags_of(pipeline: Pipeline) -> tuple[list[DAG], list[DefinitionError]]:
    """Make the DAGs of a pipeline, and say why one of them cannot be made: it is in the way of no other."""
    dags: list[DAG] = []
    problems: list[DefinitionError] = []
    for make in (batch_dag, stream_dag, upkeep_dag, audit_dag):
        try:
            dags.append(make(pipeline))
        except DefinitionError as error:
            problems.append(error.at(file=pipeline.origin.file, line=pipeline.origin.line))
        except Exception as error:  # noqa: BLE001 - Airflow refuses what it cannot keep by errors of any kind
            problems.append(wrap_dag_error(pipeline, make.__name__, error))
    return dags, problems


def wrap_dag_error(pipeline: Pipeline, making: str, error: Exception) -> DefinitionError:
    """Say what Airflow does not take of a definition."""
    return DefinitionError(
        f"{pipeline.name} has no {making.partition('_')[0]} DAG: {type(error).__name__}: {error}.",
        hint="check that every setting has the type that it takes.",
        file=pipeline.origin.file,
        line=pipeline.origin.line,
    )


def build_dag_arguments(pipeline: Pipeline, layer: str, *, retries: int | None = None) -> dict[str, Any]:
    """Return what every DAG of a pipeline has; without ``retries`` those that the kind of error allows."""
    default_args: dict[str, Any] = {"owner": pipeline.owner, "retries": retries, "retry_delay": DELAY}
    if retries is None:
        default_args |= {"retries": pipeline.retries + WAITS, "retry_policy": ByKind(pipeline.retries)}
    if pipeline.on_failure:
        default_args["on_failure_callback"] = tasks.on_failure(pipeline.on_failure)
    return {
        "dag_id": f"{pipeline.name}__{layer}",
        "description": pipeline.description or f"{layer} layer of {pipeline.name}",
        "doc_md": format_dag_doc(pipeline, layer),
        "tags": sorted({*pipeline.tags, "seamline", layer, pipeline.name}),
        "start_date": parse_moment(pipeline.batch.start),
        "catchup": False,
        "max_active_runs": 1,
        "default_args": default_args,
    }


def batch_dag(pipeline: Pipeline) -> DAG:
    """Plan, build, certify, publish: an interval per scheduled or backfill run, any span by the form.

    What is green is published even where ``certify`` fails for something else; ``all_certified``, which nobody
    has to run, then fails the run.
    """
    assets = Assets.of(pipeline)
    timetable = CronDataIntervalTimetable(format_cron(grid_of(pipeline).length), timezone="UTC")
    with DAG(
        **build_dag_arguments(pipeline, "batch"),
        schedule=timetable,
        params=FORM,
        deadline=build_deadline_alert(pipeline),
        render_template_as_native_obj=False,
    ) as dag:
        planned: Any = task(task_id="plan", pool=BATCH, multiple_outputs=True)(tasks.plan)(pipeline.name)
        build = BuildOperator(
            task_id="build",
            conn_id="spark_default",
            name="{{ dag.dag_id }}.{{ task.task_id }}.{{ run_id }}",
            plan=planned["table"],
            application="build.py",
            application_args=planned["argv"],
            driver_memory="2g",
            pool=BATCH,
            inlets=[assets.master],
        )
        certified = task(task_id="certify", pool=BATCH, inlets=[assets.master], outlets=[assets.generations])(
            tasks.certify
        )(pipeline.name, assets.generations)
        published = task(
            task_id="publish",
            pool=BATCH,
            inlets=[assets.generations],
            outlets=[assets.serving],
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        )(tasks.publish)(pipeline.name, assets.serving)
        if pipeline.batch.approve_above:
            from seamline.orchestration.approval import ApprovalOfPlan

            approved = ApprovalOfPlan(
                task_id="approve",
                subject=f"{pipeline.name}: {{{{ ti.xcom_pull('plan')['intervals'] }}}} intervals to build",
                body=planned["table"],
                needed=planned["waits"],
                pool=BATCH,
            )
            chain(planned, approved, build)
        chain(planned, build, certified, [published, EmptyOperator(task_id="all_certified", pool=BATCH)])
        # Of its two upstreams a build that succeeded is enough; without one there is nothing to publish.
        chain(build, published)
    return dag


def build_deadline_alert(pipeline: Pipeline) -> DeadlineAlert | None:
    """Return the deadline of a run, which is looked after by Airflow; `freshness` looks after what never ran."""
    if not pipeline.batch.fresh_within:
        return None
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=parse_duration(pipeline.batch.fresh_within),
        callback=SyncCallback(
            "seamline.orchestration.freshness_deadline.missed", kwargs={"name": pipeline.name}
        ),
        name="freshness",
    )


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


def read_reconcile_interval() -> timedelta:
    """Return how often what should run is compared with what does, by setting."""
    return timedelta(seconds=float(os.environ.get("SEAMLINE_RECONCILE_SECONDS", "120")))


def read_stream_queue() -> str:
    """Return the queue of tasks that start processes on the streams' host, by setting."""
    return os.environ.get("SEAMLINE_STREAM_QUEUE", "stream")


def stream_dag(pipeline: Pipeline) -> DAG:
    """Reconcile what the stream should be doing with what it does; the stream itself lives outside."""
    assets = Assets.of(pipeline)
    with DAG(
        **build_dag_arguments(pipeline, "stream", retries=0),
        schedule=read_reconcile_interval(),
        params=ORDER,
        dagrun_timeout=timedelta(minutes=5),
        max_consecutive_failed_dag_runs=0,
    ) as dag:
        task(
            task_id="reconcile",
            pool=STREAM,
            queue=read_stream_queue(),
            inlets=[assets.topic],
            outlets=[assets.master],
        )(reconciling.reconcile)(pipeline.name, pipeline.connection, assets.master)
        if pipeline.batch.fresh_within:
            task(task_id="freshness", pool=STREAM)(report_overdue_intervals)(pipeline.name)
    return dag


def upkeep_dag(pipeline: Pipeline) -> DAG:
    """Compact, clean up and check, once an hour."""
    with DAG(**build_dag_arguments(pipeline, "upkeep"), schedule="@hourly") as dag:
        task(task_id="upkeep", pool=BATCH)(tasks.upkeep)(pipeline.name, pipeline.connection)
    return dag


def audit_dag(pipeline: Pipeline) -> DAG:
    """Compare Kafka, ledger, log and views, once a day."""
    with DAG(**build_dag_arguments(pipeline, "audit"), schedule="@daily", params=AUDIT) as dag:
        task(task_id="audit", pool=BATCH)(tasks.audit)(pipeline.name, pipeline.connection)
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
