"""A backfill as Airflow runs it: what it will do, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from seamline.model.time.intervals import Interval, format_utc_instant

ENDED = ("success", "failed")


@dataclass(frozen=True)
class Progress:
    """How far a backfill is."""

    backfill: int
    """Airflow's id of it."""
    states: Mapping[str, int]
    """How many runs are in each state, by Airflow's name of the state."""
    done: bool
    """Whether Airflow has completed it."""

    @property
    def total(self) -> int:
        """All runs of the backfill."""
        return sum(self.states.values())

    @property
    def failed(self) -> int:
        """Runs that ended badly."""
        return self.states.get("failed", 0)

    def line(self) -> str:
        """Describe the progress in one line."""
        ended = sum(self.states.get(state, 0) for state in ENDED)
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        return f"backfill {self.backfill}: {ended} of {self.total} runs ended ({states})"


@dataclass(frozen=True)
class BackfillPlan:
    """What a backfill will do."""

    dag_id: str
    """The DAG that runs it."""
    intervals: tuple[Interval, ...]
    """Ascending; one run each."""
    existing: int
    """How many of the runs exist already."""
    paused: bool
    """Whether the DAG is paused."""

    @property
    def until(self) -> datetime:
        """The logical date of the last run."""
        return self.intervals[-1].start

    @property
    def reprocess(self) -> str:
        """Airflow's reprocess behaviour: runs that are there must be cleared to run again."""
        return "completed" if self.existing else "none"

    def lines(self) -> Iterable[str]:
        """Describe the plan in lines, intervals first."""
        for interval in self.intervals:
            yield f"  {interval}"
        first, last = self.intervals[0].start, self.intervals[-1].end
        span = f"[{format_utc_instant(first)}, {format_utc_instant(last)})"
        yield f"{len(self.intervals)} runs of {self.dag_id}: {span}, the end exclusive"
        why = (
            f"{self.existing} of them ran before, and Airflow runs those again only so"
            if self.existing
            else "none of them ran before"
        )
        yield f"reprocess behavior {self.reprocess}: {why}"
        if self.paused:
            yield f"{self.dag_id} is paused: its runs wait until `airflow dags unpause {self.dag_id}`"


def build_backfill_request(plan: BackfillPlan, reason: str) -> dict[str, object]:
    """Write the request of a backfill."""
    return {
        "dag_id": plan.dag_id,
        "from_date": format_utc_instant(plan.intervals[0].start),
        "to_date": format_utc_instant(plan.until),
        "reprocess_behavior": plan.reprocess,
        "max_active_runs": 1,
        "dag_run_conf": {"reason": reason} if reason else {},
    }
