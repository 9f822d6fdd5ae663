"""What the HTTP API returns: answers, explanations, completeness, comparisons, audits, streams, plans."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Query, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from seamline.lake.publish.planning import plan_run
from seamline.lake.read.answers import Answer
from seamline.lake.storage.layout import definitions_folder
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.protocol.read_request import ReadOptions
from seamline.model.time.intervals import format_utc_instant
from seamline.orchestration.run_intervals import form_span
from seamline.plan.wording.plan_text import serialize_plan as planned
from seamline.plan.wording.view_text import serialize_view
from seamline.serve.answer_age import read_within_age
from seamline.serve.answer_request import (
    MEDIA,
    MOST_ROWS,
    AnswerPage,
    encode_answer_page,
    hash_etag,
    is_unchanged,
    key_condition_sql,
    list_asked_keys,
    one_key,
)
from seamline.version import VERSION
from seamline.web.access import kafka_env, list_readable_pipelines, readers
from seamline.web.error_responses import ErrorBody
from seamline.web.limits import enforce_rate_limit, read_memory_share, run_with_time_limit, within_time_limit
from seamline.web.render import as_json
from seamline.web.requested_pipeline import open_requested_pipeline

Text = Annotated[str | None, Query(max_length=200)]


ANSWERS: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorBody} for code in (400, 401, 403, 404, 422, 429, 500, 502, 503)
}
MADE: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in MEDIA.values()}},
    304: {"description": "What you have is as new."},
}
router = APIRouter(prefix="/api/v1", dependencies=[Depends(enforce_rate_limit)], responses=ANSWERS)


class ReadQuery(BaseModel):
    """The query of a read, which names a version or a layer as ``seamline.read`` does."""

    start: Text = None
    """First window start, inclusive."""
    end: Text = None
    """Instant before which windows start, exclusive."""
    as_of: Text = None
    """An epoch or an instant."""
    served_at: Text = None
    """An instant."""
    side: Literal["merged", "batch", "speed"] = "merged"
    version: Annotated[str, Field(max_length=64)] = ""
    """A fingerprint; empty for the version that is served."""
    phase: Annotated[list[Literal["early", "complete", "late"]], Field(max_length=3)] = []
    null: Annotated[list[str], Field(max_length=20)] = []
    """Keys that may be NULL."""

    def options(self) -> ReadOptions:
        """Return what a read is asked with."""
        return ReadOptions(
            start=self.start,
            end=self.end,
            as_of=self.as_of,
            served_at=self.served_at,
            side=self.side,
            version=self.version,
            phases=self.phase,
        )


class ViewQuery(ReadQuery):
    """The query of a page."""

    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 1000
    """Rows of the page."""
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Rows before the page."""
    format: Literal["json", "csv", "arrow", "parquet"] = "json"


@router.get("/views")
def views(user: GetUserDep) -> Response:
    """List the views of all pipelines that the user may read."""
    pipelines = load_cached_catalog(definitions_folder()).pipelines
    found = [serialize_view(view) for name in list_readable_pipelines(user) for view in pipelines[name].views]
    return as_json({"views": found})


@router.get("/views/{pipeline}/{view}", dependencies=[readers], responses=MADE)
def rows(
    pipeline: str,
    view: str,
    request: Request,
    asked: Annotated[ViewQuery, Query()],
) -> Response:
    """Return a page of a view's answer; ``key.NAME=VALUE`` keeps rows of a key, and may be repeated."""
    from seamline.serve.streamed import read_answer_page, stream_answer

    keys = list_asked_keys(request.query_params.multi_items())
    with read_within_age(("shown", pipeline, view)):
        compiled, layout = open_requested_pipeline(pipeline)
        _, shown = find_served_version(compiled, layout, find_view(compiled, layout, view), asked.version)

    def made() -> tuple[Answer, bytes]:
        where = key_condition_sql(shown, keys, asked.null)
        stream = stream_answer(f"{pipeline}.{view}", where, memory=read_memory_share(), **asked.options())
        found = read_answer_page(stream, asked.offset, asked.limit)
        return found, encode_answer_page(found, AnswerPage(asked.limit, asked.offset, asked.format))

    answer, body = run_with_time_limit(made)
    mark = hash_etag(body)
    headers = {
        "ETag": mark,
        "Cache-Control": "private, no-cache",
        "Seamline-Total": str(answer.rows),
        "Seamline-State": f"{answer.version}/{answer.epoch}/{answer.manifest_version}",
    }
    if answer.seen_at is not None:
        headers["Seamline-Seen-At"] = format_utc_instant(answer.seen_at)
    if is_unchanged(mark, request.headers.getlist("If-None-Match")):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=MEDIA[asked.format], headers=headers)


