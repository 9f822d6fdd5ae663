"""The HTTP API, inside Airflow's API server and behind its login: answers, explanations, completeness, streams.

Who may read the runs of a pipeline's batch DAG may read what it serves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from seamline.lake.format import require_format
from seamline.lake.layout import Layout, definitions, warehouse
from seamline.lake.versions import named, served
from seamline.model.catalog import known
from seamline.model.compiled import CompiledPipeline
from seamline.model.errors import (
    BadRange,
    ExpressionError,
    KafkaUnavailable,
    NotFound,
    ReadUnstable,
    SeamlineError,
)
from seamline.serve.asked import MEDIA, MOST_ROWS, Question, condition, tag, written
from seamline.serve.asked import as_json as spelled

STATUS: Mapping[type[SeamlineError], int] = {
    NotFound: 404,
    BadRange: 400,
    ExpressionError: 400,
    KafkaUnavailable: 503,
    ReadUnstable: 503,
}
Text = Annotated[str | None, Query(max_length=200)]


def may_read(pipeline: str, request: Request, user: GetUserDep) -> None:
    """Let in who may read the runs of the pipeline's batch DAG."""
    requires_access_dag("GET", DagAccessEntity.RUN, f"{pipeline}__batch")(request, user)


router = APIRouter(prefix="/api/v1")
of_pipeline = Depends(may_read)


def opened(name: str) -> tuple[CompiledPipeline, Layout]:
    """Find a pipeline and its tables; NotFound."""
    pipeline = known(definitions()).pipeline(name)
    return pipeline, require_format(Layout(warehouse(), pipeline.name))


@router.get("/views")
def views(user: GetUserDep) -> Response:
    """List the views of all pipelines that the user may read."""
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    found = [
        {
            "pipeline": name,
            "view": view.name,
            "version": view.fingerprint,
            "keys": {key.name: key.type.spark for key in view.keys},
            "window": str(view.window),
            "measures": {measure.name: measure.result for measure in view.measures},
        }
        for name, pipeline in sorted(known(definitions()).pipelines.items())
        if f"{name}__batch" in allowed
        for view in pipeline.views
    ]
    return as_json({"views": found})


@router.get("/views/{pipeline}/{view}", dependencies=[of_pipeline])
def rows(
    pipeline: str,
    view: str,
    request: Request,
    start: Text = None,
    end: Text = None,
    as_of: Text = None,
    served_at: Text = None,
    side: Literal["merged", "batch", "speed"] = "merged",
    version: Annotated[str, Query(max_length=64)] = "",
    phase: Annotated[list[Literal["early", "complete", "late"]], Query(max_length=3)] = [],  # noqa: B006 - read only
    null: Annotated[list[str], Query(max_length=20)] = [],  # noqa: B006 - read only
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1000,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    format: Literal["json", "csv", "arrow"] = "json",
) -> Response:
    """Give a page of a view's answer; ``key.NAME=VALUE`` keeps rows of a key, several times for any of some values."""
    from seamline.serve.read import read

    keys: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        if name.startswith("key."):
            keys.setdefault(name.removeprefix("key."), []).append(value)
    question = Question(keys, null, start, end, as_of, served_at, side, version, phase, limit, offset, format)
    compiled, layout = opened(pipeline)
    _, shown = served(compiled, layout, named(compiled, layout, view), version)
    answer = read(
        f"{pipeline}.{view}",
        condition(shown, question),
        start,
        end,
        as_of,
        side,
        version=version,
        phases=phase,
        served_at=served_at,
        format="answer",
    )
    body = written(answer, question)
    mark = tag(body)
    headers = {"ETag": mark, "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
    if mark in [each.strip() for each in request.headers.get("If-None-Match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=MEDIA[format], headers=headers)


@router.get("/explain/{pipeline}/{view}", dependencies=[of_pipeline])
def explain(
    pipeline: str,
    view: str,
    request: Request,
    window: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=0, le=10**6)] = 0,
    size: Annotated[int, Query(ge=0, le=1000)] = 20,
) -> Response:
    """Take one number apart: ``key.NAME=VALUE`` for each key, and the window's start."""
    from seamline.serve.explain import explain as take_apart

    compiled, layout = opened(pipeline)
    named(compiled, layout, view)
    keys = {
        name.removeprefix("key."): value
        for name, value in request.query_params.multi_items()
        if name.startswith("key.")
    }
    found = take_apart(f"{pipeline}.{view}", keys, window, page=page, size=size)
    return as_json(
        {
            "view": found.view,
            "key": found.key,
            "window": {"start": found.window.start, "end": found.window.end},
            "row": found.row,
            "parts": [asdict(part) for part in found.parts],
            "proofs": [{"said": said, "holds": holds} for said, holds in found.proofs],
            "proven": found.proven,
            "certificates": {id: json.loads(each.to_json()) for id, each in found.certificates.items()},
            "rows": list(found.page),
        }
    )


@router.get("/completeness/{pipeline}", dependencies=[of_pipeline])
def completeness(pipeline: str) -> Response:
    """List every interval with rows, by view: its status, cut, generation and run."""
    from seamline.serve.completeness import completeness as cells

    return as_json({"cells": [asdict(each) for each in cells(*opened(pipeline))]})


@router.get("/comparisons/{pipeline}/{view}", dependencies=[of_pipeline])
def comparisons(pipeline: str, view: str) -> Response:
    """List what each generation changed of what was answered before it, and why."""
    from seamline.lake.comparisons import comparisons_of

    compiled, layout = opened(pipeline)
    _, version = served(compiled, layout, named(compiled, layout, view))
    found = comparisons_of(layout, version.id)
    return as_json({"comparisons": [json.loads(each.to_json()) for each in found]})


@router.get("/audits/{pipeline}", dependencies=[of_pipeline])
def audits(pipeline: str, limit: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
    """Give the newest audits."""
    from seamline.lake.audits import audits_of
    from seamline.plan.audited import facts

    return as_json({"audits": [facts(each) for each in audits_of(opened(pipeline)[1], limit)]})


@router.get("/streams/{pipeline}", dependencies=[of_pipeline])
def stream(pipeline: str, broker: bool = True) -> Response:
    """Tell what a stream should do and what it does, its lag and what is wrong with it."""
    from seamline.plan.observed import facts
    from seamline.supervisor.observe import observe

    compiled, layout = opened(pipeline)
    return as_json(facts(observe(pipeline, layout, compiled, broker=broker)))


def as_json(found: Any, status: int = 200) -> Response:
    """Write JSON."""
    return Response(spelled(found), status, {"X-Content-Type-Options": "nosniff"}, MEDIA["json"])


def refused(_: Request, error: Exception) -> Response:
    """Say what was wrong with a request, and the way out."""
    assert isinstance(error, SeamlineError)
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    said = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
    return as_json(said, status)
