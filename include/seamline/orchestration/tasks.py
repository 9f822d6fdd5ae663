"""What the tasks of the DAGs do; the engines are imported when a task runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, Connection, get_current_context
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSkipException

from seamline.model.errors import DefinitionError, SetupError
from seamline.orchestration.failures import told
from seamline.orchestration.intervals import RunRequest, resolve
from seamline.plan.batch import needs_approval
from seamline.plan.told import lines, table

if TYPE_CHECKING:
    from seamline.lake.control import Control
    from seamline.lake.layout import Layout
    from seamline.model.compiled import CompiledPipeline
    from seamline.model.manifest import Statement

STARTS_WITHIN = 60.0
TOLD = 50
"""How many intervals an event names: it is kept in Airflow's database."""


def request_of(context: Any) -> RunRequest:
    """Resolve what the running task's run is asked for."""
    return resolve(
        str(context["dag_run"].run_type.value),
        context["params"],
        context.get("data_interval_start"),
        context.get("data_interval_end"),
    )


def compiled(name: str) -> tuple[CompiledPipeline, Layout]:
    """Find a pipeline and its tables by the settings; OtherFormat where another release's tables are."""
    from seamline.lake.format import require_format
    from seamline.lake.layout import Layout, definitions, warehouse
    from seamline.model.catalog import load

    return load(definitions()).pipeline(name), require_format(Layout(warehouse(), name))


@told
def plan(name: str) -> dict[str, Any]:
    """Decide what the run builds, print it, and hand the build's arguments on; skip when that is nothing."""
    from seamline.lake.claims import claims_of, require_free
    from seamline.lake.planning import job_of, plan_run

    context = get_current_context()
    run = str(context["run_id"])
    request = request_of(context)
    pipeline, layout = compiled(name)
    if request.asked:
        pipeline.grid.lived(request.asked, now=datetime.now(UTC))
    found = plan_run(pipeline, layout, asked=request.asked, dirty=request.dirty, run=run)
    print(asked_for(name, request))
    for line in lines(found, why=True):
        print(line)
    if not found.builds:
        raise AirflowSkipException("nothing to build")
    job = job_of(pipeline, found, run=run, reason=request.reason)
    # A plan that waits here is made anew; one that waits for its build would be of an older cut than the other's.
    require_free(claims_of(layout, now=datetime.now(UTC)), run, job.spans)
    return {
        "argv": job.to_argv(),
        "cut": found.cut,
        "intervals": len(found.builds),
        "table": table(found),
        "waits": needs_approval(found, pipeline.definition.batch.approve_above),
    }


def asked_for(name: str, request: RunRequest) -> str:
    """Say in a line what a run is asked for."""
    wanted = [str(request.asked)] if request.asked else []
    wanted += ["the dirty intervals"] if request.dirty else []
    return f"{name}: {' and '.join(wanted)} ({request.reason})"


@told
def certify(name: str, asset: Asset) -> None:
    """Judge what the run built; CertificateFailed names every check that is not green.

    What was found is summed up in the XCom ``certificates`` either way, with the path of the run's report.
    """
    from seamline.lake.claims import Claims
    from seamline.quality.certify import certify_run, require_passed

    context = get_current_context()
    run = str(context["run_id"])
    pipeline, layout = compiled(name)
    Claims.ensure(layout).hand_over(run, now=datetime.now(UTC))
    certificates = certify_run(pipeline, layout, run, actor=asked_by(context))
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
    context["ti"].xcom_push(key="certificates", value=summary)
    require_passed(certificates)
    events: Any = context["outlet_events"]
    events[asset].extra = summary


def asked_by(context: Any) -> str:
    """Name who asked for a run: the user of Airflow who triggered it, else Airflow and the kind of run."""
    run = context["dag_run"]
    return f"airflow:{run.triggering_user_name or run.run_type.value}"


