"""What a demo runs on: a broker, an Airflow and a folder of its own, taken away when it ends."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.lake.storage.layout import Layout
from seamline.local import environment, preflight
from seamline.local.airflow import AirflowStandalone
from seamline.local.broker import Broker
from seamline.local.demo.options import HOME, Options
from seamline.model.errors import SetupError
from seamline.orchestration.airflow_api import AirflowApi
from seamline.supervisor.outside import stop_all

DISK_GB, MEMORY_GB = 4, 6
KEPT = ("SEAMLINE_JARS",)


class Scene:
    """The settings, ports and folders of one demo; ``root`` is the checkout."""

    def __init__(self, options: Options, root: Path) -> None:
        self.options, self.root = options, root
        self.began = time.monotonic()
        self.password = secrets.token_urlsafe(12)
        self.url = f"http://127.0.0.1:{options.airflow_port}"

    def print_progress(self, text: str) -> None:
        """Print one line of progress."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    @property
    def standalone(self) -> AirflowStandalone:
        """Airflow as this demo starts it."""
        home = self.options.home / "airflow"
        port = self.options.airflow_port
        return AirflowStandalone(home, port, root=self.root, password=self.password, env=self.environment())

    def environment(self) -> dict[str, str]:
        """Return the settings under which Airflow, the CLI and the jobs of this demo run."""
        home, brokers = self.options.home, f"127.0.0.1:{self.options.kafka_port}"
        return {
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
            "SEAMLINE_PIPELINES": str(self.root / "include" / "pipelines"),
            "SEAMLINE_AIRFLOW_URL": self.url,
            "SEAMLINE_AIRFLOW_USER": "admin",
            "SEAMLINE_AIRFLOW_PASSWORD": self.password,
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(
                {"conn_type": "kafka", "extra": {"bootstrap.servers": brokers}}
            ),
            "GX_ANALYTICS_ENABLED": "false",
            **{name: os.environ[name] for name in KEPT if name in os.environ},
        }

    def check(self) -> None:
        """Refuse a machine on which the demo cannot end well, before anything is started."""
        kafka, airflow = self.options.kafka_port, self.options.airflow_port
        preflight.require_free_ports([kafka, kafka + 1, airflow, airflow + 1, airflow + 2])
        preflight.require_memory(MEMORY_GB)
        preflight.require_disk(self.options.home.parent, DISK_GB)

    def prepare(self) -> None:
        """Remove what an earlier demo left; write the checkout's environment, unless the demo lives elsewhere."""
        delete_demo_data(self.options.home)
        self.options.home.mkdir(parents=True)
        (self.options.home / "demo.pid").write_text(str(os.getpid()))
        settings = self.standalone.settings()
        if self.options.home == self.root / HOME:
            own = {name: value for name, value in settings.items() if name != "PATH"}
            environment.write_env(self.root, own)
        os.environ.update(environment.checkout_environment(self.root) | settings)

    @property
    def layout(self) -> Layout:
        """The tables of the demo's pipeline."""
        return Layout(self.options.home / "warehouse", "flights")

    @contextmanager
    def broker(self) -> Iterator[KafkaConnection]:
        """Run a broker for as long as the demo lasts."""
        broker = Broker(self.options.home / "kafka", self.options.kafka_port, self.options.kafka_port + 1)
        try:
            broker.start()
            self.print_progress(f"Kafka is up at 127.0.0.1:{self.options.kafka_port}")
            yield read_airflow_connection("kafka_default")
        finally:
            broker.stop()

    @contextmanager
    def airflow(self) -> Iterator[AirflowApi]:
        """Run Airflow for as long as the demo lasts, and the streams that its DAGs start."""
        airflow = self.standalone
        try:
            airflow.start()
            self.print_progress(f"Airflow is healthy at {self.url}")
            yield AirflowApi.from_env()
        finally:
            self.print_progress("stopping Airflow and every stream")
            # Airflow first: its DAGs start the stream of a definition that was added a moment ago.
            airflow.stop()
            stop_all()


def delete_demo_data(home: Path) -> None:
    """Remove a demo's data; refuse while its demo runs."""
    pid = home / "demo.pid"
    if pid.exists() and psutil.pid_exists(int(pid.read_text())) and int(pid.read_text()) != os.getpid():
        raise SetupError(
            f"A demo is running (process {pid.read_text()}).", hint="stop it with Ctrl-C in its terminal."
        )
    shutil.rmtree(home, ignore_errors=True)
