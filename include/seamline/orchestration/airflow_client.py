"""Calls of Airflow's REST API: a login, JSON, and errors that say what to do."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from seamline.model.errors import AirflowFailed, AirflowUnavailable, BackfillRefused, NotFound

TIMEOUT = 30.0


@dataclass
class AirflowClient:
    """One Airflow and a login."""

    url: str
    """Airflow's address, as ``http://host:8080``."""
    user: str
    """The login."""
    password: str = field(repr=False)
    """Of the login."""
    token: str = field(default="", repr=False)
    """Fetched when first needed, and again once it has expired; empty before."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Self:
        """Read SEAMLINE_AIRFLOW_URL, _USER and _PASSWORD; AirflowUnavailable if one is missing."""
        names = ("SEAMLINE_AIRFLOW_URL", "SEAMLINE_AIRFLOW_USER", "SEAMLINE_AIRFLOW_PASSWORD")
        missing = [name for name in names if not env.get(name)]
        if missing:
            raise AirflowUnavailable(
                f"The access to Airflow is not configured; not set: {', '.join(missing)}.",
                hint="set them; in a clone with the demo, run . .seamline/env",
            )
        return cls(*(env[name] for name in names))

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        login: bool = True,
        refused: type[AirflowUnavailable | BackfillRefused] = AirflowUnavailable,
    ) -> dict[str, Any]:
        """Call ``/api/v2`` and return the answer's JSON.

        Raises NotFound for 404, AirflowFailed for what begins with 5, and ``refused`` for any other refusal.
        """
        if login and not self.token:
            self.log_in()
        headers = {"Authorization": f"Bearer {self.token}"} if login else {}
        try:
            return self.send(method, f"/api/v2{path}", body, headers)
        except urllib.error.HTTPError as error:
            if error.code == 401 and login:
                self.log_in()
                headers = {"Authorization": f"Bearer {self.token}"}
                return self.send(method, f"/api/v2{path}", body, headers)
            detail = detail_of(error)
            if error.code == 404:
                raise NotFound(f"Airflow: {detail}", hint="a new DAG appears within a minute.") from None
            kind = AirflowFailed if error.code >= 500 else refused
            raise kind(
                f"Airflow refused {method} {path.partition('?')[0]} ({error.code}): {detail}",
                hint=f"see its pages at {self.url}.",
            ) from None

    def log_in(self) -> None:
        """Fetch a token."""
        try:
            body = {"username": self.user, "password": self.password}
            self.token = str(self.send("POST", "/auth/token", body, {})["access_token"])
        except urllib.error.HTTPError as error:
            raise AirflowUnavailable(
                f"Airflow at {self.url} refuses the login of {self.user!r} ({error.code}).",
                hint="check SEAMLINE_AIRFLOW_USER and SEAMLINE_AIRFLOW_PASSWORD.",
            ) from None

    def send(
        self, method: str, path: str, body: Mapping[str, object] | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """Send one request; AirflowUnavailable when nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url.rstrip("/") + path,
            data=data,
            headers={"Content-Type": "application/json", **headers},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                found: dict[str, Any] = json.loads(answer.read() or b"{}")
                return found
        except urllib.error.HTTPError:
            raise
        except (OSError, ValueError) as error:
            raise AirflowUnavailable(
                f"Airflow at {self.url} does not answer: {error}.",
                hint="check that it is running, and SEAMLINE_AIRFLOW_URL.",
            ) from None


def detail_of(error: urllib.error.HTTPError) -> str:
    """Return Airflow's own message."""
    text = error.read().decode(errors="replace")
    try:
        detail = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError):
        return text[:500] or str(error.reason)
    return detail if isinstance(detail, str) else json.dumps(detail)[:500]


def quote_path_segment(name: str) -> str:
    """Quote a name for a path; run ids contain colons and plus signs."""
    return urllib.parse.quote(name, safe="")