@told
def publish(name: str, asset: Asset) -> None:
    """Publish the intervals that are certified in one commit, and tell those who read which have changed.

    The others are held back: ``certify`` has failed for them, and the run fails with it.
    """
    from seamline.lake.claims import Claims
    from seamline.lake.manifest import ManifestTable
    from seamline.lake.publishing import publish_run

    context = get_current_context()
    run = str(context["run_id"])
    pipeline, layout = compiled(name)
    try:
        done = publish_run(pipeline, layout, run)
    finally:
        Claims.ensure(layout).release(run, now=datetime.now(UTC))
    for interval, why in done.held_back.items():
        print(f"held back {interval}: {why}")
    statements = done.statements
    if not statements:
        raise AirflowSkipException("published already")
    for statement in statements:
        print(f"published {statement.view} {statement.interval} {statement.generation} cut {statement.epoch}")
    events: Any = context["outlet_events"]
    events[asset].extra = {
        **changes(statements),
        "manifest_version": ManifestTable.ensure(layout).table.version,
        "run_type": str(context["dag_run"].run_type.value),
    }


def changes(statements: Sequence[Statement]) -> dict[str, Any]:
    """Tell which intervals have changed, with the rows of each view and the cut, the newest TOLD of them."""
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


@told
def upkeep(name: str, connection: str) -> None:
    """Compact and clean up; each step says what it did, and what Kafka may delete before it was read."""
    from seamline.supervisor.upkeep import upkeep as keep_up

    try:
        env = connection_env(connection)
    except AirflowNotFoundException:
        env = {}
    print(keep_up(*compiled(name), env=env))


@told
def reconcile(name: str, connection: str, asset: Asset) -> None:
    """Compare what the stream should be doing with what it does, and start a supervisor where none lives."""
    from seamline.lake.control import ControlTable, Desired
    from seamline.lake.layout import Layout, home, warehouse
    from seamline.supervisor.process import start_detached, status

    control = ControlTable.ensure(Layout(warehouse(), name))
    if control.read().desired is Desired.UNSET:
        control.want(Desired.RUNNING, actor="airflow", reason="first reconcile", now=datetime.now(UTC))
    if why := reason_to_leave(control.read(), now=datetime.now(UTC)):
        raise AirflowSkipException(f"{why}: epoch {status(name).epoch}")
    pid = start_detached(name, connection_env(connection))
    print(f"started supervisor {pid}; its output is {home() / 'streams' / name / 'supervisor.log'}")
    token = await_lease(control)
    context = get_current_context()
    context["outlet_events"][asset].extra = {"event": "stream started", "token": token, "pid": pid}


def reason_to_leave(control: Control, *, now: datetime) -> str:
    """Say why nothing is to be done; empty when a supervisor must be started."""
    from seamline.lake.control import Desired
    from seamline.supervisor.process import lease_live

    if control.desired is Desired.STOPPED:
        return f"stopped by {control.actor} ({control.reason})"
    return "up" if lease_live(control, now=now) else ""


def await_lease(control: Any) -> int:
    """Wait until the new supervisor has its lease; SetupError if it never gets one."""
    from seamline.supervisor.process import lease_live

    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until:
        state = control.read()
        if lease_live(state, now=datetime.now(UTC)):
            return int(state.lease.token)
        time.sleep(0.2)
    raise SetupError(
        f"The supervisor took no lease within {STARTS_WITHIN:g} s.", hint="its output is in supervisor.log."
    )


def connection_env(name: str) -> dict[str, str]:
    """Resolve a connection as Airflow does (secrets backends too) into what a process outside can read."""
    return {f"AIRFLOW_CONN_{name.upper()}": Connection.get(name).as_json()}


def on_failure(path: str) -> Callable[[Any], None]:
    """Give a callback that imports the user's function by its dotted path when a task has failed."""

    def call(context: Any) -> None:
        module, _, function = path.rpartition(".")
        getattr(import_module(module), function)(context)

    return call


def broken(problem: str) -> None:
    """Fail with what is wrong in a definition."""
    raise DefinitionError(problem, hint="mend the file; this DAG goes away by itself.")
