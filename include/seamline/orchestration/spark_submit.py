"""The build as a spark-submit: jars and Java are looked up when the task runs, not when the DAG is parsed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context

from seamline.supervisor.jobs import jobs_folder

__all__ = ["BuildOperator", "jobs_folder"]

PACKAGES = str(Path(__file__).resolve().parents[2])


class BuildOperator(SparkSubmitOperator):
    """Submit ``spark_jobs/build.py`` with the arguments of a BuildJob through a Spark connection."""

    def execute(self, context: Context) -> None:
        """Add what this machine has (jars, Java, our packages) and submit."""
        from seamline.local.java import java_home, spark_jars

        self.application = str(jobs_folder() / "build.py")
        self.jars = ",".join(map(str, spark_jars()))
        env = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PACKAGES}
        self.env_vars: dict[str, Any] = {**env, **(self.env_vars or {})}
        super().execute(context)
