"""The pages: what the API returns, for people. Each is written here and now from the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version as release
from importlib.resources import files
from typing import Annotated, Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.publish.planning import plan_run
from seamline.lake.storage.layout import definitions_folder
from seamline.lake.tables.audits_table import audits_of
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.errors import BadRange, NotFound, SeamlineError
from seamline.orchestration.run_intervals import form_span
from seamline.plan.wording.audit_text import format_audit as audited
from seamline.plan.wording.observation_text import format_observation_notes
from seamline.plan.wording.observation_text import format_observation_row as observed
from seamline.plan.wording.observation_text import serialize_observation as facts_of
from seamline.plan.wording.plan_text import format_plan_total, group_left_out
from seamline.plan.wording.source_text import list_source_facts
from seamline.serve.questions import list_question_states
from seamline.serve.refused_records import list_refusals
from seamline.serve.rules_in_force import list_lookup_states
from seamline.web import charts
from seamline.web.access import kafka_env, list_readable_pipelines, may_ask_for_imports, may_operate, readers
from seamline.web.glance.overview import load_pipeline_cards
from seamline.web.glance.shown_ids import identify_cards, tell_page
from seamline.web.inside import InsideAirflow
from seamline.web.limits import (
    enforce_rate_limit,
    look_with_time_limit,
    run_with_time_limit,
    within_time_limit,
)
from seamline.web.render import render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline

EPOCHS = 60
MEDIA = {"css": "text/css", "js": "text/javascript"}
HERE = {"batch": "completeness", "stream": "stream", "audit": "audits", "upkeep": "completeness"}
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)
Text = Annotated[str, Query(max_length=200)]


@router.get("/")
def overview(request: Request, user: GetUserDep) -> Response:
    """Every pipeline that the user may read."""
    names = list_readable_pipelines(user)
    # They show files and fields of any pipeline.
    trusted = any(may_operate(name, user) for name in names)
    problems = [str(each) for each in load_cached_catalog(definitions_folder()).problems] if trusted else []
    cards = run_with_time_limit(lambda: load_pipeline_cards(names))
    return render_page_response(
        request,
        "overview.html",
        cards=cards,
        now=datetime.now(UTC),
        unread=sum(each.stream is None or each.answers is None for each in cards),
        problems=problems,
        live=5,
        changes="/changes",
        seen=identify_cards(cards),
    )


@router.get("/static/{name}")
def static(name: str, _: GetUserDep) -> Response:
    """Style and scripts; the chart library is that of the Python package."""
    ours = {"page.css", "page.js", "drawn.css", "drawn.js"}
    if name == "plotly.min.js":
        content = files("plotly").joinpath("package_data", name).read_bytes()
    elif name in ours:
        content = files("seamline.web").joinpath("static", name).read_bytes()
    else:
        raise NotFound(f"There is no {name}.", hint=f"available: plotly.min.js, {', '.join(sorted(ours))}.")
    headers = {"Cache-Control": "private, max-age=31536000, immutable"} if name not in ours else {}
    return Response(content, media_type=MEDIA[name.rpartition(".")[2]], headers=headers)


@router.get("/dags/{dag_id}")
def of_dag(dag_id: str, request: Request, user: GetUserDep) -> Response:
    """Send on to the page that a DAG's tab shows."""
    pipeline, _, layer = dag_id.rpartition("__")
    root = request.scope["root_path"]
    if pipeline not in load_cached_catalog(definitions_folder()).pipelines:
        return render_page_response(
            request,
            "said.html",
            message=f"{dag_id} is not a DAG of a pipeline.",
            hint="This tab shows the pipelines of Seamline.",
            status=404,
        )
    return RedirectResponse(f"{root}/pipelines/{pipeline}/{HERE.get(layer, 'completeness')}", 303)


@router.get("/pipelines/{pipeline}", dependencies=[readers])
def first(pipeline: str, request: Request) -> Response:
    """Send on to the first of a pipeline's pages."""
    return RedirectResponse(f"{request.scope['root_path']}/pipelines/{pipeline}/completeness", 303)


