"""What the tasks of the DAG for all pipelines do: start what should run, and report what is wrong or late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias, get_current_context
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSkipException

from seamline.model.errors import ConnectionMissing, SeamlineError, SetupError
from seamline.orchestration.airflow_connections import connection_env, list_sink_connections, name_in_force
from seamline.orchestration.assets import Assets
from seamline.orchestration.comparing import only_compares, require_supervisor
from seamline.orchestration.failures import first_line, log_failure_reason
from seamline.orchestration.freshness_deadline import tell_overdue
from seamline.orchestration.reconciling import reason_to_leave, send_alerts, start_supervisor
from seamline.orchestration.store_connection import with_store_settings
from seamline.orchestration.tasks import on_failure
from seamline.runtime.side_calls import SideCalls
from seamline.runtime.storage_failures import explain_storage_failure

if TYPE_CHECKING:
    from seamline.kafka.topic_ends import AskEnds
    from seamline.model.compile.compiled_pipeline import CompiledPipeline

Connected = Mapping[str, str] | Exception
"""What a process outside reads of a connection, or why there is none."""
KAFKA_KIND = "--conn-type kafka, with bootstrap.servers in its extra."
REGISTRY_KIND = "--conn-type http, with the host of the schema registry."
SINK_KIND = "of the type of its sink, with host, login and password."
AT_ONCE = 32
"""How many streams are looked at side by side: to see whether a supervisor elsewhere lives takes seconds."""
ENDS_WITHIN, CALLED_WITHIN = 200.0, 30.0
"""Seconds that a look at all streams may take, and then what definitions call for failures.

Together they are less than the run, whose timeout would end the task without a report."""


@dataclass
class Reconciled:
    """The outcome for one pipeline."""

    pipeline: CompiledPipeline
    """The pipeline."""
    asked_for: bool = False
    """Whether anybody has ever asked it to run."""
    lines: list[str] = field(default_factory=list)
    """What the task's log says of it."""
    started: tuple[int, int] | None = None
    """The fencing token and the process of the supervisor that was started, if one was."""
    error: BaseException | None = None
    """Why it could not be reconciled."""


@log_failure_reason
@with_store_settings
def reconcile_streams(alias: AssetAlias) -> None:
    """Start a supervisor for each stream that should run and has none, and send alerts.

    A stream that nobody has ever started is left alone. One that fails does not hold up the others: when all have been
    looked at, the definition's ``on_failure`` is called and the task fails.
    """
    from seamline.lake.storage.layout import definitions_folder
    from seamline.model.compile.catalog import load_catalog

    context = get_current_context()
    found = load_catalog(definitions_folder())
    for problem in found.problems:
        print(problem)
    pipelines = list(found.pipelines.values())
    # Airflow is asked by this thread alone.
    kafka = sorted({name for each in pipelines for name in list_connections(each)})
    registries = sorted({name for each in pipelines for name in each.definition.registries})
    sinks = sorted({name for each in pipelines for name in list_sink_connections(each.definition)})
    known = {name: read_connection(name, SINK_KIND) for name in sinks}
    known |= {name: read_connection(name, REGISTRY_KIND) for name in registries}
    outcomes = reconcile_all(pipelines, known | {name: read_connection(name) for name in kafka})
    events: Any = context["outlet_events"]
    for each in outcomes:
        for line in each.lines:
            print(f"{each.pipeline.name}: {line}")
        if each.started:
            token, pid = each.started
            master = Assets.of(each.pipeline.definition).master
            events[alias].add(master, extra={"event": "stream started", "token": token, "pid": pid})
    fail_if_any([(each.pipeline, each.error) for each in outcomes if each.error], context)


def read_connection(name: str, kind: str = KAFKA_KIND) -> Connected:
    """Return what processes read of a connection of Airflow's, or why there is none; ``kind`` says how it is made."""
    try:
        return connection_env(name)
    except AirflowNotFoundException:
        hint = f"airflow connections add {name} {kind}"
        return ConnectionMissing(f"Airflow has no connection {name}.", hint=hint)
    except Exception as error:  # noqa: BLE001 - a backend of secrets fails as it likes
        return error


def reconcile_all(
    pipelines: Sequence[CompiledPipeline], connections: Mapping[str, Connected]
) -> list[Reconciled]:
    """Look at streams side by side; ``connections`` are Airflow's, by their names.

    All that should run are started before anything is asked of Kafka. A stream that takes too long, as where a function
    of its definition hangs, is left to its thread.
    """
    from seamline.kafka.topic_ends import SharedEnds

    found = [Reconciled(each) for each in pipelines]
    threads = ThreadPoolExecutor(AT_ONCE)
    with SharedEnds() as ask:
        starts = [threads.submit(keep_running, each, connections=connections) for each in found]
        looks = [
            threads.submit(send_alerts_after, each, start, connections, ask)
            for each, start in zip(found, starts, strict=True)
        ]
        ended, _ = wait(looks, ENDS_WITHIN)
        threads.shutdown(wait=False, cancel_futures=True)
    return [
        each if look in ended else replace(each, error=each.error or describe_hang(each.pipeline.name))
        for each, look in zip(found, looks, strict=True)
    ]


def list_connections(pipeline: CompiledPipeline) -> tuple[str, str]:
    """Return the connection that a definition declares, and the one in force; the first where tables cannot be read."""
    declared = pipeline.definition.connection
    try:
        return declared, name_in_force(pipeline.name, declared)
    except Exception:  # noqa: BLE001 - what is wrong with them is told where they are needed
        return declared, declared


