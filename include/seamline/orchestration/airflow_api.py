"""Airflow by its REST API: backfills, triggers and what became of them."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from seamline.model.errors import AirflowUnavailable, BackfillRefused, NotFound
from seamline.model.intervals import Grid, Interval, stamp
from seamline.orchestration.pools import POOLS

TIMEOUT = 30.0
ENDED = ("success", "failed")


@dataclass(frozen=True)
class Progress:
    """How far a backfill is: runs by state."""

    backfill: int
    states: Mapping[str, int]
    done: bool

    @property
    def total(self) -> int:
        """All runs of the backfill."""
        return sum(self.states.values())

    @property
    def failed(self) -> int:
        """Runs that ended badly."""
        return self.states.get("failed", 0)

    def line(self) -> str:
        """Say it in one line."""
        ended = sum(self.states.get(state, 0) for state in ENDED)
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        return f"backfill {self.backfill}: {ended} of {self.total} runs ended ({states})"


@dataclass(frozen=True)
class BackfillPlan:
    """What a backfill will do; ``until`` is Airflow's inclusive end, the start of the last interval."""

    dag_id: str
    intervals: tuple[Interval, ...]
    existing: int
    paused: bool

    @property
    def until(self) -> datetime:
        """The logical date of the last run."""
        return self.intervals[-1].start

    @property
    def reprocess(self) -> str:
        """Airflow's reprocess behaviour: runs that are there must be cleared to run again."""
        return "completed" if self.existing else "none"

    def lines(self) -> Iterable[str]:
        """Say it, intervals first."""
        for interval in self.intervals:
            yield f"  {interval}"
        first, last = self.intervals[0].start, self.intervals[-1].end
        yield f"{len(self.intervals)} runs of {self.dag_id}: [{stamp(first)}, {stamp(last)}), the end exclusive"
        why = (
            f"{self.existing} of them ran before, and Airflow runs those again only so"
            if self.existing
            else "none of them ran before"
        )
        yield f"reprocess behavior {self.reprocess}: {why}"
        if self.paused:
            yield f"{self.dag_id} is paused: its runs wait until `airflow dags unpause {self.dag_id}`"


