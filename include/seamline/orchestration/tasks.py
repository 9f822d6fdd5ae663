"""What the tasks of the DAGs do; the engines are imported when a task runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from seamline.model.errors import DefinitionError
from seamline.model.protocol.counts.verdict import list_count_lines
from seamline.orchestration.airflow_connections import (
    connection_env,
    connection_env_if_any,
    name_in_force,
    sink_connections_env,
)
from seamline.orchestration.approving.waiting_changes import hand_on_changes
from seamline.orchestration.failures import log_failure_reason
from seamline.orchestration.intervals.links import (
    CERTIFICATES,
    INTERVAL,
    interval_page,
    report_page,
    show_pages,
)
from seamline.orchestration.intervals.partitions import announce, list_partitions
from seamline.orchestration.intervals.untold import PUBLISH, list_untold
from seamline.orchestration.lineage.reported_tasks import report_publication
from seamline.orchestration.notifying.notifiers import call_notifier
from seamline.orchestration.run_intervals import RunRequest, before_the_clock, resolve_run_request
from seamline.orchestration.store_connection import with_store_settings
from seamline.plan.batch.batch_plan import needs_approval
from seamline.plan.wording.plan_text import format_plan, format_plan_table

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.model.protocol.manifest import Statement

TOLD = 50
"""How many intervals an event names: it is kept in Airflow's database."""


def request_of(context: Any, length: timedelta) -> RunRequest:
    """Resolve what the running task's run is asked for; ``length`` is that of the pipeline's intervals."""
    run = context["dag_run"]
    return resolve_run_request(
        str(run.run_type.value),
        context["params"],
        context.get("data_interval_start"),
        context.get("data_interval_end"),
        guessed=partial(before_the_clock, run_after=run.run_after, length=length),
    )


def open_compiled_pipeline(name: str) -> tuple[CompiledPipeline, Layout]:
    """Find a pipeline and its tables by the settings; OtherFormat where another release's tables are."""
    from seamline.lake.storage.layout import definitions_folder, locate_tables
    from seamline.lake.tables.table_format import require_format
    from seamline.model.compile.catalog import load_pipeline

    return load_pipeline(definitions_folder(), name), require_format(locate_tables(name))


@log_failure_reason
@with_store_settings
def plan(name: str) -> dict[str, Any]:
    """Decide what the run builds, print it, and hand the build's arguments on; skip when that is nothing."""
    from seamline.lake.publish.planning import job_of, plan_run
    from seamline.lake.tables.claims_table import claims_of, require_free

    context = get_current_context()
    run = str(context["run_id"])
    pipeline, layout = open_compiled_pipeline(name)
    request = request_of(context, pipeline.grid.length)
    if request.asked:
        pipeline.grid.within_life(request.asked, now=datetime.now(UTC))
    found = plan_run(pipeline, layout, asked=request.asked, dirty=request.dirty, run=run)
    take_statements(pipeline, layout)
    print(format_run_request(name, request))
    for line in format_plan(found, why=True):
        print(line)
    if not found.builds:
        raise AirflowSkipException("nothing to build")
    job = job_of(pipeline, found, run=run, reason=request.reason, actor=find_run_actor(context))
    # A plan that waits here is made again; one that waits for its build would be of an older cut than the other's.
    require_free(claims_of(layout, now=datetime.now(UTC)), run, job.spans)
    return {
        "argv": job.to_argv(),
        "cut": found.cut,
        "intervals": len(found.builds),
        "table": format_plan_table(found),
        "waits": needs_approval(found, pipeline.definition.batch.approve_above),
    }


def take_statements(pipeline: CompiledPipeline, layout: Layout) -> None:
    """Take what producers say that they have sent; where that cannot be done now, say so and go on."""
    from seamline.model.compile.counts.counting_sources import list_counting_sources
    from seamline.supervisor.counts.taking import describe_taking

    if list_counting_sources(pipeline):
        name = name_in_force(pipeline.name, pipeline.definition.connection)
        for line in describe_taking(pipeline, layout, env=connection_env_if_any(name)):
            print(line)


def format_run_request(name: str, request: RunRequest) -> str:
    """Say in a line what a run is asked for."""
    wanted = [str(request.asked)] if request.asked else []
    wanted += ["the dirty intervals"] if request.dirty else []
    return f"{name}: {' and '.join(wanted)} ({request.reason})"


@log_failure_reason
@with_store_settings
def certify(name: str, asset: Asset) -> None:
    """Take the build's certificates, or make them (again, when cleared); CertificateFailed names what is not green.

    What was found is summed up in the XCom ``certificates`` either way, with the path of the run's report.
    """
    from seamline.lake.tables.claims_table import Claims
    from seamline.quality.certify import certificates_of, certify_run, require_passed

    context = get_current_context()
    run = str(context["run_id"])
    pipeline, layout = open_compiled_pipeline(name)
    Claims.ensure(layout).keep(run, now=datetime.now(UTC))
    certificates = certificates_of(layout, run) if context["ti"].try_number == 1 else []
    if not certificates:
        take_statements(pipeline, layout)
        certificates = certify_run(pipeline, layout, run, actor=find_run_actor(context))
    summary = {
        "certified": sum(each.passed for each in certificates),
        "provisional": sum(each.provisional for each in certificates),
        "not_certified": sum(not each.good for each in certificates),
        "cut": max((each.cut for each in certificates), default=-1),
        "intervals": sorted({each.interval.id for each in certificates})[:TOLD],
        "run_type": str(context["dag_run"].run_type.value),
        "report": str(layout.report(run) / "index.html"),
    }
    print(
        f"{len(certificates)} certificates, {summary['not_certified']} not green; report: {summary['report']}"
    )
    for line in list_count_lines(certificates):
        print(line)
    context["ti"].xcom_push(key="certificates", value=summary)
    show_pages(context["task"], {CERTIFICATES: report_page(name, run)})
    require_passed(certificates)
    events: Any = context["outlet_events"]
    events[asset].extra = summary


