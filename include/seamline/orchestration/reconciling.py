"""What the task of a stream's DAG does: carry out an order, and start a supervisor where one is wanted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow.sdk import Asset, get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from seamline.model.errors import BadRange, GaveUp, SeamlineError, SetupError
from seamline.model.time.intervals import format_utc_instant
from seamline.orchestration.airflow_connections import (
    connection_env_if_any,
    connections_env,
    connections_env_if_any,
    name_in_force,
    sink_connections_env,
)
from seamline.orchestration.comparing import await_supervisor, only_compares, require_supervisor
from seamline.orchestration.failures import log_failure_reason
from seamline.orchestration.intervals.links import DRIVER_LOG, driver_log_page, show_pages
from seamline.orchestration.notifying.notifiers import notify
from seamline.orchestration.orders import read_order
from seamline.orchestration.store_connection import with_store_settings
from seamline.orchestration.tasks import find_run_actor, open_compiled_pipeline

if TYPE_CHECKING:
    from seamline.kafka.topic_ends import AskEnds
    from seamline.lake.tables.control_table import ControlTable, Lease
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.supervisor.supervisor_heartbeat import Heartbeat

STARTS_WITHIN = 60.0
ASKED_WITHIN = timedelta(hours=1)
"""How long an order may have waited: a run that is cleared, or of a DAG that was paused, may be of last week."""


@log_failure_reason
@with_store_settings
def reconcile(name: str, connection: str, asset: Asset) -> None:
    """Carry out what the run asks for, then start a supervisor where one is wanted and none lives, or wait for it.

    It leaves a mark: a page of the stream's state can say since when it was not checked. It sends and prints alerts.
    """
    from seamline.lake.status.marks import RECONCILED, leave_mark
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.control_table import ControlTable, Desired
    from seamline.supervisor.clusters.failover_orders import FailoverOrder
    from seamline.supervisor.clusters.failover_process import run_failover
    from seamline.supervisor.operations import carry_out
    from seamline.supervisor.outside import read_stream_status

    context = get_current_context()
    show_pages(context["task"], {DRIVER_LOG: driver_log_page(name)})
    layout, connection = locate_tables(name), name_in_force(name, connection)
    leave_mark(layout, RECONCILED, now=datetime.now(UTC))
    control = ControlTable.ensure(layout)
    if order := read_order(context["params"], find_run_actor(context)):
        require_new(order.action, context["dag_run"].run_after, now=datetime.now(UTC))
        if isinstance(order, FailoverOrder):
            run_failover(name, order, connections_env_if_any([connection, order.connection]), print)
            raise AirflowSkipException(f"{order.action}: done; the order start starts the stream")
        for line in carry_out(order, *open_compiled_pipeline(name), env=connection_env_if_any(connection)):
            print(line)
    if control.read().desired is Desired.UNSET:
        control.want(Desired.RUNNING, actor="airflow", reason="first reconcile", now=datetime.now(UTC))
    look_for_alerts(name, connection_env_if_any(connection))
    if why := reason_to_leave(name, control):
        raise AirflowSkipException(f"{why}: epoch {read_stream_status(name).epoch}")
    if only_compares():
        await_supervisor(name, control, STARTS_WITHIN)
        started = {"token": control.read().token}
    else:
        definition = open_compiled_pipeline(name)[0].definition
        env = connections_env([connection, *definition.registries])
        token, pid = start_supervisor(name, control, {**sink_connections_env(definition), **env})
        started = {"token": token, "pid": pid}
    context["outlet_events"][asset].extra = {"event": "stream started", **started}


def require_new(action: str, asked: datetime, *, now: datetime) -> None:
    """Refuse an order that was given long ago: others may have been carried out since."""
    if now - asked > ASKED_WITHIN:
        raise BadRange(
            f"action: {action} was requested at {format_utc_instant(asked)}, which is too long ago.",
            hint="if it is still wanted, trigger another run with it.",
        )


def look_for_alerts(name: str, env: Mapping[str, str]) -> None:
    """Send new alerts and print raised ones; a definition that cannot be loaded does not prevent the stream's start."""
    from seamline.lake.storage.layout import definitions_folder
    from seamline.model.compile.catalog import load_pipeline

    try:
        pipeline = load_pipeline(definitions_folder(), name)
    except SeamlineError as error:
        print(f"alerts not looked for: {type(error).__name__}: {error}")
    else:
        send_alerts(pipeline, env, print)