@router.get("/pipelines/{pipeline}/stream", dependencies=[readers])
@within_time_limit
def stream(pipeline: str, request: Request, user: GetUserDep) -> Response:
    """Show the state of a stream, and let it be operated."""
    from seamline.supervisor.observe import observe

    compiled, layout = open_requested_pipeline(pipeline)
    told = tell_page(compiled, layout)
    seen = observe(pipeline, layout, compiled, env=kafka_env(compiled))
    epochs = newest_epochs(layout, EPOCHS)
    return render_page_response(
        request,
        "stream.html",
        here="stream",
        plotly=release("plotly"),
        cells=observed(seen),
        notes=list(format_observation_notes(seen)),
        epochs=epochs,
        arrivals=charts.draw_arrivals(epochs),
        phases=charts.draw_epoch_phases(epochs),
        lag=list(facts_of(seen)["lag"]["partitions"].items()),
        reads=list_source_facts(compiled.definition),
        refused=list_refusals(compiled, layout),
        fails_over=bool(compiled.definition.kafka_topics),
        operates=may_operate(pipeline, user),
        **told,
    )


@router.get("/pipelines/{pipeline}/plan", dependencies=[readers])
def plan(
    pipeline: str,
    request: Request,
    user: GetUserDep,
    start: Annotated[str, Query(alias="from", max_length=200)] = "",
    end: Annotated[str, Query(alias="to", max_length=200)] = "",
    dirty: bool = False,
) -> Response:
    """Show what a run would do, start it, and show the backfills."""
    from seamline.web.actions import progress_of

    compiled, layout = open_requested_pipeline(pipeline)
    told = tell_page(compiled, layout)
    context: dict[str, Any] = {"start": start, "end": end, "dirty": dirty, "error": "", "untold": ""}
    try:
        asked = form_span({"from": start, "to": end})
        if asked is not None:
            compiled.grid.within_life(asked, now=datetime.now(UTC))
        made = look_with_time_limit(
            lambda: plan_run(compiled, layout, asked=asked, dirty=dirty or asked is None, waits=False)
        )
        context |= {
            "plan": made,
            "left_out": group_left_out(made),
            "said": format_plan_total(made) if made.builds else "Nothing is to be built.",
        }
    except BadRange as error:
        context["error"] = f"{error.message} {error.hint}"
    try:
        context["backfills"] = progress_of(InsideAirflow.of(request), pipeline)
    except (SeamlineError, HTTPException) as error:
        context |= {
            "backfills": [],
            "untold": getattr(error, "message", None) or getattr(error, "detail", ""),
        }
    # How far Airflow is with a backfill no table says.
    if any(each["completed_at"] is None for each in context["backfills"]):
        told = {"live": 5}
    return render_page_response(
        request, "plan.html", here="plan", operates=may_operate(pipeline, user), **context, **told
    )


@router.get("/pipelines/{pipeline}/audits", dependencies=[readers])
@within_time_limit
def audits(pipeline: str, request: Request) -> Response:
    """Show the newest audits."""
    found = [(each, list(audited(each))) for each in audits_of(open_requested_pipeline(pipeline)[1], 10)]
    return render_page_response(request, "audits.html", here="audits", found=found)


@router.get("/pipelines/{pipeline}/lookups", dependencies=[readers])
@within_time_limit
def lookups(pipeline: str, request: Request) -> Response:
    """Show the look-ups that rows are made with, their versions, and the rules in force."""
    found = list_lookup_states(*open_requested_pipeline(pipeline))
    return render_page_response(request, "lookups.html", here="lookups", found=found)


@router.get("/pipelines/{pipeline}/questions", dependencies=[readers])
@within_time_limit
def questions(pipeline: str, request: Request) -> Response:
    """Show what other systems are asked, how that goes, and what was decided about it."""
    from seamline.supervisor.observe import observe

    compiled, layout = open_requested_pipeline(pipeline)
    told = tell_page(compiled, layout)
    found = list_question_states(compiled, layout, observe(pipeline, layout, compiled, broker=False))
    return render_page_response(request, "questions.html", here="questions", found=found, **told)


@router.get("/pipelines/{pipeline}/imports", dependencies=[readers])
@within_time_limit
def imports(pipeline: str, request: Request, user: GetUserDep) -> Response:
    """Show the imports of files, how far each is and what stops one, and ask for another."""
    from seamline.supervisor.imports.import_listing import list_import_states

    compiled, layout = open_requested_pipeline(pipeline)
    told = tell_page(compiled, layout)
    return render_page_response(
        request,
        "imports.html",
        here="imports",
        found=list_import_states(layout),
        sources=[each.source.name for each in compiled.by_source if compiled.alone],
        operates=may_ask_for_imports(pipeline, user),
        **told,
    )
