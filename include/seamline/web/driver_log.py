"""The last lines of a stream's driver, for who may operate it: they show files, addresses and errors."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import PlainTextResponse

from seamline.lake.storage.layout import home_folder
from seamline.model.errors import NotFound
from seamline.supervisor.stream_logs import last_lines
from seamline.web.access import operators
from seamline.web.limits import enforce_rate_limit
from seamline.web.requested_pipeline import open_requested_pipeline

LINES, MOST = 500, 10_000
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)


@router.get("/pipelines/{pipeline}/log", dependencies=[operators])
def driver_log(pipeline: str, lines: Annotated[int, Query(ge=1, le=MOST)] = LINES) -> PlainTextResponse:
    """Return the last lines of the driver's output; NotFound where it is of another host."""
    open_requested_pipeline(pipeline)
    found = last_lines(home_folder() / "streams" / pipeline / "driver.log", lines)
    if found is None:
        raise NotFound(
            f"The driver of {pipeline} has no output on this host.",
            hint=f"run `seamline stream logs {pipeline}` where its stream runs.",
        )
    return PlainTextResponse("\n".join([*found, ""]), headers={"Cache-Control": "private, no-store"})
