"""The application that Airflow's API server mounts: every route behind its login, every answer with its headers."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seamline.model.errors import SeamlineError
from seamline.web import (
    actions,
    answer_pages,
    api,
    counts_page,
    driver_log,
    pages,
    query_page,
    reports,
    sql,
)
from seamline.web.answers import downloads, mcp
from seamline.web.drawn import origins
from seamline.web.error_responses import handle_request_error
from seamline.web.glance import changes, completeness_page, graph_page, timeline_page
from seamline.web.limits import Bounded
from seamline.web.sinks import sinks_page

SAFE = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class Safe:
    """Says what a browser may do with an answer; one that is broken off stays so, which Starlette's own would end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add headers to what is answered."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, headed)


class Application(FastAPI):
    """Ours, whose every answer has the headers: also what Starlette says itself of an error that nobody expected."""

    def build_middleware_stack(self) -> ASGIApp:
        """Put them around all else."""
        return Safe(super().build_middleware_stack())


app = Application(title="Seamline", docs_url=None, redoc_url=None, openapi_url=None)
ROUTED = (
    api,
    downloads,
    sql,
    mcp,
    actions,
    reports,
    driver_log,
    changes,
    graph_page,
    query_page,
    pages,
    completeness_page,
    timeline_page,
    answer_pages,
    origins,
    counts_page,
    sinks_page,
)
for router in (each.router for each in ROUTED):
    app.include_router(router)
app.add_middleware(Bounded)
app.add_exception_handler(SeamlineError, handle_request_error)
app.add_exception_handler(HTTPException, handle_request_error)
app.add_exception_handler(RequestValidationError, handle_request_error)
