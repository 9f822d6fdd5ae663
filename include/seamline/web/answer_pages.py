"""The pages of answers: a view's numbers, how one of them is made, and what later generations changed."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version as release
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from seamline.lake.tables.comparisons_table import comparisons_of
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.errors import BadRange
from seamline.serve.answer_request import one_key
from seamline.web import charts
from seamline.web.access import readers
from seamline.web.drawn.two_ranges import SHIFTS
from seamline.web.drawn.view_request import ViewRequest
from seamline.web.limits import enforce_rate_limit, run_with_time_limit, within_time_limit
from seamline.web.render import render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline
from seamline.web.view_page import build_page_answer

LISTED, POINTS, PAGE = 400, 60, 20
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)
Text = Annotated[str, Query(max_length=200)]


@router.get("/pipelines/{pipeline}/differences", dependencies=[readers])
@within_time_limit
def differences(pipeline: str, request: Request, view: Text = "") -> Response:
    """Show what generations changed of what was answered before."""
    compiled, layout = open_requested_pipeline(pipeline)
    view = view or compiled.views[0].name
    _, shown = find_served_version(compiled, layout, find_view(compiled, layout, view))
    found = sorted(comparisons_of(layout, shown.id), key=lambda each: each.at, reverse=True)
    causes = Counter[str]()
    for each in found:
        causes.update(each.causes)
    return render_page_response(
        request,
        "differences.html",
        here="differences",
        plotly=release("plotly"),
        view=view,
        names=[each.name for each in compiled.views],
        found=found[:LISTED],
        equal=sum(each.equal for each in found),
        differing=sum(each.differing for each in found),
        causes=causes,
        figure=charts.draw_attribution([each for each in found if each.differing][:POINTS]),
    )


@router.get("/pipelines/{pipeline}/accuracy/{view}", dependencies=[readers])
def accuracy(pipeline: str, view: str, request: Request) -> Response:
    """Show how far first answers were from the final ones; a part of other pages."""
    from seamline.lake.audit.answer_accuracy import last_intervals
    from seamline.lake.audit.answer_accuracy import measure_answer_accuracy as accuracy_of
    from seamline.plan.wording.accuracy_text import format_accuracy

    compiled, layout = open_requested_pipeline(pipeline)
    _, shown = find_served_version(compiled, layout, find_view(compiled, layout, view))
    span = last_intervals(compiled, layout)
    found = run_with_time_limit(lambda: accuracy_of(compiled, shown, layout, span)) if span else []
    return render_page_response(
        request, "accuracy.html", found=found, span=span, typical=format_accuracy(found)
    )


@router.get("/pipelines/{pipeline}/views", dependencies=[readers])
def views(pipeline: str, request: Request) -> Response:
    """List the views of a pipeline."""
    compiled, _ = open_requested_pipeline(pipeline)
    return render_page_response(request, "views.html", here="views", views=compiled.views)


@router.get("/pipelines/{pipeline}/views/{view}", dependencies=[readers])
def view(pipeline: str, view: str, request: Request) -> Response:
    """Draw a view's answer over a range, with the seam in it."""
    compiled, layout = open_requested_pipeline(pipeline)
    asked = ViewRequest.of(request.query_params.multi_items())
    name = find_view(compiled, layout, view)
    _, shown = find_served_version(compiled, layout, name, asked.version)
    context: dict[str, Any] = {
        "here": "views",
        "plotly": release("plotly"),
        "view": shown,
        "measures": [each.name for each in shown.measures],
        "asked": asked,
        "zone": asked.zone,
        "shifts": SHIFTS,
        "error": "",
    }
    try:
        root = request.scope["root_path"]
        context |= run_with_time_limit(lambda: build_page_answer(compiled, layout, shown, asked, root))
    except BadRange as error:
        context["error"] = f"{error.message} {error.hint}"
    return render_page_response(request, "view.html", **context)


@router.get("/pipelines/{pipeline}/explain/{view}", dependencies=[readers])
def explain(
    pipeline: str,
    view: str,
    request: Request,
    window: Text = "",
    page: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Response:
    """Take one number apart."""
    from seamline.serve.explain import explain as take_apart
    from seamline.serve.explanation import is_changed, is_emitted, is_joined, name_rows, tabulate_rows
    from seamline.sinks.audit.sent_numbers import list_sent_numbers
    from seamline.sinks.audit.sent_words import format_sent_number

    compiled, layout = open_requested_pipeline(pipeline)
    find_view(compiled, layout, view)
    items = request.query_params.multi_items()
    found = run_with_time_limit(lambda: take_apart(f"{pipeline}.{view}", one_key(items), window, page=page))
    sent = run_with_time_limit(lambda: list_sent_numbers(compiled, layout, view, found.row, None))
    others = [(name, value) for name, value in items if name != "page"]
    # Of a table's rows each change is shown, and those that came to nothing, too.
    pages = (found.row["batch_part"] + found.row["speed_part"] - 1) // PAGE
    more = page < pages or (is_changed(found) and len(found.page) == PAGE)
    return render_page_response(
        request,
        "explain.html",
        here="views",
        found=found,
        rows=tabulate_rows(found),
        named=name_rows(found),
        sent=[(each, format_sent_number(each)) for each in sent],
        joined=is_joined(found),
        emitted=is_emitted(found),
        changed=is_changed(found),
        page=page,
        before=f"?{urlencode([*others, ('page', page - 1)])}" if page else "",
        after=f"?{urlencode([*others, ('page', page + 1)])}" if more else "",
    )