def send_alerts(
    pipeline: CompiledPipeline,
    env: Mapping[str, str],
    say: Callable[[str], object],
    ask: AskEnds | None = None,
) -> None:
    """Send new alerts and say which are raised; nothing that goes wrong is raised. ``ask`` asks the broker."""
    from seamline.kafka.topic_ends import ends_of
    from seamline.lake.storage.layout import locate_tables
    from seamline.supervisor.alert_notification import notify_alerts

    try:
        for alert in notify_alerts(
            pipeline,
            locate_tables(pipeline.name),
            env={**os.environ, **env},
            say=say,
            ask=ask or ends_of,
            notify=notify,
        ):
            say(f"raised: {alert}")
    except Exception as error:  # noqa: BLE001
        say(f"alerts not looked for: {type(error).__name__}: {error}")


@log_failure_reason
@with_store_settings
def reconcile_driver() -> None:
    """Start a supervisor of the resident driver where one is wanted and none lives."""
    from seamline.lake.tables.control_table import ControlTable
    from seamline.supervisor import resident

    if not resident.is_resident_requested():
        raise AirflowSkipException("nobody has wanted one")
    control = ControlTable.ensure(resident.resident_layout())
    if why := reason_to_leave(resident.NAME, control):
        raise AirflowSkipException(why)
    if only_compares():
        require_supervisor(resident.NAME, control)
    else:
        start_supervisor(resident.NAME, control, {})


def start_supervisor(
    name: str, control: ControlTable, env: Mapping[str, str], say: Callable[[str], object] = print
) -> tuple[int, int]:
    """Start a supervisor and wait for its lease; return its token and its process id."""
    from seamline.lake.storage.layout import home_folder
    from seamline.supervisor.outside import start_detached

    before = control.read().lease
    pid = start_detached(name, env)
    say(f"started supervisor {pid}; its output is {home_folder() / 'streams' / name / 'supervisor.log'}")
    return await_lease(control, before), pid


def reason_to_leave(name: str, control: ControlTable) -> str:
    """Return why nothing is to be done; empty when a supervisor must be started. GaveUp if a person must act.

    MovedAway if it is wanted and has moved to another warehouse. Whether one lives is seen by its beats, which takes
    some seconds.
    """
    from seamline.lake.status.stream_words import read_words_elsewhere
    from seamline.lake.storage.layout import locate_tables, name_warehouse
    from seamline.lake.tables.control_table import Desired
    from seamline.supervisor.stream_facts import read_last_heartbeat
    from seamline.supervisor.supervisor_heartbeat import GAVE_UP

    found, layout = control.read(), locate_tables(name)
    if found.desired not in (Desired.RUNNING, Desired.PAUSED):
        return f"{found.desired} by {found.actor or 'nobody'} ({found.reason})"
    if found.moved:
        raise found.moved.refusal(name, name_warehouse(layout.warehouse))
    if control.live_lease():
        return "up"
    beat = read_last_heartbeat(layout, read_words_elsewhere(layout))
    if beat and beat.state == GAVE_UP and beat.restarts == control.read().restarts:
        raise describe_giving_up(name, beat)
    return ""


def describe_giving_up(name: str, beat: Heartbeat) -> GaveUp:
    """Say that a supervisor has given up, and what starts it again."""
    from seamline.supervisor import resident

    whose, hint = f"driver of {name}", f"seamline stream start {name}` (or use the form of {name}__stream)."
    if name == resident.NAME:
        whose, hint = "resident driver", "seamline driver start`."
    times = f" {beat.strikes} times in a row" if beat.strikes > 1 else ""
    return GaveUp(
        f"The {whose} has failed{times}: {beat.last_error}", hint=f"fix the cause, then run `{hint}"
    )


def await_lease(control: ControlTable, before: Lease | None) -> int:
    """Wait until the new supervisor has its lease, another than ``before``; SetupError if it never gets one."""
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until:
        lease = control.read().lease
        if lease and (before is None or lease.token != before.token):
            return lease.token
        time.sleep(0.2)
    raise SetupError(
        f"The supervisor did not take the lease within {STARTS_WITHIN:g} s.",
        hint="see its output in supervisor.log.",
    )
