"""How a server is reached: by the pipes of a process, or by one HTTP request at a time."""

from __future__ import annotations

import logging
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

# It writes three lines about each request, as of a session that begins and ends.
logging.getLogger("mcp.server").setLevel(logging.WARNING)


def serve_stdio(server: Server[Any]) -> None:
    """Serve whoever has started this process, until they close its standard input."""

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


async def serve_request(server: Server[Any], body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one request of streamable HTTP, whose body was read; no session outlives it, and nobody shares it."""
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, received, send)
