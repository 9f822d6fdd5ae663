"""The build as a spark-submit: jars and Java are looked up when the task runs, not when the DAG is parsed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from seamline.model.jobs import BuildJob
from seamline.orchestration.failures import of_driver, told
from seamline.supervisor.jobs import jobs_folder

__all__ = ["BuildOperator", "jobs_folder"]

PACKAGES = str(Path(__file__).resolve().parents[2])


class BuildOperator(SparkSubmitOperator):
    """Submit ``spark_jobs/build.py`` with the arguments of a BuildJob through a Spark connection.

    The run's intervals are claimed until its ``publish``. ``plan`` is shown on the task's rendered page.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "plan")
    template_fields_renderers: ClassVar[dict[str, str]] = {"plan": "md"}

    def __init__(self, *, plan: Any = "", **given: Any) -> None:
        super().__init__(**given)
        self.plan = plan

    @told
    def execute(self, context: Context) -> None:
        """Claim the intervals, add what this machine has (jars, Java, our packages) and submit."""
        from seamline.lake.claims import holding
        from seamline.lake.layout import Layout, warehouse
        from seamline.local.java import java_home, spark_jars

        job = BuildJob.parse(list(map(str, self.application_args or [])))
        owner = f"airflow:{self.dag_id}"
        with holding(Layout(warehouse(), job.pipeline), job.run, owner, job.spans, hand_over=True):
            self.application = str(jobs_folder() / "build.py")
            self.jars = ",".join(map(str, spark_jars()))
            env = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PACKAGES}
            self.env_vars: dict[str, Any] = {**env, **(self.env_vars or {})}
            try:
                super().execute(context)
            except AirflowException as failed:
                raise of_driver(failed) from failed
