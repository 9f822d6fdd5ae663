"""The DAGs of one pipeline: batch, stream, upkeep, audit and import."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from copy import copy
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator

# The stub of airflow.sdk lacks them.
from airflow.sdk import (  # type: ignore[attr-defined]
    DAG,
    CronDataIntervalTimetable,
    DeadlineAlert,
    DeadlineReference,
    Param,
    SyncCallback,
    TriggerRule,
    chain,
    task,
)

from seamline.model.compile.pipeline_checks import grid_of
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError
from seamline.model.time.intervals import parse_duration, parse_moment
from seamline.orchestration import importing, reconciling, tasks
from seamline.orchestration.assets import Assets
from seamline.orchestration.build_task import BuildOperator
from seamline.orchestration.dag_docs import format_cron, format_dag_doc
from seamline.orchestration.failures import DELAY, WAITS, ByKind
from seamline.orchestration.forms import AUDIT, FORM
from seamline.orchestration.intervals.links import CertificateLink, DriverLogLink, IntervalLink, with_links
from seamline.orchestration.intervals.untold import PUBLISH, PUBLISH_APPROVED
from seamline.orchestration.orders import FORM as ORDER
from seamline.orchestration.pools import BATCH, STREAM


def build_dag_arguments(pipeline: Pipeline, layer: str) -> dict[str, Any]:
    """Return what every DAG of a pipeline has, including the retries that the kind of error allows."""
    default_args: dict[str, Any] = {
        "owner": pipeline.owner,
        "retries": pipeline.retries + WAITS,
        "retry_delay": DELAY,
        "retry_policy": ByKind(pipeline.retries),
    }
    if pipeline.on_failure:
        default_args["on_failure_callback"] = tasks.on_failure(pipeline.on_failure, pipeline.name)
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
        certify = task(task_id="certify", pool=BATCH, inlets=[assets.master], outlets=[assets.generations])(
            tasks.certify
        )
        certified = with_links(certify(pipeline.name, assets.generations), CertificateLink())
        publish = task(
            task_id=PUBLISH,
            pool=BATCH,
            inlets=[assets.generations],
            outlets=[assets.serving, assets.intervals],
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        )(tasks.publish)
        published = with_links(publish(pipeline.name, assets.serving, assets.intervals), IntervalLink())
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
        if pipeline.batch.approve_change:
            add_change_approval(pipeline, build, published, assets)
    return with_form(dag, FORM)


def add_change_approval(pipeline: Pipeline, build: BuildOperator, published: Any, assets: Assets) -> None:
    """Ask about what changes answers by more than the definition lets it, and publish what is approved.

    A ``publish`` that is skipped may have something that waits; only without a build it says nothing of that.
    """
    from seamline.orchestration.approval import ApprovalOfPlan
    from seamline.orchestration.approving.approved_publish import APPROVE, publish_approved
    from seamline.orchestration.approving.asked_note import AskedNote
    from seamline.orchestration.approving.waiting_changes import CHANGES, WAITS

    asked = ApprovalOfPlan(
        task_id=APPROVE,
        subject=f"{pipeline.name}: published numbers would change by more than {pipeline.batch.approve_change:g}",
        body=published[CHANGES],
        needed=published[WAITS],
        notifiers=AskedNote(pipeline.name),
        pool=BATCH,
        trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    )
    approved = task(task_id=PUBLISH_APPROVED, pool=BATCH, outlets=[assets.serving, assets.intervals])(
        publish_approved
    )
    chain([build, published], asked, approved(pipeline.name, assets.serving, assets.intervals))


def with_form(dag: DAG, form: Mapping[str, Param]) -> DAG:
    """Give a DAG the fields of its trigger form, after its tasks.

    Airflow checks the schema of each field that is passed to the DAG, and copies all fields into each task. That took
    half of the time of a parse, for forms that are the same in all pipelines.
    """
    # Airflow writes the values of a run into the fields of the DAG.
    dag.params.update({name: copy(field) for name, field in form.items()})
    return dag


def build_deadline_alert(pipeline: Pipeline) -> DeadlineAlert | None:
    """Return the deadline of a run, which Airflow watches; the task `freshness` watches what never ran."""
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


def read_stream_queue() -> str:
    """Return the queue of tasks that start processes on the streams' host, by setting."""
    return os.environ.get("SEAMLINE_STREAM_QUEUE", "stream")


