"""The application that Airflow's API server mounts: every route behind its login, every answer with its headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from seamline.model.errors import SeamlineError
from seamline.web import actions, answer_pages, api, downloads, pages, reports
from seamline.web.error_responses import handle_request_error
from seamline.web.limits import Bounded

SAFE = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
app = FastAPI(title="Seamline", docs_url=None, redoc_url=None, openapi_url=None)
ROUTED = (api, downloads, actions, reports, pages, answer_pages)
for router in (each.router for each in ROUTED):
    app.include_router(router)
app.add_middleware(Bounded)


@app.middleware("http")
async def safe(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
    """Say what a browser may do with an answer."""
    answer = await call(request)
    for name, value in SAFE.items():
        answer.headers.setdefault(name, value)
    return answer


app.add_exception_handler(SeamlineError, handle_request_error)
app.add_exception_handler(HTTPException, handle_request_error)
app.add_exception_handler(RequestValidationError, handle_request_error)
