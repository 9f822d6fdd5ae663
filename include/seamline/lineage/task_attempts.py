"""An attempt at a task of Airflow's, as its runs are named by it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class TaskAttempt:
    """What Airflow says of the task that is running."""

    namespace: str
    """The namespace of jobs."""
    dag: str
    """The DAG's id."""
    task: str
    """The task's id."""
    run: str
    """The run's id."""
    moment: datetime
    """The run's logical date; of one without when it may begin."""
    attempt: int
    """The number of the attempt, from 1."""
    mapped: int
    """The task's number among those of a mapped one, else -1."""
    cleared: int
    """How often the run was cleared."""
