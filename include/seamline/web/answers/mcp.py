"""Tools for agents, by streamable HTTP: behind the same login, over the pipelines that the user may read."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from seamline.model.errors import SetupError
from seamline.web.access import is_dag_run_allowed
from seamline.web.limits import enforce_rate_limit, only_json, read_memory_share, run_with_time_limit

router = APIRouter(
    prefix="/api/v1",
    dependencies=[Depends(enforce_rate_limit), Depends(only_json)],
    include_in_schema=False,
)


class Relayed(Response):
    """Lets a server of tools answer a request."""

    def __init__(self, server: Any, body: bytes) -> None:
        super().__init__()
        self.server, self.asked = server, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it."""
        from seamline.mcp.transports import serve_request

        await serve_request(self.server, self.asked, scope, receive, send)


@router.post("/mcp")
async def mcp(request: Request, user: GetUserDep) -> Response:
    """Serve one request of the Model Context Protocol; SetupError where its package is not installed."""
    try:
        from seamline.mcp.callers import Caller
        from seamline.mcp.server import make_server
    except ModuleNotFoundError as error:
        raise SetupError(
            f"{error.name} is not installed.", hint="pip install 'seamline[mcp]' beside Airflow."
        ) from None
    caller = Caller(
        may_read=lambda name: is_dag_run_allowed("GET", f"{name}__batch", user),
        memory=read_memory_share(),
        work_out=run_with_time_limit,
    )
    return Relayed(make_server(caller), await request.body())
