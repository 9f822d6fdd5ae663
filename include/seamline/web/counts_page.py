"""The page of producers' counts: what was read of an interval beside what they say they have sent, with each gap."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.errors import BadRange
from seamline.orchestration.run_intervals import form_span
from seamline.serve.producer_counts import list_bad_lines, list_counted_intervals
from seamline.web.access import readers
from seamline.web.limits import enforce_rate_limit, run_with_time_limit
from seamline.web.render import render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline

router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)


@router.get("/pipelines/{pipeline}/counts", dependencies=[readers])
def show_counts(
    pipeline: str,
    request: Request,
    start: Annotated[str, Query(alias="from", max_length=200)] = "",
    end: Annotated[str, Query(alias="to", max_length=200)] = "",
) -> Response:
    """Compare intervals, by default the last seven, with what producers say that they have sent."""
    compiled, layout = open_requested_pipeline(pipeline)
    context: dict[str, Any] = {"start": start, "end": end, "found": [], "bad": [], "error": ""}
    try:
        span = form_span({"from": start, "to": end})
        found = run_with_time_limit(lambda: list_counted_intervals(compiled, layout, span))
        context |= {
            "found": sorted(found, key=lambda each: each.interval.start, reverse=True),
            "bad": list(list_bad_lines(compiled, layout)),
        }
    except BadRange as error:
        context["error"] = f"{error.message} {error.hint}"
    sources = [
        {
            "name": source.name,
            "topic": each.topic,
            "required": each.required,
        }
        for source, each in list_counting_sources(compiled)
    ]
    return render_page_response(request, "counts.html", here="counts", sources=sources, **context)
