"""Tools for agents by HTTP, inside a real Airflow: who is let in, over which pipelines, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from tests.dags.server import Everything, shop_of
from tests.unit.shop import Shop

from seamline.web import access, limits

URL = "http://airflow/seamline/api/v1/mcp"
ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
}
ACCEPTED = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def airflow(database: None) -> Iterator[Any]:
    """Airflow's own application, with our plugin in it."""
    purge_cached_app()
    yield create_app(apps="core")
    purge_cached_app()


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    """Two days of sales, the first of them built."""
    return shop_of(tmp_path, monkeypatch)


def token_of(role: str) -> str:
    """Return what Airflow gives to who logs in."""
    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=f"the {role}", role=role))


def open_http(app: Any, headers: dict[str, str]) -> httpx2.AsyncClient:
    """Open a client whose requests the application answers."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), headers=headers)


def post(app: Any, headers: dict[str, str], **more: Any) -> httpx2.Response:
    """Send one request, as no client of the SDK would."""

    async def sent() -> httpx2.Response:
        async with open_http(app, headers) as http:
            return await http.post(URL, **more)

    return asyncio.run(sent())


def call(app: Any, role: str, name: str, arguments: dict[str, Any], mode: str = "auto") -> CallToolResult:
    """Call a tool by the SDK's client, logged in."""

    async def called() -> CallToolResult:
        async with (
            open_http(app, {"Authorization": f"Bearer {token_of(role)}"}) as http,
            Client(streamable_http_client(URL, http_client=http), mode=mode) as client,
        ):
            return await client.call_tool(name, arguments)

    return asyncio.run(called())


def parse(result: CallToolResult) -> dict[str, Any]:
    """Read the one text of a result."""
    found: dict[str, Any] = json.loads(result.content[0].text)
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_asks_by_http(airflow: Any, shop: Shop, mode: str) -> None:
    """Of the newest protocol, and of the one with a handshake: no session is kept between requests."""
    result = call(airflow, "viewer", "query", {"sql": "SELECT sum(total) AS total FROM shop.sales"}, mode)
    found = parse(result)
    assert not result.is_error and found["rows"] == [{"total": 19}]
    assert found["views"][0]["view"] == "shop.sales" and found["views"][0]["summary"]


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("forged", 403)])
def test_nobody_is_let_in(airflow: Any, shop: Shop, token: str | None, status: int) -> None:
    """Neither without a login nor with a token that Airflow did not make; the SDK's client fails, too."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    assert post(airflow, {**headers, **ACCEPTED}, json=ASKED).status_code == status

    async def opened() -> None:
        async with (
            open_http(airflow, headers) as http,
            Client(streamable_http_client(URL, http_client=http)),
        ):
            raise AssertionError("It was let in.")

    with pytest.raises(ExceptionGroup) as failed:
        asyncio.run(opened())
    assert failed.group_contains(MCPError)


def test_a_user_sees_the_pipelines_whose_runs_they_may_read(
    airflow: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow is asked for each of them, again with each request."""
    assert [each["pipeline"] for each in parse(call(airflow, "viewer", "list_views", {}))["pipelines"]] == [
        "shop"
    ]
    monkeypatch.setattr(access, "get_auth_manager", Everything)
    assert parse(call(airflow, "viewer", "list_views", {})) == {"pipelines": []}
    for name, arguments in (
        ("query", {"sql": "SELECT * FROM shop.sales"}),
        ("completeness", {"pipeline": "shop"}),
        ("explain", {"view": "shop.sales", "key": {"customer": "a"}}),
    ):
        result = call(airflow, "viewer", name, arguments)
        assert result.is_error and parse(result)["message"] == "There is no pipeline 'shop'."


def test_what_is_no_request_of_the_protocol_is_refused(airflow: Any, shop: Shop) -> None:
    """What a form of another site could send, what is too large, other methods, and more than a user's rate."""
    headers = {"Authorization": f"Bearer {token_of('viewer')}", **ACCEPTED}
    assert post(airflow, headers, json=ASKED).json()["result"]["serverInfo"]["name"] == "seamline"
    assert post(airflow, {**headers, "Content-Type": "text/plain"}, content=b"{}").status_code == 415
    large = {**ASKED, "id": "x" * 70_000}
    assert post(airflow, headers, json=large).status_code == 413
    assert post(airflow, headers, json={"a": 1}).status_code == 400

    async def got() -> int:
        async with open_http(airflow, headers) as http:
            return (await http.get(URL)).status_code

    assert asyncio.run(got()) == 405


def test_too_many_requests_are_told_when_to_come_again(
    airflow: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate is that of the HTTP API."""
    headers = {"Authorization": f"Bearer {token_of('op')}", **ACCEPTED}
    monkeypatch.setenv("SEAMLINE_HTTP_RATE", "2/minute")
    limits.limiter.storage.reset()
    try:
        assert [post(airflow, headers, json=ASKED).status_code for _ in range(3)] == [200, 200, 429]
    finally:
        limits.limiter.storage.reset()


def test_users_who_ask_at_once_have_their_own_answers(airflow: Any, shop: Shop, monkeypatch) -> None:
    """What one may read is not what another may, however their requests come in between each other."""

    class Ones:
        def is_authorized_dag(self, *, method, access_entity, details, user) -> bool:
            return user.get_name() == "the admin"

    monkeypatch.setattr(access, "get_auth_manager", Ones)
    tokens = [token_of(role) for role in ("admin", "viewer") * 4]

    async def one(token: str) -> list[str]:
        async with (
            open_http(airflow, {"Authorization": f"Bearer {token}"}) as http,
            Client(streamable_http_client(URL, http_client=http)) as client,
        ):
            found = parse(await client.call_tool("list_views", {}))
            return [each["pipeline"] for each in found["pipelines"]]

    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*map(one, tokens))

    assert asyncio.run(all_of_them()) == [["shop"], []] * 4
