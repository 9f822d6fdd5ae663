"""Calls of Airflow's REST API: a login, JSON, and errors that say what to do."""

from __future__ import annotations

import json
import os
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import httpx

from seamline.model.errors import AirflowFailed, AirflowUnavailable, BackfillRefused, NotFound

TIMEOUT = 30.0
"""Seconds that an answer may take."""
PAUSES = (1.0, 2.0, 4.0)
"""Seconds before a request is made again whose writes Airflow's database has refused."""


@dataclass(frozen=True)
class Reply:
    """What a server has answered."""

    status: int
    """The HTTP status code."""
    content: bytes
    """The body."""

    @property
    def unwritten(self) -> bool:
        """Whether Airflow's database has refused a write, as SQLite does while another writes."""
        return self.status == 500 and '"Database error"' in self.detail

    @property
    def detail(self) -> str:
        """Airflow's own message, where it has one."""
        text = self.content.decode(errors="replace")
        try:
            detail = json.loads(text)["detail"]
        except (ValueError, KeyError, TypeError):
            return text[:500] or f"status {self.status}"
        return detail if isinstance(detail, str) else json.dumps(detail)[:500]


@dataclass
class AirflowClient:
    """One Airflow and a login."""

    url: str
    """Airflow's address, such as ``http://host:8080``."""
    user: str
    """The login."""
    password: str = field(repr=False)
    """The login's password."""
    token: str = field(default="", repr=False)
    """Fetched when first needed, and again once it has expired; empty before."""
    timeout: float = field(default_factory=lambda: TIMEOUT)
    """Seconds that an answer may take."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Self:
        """Read SEAMLINE_AIRFLOW_URL, _USER and _PASSWORD; AirflowUnavailable if one is missing."""
        names = ("SEAMLINE_AIRFLOW_URL", "SEAMLINE_AIRFLOW_USER", "SEAMLINE_AIRFLOW_PASSWORD")
        missing = [name for name in names if not env.get(name)]
        if missing:
            raise AirflowUnavailable(
                f"The access to Airflow is not configured; not set: {', '.join(missing)}.",
                hint="set them; beside a running demo, run . .seamline/demo/env",
            )
        url, user, password = (env[name] for name in names)
        return cls(url, user, password)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        login: bool = True,
        whole: bool = True,
        refused: type[AirflowUnavailable | BackfillRefused] = AirflowUnavailable,
    ) -> dict[str, Any]:
        """Call ``/api/v2`` and return the answer's JSON.

        Where Airflow's database refuses a write, what is done ``whole`` or not at all is asked for again for a while.
        Raises NotFound for 404, AirflowFailed for what begins with 5, and ``refused`` for any other refusal.
        """
        if login and not self.token:
            self.log_in()
        reply = self.ask(method, path, body, login=login)
        if reply.status == 401 and login:
            self.log_in()
            reply = self.ask(method, path, body, login=True)
        for pause in PAUSES:
            if not (whole and reply.unwritten):
                break
            time.sleep(pause)
            reply = self.ask(method, path, body, login=login)
        if reply.status == 404:
            raise NotFound(
                f"Airflow: {reply.detail}", hint="check the name; a new DAG appears within a minute."
            )
        if reply.status >= 400:
            kind, did = (AirflowFailed, "failed at") if reply.status >= 500 else (refused, "refused")
            raise kind(
                f"Airflow {did} {method} {path.partition('?')[0]} ({reply.status}): {reply.detail}",
                hint=f"see its pages at {self.url}.",
            )
        return self.read(reply)

    def ask(self, method: str, path: str, body: Mapping[str, object] | None, *, login: bool) -> Reply:
        """Send one request to ``/api/v2``, with the token where a ``login`` is needed."""
        headers = {"Authorization": f"Bearer {self.token}"} if login else {}
        return self.send(method, f"/api/v2{path}", body, headers)

    def log_in(self) -> None:
        """Fetch a token."""
        reply = self.send("POST", "/auth/token", {"username": self.user, "password": self.password}, {})
        if reply.status >= 500:
            raise AirflowFailed(
                f"Airflow at {self.url} failed at a login ({reply.status}): {reply.detail}",
                hint="see the log of its API server.",
            )
        if reply.status >= 400:
            raise AirflowUnavailable(
                f"Airflow at {self.url} refuses the login of {self.user!r} ({reply.status}).",
                hint="check SEAMLINE_AIRFLOW_USER and SEAMLINE_AIRFLOW_PASSWORD.",
            )
        self.token = str(self.read(reply).get("access_token", ""))

    def read(self, reply: Reply) -> dict[str, Any]:
        """Return the JSON of an answer; AirflowUnavailable where it is none, as of a proxy's page."""
        try:
            found: dict[str, Any] = json.loads(reply.content or b"{}")
        except ValueError as error:
            raise self.unavailable(f"what answers there sends no JSON ({error})") from None
        return found

    def send(
        self, method: str, path: str, body: Mapping[str, object] | None, headers: Mapping[str, str]
    ) -> Reply:
        """Send one request; AirflowUnavailable when nobody answers."""
        try:
            answer = httpx.request(
                method,
                self.url.rstrip("/") + path,
                json=body,
                headers=dict(headers),
                timeout=self.timeout,
                follow_redirects=True,
                verify=load_trusted_certificates(),
            )
        # Settings of proxies and certificates fail as whatever reads them does.
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
            raise self.unavailable(error) from None
        return Reply(answer.status_code, answer.content)

    def unavailable(self, error: Exception | str) -> AirflowUnavailable:
        """Return the error of a server that does not answer as Airflow."""
        return AirflowUnavailable(
            f"Airflow at {self.url} does not answer: {str(error).rstrip('.')}.",
            hint="check that it is running, SEAMLINE_AIRFLOW_URL, and the environment's proxies and certificates.",
        )


@cache
def load_trusted_certificates() -> ssl.SSLContext:
    """Load what httpx trusts, and what this machine does: a company's own authority is known to it alone."""
    context = httpx.create_ssl_context()
    context.load_default_certs()
    return context


def quote_path_segment(name: str) -> str:
    """Quote a name for a path; run ids contain colons and plus signs."""
    return urllib.parse.quote(name, safe="")