@dataclass
class AirflowApi:
    """One Airflow and a login; a token is fetched when first needed and again when it has run out."""

    url: str
    user: str
    password: str = field(repr=False)
    token: str = field(default="", repr=False)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> AirflowApi:
        """Read SEAMLINE_AIRFLOW_URL, _USER and _PASSWORD; AirflowUnavailable where one is missing."""
        names = ("SEAMLINE_AIRFLOW_URL", "SEAMLINE_AIRFLOW_USER", "SEAMLINE_AIRFLOW_PASSWORD")
        missing = [name for name in names if not env.get(name)]
        if missing:
            raise AirflowUnavailable(
                f"Where Airflow is, is not set: {', '.join(missing)}.",
                hint="in a demo's clone: . .seamline/env",
            )
        return cls(*(env[name] for name in names))

    def health(self) -> dict[str, str]:
        """Give each component's status."""
        found = self.call("GET", "/monitor/health", login=False)
        return {name: str((about or {}).get("status")) for name, about in found.items()}

    def import_errors(self) -> list[str]:
        """List what keeps DAG files from loading."""
        return [str(each["stack_trace"]) for each in self.call("GET", "/importErrors")["import_errors"]]

    def dag(self, dag_id: str) -> dict[str, Any]:
        """Give a DAG's row; NotFound until Airflow has parsed it."""
        return self.call("GET", f"/dags/{quote(dag_id)}")

    def unpause(self, dag_id: str) -> None:
        """Let a DAG's runs start."""
        self.call("PATCH", f"/dags/{quote(dag_id)}?update_mask=is_paused", {"is_paused": False})

    def trigger(self, dag_id: str, conf: Mapping[str, object] | None = None) -> str:
        """Start a run with the form's values, and give its id."""
        body = {"logical_date": None, "conf": dict(conf or {})}
        return str(self.call("POST", f"/dags/{quote(dag_id)}/dagRuns", body)["dag_run_id"])

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Give a run's state: queued, running, success or failed."""
        return str(self.call("GET", f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id)}")["state"])

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str]:
        """Give the state of each task of a run; empty text before it is scheduled."""
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id)}/taskInstances"
        return {each["task_id"]: each["state"] or "" for each in self.call("GET", path)["task_instances"]}

    def await_run(self, dag_id: str, run_id: str, *, timeout: float) -> str:
        """Wait for a run's end and give its state; AirflowUnavailable when time is up."""
        state = ""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            state = self.run_state(dag_id, run_id)
            if state in ENDED:
                return state
            time.sleep(1.0)
        raise AirflowUnavailable(
            f"Run {run_id} of {dag_id} is {state} after {timeout:g} s.", hint="see its page."
        )

    def ensure_pools(self) -> None:
        """Make the pools that our tasks need; those that are there keep their slots."""
        for name, (slots, about) in POOLS.items():
            try:
                self.call("GET", f"/pools/{quote(name)}")
            except NotFound:
                self.call("POST", "/pools", {"name": name, "slots": slots, "description": about})

    def plan_backfill(self, pipeline: str, span: Interval, grid: Grid) -> BackfillPlan:
        """Look what a backfill of a span would do; BadRange for a span that cuts an interval."""
        dag_id = f"{pipeline}__batch"
        intervals = tuple(grid.within(span))
        paused = bool(self.dag(dag_id)["is_paused"])
        query = {
            "logical_date_gte": stamp(span.start),
            "logical_date_lt": stamp(span.end),
            "limit": 1,
        }
        found = self.call("GET", f"/dags/{quote(dag_id)}/dagRuns?{urllib.parse.urlencode(query)}")
        return BackfillPlan(dag_id, intervals, int(found["total_entries"]), paused)

    def dry_backfill(self, plan: BackfillPlan) -> list[datetime]:
        """Ask Airflow which runs the backfill would have, by their logical date."""
        found = self.call("POST", "/backfills/dry_run", body_of(plan, ""))
        return [datetime.fromisoformat(each["logical_date"]).astimezone(UTC) for each in found["backfills"]]

    def start_backfill(self, plan: BackfillPlan, *, reason: str) -> int:
        """Start it and give its id; BackfillRefused with Airflow's reason."""
        if active := self.active_backfills(plan.dag_id):
            raise BackfillRefused(
                f"Backfill {active[0]} of {plan.dag_id} is still active; Airflow runs one per DAG.",
                hint="wait for it, or cancel it on the DAG's Backfills page.",
            )
        return int(self.call("POST", "/backfills", body_of(plan, reason), refused=BackfillRefused)["id"])

    def active_backfills(self, dag_id: str) -> list[int]:
        """List a DAG's backfills that are not completed."""
        found = self.call("GET", f"/backfills?{urllib.parse.urlencode({'dag_id': dag_id})}")["backfills"]
        return [int(each["id"]) for each in found if each["completed_at"] is None]

    def progress(self, plan: BackfillPlan, backfill: int) -> Progress:
        """Count the span's runs by state."""
        query = {
            "logical_date_gte": stamp(plan.intervals[0].start),
            "logical_date_lte": stamp(plan.until),
            "limit": 1000,
        }
        runs = self.call("GET", f"/dags/{quote(plan.dag_id)}/dagRuns?{urllib.parse.urlencode(query)}")[
            "dag_runs"
        ]
        states: dict[str, int] = {}
        for run in runs:
            states[run["state"]] = states.get(run["state"], 0) + 1
        done = self.call("GET", f"/backfills/{backfill}")["completed_at"] is not None
        return Progress(backfill, states, done or (bool(runs) and set(states) <= set(ENDED)))

    def backfill(
        self,
        pipeline: str,
        span: Interval,
        grid: Grid,
        *,
        reason: str = "",
        wait: bool = True,
        say: Callable[[str], None] = print,
        on_progress: Callable[[Progress], None] = lambda _: None,
        pace: float = 2.0,
    ) -> Progress:
        """Rebuild exactly the intervals of ``span`` through Airflow: say them, start, and follow to the end.

        A paused DAG's backfill is started and not waited for.
        """
        plan = self.plan_backfill(pipeline, span, grid)
        for line in plan.lines():
            say(line)
        backfill = self.start_backfill(plan, reason=reason)
        told = state = self.progress(plan, backfill)
        on_progress(state)
        while wait and not plan.paused and not state.done:
            time.sleep(pace)
            state = self.progress(plan, backfill)
            if state.states != told.states:
                on_progress(state)
                told = state
        return state

    def await_backfill(self, dag_id: str, *, timeout: float) -> None:
        """Wait until a DAG has no active backfill; AirflowUnavailable when time is up."""
        until = time.monotonic() + timeout
        while active := self.active_backfills(dag_id):
            if time.monotonic() > until:
                raise AirflowUnavailable(
                    f"Backfill {active[0]} of {dag_id} is active after {timeout:g} s.", hint="see its page."
                )
            time.sleep(1.0)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        login: bool = True,
        refused: type[AirflowUnavailable | BackfillRefused] = AirflowUnavailable,
    ) -> dict[str, Any]:
        """Call ``/api/v2`` and give the answer's JSON; NotFound for 404, ``refused`` for any other refusal."""
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
            raise refused(
                f"Airflow refused {method} {path.partition('?')[0]} ({error.code}): {detail}",
                hint=f"its pages are at {self.url}.",
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
                hint="is it running? see SEAMLINE_AIRFLOW_URL.",
            ) from None


def body_of(plan: BackfillPlan, reason: str) -> dict[str, object]:
    """Write the request of a backfill."""
    return {
        "dag_id": plan.dag_id,
        "from_date": stamp(plan.intervals[0].start),
        "to_date": stamp(plan.until),
        "reprocess_behavior": plan.reprocess,
        "max_active_runs": 1,
        "dag_run_conf": {"reason": reason} if reason else {},
    }


def detail_of(error: urllib.error.HTTPError) -> str:
    """Give Airflow's own words."""
    text = error.read().decode(errors="replace")
    try:
        detail = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError):
        return text[:500] or str(error.reason)
    return detail if isinstance(detail, str) else json.dumps(detail)[:500]


def quote(name: str) -> str:
    """Quote a name for a path; run ids hold colons and plus signs."""
    return urllib.parse.quote(name, safe="")