@router.get("/explain/{pipeline}/{view}", dependencies=[readers])
def explain(
    pipeline: str,
    view: str,
    request: Request,
    window: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=0, le=10**6)] = 0,
    size: Annotated[int, Query(ge=0, le=1000)] = 20,
) -> Response:
    """Take one number apart: ``key.NAME=VALUE`` or ``null=NAME`` for each key, and the window's start."""
    from seamline.serve.explain import explain as take_apart
    from seamline.sinks.audit.sent_numbers import list_sent_numbers
    from seamline.sinks.audit.sent_words import serialize_sent_number

    compiled, layout = open_requested_pipeline(pipeline)
    find_view(compiled, layout, view)
    keys = one_key(request.query_params.multi_items())
    found = run_with_time_limit(lambda: take_apart(f"{pipeline}.{view}", keys, window, page=page, size=size))
    sent = run_with_time_limit(lambda: list_sent_numbers(compiled, layout, view, found.row, None))
    return as_json({**found.serialize(), "sinks": [serialize_sent_number(each) for each in sent]})


@router.get("/completeness/{pipeline}", dependencies=[readers])
@within_time_limit
def completeness(
    pipeline: str,
    start: Text = None,
    end: Text = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1000,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Response:
    """Return a page of the intervals with rows, by view, the newest first: status, cut, generation and run."""
    from seamline.serve.completeness import list_asked_cells, list_completeness

    asked = list_asked_cells(list_completeness(*open_requested_pipeline(pipeline)), start, end)
    after = offset + limit
    told = [asdict(each) for each in asked[offset:after]]
    return as_json({"cells": told, "total": len(asked), "next_offset": after if after < len(asked) else None})


@router.get("/comparisons/{pipeline}/{view}", dependencies=[readers])
@within_time_limit
def comparisons(pipeline: str, view: str) -> Response:
    """List what each generation changed of what was answered before it, and why."""
    from seamline.lake.tables.comparisons_table import comparisons_of

    compiled, layout = open_requested_pipeline(pipeline)
    _, version = find_served_version(compiled, layout, find_view(compiled, layout, view))
    found = comparisons_of(layout, version.id)
    return as_json({"comparisons": [json.loads(each.to_json()) for each in found]})


@router.get("/audits/{pipeline}", dependencies=[readers])
@within_time_limit
def audits(pipeline: str, limit: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
    """Return the newest audits."""
    from seamline.lake.tables.audits_table import audits_of
    from seamline.plan.wording.audit_text import serialize_audit

    return as_json(
        {"audits": [serialize_audit(each) for each in audits_of(open_requested_pipeline(pipeline)[1], limit)]}
    )


@router.get("/counts/{pipeline}", dependencies=[readers])
@within_time_limit
def counts(
    pipeline: str,
    start: Annotated[str | None, Query(alias="from", max_length=200)] = None,
    end: Annotated[str | None, Query(alias="to", max_length=200)] = None,
) -> Response:
    """Compare intervals (by default the last seven) with what producers say that they have sent; name each gap."""
    from seamline.plan.wording.counts_text import serialize_counted_interval
    from seamline.serve.producer_counts import list_counted_intervals

    found = list_counted_intervals(*open_requested_pipeline(pipeline), form_span({"from": start, "to": end}))
    told = [
        serialize_counted_interval(each.interval, each.counts, each.certified, each.run, closed=each.closed)
        for each in found
    ]
    return as_json({"intervals": told})


@router.get("/plans/{pipeline}", dependencies=[readers])
@within_time_limit
def plans(
    pipeline: str,
    start: Annotated[str | None, Query(alias="from", max_length=200)] = None,
    end: Annotated[str | None, Query(alias="to", max_length=200)] = None,
    dirty: bool = False,
) -> Response:
    """Return what a batch run would build now, and why; without a range, the dirty intervals. Nothing is changed."""
    compiled, layout = open_requested_pipeline(pipeline)
    asked = form_span({"from": start, "to": end})
    if asked is not None:
        compiled.grid.within_life(asked, now=datetime.now(UTC))
    found = plan_run(compiled, layout, asked=asked, dirty=dirty or asked is None, waits=False)
    return as_json(planned(found))


@router.get("/openapi.json")
def description(request: Request, _: GetUserDep) -> JSONResponse:
    """Describe the API, as OpenAPI does."""
    found = get_openapi(title="Seamline", version=VERSION, routes=request.app.routes)
    return JSONResponse({**found, "servers": [{"url": request.scope["root_path"]}]})


@router.get("/streams/{pipeline}", dependencies=[readers])
@within_time_limit
def stream(pipeline: str, broker: bool = True) -> Response:
    """Return what a stream should do and what it does, its lag and what is wrong with it."""
    from seamline.plan.wording.observation_text import serialize_observation
    from seamline.supervisor.observe import observe

    compiled, layout = open_requested_pipeline(pipeline)
    return as_json(
        serialize_observation(observe(pipeline, layout, compiled, broker=broker, env=kafka_env(compiled)))
    )
