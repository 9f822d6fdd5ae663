"""The function by which the example scored_payments asks for risks, as a user of the platform would write it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import httpx

from seamline import NoAnswer

URL = "http://127.0.0.1:8089"
"""Where the service is, unless SEAMLINE_SCORING_URL says otherwise."""
POOLS, CONNECTIONS = 16, 8
"""Pools, and connections of each: in all, twice as many as there are calls at one time."""
clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}
"""The client of each event loop: its connections are of that loop."""


class Pools(httpx.AsyncBaseTransport):
    """Pools of a few connections, in turn: for each call httpx compares all connections of a pool with each other."""

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        trusted = httpx.create_ssl_context()
        self.pools = [httpx.AsyncHTTPTransport(verify=trusted, limits=limits) for _ in range(POOLS)]
        self.turns = cycle(self.pools)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request by the pool whose turn it is."""
        return await next(self.turns).handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for each in self.pools:
            await each.aclose()


async def ask(requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | NoAnswer]:
    """Return the ``risk`` of each payment, a ``user`` and an ``amount``, or that it is refused.

    Raises httpx.HTTPError where the service does not answer, or says that it cannot.
    """
    url = os.environ.get("SEAMLINE_SCORING_URL") or URL
    said = [{"user": each["user"], "amount": f"{each['amount']:f}"} for each in requests]
    found = await find_client().post(f"{url}/score", json=said)
    found.raise_for_status()
    return [read_answer(each) for each in found.json()]


def read_answer(said: Mapping[str, Any]) -> dict[str, Any] | NoAnswer:
    """Return what the service has said of one payment."""
    return NoAnswer(said["refused"]) if "refused" in said else {"risk": said["risk"]}


def find_client() -> httpx.AsyncClient:
    """Return the client of the running event loop; how long a call may take is up to whoever asks."""
    loop = asyncio.get_running_loop()
    client = clients.get(loop)
    if client is None or client.is_closed:
        for each in [each for each in clients if each.is_closed()]:
            del clients[each]
        client = clients[loop] = httpx.AsyncClient(transport=Pools(), timeout=None)
    return client
