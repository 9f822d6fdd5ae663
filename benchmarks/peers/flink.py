"""Flink in a JVM of its own, driven from here: its set-up for two cores, a job, and how far the job is.

Checkpoints are ten seconds apart and exactly once, as the archive's files are; what goes to Kafka goes at least once.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from benchmarks.peers.flink_jars import class_path
from benchmarks.peers.flink_sql import Asked
from benchmarks.spine import free_port
from seamline.runtime.java import java_home

MEMORY = "4g"
SETTINGS = {
    "execution.target": "local",
    "execution.checkpointing.interval": "10 s",
    "metrics.fetcher.update-interval": "400",
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "restart-strategy.type": "none",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.size": "100000",
    "table.local-time-zone": "UTC",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
OPENED = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent")
"""The packages of ``java`` that Flink's serializers look into."""


class Job:
    """A job that was handed in; ``address`` is where its metrics are."""

    def __init__(self, client: Any, port: int) -> None:
        self.client = client
        self.address = f"http://127.0.0.1:{port}/jobs/{client.getJobID().toString()}"
        self.sources: list[str] = []

    def wait(self) -> float:
        """Wait until all is written and committed, and give the time; SystemExit if the job fails."""
        try:
            self.client.getJobExecutionResult().get()
        except Py4JJavaError as error:
            raise SystemExit(write_failure(error)) from error
        return time.time()

    def records(self) -> int:
        """Return how many records its sources had read at the look before; 0 while nobody answers."""
        try:
            self.sources = self.sources or [
                each["id"] for each in self.ask("")["vertices"] if each["name"].startswith("Source: ")
            ]
            asked = "subtasks/metrics?get=numRecordsIn&agg=sum"
            found = [self.ask(f"/vertices/{source}/{asked}")[0] for source in self.sources]
            return sum(int(each["sum"]) for each in found)
        except (OSError, HTTPException, LookupError, ValueError):
            return 0

    def ask(self, path: str) -> Any:
        """Ask Flink's REST server."""
        with urllib.request.urlopen(self.address + path, timeout=5) as answer:
            return json.load(answer)


def write_failure(error: Py4JJavaError) -> str:
    """Write why Flink failed, without the lines of its traces; its JVM must be there."""
    return "\n".join(["Flink failed:", *(line for line in str(error).splitlines() if line[:1] != "\t")])


class Flink:
    """A JVM that can run one job."""

    def __init__(self, pid: int, jvm: Any, home: Path) -> None:
        self.pid, self.jvm, self.home = pid, jvm, home

    def submit(self, work: Asked) -> Job:
        """Hand a job to a cluster of one in this JVM."""
        port = free_port()
        tables = self.open_tables(port)
        for table in work.tables():
            tables.executeSql(table)
        return Job(tables.executeSql(work.job()).getJobClient().get(), port)

    def open_tables(self, port: int) -> Any:
        """Return what runs SQL, a job at a time, with metrics at a port."""
        api = self.jvm.org.apache.flink.table.api
        settings = api.EnvironmentSettings.newInstance().inStreamingMode()
        return api.TableEnvironment.create(settings.withConfiguration(self.configuration(port)).build())

    def configuration(self, port: int) -> Any:
        """Make the settings of a job whose metrics are at a port."""
        told = self.jvm.java.util.HashMap()
        for name, value in {**SETTINGS, **self.own(port)}.items():
            told.put(name, value)
        return self.jvm.org.apache.flink.configuration.Configuration.fromMap(told)

    def own(self, port: int) -> dict[str, str]:
        """Make the settings that are of this run alone."""
        checkpoints = (self.home / "checkpoints").as_uri()
        return {
            "execution.checkpointing.dir": checkpoints,
            "io.tmp.dirs": str(self.home),
            "rest.bind-port": str(port),
        }


@contextmanager
def flink(home: Path, *classes: Path, options: Sequence[str] = ()) -> Iterator[Flink]:
    """Start a JVM that keeps its files in ``home``, with ``classes`` and ``options`` of one's own, and end it."""
    opens = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED]
    port, token, process = launch_gateway(
        classpath=":".join(map(str, [*class_path(), *classes])),
        javaopts=[f"-Xmx{MEMORY}", "-XX:+UseParallelGC", *opens, *options],
        java_path=str(java_home() / "bin" / "java"),
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
        redirect_stderr=sys.stderr,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield Flink(process.pid, gateway.jvm, home)
    finally:
        process.terminate()
        process.wait()
        gateway.close()
