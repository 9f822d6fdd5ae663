"""Airflow by its REST API: backfills, triggers and what became of them."""

from __future__ import annotations

import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from seamline.model.errors import AirflowFailed, AirflowUnavailable, BackfillRefused, NotFound
from seamline.model.time.intervals import Grid, Interval, format_utc_instant
from seamline.orchestration.airflow_client import AirflowClient, quote_path_segment
from seamline.orchestration.backfills import ENDED, BackfillPlan, Progress, build_backfill_request
from seamline.orchestration.pools import POOLS

AGAIN = (0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts at a backfill that Airflow fails at."""


class AirflowApi(AirflowClient):
    """What is asked of one Airflow."""

    def health(self) -> dict[str, str]:
        """Return each component's status."""
        found = self.call("GET", "/monitor/health", login=False)
        return {name: str((about or {}).get("status")) for name, about in found.items()}

    def import_errors(self) -> list[str]:
        """List what keeps DAG files from loading."""
        return [str(each["stack_trace"]) for each in self.call("GET", "/importErrors")["import_errors"]]

    def dag(self, dag_id: str) -> dict[str, Any]:
        """Return a DAG's row; NotFound until Airflow has parsed it."""
        return self.call("GET", f"/dags/{quote_path_segment(dag_id)}")

    def unpause(self, dag_id: str) -> None:
        """Let a DAG's runs start."""
        self.call("PATCH", f"/dags/{quote_path_segment(dag_id)}?update_mask=is_paused", {"is_paused": False})

    def trigger(self, dag_id: str, conf: Mapping[str, object] | None = None) -> str:
        """Start a run with the form's values, and return its id."""
        body = {"logical_date": None, "conf": dict(conf or {})}
        return str(self.call("POST", f"/dags/{quote_path_segment(dag_id)}/dagRuns", body)["dag_run_id"])

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Return a run's state: queued, running, success or failed."""
        return str(
            self.call("GET", f"/dags/{quote_path_segment(dag_id)}/dagRuns/{quote_path_segment(run_id)}")[
                "state"
            ]
        )

    def runs(self, dag_id: str, kind: str) -> list[dict[str, Any]]:
        """List a DAG's newest hundred runs of a kind: scheduled, manual, backfill, asset_triggered."""
        found = self.call("GET", f"/dags/{quote_path_segment(dag_id)}/dagRuns?order_by=-run_after&limit=100")
        return [each for each in found["dag_runs"] if each["run_type"] == kind]

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str]:
        """Return the state of each task of a run; empty text before it is scheduled."""
        path = f"/dags/{quote_path_segment(dag_id)}/dagRuns/{quote_path_segment(run_id)}/taskInstances"
        return {each["task_id"]: each["state"] or "" for each in self.call("GET", path)["task_instances"]}

    def await_run(self, dag_id: str, run_id: str, *, timeout: float) -> str:
        """Wait for a run's end and return its state; AirflowUnavailable when time is up."""
        state = ""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            state = self.run_state(dag_id, run_id)
            if state in ENDED:
                return state
            time.sleep(1.0)
        raise AirflowUnavailable(
            f"Run {run_id} of {dag_id} is {state} after {timeout:g} s.", hint="see its page in Airflow."
        )

    def ensure_pools(self) -> None:
        """Make the pools that our tasks need; those that are there keep their slots."""
        for name, (slots, about) in POOLS.items():
            try:
                self.call("GET", f"/pools/{quote_path_segment(name)}")
            except NotFound:
                self.call("POST", "/pools", {"name": name, "slots": slots, "description": about})

    def plan_backfill(self, pipeline: str, span: Interval, grid: Grid) -> BackfillPlan:
        """Look what a backfill of a span would do; BadRange for a span that cuts an interval."""
        dag_id = f"{pipeline}__batch"
        intervals = tuple(grid.within(span))
        paused = bool(self.dag(dag_id)["is_paused"])
        return self._looked(BackfillPlan(dag_id, intervals, 0, paused))

    def _looked(self, plan: BackfillPlan) -> BackfillPlan:
        first, last = plan.intervals[0], plan.intervals[-1]
        query = {
            "logical_date_gte": format_utc_instant(first.start),
            "logical_date_lt": format_utc_instant(last.end),
            "limit": 1,
        }
        found = self.call(
            "GET", f"/dags/{quote_path_segment(plan.dag_id)}/dagRuns?{urllib.parse.urlencode(query)}"
        )
        return replace(plan, existing=int(found["total_entries"]))

    def dry_backfill(self, plan: BackfillPlan) -> list[datetime]:
        """Ask Airflow which runs the backfill would have, by their logical date."""
        found = self.call("POST", "/backfills/dry_run", build_backfill_request(plan, ""))
        return [datetime.fromisoformat(each["logical_date"]).astimezone(UTC) for each in found["backfills"]]

    def start_backfill(self, plan: BackfillPlan, *, reason: str) -> int:
        """Start it and return its id; BackfillRefused with Airflow's reason, AirflowFailed after five attempts.

        A write of others' that overtakes Airflow's transaction makes it fail (on SQLite any write does), and what it
        leaves behind, a backfill with some of its runs or none, is in the way of every other: that is cancelled.
        """
        if active := self.active_backfills(plan.dag_id):
            raise BackfillRefused(
                f"Backfill {active[0]} of {plan.dag_id} is still active; Airflow runs one per DAG.",
                hint="wait for it, or cancel it on the DAG's Backfills page.",
            )
        for pause in AGAIN:
            try:
                return self._begun(plan, reason)
            except AirflowFailed:
                time.sleep(pause)
                self._cancel_half_made(plan, reason)
                plan = self._looked(plan)
        return self._begun(plan, reason)

    def _begun(self, plan: BackfillPlan, reason: str) -> int:
        return int(
            self.call(
                "POST",
                "/backfills",
                build_backfill_request(plan, reason),
                whole=False,
                refused=BackfillRefused,
            )["id"]
        )

    def _cancel_half_made(self, plan: BackfillPlan, reason: str) -> None:
        asked = build_backfill_request(plan, reason)
        for each in self.backfills(plan.dag_id):
            if each["completed_at"] is None and all(each[name] == asked[name] for name in asked):
                self._cancel(int(each["id"]))

    def _cancel(self, backfill: int) -> None:
        for pause in AGAIN:
            try:
                self.call("PUT", f"/backfills/{backfill}/cancel", refused=BackfillRefused)
            except AirflowFailed:
                time.sleep(pause)
            except BackfillRefused:
                return  # It has ended by itself.
            else:
                return

    def backfills(self, dag_id: str, limit: int = 5) -> list[dict[str, Any]]:
        """List a DAG's newest backfills."""
        query = urllib.parse.urlencode({"dag_id": dag_id, "order_by": "-id", "limit": limit})
        return list(self.call("GET", f"/backfills?{query}")["backfills"])

    def active_backfills(self, dag_id: str) -> list[int]:
        """List a DAG's backfills that are not completed."""
        return [int(each["id"]) for each in self.backfills(dag_id) if each["completed_at"] is None]

    def run_states(self, dag_id: str, first: str, last: str) -> dict[str, int]:
        """Count the backfill runs of some logical dates by state, page by page: Airflow bounds a page."""
        given = {"logical_date_gte": first, "logical_date_lte": last, "run_type": "backfill", "limit": 100}
        found: Counter[str] = Counter()
        while True:
            query = urllib.parse.urlencode({**given, "offset": found.total()})
            page = self.call("GET", f"/dags/{quote_path_segment(dag_id)}/dagRuns?{query}")
            found.update(run["state"] for run in page["dag_runs"])
            if not page["dag_runs"] or found.total() >= page["total_entries"]:
                return dict(found)

    def progress(self, plan: BackfillPlan, backfill: int) -> Progress:
        """Count the span's runs by state."""
        states = self.run_states(
            plan.dag_id, format_utc_instant(plan.intervals[0].start), format_utc_instant(plan.until)
        )
        done = self.call("GET", f"/backfills/{backfill}")["completed_at"] is not None
        return Progress(backfill, states, done or (bool(states) and set(states) <= set(ENDED)))

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
                    f"Backfill {active[0]} of {dag_id} is active after {timeout:g} s.",
                    hint="see its page in Airflow.",
                )
            time.sleep(1.0)
