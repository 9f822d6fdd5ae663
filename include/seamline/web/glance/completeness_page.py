"""The page of completeness: years of days by view, one month of them interval by interval, one interval in full."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.publish.derived_changes import find_reach_ahead
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.time.intervals import Grid
from seamline.serve.completeness import list_completeness
from seamline.serve.trust.interval_shades import SIGNS, Square, find_certified_end, shade_cells
from seamline.web.access import may_operate, readers
from seamline.web.glance.calendar import lay_out_strips, lay_out_years, list_span, name_span
from seamline.web.glance.table_versions import Memory
from seamline.web.interval import load_interval_detail
from seamline.web.limits import enforce_rate_limit, within_time_limit
from seamline.web.render import render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline

LISTED = 50
"""Rows of the table on one page."""
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)
Text = Annotated[str, Query(max_length=200)]
Version = tuple[str, str]
"""The name of a view, and one of its versions."""


@dataclass(frozen=True)
class Zoom:
    """The intervals of one view that are drawn one by one."""

    view: str
    """The view's name."""
    version: str
    """Its version."""
    span: str
    """A month, as 2026-03; a year of intervals of a day or more, a day or an hour of those of minutes."""
    before: str
    """The one before that has rows; empty if there is none."""
    after: str
    """The one after."""
    squares: tuple[Square, ...]
    """Its intervals, newest first."""


@dataclass(frozen=True)
class Whole:
    """All that is known of a pipeline's intervals."""

    watermark: datetime | None
    """The stream's, at its newest epoch."""
    groups: dict[Version, list[Square]]
    """The intervals of each version of a view."""
    views: list[dict[str, Any]]
    """The years of each, as they are drawn."""


@router.get("/pipelines/{pipeline}/completeness", dependencies=[readers])
@within_time_limit
def completeness(
    pipeline: str,
    request: Request,
    user: GetUserDep,
    interval: Text = "",
    view: Text = "",
    version: Text = "",
    zoom: Text = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """Draw every interval by view; those of a month one by one, and one of them in full."""
    compiled, layout = open_requested_pipeline(pipeline)
    whole = wholes.find(compiled, layout)
    groups = whole.groups
    chosen = choose_zoom(groups, (view, version), zoom or interval, compiled.grid.length)
    known = [each for each in chosen.squares if each.cell.interval == interval] if chosen else []
    listed = chosen.squares[(page - 1) * LISTED : page * LISTED] if chosen else ()
    return render_page_response(
        request,
        "completeness.html",
        here="completeness",
        signs=SIGNS,
        length=str(compiled.definition.batch.interval),
        watermark=whole.watermark,
        counting=bool(list_counting_sources(compiled)),
        views=whole.views,
        zoom=chosen,
        strips=lay_out_strips(chosen.squares, compiled.grid.length) if chosen else [],
        detail=load_interval_detail(compiled, layout, known[0]) if known else None,
        listed=listed,
        page=page,
        more=bool(chosen and len(chosen.squares) > page * LISTED),
        operates=may_operate(pipeline, user),
    )


def read_whole(compiled: CompiledPipeline, layout: Layout) -> Whole:
    """Read every interval."""
    epochs = newest_epochs(layout, 1)
    watermark = compiled.timed.watermark_at(epochs[-1]) if epochs else None
    cells, ahead = list_completeness(compiled, layout), find_reach_ahead(compiled, layout)
    groups: dict[Version, list[Square]] = {}
    for each in shade_cells(cells, compiled.grid, watermark, ahead):
        groups.setdefault((each.cell.view, each.cell.version), []).append(each)
    views = [describe_view(name, some, compiled.grid, groups) for name, some in groups.items()]
    return Whole(watermark, groups, views)


wholes = Memory(read_whole)
"""What was read of intervals."""


def choose_zoom(
    groups: dict[Version, list[Square]], asked: Version, moment: str, length: timedelta
) -> Zoom | None:
    """Choose what is drawn in full: what was asked for, or else the newest of the first view; None if there is none.

    ``moment`` is a span, an instant in it, or a longer one, of which the newest with rows is meant.
    """
    fitting = [each for each in groups if asked[0] in ("", each[0]) and asked[1] in ("", each[1])]
    if not (found := (fitting or list(groups))[:1]):
        return None
    known = groups[found[0]]
    spans = sorted({name_span(each.cell.interval, length) for each in known})
    asked_for = name_span(moment, length)
    span = next((each for each in reversed(spans) if each.startswith(asked_for)), spans[-1])
    at = spans.index(span)
    return Zoom(
        *found[0],
        span,
        before=spans[at - 1] if at else "",
        after=spans[at + 1] if at + 1 < len(spans) else "",
        squares=tuple(sorted(list_span(known, span), key=lambda each: each.cell.interval, reverse=True)),
    )


def describe_view(
    name: Version, known: list[Square], grid: Grid, groups: dict[Version, list[Square]]
) -> dict[str, Any]:
    """Describe the years of one version of a view."""
    return {
        "name": name[0],
        "version": name[1],
        "several": sum(each[0] == name[0] for each in groups) > 1,
        "through": find_certified_end(known, grid),
        "tally": Counter(each.shade.value for each in known),
        "years": lay_out_years(known, grid),
    }
