"""What a demo runs on: a broker, an Airflow and a folder of its own, taken away when it ends."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil

import seamline
from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.lake.storage.layout import Layout, definitions_folder, list_pipelines_apart
from seamline.lake.store.locations import Location, list_places, parse_location
from seamline.lake.store.promises import is_on_disk
from seamline.local import environment, preflight
from seamline.local.airflow import AirflowStandalone
from seamline.local.broker import Broker
from seamline.local.demo.options import Options
from seamline.local.dimensions import data_file
from seamline.local.project.project_files import read_dag_file
from seamline.model.errors import SetupError
from seamline.model.protocol.warehouse_names import own_variable
from seamline.orchestration.airflow_api import AirflowApi
from seamline.runtime.java import is_in_bucket, jar_folder, java_home, kafka_jars, spark_jars, store_jars
from seamline.supervisor.outside import stop_all

DISK_GB, MEMORY_GB = 4, 6
EXTRA = ("airflow", "plotly", "pyspark")
"""What comes with the extra ``demo`` alone, beside the flights."""
DEFINITION = "flights.py"
PATIENCE = 180.0
"""Seconds that Airflow may take for an answer here."""
HEADER = "# Gives a shell this demo's Airflow, Kafka and tables, while the demo runs.\n"
MARK = ".made-by-seamline-demo"
"""A file in a demo's folder that says so: what is in another folder is nobody's to remove."""


class Scene:
    """The settings, ports and folders of one demo: all that it writes is in its home."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.began = time.monotonic()
        self.password = secrets.token_urlsafe(12)
        self.url = f"http://127.0.0.1:{options.airflow_port}"

    @property
    def definitions(self) -> Path:
        """A checkout's own folder, so that what is added to it appears; else the one that is installed."""
        own, shipped = definitions_folder(), Path(__file__).with_name("pipelines")
        checkout = Path(seamline.__file__).resolve().parents[1] / "pipelines"
        return own if own == checkout and own.is_dir() else shipped

    @property
    def exports(self) -> str:
        """The file that another terminal reads, as it is named there."""
        return shlex.quote(str(name_from_here(self.options.home / "env")))

    @property
    def warehouse(self) -> Location:
        """Where its tables are."""
        given = self.options.warehouse
        return parse_location(given) if given else self.options.home / "warehouse"

    def print_progress(self, text: str) -> None:
        """Print one line of progress."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    @property
    def standalone(self) -> AirflowStandalone:
        """Airflow as this demo starts it."""
        home = self.options.home / "airflow"
        port = self.options.airflow_port
        root = self.options.home
        return AirflowStandalone(home, port, root=root, password=self.password, env=self.environment())

    def environment(self) -> dict[str, str]:
        """Return the settings under which Airflow, the CLI and the jobs of this demo run."""
        home, brokers = self.options.home, f"127.0.0.1:{self.options.kafka_port}"
        # What it makes is all in its folder: no pipeline of a warehouse of yours is taken for one of its own.
        return {
            **dict.fromkeys(map(own_variable, list_pipelines_apart()), ""),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_WAREHOUSE": str(self.warehouse),
            "SEAMLINE_PIPELINES": str(self.definitions),
            "SEAMLINE_JARS": str(jar_folder()),
            "JAVA_HOME": str(java_home()),
            # Told where it is, spark-submit does not look for itself: it finds nothing below a folder with a space.
            "SPARK_HOME": spark_home(),
            "PYTHONPATH": package_path(),
            "SEAMLINE_AIRFLOW_URL": self.url,
            "SEAMLINE_AIRFLOW_USER": "admin",
            "SEAMLINE_AIRFLOW_PASSWORD": self.password,
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(
                {"conn_type": "kafka", "extra": {"bootstrap.servers": brokers}}
            ),
            "GX_ANALYTICS_ENABLED": "false",
        }

    def check(self) -> None:
        """Refuse a machine on which the demo cannot end well, before anything is started."""
        require_extra()
        java_home(), spark_jars(), kafka_jars()
        if is_in_bucket(self.options.warehouse):
            store_jars()
        self.check_place()
        kafka, airflow = self.options.kafka_port, self.options.airflow_port
        preflight.require_free_ports([kafka, kafka + 1, airflow, airflow + 1, airflow + 2])
        preflight.require_memory(MEMORY_GB)
        preflight.require_disk(self.options.home.parent, DISK_GB)

    def check_place(self) -> None:
        """Refuse a place for its tables that is none, or has something in it."""
        if self.options.warehouse:
            require_nothing_there(self.warehouse)

    def prepare(self) -> None:
        """Remove what an earlier demo left; write the file of its DAGs, and the one for other terminals."""
        home = self.options.home
        delete_demo_data(home)
        home.mkdir(parents=True)
        (home / MARK).touch()
        (home / "dags").mkdir()
        (home / "dags" / "pipelines.py").write_text(read_dag_file())
        (home / "demo.pid").write_text(str(os.getpid()))
        settings = self.standalone.settings()
        environment.write_exports(home / "env", HEADER, Path(sys.executable).parent, settings)
        os.environ.update(settings)

    @property
    def layout(self) -> Layout:
        """The tables of the demo's pipeline."""
        return Layout(self.warehouse, "flights")

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
            api = AirflowApi.from_env()
            # Its API, its scheduler, Kafka and every stream share one machine and one SQLite file.
            api.timeout = PATIENCE
            yield api
        finally:
            self.print_progress("stopping Airflow and every stream")
            # Airflow first: its DAGs start the stream of a definition that was added a moment ago.
            airflow.stop()
            stop_all()


