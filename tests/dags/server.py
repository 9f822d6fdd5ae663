"""The application over a shop's tables, asked as a server would ask it; who is let in is tested in test_access."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from airflow.utils.db import initdb
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.lake.store.locations import Location
from seamline.web import access, limits, reports
from seamline.web import app as web

EVIL = "o'\\Neill `; DROP \"x\" -- ' OR '1'='1"


class Client:
    """Asks the application as a server would."""

    def get(self, path: str, **more) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, **more) -> httpx.Response:
        return self.ask("POST", path, **more)

    def ask(self, method: str, path: str, **more) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(web.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
                return await client.request(method, path, **more)

        return asyncio.run(asked())


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's own tables."""
    initdb()


@pytest.fixture
def shop(tmp_path, warehouse: Location, monkeypatch) -> Shop:
    """Two days of sales, the first of them built."""
    return shop_of(tmp_path, monkeypatch, warehouse)


def shop_of(folder: Path, monkeypatch: pytest.MonkeyPatch, warehouse: Location | None = None) -> Shop:
    """Make it."""
    made = opened(folder, monkeypatch, warehouse)
    made.epoch([Sale(1, "a", 10), Sale(2, EVIL, 5), Sale(70, None, 3), Sale(1500, "a", 1)])
    build(made, "g", cut=0)
    return made


class Everything:
    """An auth manager that lets a user do what a role may."""

    def __init__(self, *methods: str) -> None:
        self.methods = methods

    def is_authorized_dag(self, *, method, access_entity, details, user) -> bool:
        return method in self.methods


@pytest.fixture
def client(shop, monkeypatch):
    """A user whom Airflow lets do everything."""
    for asked in (
        access.may_read,
        access.may_build,
        access.may_steer,
        access.may_import,
        reports.may_see.dependency,
        limits.enforce_rate_limit,
    ):
        monkeypatch.setitem(web.app.dependency_overrides, asked, lambda: None)
    user = SimpleAuthManagerUser(username="ada", role="admin")
    monkeypatch.setitem(web.app.dependency_overrides, get_user, lambda: user)
    monkeypatch.setattr(access, "get_auth_manager", lambda: Everything("GET", "POST"))
    return Client()
