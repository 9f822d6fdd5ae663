"""A build by spark-submit to Kubernetes, with the chart's settings and pod template; the API server is a stand-in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
import yaml
from tests.charts.rendering import LEAST, render
from tests.charts.stand_in import stand_in
from tests.faults.rig.orders import DAY, ORDERS, define_orders, drain_orders, send_orders

from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.master import Master
from seamline.lake.tables.builds_table import Builds
from seamline.local.stack import StreamStack
from seamline.model.protocol.job_arguments import BuildJob
from seamline.runtime.java import class_path, java_home, spark_jars
from seamline.supervisor.job_files import find_job_file

pytestmark = pytest.mark.faults
SETTINGS = (
    "builds.executor.cores=1,builds.executor.memory=1g,builds.dynamicAllocation.max=2,"
    "builds.dynamicAllocation.initial=0,image.repository=registry.example/seamline"
)


def write_configuration(folder: Path, stack: StreamStack) -> None:
    """Put the chart's ConfigMap where a task's pod has it; paths of the image become paths of this machine."""
    values = folder.parent / "values.yaml"
    values.write_text(LEAST)
    made = render(values, "--set", SETTINGS)
    assert not made.refusal, made.refusal
    [config] = made.of_kind("ConfigMap")
    folder.mkdir()
    places = {
        "/opt/seamline/spark-conf": folder,
        "/opt/seamline/include/pipelines": stack.settings["SEAMLINE_PIPELINES"],
        "/srv/seamline": folder.parent / "pod",
        "s3://lake/warehouse": stack.settings["SEAMLINE_WAREHOUSE"],
    }
    inside = re.compile("|".join(map(re.escape, places)))
    for name, text in config["data"].items():
        (folder / name).write_text(inside.sub(lambda found: str(places[found[0]]), text))


def test_executors_come_by_the_pod_template_and_build(kafka: KafkaConnection, tmp_path: Path) -> None:
    """The image has no entry point of Spark's, and no shell of it knows what an executor is started with."""
    stack = StreamStack(
        tmp_path / "home", define_orders("chart"), kafka, "chart", env={"PYSPARK_PYTHON": sys.executable}
    )
    send_orders(kafka, "chart.orders")
    drain_orders(stack)
    job = BuildJob("chart", "on pods", Master.open(stack.layout).edge, (DAY,))
    folder, logs, image = tmp_path / "spark-conf", tmp_path / "logs", tmp_path / "image"
    logs.mkdir()
    image.mkdir()
    write_configuration(folder, stack)
    with stand_in(logs, image) as (cluster, address):
        cluster.create("pods", {"metadata": {"name": "airflow-scheduler-0"}, "spec": {"containers": []}})
        conf = {
            "spark.driver.extraClassPath": class_path(),
            "spark.kubernetes.driverEnv.PYTHONPATH": "as Airflow's hook passes it",
            "spark.kubernetes.executor.podNamePrefix": "build",
        }
        done = subprocess.run(
            [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", f"k8s://{address}",
             "--deploy-mode", "client", "--jars", ",".join(map(str, spark_jars())),
             *(f"--conf={name}={value}" for name, value in conf.items()), str(find_job_file("build")), *job.to_argv()],
            env={**os.environ, **stack.settings, "JAVA_HOME": str(java_home()), "SPARK_CONF_DIR": str(folder),
                 "SEAMLINE_POD_NAME": "airflow-scheduler-0", "SPARK_LOCAL_HOSTNAME": "localhost"},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )  # fmt: skip
        told = [file.read_text()[-3000:] for file in logs.iterdir()]
        assert done.returncode == 0, f"{done.stderr[-6000:]}\n{cluster.asked}\n{told}"
        executors = cluster.made[1:]
    built = Builds.ensure(stack.layout).of("on pods")
    assert {(row.rows_read, row.state_rows) for row in built} == {(ORDERS, ORDERS)}
    # It begins with none: what came was asked for because tasks waited.
    assert executors and len(executors) <= 2
    assert list(image.iterdir()) == [], (
        "an executor puts its jars where it is started, and no pod writes its image"
    )
    template = yaml.safe_load((folder / "executor.yaml").read_text())
    for pod in executors:
        [container], [given] = pod["spec"]["containers"], template["spec"]["containers"]
        assert container["securityContext"] == given["securityContext"]
        assert container["image"].startswith("registry.example/seamline:")
        assert pod["spec"]["securityContext"] == template["spec"]["securityContext"]
        assert pod["spec"]["serviceAccountName"] == "seamline"
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert template["metadata"]["labels"].items() <= pod["metadata"]["labels"].items()
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert variables["SPARK_DRIVER_URL"] == "spark://CoarseGrainedScheduler@localhost:7078"
        [owner] = pod["metadata"]["ownerReferences"]
        assert owner["name"] == "airflow-scheduler-0"
