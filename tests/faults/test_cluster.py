"""The same stream and build as clients of a standalone Spark cluster: a master and a worker of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pyspark
import pytest
from deltalake import DeltaTable
from tests.faults.rig.orders import DAY, ORDERS, define_orders, drain_orders, send_orders
from tests.ports import free_ports

from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.master import Master
from seamline.lake.tables.builds_table import Builds
from seamline.local.stack import StreamStack
from seamline.model.protocol.job_arguments import BuildJob
from seamline.runtime.java import class_path, java_home, spark_jars
from seamline.supervisor.job_files import find_job_file

pytestmark = pytest.mark.faults


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


def require_executor() -> None:
    """Require that an executor runs, which is a process of its own."""
    commands = [" ".join(each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"])]
    assert any("CoarseGrainedExecutorBackend" in command for command in commands)


def test_a_stream_and_a_build_read_through_a_standalone_cluster(
    cluster: str, kafka: KafkaConnection, tmp_path: Path
) -> None:
    """Executors in another process write the files; the driver alone commits."""
    definition = define_orders(
        "cluster", {"stream=Stream(": f'stream=Stream(master="{cluster}", memory="1g", '}
    )
    stack = StreamStack(
        tmp_path / "home", definition, kafka, "cluster", env={"PYSPARK_PYTHON": sys.executable}
    )
    send_orders(kafka, "cluster.orders")
    drain_orders(stack, require_executor)
    rows = DeltaTable(str(stack.layout.table("master"))).to_pyarrow_table(columns=["id"])
    assert sorted(rows["id"].to_pylist()) == list(range(ORDERS))
    submitted(cluster, stack, BuildJob("cluster", "on executors", Master.open(stack.layout).edge, (DAY,)))
    built = Builds.ensure(stack.layout).of("on executors")
    assert {(row.rows_read, row.state_rows) for row in built} == {(ORDERS, ORDERS)}