def stream_dag(pipeline: Pipeline) -> DAG:
    """Carry out what people ask of the stream; the first run, once somebody unpauses the DAG, starts it.

    The stream itself runs outside Airflow, and the DAG for all pipelines keeps it running (``dags.reconcile_dag``).
    """
    assets = Assets.of(pipeline)
    with DAG(
        **build_dag_arguments(pipeline, "stream"),
        schedule="@once",
        max_consecutive_failed_dag_runs=0,
    ) as dag:
        reconcile = task(
            task_id="reconcile",
            pool=STREAM,
            queue=read_stream_queue(),
            execution_timeout=timedelta(minutes=5),
            inlets=[assets.topic],
            outlets=[assets.master],
        )(reconciling.reconcile)
        with_links(reconcile(pipeline.name, pipeline.connection, assets.master), DriverLogLink())
    return with_form(dag, ORDER)


def upkeep_dag(pipeline: Pipeline) -> DAG:
    """Compact, clean up and check, once an hour."""
    with DAG(**build_dag_arguments(pipeline, "upkeep"), schedule="@hourly") as dag:
        task(task_id="upkeep", pool=BATCH)(tasks.upkeep)(pipeline.name, pipeline.connection)
    return dag


def audit_dag(pipeline: Pipeline) -> DAG:
    """Compare Kafka, ledger, log and views, once a day."""
    with DAG(**build_dag_arguments(pipeline, "audit"), schedule="@daily") as dag:
        task(task_id="audit", pool=BATCH)(tasks.audit)(pipeline.name, pipeline.connection)
    return with_form(dag, AUDIT)


def import_dag(pipeline: Pipeline) -> DAG:
    """Import files into the log, by the form; the stream that runs does it, or the task where none does."""
    assets = Assets.of(pipeline)
    with DAG(**build_dag_arguments(pipeline, "import"), schedule=None) as dag:
        planned: Any = task(task_id="plan", pool=STREAM, queue=read_stream_queue())(importing.plan_import)(
            pipeline.name, pipeline.connection
        )
        seen = importing.ImportSensor(
            task_id="import",
            pipeline=pipeline.name,
            connection=pipeline.connection,
            ids=planned,
            pool=STREAM,
            queue=read_stream_queue(),
            outlets=[assets.master],
        )
        chain(planned, seen)
    return with_form(dag, importing.IMPORT)


LAYERS: Mapping[str, Callable[[Pipeline], DAG]] = {
    "batch": batch_dag,
    "stream": stream_dag,
    "upkeep": upkeep_dag,
    "audit": audit_dag,
    "import": import_dag,
}
"""What makes the DAGs of a pipeline, by the ends of their ids."""


def dags_of(pipeline: Pipeline, layers: Collection[str] = ()) -> tuple[list[DAG], list[DefinitionError]]:
    """Make the DAGs of a pipeline, all or some, and say why one cannot be made; that prevents no other."""
    dags: list[DAG] = []
    problems: list[DefinitionError] = []
    for layer in layers or LAYERS:
        try:
            dags.append(LAYERS[layer](pipeline))
        except DefinitionError as error:
            problems.append(error.at(file=pipeline.origin.file, line=pipeline.origin.line))
        except Exception as error:  # noqa: BLE001 - Airflow refuses what it cannot keep by errors of any kind
            problems.append(wrap_dag_error(pipeline, layer, error))
    return dags, problems


def wrap_dag_error(pipeline: Pipeline, layer: str, error: Exception) -> DefinitionError:
    """Say what Airflow does not take of a definition."""
    return DefinitionError(
        f"{pipeline.name} has no {layer} DAG: {type(error).__name__}: {error}.",
        hint="check that every setting has the type that it takes.",
        file=pipeline.origin.file,
        line=pipeline.origin.line,
    )
