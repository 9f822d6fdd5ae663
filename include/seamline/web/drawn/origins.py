"""Where a number comes from, a part of the page that is fetched when a reader stops at a point."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from seamline.lake.log.epoch_log import list_accepting_epochs
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import BadRange
from seamline.model.protocol.manifest import Statement
from seamline.model.time.intervals import LONGEST, Interval, parse_moment
from seamline.web.access import readers
from seamline.web.limits import enforce_rate_limit, run_with_time_limit
from seamline.web.render import render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline

MOST_INTERVALS = 5
"""Intervals of a window that are told one by one."""
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)


@dataclass(frozen=True)
class Origin:
    """What an interval's numbers are made of."""

    interval: str
    """The interval's id."""
    published: Statement | None
    """What published the generation that answers; None if the speed layer alone does."""
    epoch: int | None
    """The last epoch that brought rows of it, None if there is none."""
    at: datetime | None
    """When that was committed."""
    since: int
    """Rows of it above the generation's cut."""


@router.get("/pipelines/{pipeline}/origins/{view}", dependencies=[readers])
def origins(
    pipeline: str, view: str, request: Request, window: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Say where the numbers of a window come from."""
    compiled, layout = open_requested_pipeline(pipeline)
    _, shown = find_served_version(compiled, layout, find_view(compiled, layout, view))
    span = read_window(window)
    found, more = run_with_time_limit(lambda: list_origins(compiled, layout, shown, span))
    return render_page_response(request, "origins.html", found=found, more=more)


def read_window(text: str) -> Interval:
    """Read a window, as links to explanations name it; one without an end is read to its first instant."""
    start, _, end = text.partition("/")
    if not start:
        raise BadRange(
            "No window is named.", hint='write "window=2013-03-01T05:00:00Z/2013-03-01T06:00:00Z".'
        )
    first = parse_moment(start)
    if end:
        return Interval(first, parse_moment(end))
    first = min(first, LONGEST - timedelta.resolution)
    return Interval(first, first + timedelta.resolution)


def list_origins(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, span: Interval
) -> tuple[list[Origin], bool]:
    """List the intervals that a window touches, and whether there are more than are told."""
    touched = list(islice(pipeline.grid.touching(span), MOST_INTERVALS + 1))
    told = touched[:MOST_INTERVALS]
    manifest = manifest_of(layout)
    epochs = list_accepting_epochs(layout, {each.id for each in told})
    found = []
    for each in told:
        published = manifest.published.get((view.id, each.id))
        cut = manifest.cut(view.id, each.id)
        newest = max(
            (epoch for epoch in epochs if epoch.accepted.get(each.id)),
            key=lambda epoch: epoch.number,
            default=None,
        )
        since = sum(epoch.accepted.get(each.id, 0) for epoch in epochs if epoch.number > cut)
        found.append(
            Origin(
                each.id,
                published,
                newest.number if newest else None,
                newest.committed_at if newest else None,
                since,
            )
        )
    return found, len(touched) > len(told)
