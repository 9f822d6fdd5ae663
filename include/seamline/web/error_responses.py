"""The response to a refused request: the status, what was wrong, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from seamline.model.errors import (
    AirflowUnavailable,
    BackfillRefused,
    BadRange,
    Conflict,
    ExpressionError,
    KafkaRefused,
    KafkaUnavailable,
    MovedAway,
    NotFound,
    ReadUnstable,
    SeamlineError,
    SetupError,
    StoreUnavailable,
    TooSlow,
)
from seamline.web.render import as_json, render_page_response

STATUS: Mapping[type[SeamlineError], int] = {
    NotFound: 404,
    BadRange: 400,
    ExpressionError: 400,
    KafkaRefused: 503,
    KafkaUnavailable: 503,
    ReadUnstable: 503,
    SetupError: 503,
    StoreUnavailable: 503,
    TooSlow: 503,
    AirflowUnavailable: 502,
    BackfillRefused: 409,
    Conflict: 409,
    MovedAway: 409,
}
HINTS: Mapping[int, str] = {
    401: "log in to Airflow, or send its token.",
    403: "ask for a role that may do this.",
    404: "see openapi.json for the routes and methods.",
    413: "send less at a time.",
    415: "set the header Content-Type: application/json.",
    429: "retry later, or have SEAMLINE_HTTP_RATE raised.",
}


class ErrorBody(BaseModel):
    """What was wrong with a request, and the way out."""

    error: str
    message: str
    hint: str


def handle_request_error(request: Request, error: Exception) -> Response:
    """Say what was wrong with a request, and the way out: as a page to a browser, as JSON to a program."""
    status, said, headers = describe_error(error)
    if "/api/v1/" in request.url.path or "text/html" not in request.headers.get("accept", ""):
        answer = as_json(said, status)
    else:
        answer = render_page_response(
            request,
            "said.html",
            status,
            message=said["message"],
            hint=said["hint"],
            next=str(request.url.path),
            pipeline="",
        )
    answer.headers.update(headers)
    return answer


def describe_error(error: Exception) -> tuple[int, dict[str, str], dict[str, str]]:
    """Describe the status, the words and the headers of a refusal."""
    match error:
        case SeamlineError():
            status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
            return status, {"error": type(error).__name__, "message": error.message, "hint": error.hint}, {}
        case HTTPException():
            hint = HINTS.get(error.status_code, "")
            said = {"error": "Refused", "message": str(error.detail), "hint": hint}
            return error.status_code, said, dict(error.headers or {})
        case RequestValidationError():
            first = error.errors()[0]
            where = ".".join(str(each) for each in first["loc"][1:]) or str(first["loc"][0])
            said = {
                "error": "BadRequest",
                "message": f"{where}: {first['msg']}.",
                "hint": "see openapi.json.",
            }
            return 422, said, {}
    raise error