def name_from_here(file: Path) -> Path:
    """Return a file's path as this terminal names it."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def require_nothing_there(warehouse: Location) -> None:
    """Refuse a file, and a place that has anything in it: a demo removes nothing outside its own folder."""
    if is_on_disk(warehouse):
        there = next(each for each in (warehouse, *warehouse.parents) if each.exists())
        if not there.is_dir():
            raise SetupError(
                f"{there} is a file.", hint="name a folder, or a place in a bucket, by --warehouse."
            )
    if found := sorted(list_places(warehouse, "*")):
        raise SetupError(
            f"{warehouse} has {found[0].name} in it already.",
            hint="name a place that nothing is in, by --warehouse: what a demo has left there you remove yourself.",
        )


def delete_demo_data(home: Path) -> None:
    """Remove a demo's data; refuse while its demo runs."""
    pid = home / "demo.pid"
    if pid.exists() and psutil.pid_exists(int(pid.read_text())) and int(pid.read_text()) != os.getpid():
        raise SetupError(
            f"A demo is running (process {pid.read_text()}).", hint="stop it with Ctrl-C in its terminal."
        )
    own = home.parts[-2:] == (".seamline", "demo") or (home / MARK).exists()
    if not own and home.is_dir() and any(home.iterdir()):
        raise SetupError(
            f"{home} has files that no demo has written.",
            hint="name a folder that is not there yet, by --home: a demo removes what it finds in its own.",
        )
    shutil.rmtree(home, ignore_errors=True)


def package_path() -> str:
    """Return the folder that the demo's processes need to find this package: none if it is installed."""
    folder = Path(seamline.__file__).resolve().parents[1]
    installed = Path(sysconfig.get_path("purelib")).resolve()
    return os.environ.get("PYTHONPATH", "") if folder == installed else str(folder)


def spark_home() -> str:
    """Return the folder of PySpark; SetupError where it is not installed."""
    require_extra()
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent)


def require_extra() -> None:
    """Raise SetupError that names what the extra ``demo`` would have brought."""
    if lacking := [name for name in EXTRA if find_spec(name) is None]:
        raise SetupError(
            f"The demo needs packages that are not installed, among them {lacking[0]}.",
            hint="pip install 'seamline[demo]', then run it again.",
        )
    data_file("flights.csv.zip")
