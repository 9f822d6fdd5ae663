"""What our pages and the API are served by, inside Airflow's API server and behind its login."""

from __future__ import annotations

import re
from html import escape

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse

from seamline.lake.layout import Layout, warehouse
from seamline.model.errors import SeamlineError
from seamline.model.problems import NAME
from seamline.orchestration import api

PAGE = re.compile(r"[\w.-]+\.html")
SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
}
app = FastAPI(title="Seamline", docs_url=None, redoc_url=None, openapi_url=None)
app.include_router(api.router)
app.add_exception_handler(SeamlineError, api.refused)
readers = Depends(requires_access_dag("GET", DagAccessEntity.RUN))


@app.get("/reports/{dag_id}/{run_id:path}/{page}", dependencies=[readers])
def report(dag_id: str, run_id: str, page: str) -> HTMLResponse:
    """Give a page of the report of a batch run; who may read the runs of its DAG may read it."""
    pipeline, _, layer = dag_id.partition("__")
    if layer != "batch" or not NAME.fullmatch(pipeline):
        return said(f"{dag_id} is no batch DAG of Seamline: its runs have no report.")
    file = Layout(warehouse(), pipeline).report(run_id) / page
    if not PAGE.fullmatch(page) or not file.is_file():
        return said(
            f"Run {run_id} has no report: nothing of it is certified yet, or upkeep has deleted it since."
        )
    return HTMLResponse(file.read_text(encoding="utf-8"), headers=SAFE)


def said(text: str) -> HTMLResponse:
    """Write a page of one sentence: there is nothing else to show."""
    page = f"<!DOCTYPE html><html><head><title>Report</title></head><body><p>{escape(text)}</p></body></html>"
    return HTMLResponse(page, status_code=404, headers=SAFE)
