"""Airflow's own API, asked from inside of its server with the caller's own login.

So Airflow checks the caller's permissions, refuses what it would refuse, and logs who did it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Any, Self

import httpx
from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
from anyio import fail_after, from_thread
from fastapi import HTTPException, Request

from seamline.model.errors import AirflowUnavailable, TooSlow
from seamline.orchestration.airflow_api import AirflowApi
from seamline.orchestration.airflow_client import Reply

AIRFLOW = "seamline.airflow"
"""Where the plugin leaves Airflow's application in a request's scope."""
PATIENCE = 30.0
few = BoundedSemaphore(4)


@dataclass
class InsideAirflow(AirflowApi):
    """Airflow's application; only from a route that is no coroutine: calls wait for the server's own loop."""

    app: Any = field(default=None, repr=False)
    """Airflow's FastAPI application."""

    @classmethod
    def of(cls, request: Request) -> Self:
        """Take the caller's token, of the header or the session's cookie."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        token = token if kind.lower() == "bearer" else request.cookies.get(COOKIE_NAME_JWT_TOKEN, "")
        app = request.scope.get(AIRFLOW)
        if app is None:
            raise AirflowUnavailable("These pages run outside of Airflow.", hint="open them in Airflow.")
        return cls("http://airflow", "", "", token=token, app=app)

    def log_in(self) -> None:
        """Leave logging in to the caller."""
        raise HTTPException(401, "Not authenticated")

    def send(
        self, method: str, path: str, body: Mapping[str, object] | None, headers: Mapping[str, str]
    ) -> Reply:
        """Ask the application; what it forbids is forbidden here. TooSlow where others ask it already."""
        # Its routes need threads of the pool that ours hold meanwhile: all of ours waiting would be for ever.
        if not few.acquire(blocking=False):
            raise TooSlow("Airflow is busy with other requests.", hint="retry later.")
        try:
            reply = from_thread.run(self.asked, method, path, body, dict(headers))
        except TimeoutError:
            raise TooSlow(f"Airflow did not answer within {PATIENCE:g} s.", hint="retry later.") from None
        finally:
            few.release()
        if reply.status in (401, 403):
            raise HTTPException(reply.status, "Airflow does not allow you to do this.")
        return reply

    async def asked(
        self, method: str, path: str, body: Mapping[str, object] | None, headers: dict[str, str]
    ) -> Reply:
        """Send a request to the application."""
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=self.url) as client:
            with fail_after(PATIENCE):
                answer = await client.request(method, path, json=body, headers=headers)
            return Reply(answer.status_code, answer.content)
