"""Who is let in: every route of ours inside a real Airflow application, as nobody, a forger, a viewer and a user."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi.routing import APIRoute
from sqlalchemy import select
from tests.unit.past import build
from tests.unit.shop import Sale, opened

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.web import limits
from seamline.web.app import app
from seamline.web.glance import changes

ROUTES = sorted(
    (method, route.path)
    for route in app.routes
    if isinstance(route, APIRoute)
    for method in route.methods or ()
)
VALUES = {
    "pipeline": "shop",
    "view": "sales",
    "dag_id": "shop__batch",
    "run_id": "manual__1",
    "page": "index.html",
    "name": "page.css",
}
BODIES = {
    "/api/v1/streams/{pipeline}": {"action": "start", "reason": "a test"},
    "/api/v1/failovers/{pipeline}": {"action": "cancel-failover"},
    "/api/v1/runs/{pipeline}": {"dirty": True},
    "/api/v1/backfills/{pipeline}": {"from": "2013-01-01T00:00:00Z", "to": "2013-01-02T00:00:00Z"},
    "/api/v1/imports/{pipeline}": {"from": "/lake/sales", "dry_run": True},
    "/api/v1/mcp": {},
}
ASKS = {"/api/v1/mcp"}
"""What is POSTed there changes nothing: tests/dags/mcp asks it."""
Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def airflow(database: None) -> Iterator[httpx.ASGITransport]:
    """Airflow's own application, with our plugin in it, over its own database."""
    with create_session() as session:
        session.add(DagBundleModel(name="dags-folder"))
        session.flush()
        for layer in ("batch", "stream"):
            session.add(DagModel(dag_id=f"shop__{layer}", bundle_name="dags-folder", is_stale=False))
    purge_cached_app()
    yield httpx.ASGITransport(create_app(apps="core"), raise_app_exceptions=False)
    purge_cached_app()


@pytest.fixture
def ask(airflow: httpx.ASGITransport, tmp_path, monkeypatch) -> Ask:
    """Ask as somebody over a shop with two days."""
    made = opened(tmp_path, monkeypatch)
    # Streams of changes end at once.
    monkeypatch.setattr(changes, "LASTS", 0.0)
    made.epoch([Sale(1, "a", 10), Sale(70, None, 3), Sale(1500, "a", 1)])
    build(made, "g", cut=0)

    def asked(method: str, path: str, role: str | None, **more) -> httpx.Response:
        headers = dict(more.pop("headers", {}))
        if role == "forged":
            headers["Authorization"] = "Bearer forged"
        elif role:
            user = SimpleAuthManagerUser(username=f"the {role}", role=role)
            headers["Authorization"] = f"Bearer {get_auth_manager().generate_jwt(user)}"

        async def answer() -> httpx.Response:
            async with httpx.AsyncClient(transport=airflow, base_url="http://airflow") as client:
                return await client.request(method, f"/seamline{path}", headers=headers, **more)

        return asyncio.run(answer())

    return asked


def spelled(path: str) -> str:
    """Put values into a route's path."""
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda each: VALUES[each[1]], path)


def body_of(method: str, path: str) -> dict:
    """Return what a route that writes is sent."""
    return {"json": BODIES[path]} if method == "POST" else {}


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nobody_is_let_in(ask: Ask, method: str, path: str) -> None:
    """Neither without a login nor with a token that Airflow did not make."""
    assert ask(method, spelled(path), None, **body_of(method, path)).status_code == 401
    assert ask(method, spelled(path), "forged", **body_of(method, path)).status_code == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_viewer_reads_and_changes_nothing(ask: Ask, method: str, path: str) -> None:
    """Every page and every answer but a driver's output, and no route that is not a GET."""
    answer = ask(method, spelled(path), "viewer", **body_of(method, path))
    if path in ASKS:
        assert answer.status_code not in (401, 403), answer.text
    elif method == "POST":
        assert answer.status_code == 403, answer.text
    else:
        # A driver's output may name files and addresses. A key and a window are missing for an explanation, a
        # question for SQL, and no run has a report here.
        missing = (
            (path.endswith("/log") and 403)
            or (("explain" in path or "/origins/" in path) and 400)
            or ("/sql" in path and 422)
            or ("reports" in path and 404)
            or 200
        )
        assert answer.status_code in (missing, 200, 303), answer.text


def test_a_user_steers_a_stream_and_it_is_logged(ask: Ask, tmp_path) -> None:
    """Who asked stands in the control table and in Airflow's own log."""
    answer = ask("POST", "/api/v1/streams/shop", "user", json={"action": "start", "reason": "because"})
    assert answer.status_code == 202, answer.text
    assert answer.json() == {"done": ["shop: the stream should be running."]}
    found = ControlTable.ensure(Layout(tmp_path / "w", "shop")).read()
    assert (found.desired, found.actor, found.reason) == (Desired.RUNNING, "airflow:the user", "because")
    with create_session() as session:
        [row] = session.scalars(select(Log).where(Log.event == "steer_stream", Log.owner == "the user")).all()
    assert "because" in row.extra and "start" in row.extra
    # Shown to who may see that DAG, whatever an address says.
    assert row.dag_id == "shop__stream"


def test_a_caller_cannot_have_another_dag_s_log(ask: Ask) -> None:
    """The name is the route's."""
    answer = ask("POST", "/api/v1/streams/shop?dag_id=other__batch", "op", json={"action": "start"})
    assert answer.status_code == 202, answer.text
    with create_session() as session:
        rows = session.scalars(select(Log).where(Log.event == "steer_stream", Log.owner == "the op")).all()
    assert {row.dag_id for row in rows} == {"shop__stream"}


def test_a_form_of_another_site_changes_nothing(ask: Ask) -> None:
    """What a browser sends without asking first is no JSON."""
    for sent in (
        {"data": {"action": "stop"}},
        {"content": b'{"action": "stop"}', "headers": {"Content-Type": "text/plain"}},
    ):
        answer = ask("POST", "/api/v1/streams/shop", "user", **sent)
        assert answer.status_code == 415, answer.text


def test_too_many_requests_are_told_when_to_come_again(ask: Ask, monkeypatch) -> None:
    """By user: another one is let in."""
    monkeypatch.setenv("SEAMLINE_HTTP_RATE", "3/minute")
    limits.limiter.storage.reset()
    try:
        codes = [ask("GET", "/api/v1/views", "op").status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]
        refused = ask("GET", "/api/v1/views", "op")
        assert int(refused.headers["Retry-After"]) > 0 and "SEAMLINE_HTTP_RATE" in refused.json()["hint"]
        assert ask("GET", "/api/v1/views", "admin").status_code == 200
    finally:
        limits.limiter.storage.reset()