def find_run_actor(context: Any) -> str:
    """Name who asked for a run: the user of Airflow who triggered it, else Airflow and the kind of run."""
    run = context["dag_run"]
    return f"airflow:{run.triggering_user_name or run.run_type.value}"


@log_failure_reason
@with_store_settings
def publish(name: str, asset: Asset, intervals: Asset) -> None:
    """Publish the certified intervals in one commit, and report to readers which have changed.

    What changes answers by more than the definition lets it waits for a person, by the XComs ``waits`` and ``changes``.
    Each that is certified is a partition of the asset ``intervals``. The others are held back: ``certify`` has failed
    for them, and the run fails with it. What an attempt has published that died before it could report is reported by
    the next one.
    """
    from seamline.lake.tables.claims_table import Claims
    from seamline.tracing.traced_publication import publish_traced

    context = get_current_context()
    run = str(context["run_id"])
    pipeline, layout = open_compiled_pipeline(name)
    try:
        with report_publication(context, layout):
            done = publish_traced(pipeline, layout, run)
    finally:
        Claims.ensure(layout).release(run)
    for interval, why in done.held_back.items():
        print(f"held back {interval}: {why}")
    if pipeline.definition.batch.approve_change:
        hand_on_changes(context["ti"], layout, run, done)
    statements = [*done.statements, *list_untold(context, layout, asset, PUBLISH, done.statements)]
    if not statements:
        raise AirflowSkipException("waits for approval" if done.waiting else "published already")
    announce_publication(context, name, layout, statements, asset, intervals)


def announce_publication(
    context: Any, name: str, layout: Layout, statements: list[Statement], asset: Asset, intervals: Asset
) -> None:
    """Print what was published, link it, and report it to readers by events."""
    from seamline.lake.tables.manifest_table import ManifestTable

    newest = max(statements, key=lambda each: each.interval)
    show_pages(
        context["task"], {INTERVAL: interval_page(name, newest.view.partition("/")[0], newest.interval)}
    )
    for statement in statements:
        print(f"published {statement.view} {statement.interval} {statement.generation} cut {statement.epoch}")
    events: Any = context["outlet_events"]
    manifest = ManifestTable.ensure(layout).read()
    events[asset].extra = {
        **summarize_changes(statements),
        "manifest_version": manifest.version,
        "run_type": str(context["dag_run"].run_type.value),
    }
    announce(events, intervals, list_partitions(statements, manifest), TOLD)


def summarize_changes(statements: Sequence[Statement]) -> dict[str, Any]:
    """Return which intervals have changed, with the rows of each view and the cut, the newest TOLD of them."""
    told: dict[str, dict[str, Any]] = {}
    for each in sorted(statements, key=lambda one: (one.interval, one.view), reverse=True):
        about = told.setdefault(each.interval, {"cut": each.epoch, "rows": {}})
        about["rows"][each.view] = each.rows
    return {
        "intervals": len(told),
        "changed": dict(list(told.items())[:TOLD]),
        "rows": sum(each.rows for each in statements),
        "cut": max(each.epoch for each in statements),
    }


@log_failure_reason
@with_store_settings
def upkeep(name: str, connection: str) -> None:
    """Compact and clean up; each step says what it did, and what Kafka may delete before it was read."""
    from seamline.supervisor.requested_upkeep import run_upkeep as keep_up

    print(keep_up(*open_compiled_pipeline(name), env=connection_env_if_any(name_in_force(name, connection))))


@log_failure_reason
@with_store_settings
def audit(name: str, connection: str) -> None:
    """Compare Kafka, ledger, log and views, and keep what was found; AuditFailed, unless the form says not to."""
    from seamline.lake.tables.audits_table import Audits
    from seamline.plan.wording.audit_text import format_audit as spelled
    from seamline.plan.wording.audit_text import require_sound
    from seamline.supervisor.auditing import audit as made

    context = get_current_context()
    pipeline, layout = open_compiled_pipeline(name)
    sinks, env = bool(context["params"].get("sinks")), connection_env(name_in_force(name, connection))
    more = sink_connections_env(pipeline.definition) if sinks else {}
    found = made(pipeline, layout, actor=find_run_actor(context), sinks=sinks, env={**more, **env})
    Audits.ensure(layout).append(found)
    print(*spelled(found), sep="\n")
    context["ti"].xcom_push(key="findings", value=[str(each) for each in found.findings[:TOLD]])
    if context["params"]["fail"]:
        require_sound(found)


def on_failure(path: str, pipeline: str) -> Callable[[Any], None]:
    """Return a callback that imports the user's function, or notifier, by its dotted path when a task has failed.

    It finds the pipeline's name in the context: a task may be for all pipelines.
    """

    def call(context: Any) -> None:
        module, _, name = path.rpartition(".")
        found = getattr(import_module(module), name)
        call_notifier(found, {**context, "pipeline": pipeline}, "on_failure")

    return call


def fail_broken_definition(problem: str) -> None:
    """Fail with what is wrong in a definition."""
    raise DefinitionError(problem, hint="fix the file; this DAG then disappears by itself.")
