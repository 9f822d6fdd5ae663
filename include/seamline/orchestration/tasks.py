"""What the tasks of the DAGs do; the engines are imported when a task runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, Connection, get_current_context
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSkipException

from seamline.model.errors import DefinitionError, GaveUp, SetupError
from seamline.orchestration.failures import told
from seamline.orchestration.intervals import RunRequest, before_the_clock, resolve
from seamline.orchestration.orders import order_of
from seamline.plan.batch import needs_approval
from seamline.plan.told import lines, table

if TYPE_CHECKING:
    from seamline.lake.control import Control, ControlTable
    from seamline.lake.layout import Layout
    from seamline.model.compiled import CompiledPipeline
    from seamline.model.manifest import Statement

STARTS_WITHIN = 60.0
TOLD = 50
"""How many intervals an event names: it is kept in Airflow's database."""


def request_of(context: Any, length: timedelta) -> RunRequest:
    """Resolve what the running task's run is asked for; ``length`` is that of the pipeline's intervals."""
    run = context["dag_run"]
    return resolve(
        str(run.run_type.value),
        context["params"],
        context.get("data_interval_start"),
        context.get("data_interval_end"),
        guessed=partial(before_the_clock, run_after=run.run_after, length=length),
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
    pipeline, layout = compiled(name)
    request = request_of(context, pipeline.grid.length)
    if request.asked:
        pipeline.grid.lived(request.asked, now=datetime.now(UTC))
    found = plan_run(pipeline, layout, asked=request.asked, dirty=request.dirty, run=run)
    print(asked_for(name, request))
    for line in lines(found, why=True):
        print(line)
    if not found.builds:
        raise AirflowSkipException("nothing to build")
    job = job_of(pipeline, found, run=run, reason=request.reason, actor=asked_by(context))
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
    """Take what the build judged, or judge it (again, when cleared); CertificateFailed names what is not green.

    What was found is summed up in the XCom ``certificates`` either way, with the path of the run's report.
    """
    from seamline.lake.claims import Claims
    from seamline.quality.certify import certificates_of, certify_run, require_passed

    context = get_current_context()
    run = str(context["run_id"])
    pipeline, layout = compiled(name)
    Claims.ensure(layout).hand_over(run, now=datetime.now(UTC))
    certificates = certificates_of(layout, run) if context["ti"].try_number == 1 else []
    certificates = certificates or certify_run(pipeline, layout, run, actor=asked_by(context))
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

    print(keep_up(*compiled(name), env=connection_env_if_any(connection)))


@told
def reconcile(name: str, connection: str, asset: Asset) -> None:
    """Carry out what the run asks for, then start a supervisor where one is wanted and none lives.

    It leaves a mark: who shows the stream's state can say since when nobody has looked. It tells and prints alerts.
    """
    from seamline.lake.control import ControlTable, Desired
    from seamline.lake.layout import Layout, home, warehouse
    from seamline.supervisor.operations import carry_out
    from seamline.supervisor.outside import status
    from seamline.supervisor.said import RECONCILED, leave_mark

    context = get_current_context()
    leave_mark(home(), name, RECONCILED, now=datetime.now(UTC))
    control = ControlTable.ensure(Layout(warehouse(), name))
    if order := order_of(context["params"], asked_by(context)):
        for line in carry_out(order, *compiled(name), env=connection_env_if_any(connection)):
            print(line)
    if control.read().desired is Desired.UNSET:
        control.want(Desired.RUNNING, actor="airflow", reason="first reconcile", now=datetime.now(UTC))
    look_for_alerts(name, connection_env_if_any(connection))
    if why := reason_to_leave(name, control.read(), now=datetime.now(UTC)):
        raise AirflowSkipException(f"{why}: epoch {status(name).epoch}")
    token, pid = started(name, control, connection_env(connection))
    context["outlet_events"][asset].extra = {"event": "stream started", "token": token, "pid": pid}


def look_for_alerts(name: str, env: Mapping[str, str]) -> None:
    """Tell what is new and print what is raised; nothing that goes wrong keeps the stream from being started."""
    from seamline.lake.layout import Layout, definitions, warehouse
    from seamline.model.catalog import load
    from seamline.supervisor.alerts import tell_alerts

    try:
        pipeline = load(definitions()).pipeline(name)
        for alert in tell_alerts(pipeline, Layout(warehouse(), name), env={**os.environ, **env}):
            print(f"raised: {alert}")
    except Exception as error:  # noqa: BLE001
        print(f"alerts not looked for: {type(error).__name__}: {error}")


@told
def reconcile_driver() -> None:
    """Start a supervisor of the resident driver where one is wanted and none lives."""
    from seamline.lake.control import ControlTable
    from seamline.supervisor import resident

    control = ControlTable.ensure(resident.layout())
    if why := reason_to_leave(resident.NAME, control.read(), now=datetime.now(UTC)):
        raise AirflowSkipException(why)
    started(resident.NAME, control, {})


def started(name: str, control: ControlTable, env: Mapping[str, str]) -> tuple[int, int]:
    """Start a supervisor and wait for its lease; give its token and its process id."""
    from seamline.lake.layout import home
    from seamline.supervisor.outside import start_detached

    pid = start_detached(name, env)
    print(f"started supervisor {pid}; its output is {home() / 'streams' / name / 'supervisor.log'}")
    return await_lease(control), pid


def reason_to_leave(name: str, control: Control, *, now: datetime) -> str:
    """Say why nothing is to be done; empty when a supervisor must be started. GaveUp where a person must act."""
    from seamline.lake.control import Desired
    from seamline.lake.layout import home
    from seamline.supervisor.heartbeat import GAVE_UP, Heartbeat
    from seamline.supervisor.outside import lease_live

    if control.desired not in (Desired.RUNNING, Desired.PAUSED):
        return f"{control.desired} by {control.actor or 'nobody'} ({control.reason})"
    if lease_live(control, now=now):
        return "up"
    beat = Heartbeat.read(home(), name)
    if beat and beat.state == GAVE_UP and beat.restarts == control.restarts:
        raise GaveUp(
            f"The driver of {name} has failed {beat.strikes} times in a row: {beat.last_error}",
            hint=f"mend it, then `seamline stream start {name}` (or the form of this DAG).",
        )
    return ""


def await_lease(control: ControlTable) -> int:
    """Wait until the new supervisor has its lease; SetupError if it never gets one."""
    from seamline.supervisor.outside import lease_live

    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until:
        state = control.read()
        if state.lease and lease_live(state, now=datetime.now(UTC)):
            return state.lease.token
        time.sleep(0.2)
    raise SetupError(
        f"The supervisor took no lease within {STARTS_WITHIN:g} s.", hint="its output is in supervisor.log."
    )


def connection_env(name: str) -> dict[str, str]:
    """Resolve a connection as Airflow does (secrets backends too) into what a process outside can read."""
    return {f"AIRFLOW_CONN_{name.upper()}": Connection.get(name).as_json()}


def connection_env_if_any(name: str) -> dict[str, str]:
    """Give the same, or nothing: what needs no broker is done without one."""
    try:
        return connection_env(name)
    except AirflowNotFoundException:
        return {}


def on_failure(path: str) -> Callable[[Any], None]:
    """Give a callback that imports the user's function by its dotted path when a task has failed."""

    def call(context: Any) -> None:
        module, _, function = path.rpartition(".")
        getattr(import_module(module), function)(context)

    return call


def broken(problem: str) -> None:
    """Fail with what is wrong in a definition."""
    raise DefinitionError(problem, hint="mend the file; this DAG goes away by itself.")
