"""The page of sinks: where a view's answer goes beside its tables, how far each target is, and what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from seamline.lake.tables.sinks.recorded_positions import list_copied_sinks
from seamline.plan.stream.sink_facts import format_shown
from seamline.sinks.sink_facts import read_sink_facts
from seamline.web.access import readers
from seamline.web.glance.shown_ids import tell_page
from seamline.web.limits import enforce_rate_limit, within_time_limit
from seamline.web.render import render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline

router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)


@router.get("/pipelines/{pipeline}/sinks", dependencies=[readers])
@within_time_limit
def show_sinks(pipeline: str, request: Request) -> Response:
    """Show each sink of the definition, and those that it has no longer."""
    compiled, layout = open_requested_pipeline(pipeline)
    told = tell_page(compiled, layout)
    found = read_sink_facts(compiled, layout, datetime.now(UTC))
    known = {each.name for each in found}
    return render_page_response(
        request,
        "sinks.html",
        here="sinks",
        found=[{"sink": each, "shown": format_shown(each)} for each in found],
        left=[each for each in list_copied_sinks(layout) if each not in known],
        **told,
    )
