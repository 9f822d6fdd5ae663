"""``seamline mcp``: tools for agents, by the pipes of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

import click

from seamline.model.errors import SetupError

AT_ONCE = 2
"""Answers that are worked out at a time: each may take a part of the machine's memory."""
T = TypeVar("T")


@click.command()
@click.option(
    "--seconds",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="How long an answer may take.",
)
def mcp(seconds: int) -> None:
    """Serve tools of the Model Context Protocol on stdin and stdout: views, SQL, explain, completeness, plans.

    An agent's program starts it; docs/mcp.md has what to put into its settings. It reads what this user may read, and
    changes nothing.
    """
    try:
        from seamline.mcp.callers import Caller
        from seamline.mcp.server import make_server
        from seamline.mcp.transports import serve_stdio
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed.", hint="pip install 'seamline[mcp]'.") from None
    from seamline.lake.engine.time_limit import interrupt_after
    from seamline.serve.streamed import read_memory_setting

    places = threading.BoundedSemaphore(AT_ONCE)

    def work_out(make: Callable[[], T]) -> T:
        with places, interrupt_after(seconds):
            return make()

    serve_stdio(make_server(Caller(lambda _: True, read_memory_setting(os.environ), work_out)))


COMMANDS = (mcp,)
