"""What the HTTP API does: it operates streams and rebuilds intervals; Airflow logs who asked for it, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from seamline.lake.tables.control_table import ControlTable
from seamline.model.errors import BadRange
from seamline.model.time.intervals import Interval, parse_moment
from seamline.orchestration.airflow_api import AirflowApi
from seamline.orchestration.airflow_connections import connection_env_if_any
from seamline.orchestration.failover_orders import read_failover_order
from seamline.orchestration.orders import order_of
from seamline.orchestration.run_intervals import form_span
from seamline.web.access import builders, importers, kafka_env, log_request_dag, operators, readers
from seamline.web.api import ANSWERS
from seamline.web.error_responses import ErrorBody
from seamline.web.inside import InsideAirflow
from seamline.web.limits import enforce_rate_limit, only_json, within_time_limit
from seamline.web.render import as_json
from seamline.web.requested_pipeline import open_requested_pipeline

WRITTEN: dict[int | str, dict[str, Any]] = {code: {"model": ErrorBody} for code in (409, 413, 415)}
router = APIRouter(prefix="/api/v1", dependencies=[Depends(enforce_rate_limit)], responses=ANSWERS | WRITTEN)


def build_action_dependencies(layer: str) -> list[Any]:
    """Build the checks of every route that changes something: JSON, and a line in Airflow's log."""
    return [Depends(only_json), Depends(log_request_dag(layer)), Depends(action_logging())]


class Span(BaseModel):
    """A span of event time, ``from`` and ``to``, which is not in, each with its zone; and why it is asked for.

    A field that is not known is a mistake.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    start: str | None = Field(default=None, max_length=200, alias="from")
    end: str | None = Field(default=None, max_length=200, alias="to")
    reason: str = Field(default="", max_length=1000)

    @property
    def interval(self) -> Interval | None:
        """The span, if there is one; BadRange names the field that is wrong."""
        return form_span({"from": self.start, "to": self.end})


class StreamOrder(Span):
    """What a stream should do; the fields are those of its DAG's form."""

    action: Literal["start", "stop", "pause", "restart", "savepoint", "restore"]
    position: str = Field(default="ledger", max_length=2000)
    then_backfill_gap: bool = False
    upgrade: Literal["last-state", "savepoint", "stateless"] = "last-state"
    name: str | None = Field(default=None, max_length=200)


class FailoverBody(Span):
    """A failover to be planned, decided on or taken back; the fields are those of the stream's DAG's form."""

    action: Literal["plan-failover", "failover", "cancel-failover"]
    connection: str = Field(default="", max_length=250)
    by: Literal["", "offsets", "event_id", "timestamp"] = ""
    offsets: str = Field(default="", max_length=50_000)
    margin: str = Field(default="5 minutes", max_length=100)
    since: str | None = Field(default=None, max_length=200)
    nothing_missing: bool = False
    fewer_partitions: bool = False

    @property
    def conf(self) -> dict[str, object]:
        """What a run of the DAG is given."""
        return {name: each for name, each in self.model_dump(by_alias=True).items() if each not in ("", None)}


class ImportOrder(BaseModel):
    """Files to be imported; the fields are those of the DAG's form, but for ``map``, which is a text of lines."""

    model_config = ConfigDict(extra="forbid", strict=True)

    place: str = Field(max_length=2000, min_length=1, alias="from")
    source: str = Field(default="", max_length=250)
    map: str = Field(default="", max_length=20_000)
    until: str = Field(default="", max_length=200)
    disjoint: bool = False
    dry_run: bool = False
    reason: str = Field(default="", max_length=1000)

    @property
    def conf(self) -> dict[str, object]:
        """What a run of the DAG is given."""
        lines = [line.strip() for line in self.map.splitlines() if line.strip()]
        given = {**self.model_dump(by_alias=True), "map": lines}
        return {name: value for name, value in given.items() if value not in ("", [])}


class RunOrder(Span):
    """A span, the dirty intervals, or both."""

    dirty: bool = False


@router.post(
    "/streams/{pipeline}", status_code=202, dependencies=[operators, *build_action_dependencies("stream")]
)
def steer_stream(pipeline: str, order: StreamOrder, user: GetUserDep) -> Response:
    """Start, stop, pause, restart, name or restore a position: as the command line and the DAG's form do."""
    from seamline.supervisor.operations import carry_out

    compiled, layout = open_requested_pipeline(pipeline)
    asked = order_of(order.model_dump(by_alias=True), f"airflow:{user.get_name()}")
    assert asked is not None
    return as_json({"done": carry_out(asked, compiled, layout, env=kafka_env(compiled))}, 202)


