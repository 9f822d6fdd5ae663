"""The build: a spark-submit of its own, or a client of a resident driver, as the connection's type says.

Jars, Java and addresses are looked up when the task runs, not when the DAG is parsed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Connection, Context
from airflow.sdk.exceptions import AirflowException

from seamline.model.errors import NotFound
from seamline.model.protocol.job_arguments import BRIEF, BuildJob
from seamline.orchestration.failures import log_failure_reason
from seamline.orchestration.lineage.reported_tasks import report_build
from seamline.orchestration.store_connection import with_store_settings
from seamline.runtime.error_report import take_error_report
from seamline.supervisor.driver_process import end_session
from seamline.supervisor.job_files import find_job_file, job_command
from seamline.supervisor.prespawned import RequestedBuild, submit_build
from seamline.supervisor.resident import client_env, find_local_port
from seamline.tracing.process_traces import trace_parent_env

PACKAGES = str(Path(__file__).resolve().parents[2])
LAST_LINES = 50
CONNECT = SparkConnectHook.conn_type


class BuildOperator(SparkSubmitOperator):
    """Run the job ``build`` with the arguments of a BuildJob through a Spark connection.

    One of type ``spark`` is a spark-submit; one of type ``spark_connect`` names a driver that is up already.
    The run's intervals are claimed until its ``publish``. ``plan`` is shown on the task's rendered page.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "plan")
    template_fields_renderers: ClassVar[dict[str, str]] = {"plan": "md"}

    def __init__(self, *, plan: Any = "", **given: Any) -> None:
        super().__init__(**given)
        self.plan = plan
        self._client: subprocess.Popen[str] | None = None
        self._asked: RequestedBuild | None = None

    @log_failure_reason
    @with_store_settings
    def execute(self, context: Context) -> None:
        """Claim the intervals, add what this machine has (jars, Java, our packages) and build."""
        from seamline.lake.publish.planning import is_small_build
        from seamline.lake.storage.layout import locate_tables
        from seamline.lake.tables.claims_table import claim_intervals

        if not isinstance(self.application_args, list) or not self.application_args:
            raise NotFound(
                "There is no plan of this run: the XCom of its task plan is missing.",
                hint="clear the task plan and the tasks downstream of it.",
            )
        job = BuildJob.parse(list(map(str, self.application_args)))
        layout, owner = locate_tables(job.pipeline), f"airflow:{self.dag_id}"
        with (
            claim_intervals(layout, job.run, owner, job.spans, hand_over=True),
            report_build(context, job, layout),
        ):
            failure = layout.failure(job.run)
            failure.unlink(missing_ok=True)
            try:
                connection = Connection.get(self._conn_id)
                if connection.conn_type == CONNECT:
                    self.connect(job)
                else:
                    near = (connection.host or "").startswith("local")
                    place, small = str(layout.warehouse), is_small_build(layout, job)
                    self.submit(context, place, brief=small, near=near)
            except AirflowException as failed:
                raise take_error_report(failure) or failed from failed

    def submit(self, context: Context, warehouse: str, *, brief: bool, near: bool) -> None:
        """Start a driver for this build alone; ``brief``: the build is a small one, ``near``: its executor is in it."""
        from seamline.runtime.java import (
            class_path,
            is_in_bucket,
            java_home,
            jvm_options,
            spark_jars,
            store_class_path,
            store_jars,
        )

        bucket = is_in_bucket(warehouse)
        self.application = str(find_job_file("build"))
        # Jars that are named are copied for each executor; one in the driver has the driver's class path.
        jars = [*spark_jars(), *(store_jars() if bucket else [])]
        self.jars = None if near else ",".join(map(str, jars))
        conf: dict[str, Any] = {**(BRIEF if brief else {}), **(self.conf or {})}
        theirs = conf.get("spark.driver.extraJavaOptions") or ""
        for name, ours, between in (
            ("spark.driver.extraClassPath", class_path(), os.pathsep),
            ("spark.driver.extraJavaOptions", jvm_options(theirs, brief=brief), " "),
        ):
            conf[name] = between.join(each for each in (ours, conf.get(name)) if each)
        self.conf = conf
        env = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PACKAGES}
        env |= trace_parent_env() | (store_class_path(os.environ) if bucket else {})
        self.env_vars: dict[str, Any] = {**env, **(self.env_vars or {})}
        super().execute(context)

    def connect(self, job: BuildJob) -> None:
        """Let a driver that is up do the work; AirflowException with the code and the last words where it fails."""
        url = SparkConnectHook(self._conn_id).get_connection_url()
        env = {**os.environ, "PYTHONPATH": PACKAGES, "PYTHONUNBUFFERED": "1", **client_env(url)}
        env |= trace_parent_env()
        port = find_local_port(url)
        self._asked = submit_build(port, job.to_argv(), env) if port else None
        if self._asked:
            self.log.info(
                "Process %d, which the resident driver keeps ready, runs the build.", self._asked.pid
            )
        last: deque[str] = deque(maxlen=LAST_LINES)
        for line in self._asked.lines() if self._asked else self.lines(job, env):
            self.log.info(line.rstrip())
            last.append(line)
        code = self._asked.code if self._asked else self._client and self._client.returncode
        if code:
            raise AirflowException(f"The build failed. Error code is: {code}.\nIts output:\n{''.join(last)}")

    def lines(self, job: BuildJob, env: Mapping[str, str]) -> Iterator[str]:
        """Start a client of our own and return its output."""
        with subprocess.Popen(
            [*job_command("build"), *job.to_argv()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(env),
            start_new_session=True,
        ) as self._client:
            assert self._client.stdout
            yield from self._client.stdout

    def on_kill(self) -> None:
        """End the build with the task."""
        if self._asked:
            self._asked.end()
        if self._client:
            end_session(self._client.pid)
        super().on_kill()
