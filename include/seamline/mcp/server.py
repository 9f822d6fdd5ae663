"""The server of one caller: its tools, what they are called with, and what is said where they fail."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

import anyio.to_thread
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ToolEntry
from pydantic import ValidationError

from seamline.mcp.callers import NOBODY, Caller
from seamline.mcp.tools import Tools
from seamline.model.errors import BadRange, NotFound, SeamlineError
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.serve.answer_request import as_json
from seamline.version import VERSION

LOG = logging.getLogger(__name__)
INSTRUCTIONS = (
    "Numbers of event streams, counted by two layers that are merged: a stream, and builds that count again from all "
    "records and certify. Every answer says how far it is right; say so with a number that you pass on. Begin with "
    "list_views, then describe_view, then query. All times are UTC, ends are exclusive. Nothing can be changed here."
)
READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def make_server(caller: Caller) -> Server[Any]:
    """Make the server of one caller."""
    asked = Tools(caller)

    async def on_list_tools(
        context: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                ToolEntry(
                    name=each.name,
                    description=each.description,
                    input_schema=each.parameters,
                    annotations=each.annotations,
                )
                for each in list_tools().values()
            ]
        )

    async def on_call_tool(
        context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        # Answers are worked out by blocking calls, which the loop of a server must not wait for.
        return await anyio.to_thread.run_sync(call_tool, asked, params.name, params.arguments or {})

    return Server(
        "seamline",
        title="Seamline",
        version=VERSION,
        instructions=INSTRUCTIONS,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


@cache
def list_tools() -> Mapping[str, Tool]:
    """List the tools by name, with their schemas as their signatures have them; made once, for all callers."""
    nobodys = Tools(NOBODY)
    functions = (
        nobodys.list_views,
        nobodys.describe_view,
        nobodys.query,
        nobodys.explain,
        nobodys.completeness,
        nobodys.plan,
    )
    made = [Tool.from_function(each, annotations=READS, structured_output=False) for each in functions]
    return {each.name: each for each in made}


def call_tool(asked: Tools, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """Call a tool; what goes wrong is its result, in our words with a hint, and what nobody expected is logged."""
    try:
        return tell(call_checked(asked, name, arguments))
    except SeamlineError as error:
        ours = error
    except Exception as error:
        if (explained := explain_storage_failure(error)) is None:
            LOG.exception("The tool %r failed.", name)
            return tell(say("Failed", f"{name} failed.", "the server's log says why."), wrong=True)
        ours = explained
    return tell(say(type(ours).__name__, ours.message, ours.hint), wrong=True)


def call_checked(asked: Tools, name: str, arguments: dict[str, Any]) -> str:
    """Call a tool with arguments that its schema has; NotFound for no tool, BadRange for what the schema refuses."""
    tools = list_tools()
    if name not in tools:
        raise NotFound(f"There is no tool {name!r}.", hint=f"available: {', '.join(tools)}.")
    tool = tools[name]
    known = tool.parameters["properties"]
    if unknown := sorted({*arguments} - {*known}):
        raise BadRange(
            f"{name} has no argument {unknown[0]!r}.", hint=f"it takes: {', '.join(known) or 'none'}."
        )
    try:
        taken = tool.fn_metadata.validate_arguments(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadRange(f"{name}: {where}: {first['msg']}.", hint="see the tool's schema.") from None
    found: str = getattr(asked, name)(**taken)
    return found


def say(error: str, message: str, hint: str) -> str:
    """Write what is wrong as the HTTP API does."""
    return as_json({"error": error, "message": message, "hint": hint})


def tell(text: str, *, wrong: bool = False) -> CallToolResult:
    """Make a result of a text."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=wrong)