@router.post(
    "/failovers/{pipeline}", status_code=202, dependencies=[operators, *build_action_dependencies("stream")]
)
def steer_failover(pipeline: str, body: FailoverBody, user: GetUserDep, request: Request) -> Response:
    """Plan a failover, which changes nothing; or start a run of the stream's DAG that decides on it, or takes it back.

    What is refused is refused before there is a run.
    """
    from seamline.supervisor.clusters.failover_drafts import draft_failover, require_stopped
    from seamline.supervisor.clusters.failover_orders import FailoverAction

    compiled, layout = open_requested_pipeline(pipeline)
    order = read_failover_order(body.conf, f"airflow:{user.get_name()}")
    plan: tuple[str, ...] = ()
    if order.action is not FailoverAction.CANCEL:
        env = {**kafka_env(compiled), **connection_env_if_any(order.connection)}
        plan = draft_failover(compiled, layout, order.read(), env).lines
        if order.action is FailoverAction.PLAN:
            return as_json({"plan": plan}, 202)
    require_stopped(compiled.name, ControlTable.ensure(layout).read())
    run = InsideAirflow.of(request).trigger(f"{pipeline}__stream", body.conf)
    return as_json({"plan": plan, "dag_id": f"{pipeline}__stream", "run_id": run}, 202)


@router.post(
    "/runs/{pipeline}", status_code=202, dependencies=[builders, *build_action_dependencies("batch")]
)
def start_run(pipeline: str, order: RunOrder, request: Request) -> Response:
    """Start a run of the batch DAG: of a span, of the dirty intervals, or of both."""
    compiled, _ = open_requested_pipeline(pipeline)
    if (asked := order.interval) is not None:
        compiled.grid.within_life(asked, now=datetime.now(UTC))
    conf: dict[str, object] = {"dirty": order.dirty or asked is None}
    if asked is not None:
        conf |= {"from": order.start, "to": order.end}
    if order.reason:
        conf["reason"] = order.reason
    run = InsideAirflow.of(request).trigger(f"{pipeline}__batch", conf)
    return as_json({"dag_id": f"{pipeline}__batch", "run_id": run}, 202)


@router.post(
    "/imports/{pipeline}", status_code=202, dependencies=[importers, *build_action_dependencies("import")]
)
def start_import(pipeline: str, order: ImportOrder, request: Request) -> Response:
    """Start a run of the import DAG, which plans, shows the plan in its log, and imports."""
    open_requested_pipeline(pipeline)
    if order.until:
        parse_moment(order.until)
    run = InsideAirflow.of(request).trigger(f"{pipeline}__import", order.conf)
    return as_json({"dag_id": f"{pipeline}__import", "run_id": run}, 202)


@router.get("/imports/{pipeline}", dependencies=[readers])
@within_time_limit
def import_states(pipeline: str) -> Response:
    """List the imports, their progress, and what is blocking them."""
    from seamline.supervisor.imports.import_listing import describe_import_state, list_import_states

    _, layout = open_requested_pipeline(pipeline)
    return as_json({"imports": [describe_import_state(each) for each in list_import_states(layout)]})


@router.post(
    "/backfills/{pipeline}", status_code=202, dependencies=[builders, *build_action_dependencies("batch")]
)
def start_backfill(pipeline: str, order: Span, request: Request) -> Response:
    """Rebuild exactly the intervals of a span, by Airflow's own backfill."""
    compiled, _ = open_requested_pipeline(pipeline)
    asked = order.interval or raise_missing_span()
    compiled.grid.within_life(asked, now=datetime.now(UTC))
    airflow = InsideAirflow.of(request)
    plan = airflow.plan_backfill(pipeline, asked, compiled.grid)
    made = airflow.start_backfill(plan, reason=order.reason)
    return as_json({"backfill": made, "paused": plan.paused, "plan": list(plan.lines())}, 202)


@router.get("/backfills/{pipeline}", dependencies=[readers])
def backfills(pipeline: str, request: Request) -> Response:
    """List the newest backfills of the batch DAG, with the states of their runs."""
    open_requested_pipeline(pipeline)
    return as_json({"backfills": progress_of(InsideAirflow.of(request), pipeline)})


def progress_of(airflow: AirflowApi, pipeline: str) -> list[dict[str, Any]]:
    """Return how far backfills are."""
    found = []
    for each in airflow.backfills(f"{pipeline}__batch"):
        states = airflow.run_states(each["dag_id"], each["from_date"], each["to_date"])
        found.append(
            {
                "backfill": each["id"],
                "from": each["from_date"],
                "last": each["to_date"],
                "completed_at": each["completed_at"],
                "paused": each["is_paused"],
                "runs": states,
            }
        )
    return found


def raise_missing_span() -> Interval:
    """Refuse a span that is not there."""
    raise BadRange("from, to: no interval is requested.", hint="set both, with their zone.")
