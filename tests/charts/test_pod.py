"""A stream's pod without a container: the chart's command, user and variables, on files that it cannot write."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.charts.rendering import LEAST, ROOT, render
from tests.e2e.test_operations import DEFINITION

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.runtime.java import jar_folder, java_home

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes others"),
]
USER, TOPIC, GRACE = 50000, "pod.orders", 120.0


def until(holds: Callable[[], object], within: float = 240.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.5)


def count_rows(layout: Layout) -> int:
    """Count the records that the log has."""
    master = layout.table("master")
    return DeltaTable(str(master)).to_pyarrow_table(columns=["id"]).num_rows if Table.exists(master) else 0


class Pod:
    """The pod of the stream `ops` by the chart's manifest; its bucket is a folder of its own."""

    def __init__(self, folder: Path, kafka: KafkaConnection) -> None:
        self.folder = folder
        values = folder.parent / "values.yaml"
        values.write_text(LEAST.replace("orders", "ops"))
        [found] = render(values).of_kind("StatefulSet")
        [self.container] = found["spec"]["template"]["spec"]["containers"]
        given = {each["name"]: each.get("value", "127.0.0.1") for each in self.container["env"]}
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.brokers}}
        outside = {path for path in (sys.base_prefix, sys.prefix, str(jar_folder()), str(ROOT))
                   if path.startswith(("/tmp/", "/root/"))}  # fmt: skip
        self.env = {
            **given,
            "SEAMLINE_PIPELINES": "/srv/seamline/pipelines",
            "SEAMLINE_WAREHOUSE": "/srv/seamline/warehouse",
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(connection),
            "SEAMLINE_JARS": str(jar_folder()),
            "JAVA_HOME": str(java_home()),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT / "include"),
            "HOME": "/home/seamline",
            "POD": str(folder),
            "READ": " ".join(sorted(outside)),
            "WORKDIR": str(ROOT),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in the pod, its own without words."""
        command = ["unshare", "--mount", "sh", str(Path(__file__).with_name("pod.sh"))]
        return subprocess.Popen(
            [*command, *(words or self.container["args"])],
            env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def execute(self, *words: str) -> str:
        """Run a command in the pod, and return what it says."""
        process = self.start(*words)
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
        return said

    def passes(self) -> bool:
        """Return whether the pod's probe passes."""
        probe = self.start(*self.container["livenessProbe"]["exec"]["command"])
        probe.communicate(timeout=60)
        return probe.returncode == 0


def test_a_streams_pod_waits_runs_stops_and_ends(kafka: KafkaConnection, tmp_path: Path) -> None:
    """Without a container nothing here shows that an image can be built; all else that a pod may not is not allowed."""
    folder = tmp_path / "pod"
    (folder / "pipelines").mkdir(parents=True)
    definition = DEFINITION.replace("ops.orders", TOPIC).replace(', "ids": own("id", by="fragile:Total")', "")
    (folder / "pipelines" / "ops.py").write_text(definition)
    for each in (folder, *folder.rglob("*")):
        os.chown(each, USER, USER)
    with TopicAdmin(kafka) as admin, RecordWriter(kafka) as writer:
        admin.create_topic(TOPIC, 2)
        for number in range(200):
            value = b'{"id": %d, "placed_at": "2024-01-01T00:00:00Z"}' % number
            writer.send(TOPIC, value=value, partition=number % 2)
    layout, pod = Layout(folder / "warehouse", "ops"), Pod(folder, kafka)
    heartbeat = folder / "state" / "streams" / "ops" / "supervisor.json"
    supervisor = pod.start()
    try:
        until(pod.passes)
        assert not heartbeat.exists() and supervisor.poll() is None
        pod.execute("seamline", "stream", "start", "ops")
        until(lambda: count_rows(layout) == 200)
        assert pod.passes()
        pod.execute("seamline", "stream", "stop", "ops")
        until(lambda: json.loads(heartbeat.read_text())["state"] == "stopped")
        time_of_stop = (folder / "state" / "streams" / "ops" / "pulse").stat().st_mtime
        until(lambda: (folder / "state" / "streams" / "ops" / "pulse").stat().st_mtime > time_of_stop)
        assert supervisor.poll() is None and pod.passes()
        pod.execute("seamline", "stream", "start", "ops")
        until(lambda: json.loads(heartbeat.read_text())["state"] == "running")
        supervisor.send_signal(signal.SIGTERM)
        said, _ = supervisor.communicate(timeout=GRACE)
        assert supervisor.returncode == 0, said
        assert count_rows(layout) == 200
        assert "waits, as nobody has started the stream" in said and "waits, as the stream is stopped" in said
    finally:
        supervisor.kill()
        supervisor.communicate()
