"""The same stream and build as clients of a standalone Spark cluster: a master and a worker of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pyspark
import pytest
from deltalake import DeltaTable
from tests.e2e.test_operations import DEFINITION
from tests.ports import free_ports

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.master import Master
from seamline.lake.tables.builds_table import Builds
from seamline.local.stack import StreamStack
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.time.intervals import Interval
from seamline.runtime.java import class_path, java_home, spark_jars
from seamline.supervisor.job_files import find_job_file

pytestmark = pytest.mark.faults
TOPIC = "cluster.orders"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Run a master and a worker; give the master's address."""
    port = free_ports()
    address = f"spark://127.0.0.1:{port}"
    place = Path(pyspark.__file__).parent
    classes = "org.apache.spark.deploy"
    env = {**os.environ, "SPARK_HOME": str(place), "JAVA_HOME": str(java_home()), "SPARK_NO_DAEMONIZE": "1"}
    processes = []
    for name, words in {
        "master.Master": ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
        "worker.Worker": ["--host", "127.0.0.1", "--cores", "2", "--memory", "2g", "--webui-port", "0",
                          "--work-dir", str(tmp_path / "work"), address],
    }.items():  # fmt: skip
        command = [str(place / "bin" / "spark-class"), f"{classes}.{name}", *words]
        with (tmp_path / f"{name}.log").open("wb") as log:
            processes.append(subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT))
    yield address
    family = [child for each in processes for child in psutil.Process(each.pid).children(recursive=True)]
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    for each in processes:
        each.kill()
        each.wait(30)


def submitted(cluster: str, stack: StreamStack, job: BuildJob) -> None:
    """Build by spark-submit, on the cluster's executors."""
    conf = {
        "spark.driver.extraClassPath": class_path(),
        "spark.jars": ",".join(map(str, spark_jars())),
        "spark.executor.memory": "1g",
    }
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", cluster]
    done = subprocess.run(
        [*submit, *(f"--conf={name}={value}" for name, value in conf.items()),
         str(find_job_file("build")), *job.to_argv()],
        env={**stack.settings, "JAVA_HOME": str(java_home())},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_stream_and_a_build_read_through_a_standalone_cluster(
    cluster: str, kafka: KafkaConnection, tmp_path: Path
) -> None:
    """Executors in another process write the files; the driver alone commits."""
    definition = DEFINITION
    for old, new in {
        '"ops"': '"cluster"',
        "ops.orders": TOPIC,
        ', "ids": own("id", by="fragile:Total")': "",
        "stream=Stream(": f'stream=Stream(master="{cluster}", memory="1g", ',
    }.items():
        assert old in definition
        definition = definition.replace(old, new)
    stack = StreamStack(
        tmp_path / "home", definition, kafka, "cluster", env={"PYSPARK_PYTHON": sys.executable}
    )
    with TopicAdmin(kafka) as admin, RecordWriter(kafka) as writer:
        admin.create_topic(TOPIC, 2)
        for number in range(300):
            value = b'{"id": %d, "placed_at": "2024-01-01T00:00:00Z"}' % number
            writer.send(TOPIC, value=value, partition=number % 2)
    stack.start()
    try:
        stack.drain(300, timeout=300)
        assert any("CoarseGrainedExecutorBackend" in " ".join(each.info["cmdline"] or []) for each in
                   psutil.process_iter(["cmdline"]))  # fmt: skip
        assert stack.stop() == 0
    finally:
        stack.kill()
    rows = DeltaTable(str(stack.layout.table("master"))).to_pyarrow_table(columns=["id"])
    assert sorted(rows["id"].to_pylist()) == list(range(300))
    day = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
    submitted(cluster, stack, BuildJob("cluster", "on executors", Master.open(stack.layout).edge, (day,)))
    built = Builds.ensure(stack.layout).of("on executors")
    assert {(row.rows_read, row.state_rows) for row in built} == {(300, 300)}
