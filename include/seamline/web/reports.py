"""The report of a batch run: the certificates of its intervals, page by page."""

from __future__ import annotations

import re

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from seamline.lake.storage.layout import locate_tables
from seamline.model.compile.problems import NAME
from seamline.model.errors import NotFound
from seamline.quality.data_docs import render_in_process
from seamline.web.limits import enforce_rate_limit

PAGE = re.compile(r"[\w.-]+\.html")
LONGEST = 250
"""Airflow's own bound of a run's id."""
SAFE = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"}
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)
may_see = Depends(requires_access_dag("GET", DagAccessEntity.RUN))


@router.get("/reports/{dag_id}/{run_id:path}/{page}", dependencies=[may_see])
def report(dag_id: str, run_id: str, page: str) -> HTMLResponse:
    """Return a page of the report of a batch run; who may read the runs of its DAG may read it."""
    pipeline, _, layer = dag_id.partition("__")
    if layer != "batch" or not NAME.fullmatch(pipeline):
        raise NotFound(f"{dag_id} is not a batch DAG of Seamline.", hint="only its runs have a report.")
    folder = locate_tables(pipeline).report(run_id)
    known = PAGE.fullmatch(page) and len(run_id) <= LONGEST and folder.is_dir()
    file = folder / page if known and (folder / page).is_file() else None
    if known and not file:
        file = render_in_process(folder, page)
    if not file:
        raise NotFound(
            f"Run {run_id} has no report.",
            hint="nothing of the run is certified yet, or upkeep has deleted the report since.",
        )
    return HTMLResponse(file.read_text(encoding="utf-8"), headers=SAFE)
