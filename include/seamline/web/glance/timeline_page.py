"""The page of what has happened to a pipeline: starts, holes, corrections, rollbacks and decisions, by whom and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version as release
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from seamline.model.time.intervals import format_utc_instant
from seamline.serve.trust.happenings import Happened, Happening, list_happenings
from seamline.supervisor.observe import observe
from seamline.web.access import readers
from seamline.web.charts import Figure, make_figure
from seamline.web.limits import enforce_rate_limit, within_time_limit
from seamline.web.render import render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline

MOST = 2_000
"""Things that are looked at."""
LISTED = 100
"""Rows on one page."""
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)


@router.get("/pipelines/{pipeline}/timeline", dependencies=[readers])
@within_time_limit
def timeline(
    pipeline: str,
    request: Request,
    kind: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """List what has happened, newest first, of all kinds or of one."""
    compiled, layout = open_requested_pipeline(pipeline)
    found = list_happenings(layout, MOST)
    seen = observe(pipeline, layout, compiled, broker=False)
    alerts = [
        Happened(each.at, Happening.ALERT, f"{each.kind.value}: {each.message}", why=each.subject)
        for each in seen.alerts
        if each.at is not None
    ]
    found = sorted([*found, *alerts], key=lambda each: each.at, reverse=True)
    chosen = [each for each in found if kind in ("", each.kind.value)]
    return render_page_response(
        request,
        "timeline.html",
        here="timeline",
        plotly=release("plotly"),
        kind=kind,
        tally=Counter(each.kind.value for each in found),
        figure=draw_happenings(chosen) if chosen else None,
        undecided=seen.holes or (),
        listed=chosen[(page - 1) * LISTED : page * LISTED],
        page=page,
        more=len(chosen) > page * LISTED,
        most=len(found) >= MOST,
    )


def draw_happenings(found: Sequence[Happened]) -> Figure:
    """Draw what has happened over time, a row for each kind."""
    kinds = [each for each in Happening if any(one.kind is each for one in found)]
    return make_figure(
        [
            {
                "type": "scatter",
                "mode": "markers",
                "name": kind.value,
                "x": [format_utc_instant(each.at) for each in found if each.kind is kind],
                "y": [kind.value for each in found if each.kind is kind],
                "text": [f"{each.what} {each.who}" for each in found if each.kind is kind],
                "marker": {"size": 9},
            }
            for kind in kinds
        ],
        "",
        showlegend=False,
        yaxis={"type": "category", "automargin": True},
    )