def find_connected(connections: Mapping[str, Connected], name: str) -> Connected:
    """Return what processes read of a connection, or why there is none."""
    hint = "a failover to it was decided meanwhile: the next run reads it."
    return connections.get(name, ConnectionMissing(f"Connection {name} was not read.", hint=hint))


def describe_hang(name: str) -> SetupError:
    """Say that a stream could not be reconciled in time."""
    return SetupError(
        f"{name} was not reconciled within {ENDS_WITHIN:g} s.",
        hint="see whether its warehouse and its broker answer, and whether its on_alert and notifiers return.",
    )


def find_stream_env(pipeline: CompiledPipeline, connections: Mapping[str, Connected]) -> dict[str, str]:
    """Return what a stream and its sinks read of connections; raises why there is one that the stream cannot read."""
    found: dict[str, str] = {}
    for name in (list_connections(pipeline)[-1], *pipeline.definition.registries):
        if isinstance(connection := find_connected(connections, name), Exception):
            raise connection
        found |= connection
    for name in list_sink_connections(pipeline.definition):
        # One that is missing stops its own sink, which says so.
        if not isinstance(connection := find_connected(connections, name), Exception):
            found |= connection
    return found


def keep_running(done: Reconciled, *, connections: Mapping[str, Connected]) -> None:
    """Look at one stream, and start its supervisor where it should run and has none."""
    from seamline.lake.status.marks import RECONCILED, leave_mark
    from seamline.lake.storage.delta_table import Table
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.control_table import ControlTable, Desired

    pipeline = done.pipeline
    try:
        layout = locate_tables(pipeline.name)
        if not Table.exists(layout.table("control")):
            return
        control = ControlTable.ensure(layout)
        if control.read().desired is Desired.UNSET:
            return
        done.asked_for = True
        leave_mark(layout, RECONCILED, now=datetime.now(UTC))
        if why := reason_to_leave(pipeline.name, control):
            done.lines.append(why)
        elif only_compares():
            require_supervisor(pipeline.name, control, done.lines.append)
        else:
            env = find_stream_env(pipeline, connections)
            done.started = start_supervisor(pipeline.name, control, env, done.lines.append)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told with those of the others
        done.error = error


def send_alerts_after(
    done: Reconciled, start: Future[None], connections: Mapping[str, Connected], ask: AskEnds
) -> None:
    """Send the alerts of one stream that somebody has asked for, when it has been kept running.

    Without its connection all is done that needs no broker.
    """
    start.result()
    if not done.asked_for:
        return
    connection = find_connected(connections, list_connections(done.pipeline)[-1])
    env = {} if isinstance(connection, Exception) else connection
    try:
        send_alerts(done.pipeline, env, done.lines.append, ask)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told with those of the others
        done.error = done.error or error


@log_failure_reason
@with_store_settings
def report_all_overdue_intervals() -> None:
    """Report overdue intervals of each pipeline with ``fresh_within``; skip when there are none."""
    from seamline.lake.storage.delta_table import Table
    from seamline.lake.storage.layout import definitions_folder, locate_tables
    from seamline.lake.tables.table_format import require_format
    from seamline.model.compile.catalog import load_catalog

    overdue = 0
    failed: list[tuple[CompiledPipeline, BaseException]] = []
    for pipeline in load_catalog(definitions_folder()).pipelines.values():
        try:
            layout = locate_tables(pipeline.name)
            if pipeline.definition.batch.fresh_within and Table.exists(layout.table("control")):
                overdue += len(tell_overdue(pipeline, require_format(layout)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told with those of the others
            failed.append((pipeline, error))
    fail_if_any(failed, get_current_context())
    if not overdue:
        raise AirflowSkipException("nothing is overdue")


def call_on_failure(errors: Sequence[tuple[CompiledPipeline, BaseException]], context: Any) -> None:
    """Call the ``on_failure`` of each definition side by side: one that fails, or hangs, is in no other's way."""
    calls, begun = SideCalls(), dict[str, Future[None]]()
    for pipeline, error in errors:
        if path := pipeline.definition.on_failure:
            call = partial(on_failure(path, pipeline.name), {**context, "exception": error})
            begun[f"{pipeline.name}: {path}"] = calls.start(pipeline.name, call)
    ended, _ = wait(begun.values(), CALLED_WITHIN)
    for name, each in begun.items():
        if each not in ended:
            print(f"{name} has not returned within {CALLED_WITHIN:g} s")
        elif other := each.exception():
            print(f"{name} failed: {first_line(other)}")


def fail_if_any(failed: Sequence[tuple[CompiledPipeline, BaseException]], context: Any) -> None:
    """Call the ``on_failure`` of each definition, and raise the error of the one pipeline, or one that names all."""
    errors = [(pipeline, explain_storage_failure(error) or error) for pipeline, error in failed]
    for pipeline, error in errors:
        print(f"{pipeline.name}: {type(error).__name__}: {error}")
    call_on_failure(errors, context)
    if len(failed) == 1 and isinstance(failed[0][1], Exception):
        raise failed[0][1]
    if failed:
        raise SeamlineError(
            f"{len(failed)} pipelines: {', '.join(sorted(pipeline.name for pipeline, _ in failed))}.",
            hint="the log of this task has the reason of each, above.",
        ) from BaseExceptionGroup("of each pipeline", [error for _, error in errors])
