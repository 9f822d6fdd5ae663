"""What is tried on a process stack: the demo and its check, each service killed once, and the check again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from tests.cluster.checked_demo import ClusterDemo
from tests.cluster.composition import ROOT
from tests.cluster.paths import take_all_paths
from tests.cluster.pulse import BATCH, STREAM, Pulse
from tests.cluster.stack import ProcessStack
from tests.services.server import ServiceBroken

from seamline.kafka.connections import read_airflow_connection
from seamline.lake.storage.layout import locate_tables
from seamline.lake.tables.control_table import ControlTable
from seamline.local.demo.stages import wait_for_condition
from seamline.model.errors import NotFound
from seamline.orchestration.airflow_api import AirflowApi

OWN = ("pulse_pipeline.py", "paths_pipeline.py")
DEFINITIONS = (ROOT / "include" / "pipelines" / "flights.py", *map(Path(__file__).with_name, OWN))
RECONCILED_EVERY = "20"
COUNTED, BUILT = ": the stream has read all after", ": and a run has built it after"
EXECUTOR = "CoarseGrainedExecutorBackend"


class Trial:
    """One stack and what it was asked; ``took`` has the seconds of each step."""

    def __init__(self, home: Path, *, profile: str = "", s3: str = "versitygw") -> None:
        definitions = home / "definitions"
        definitions.mkdir(parents=True)
        for file in DEFINITIONS:
            shutil.copy(file, definitions)
        more = {
            "SEAMLINE_PIPELINES": str(definitions),
            "SEAMLINE_RECONCILE_SECONDS": RECONCILED_EVERY,
            "AIRFLOW__SCHEDULER__CATCHUP_BY_DEFAULT": "False",
        }
        self.stack = ProcessStack(home / "hosts", profile, s3, more)
        self.home = home
        self.took: dict[str, float] = {}
        self.demo: ClusterDemo | None = None

    def say(self, step: str, seconds: float) -> None:
        """Note how long a step took."""
        self.took[step] = round(seconds, 1)
        print(f"{step}: {seconds:.1f} s", flush=True)

    @contextmanager
    def measured(self, step: str) -> Iterator[None]:
        """Note how long what is done within takes."""
        began = time.monotonic()
        yield
        self.say(step, time.monotonic() - began)

    def begin(self) -> None:
        """Start all services, and make this process a client of theirs."""
        with self.measured("all services are well"):
            self.stack.start()
        [server] = self.stack.services["airflow-api-server"].hosts
        client = {
            **self.stack.services["airflow-scheduler"].environment,
            **self.stack.more,
            "AIRFLOW_HOME": str(self.home / "client"),
            "SEAMLINE_HOME": str(self.home / "client"),
            "SEAMLINE_AIRFLOW_URL": f"http://{server}:8080",
            "SEAMLINE_AIRFLOW_USER": "admin",
            "SEAMLINE_AIRFLOW_PASSWORD": self.stack.find_password(),
        }
        client.pop("AIRFLOW__CORE__DAGS_FOLDER")
        os.environ.update(client)

    def check_demo(self, *, backfill_days: int) -> None:
        """Run the demo on it, whose check knows nothing of Seamline."""
        self.demo = ClusterDemo(self.stack, self.home / "demo", backfill_days=backfill_days)
        with self.measured("the demo, checked"):
            if self.demo.run():
                raise ServiceBroken("The demo's check has failed; see the lines above.")

    def check_again(self) -> None:
        """Have all answers of the demo checked once more."""
        if self.demo:
            with self.measured("the demo's answers, checked again"):
                self.demo.require_right()

    def check_hidden(self) -> None:
        """Require that no host sees another's files."""
        for name, host in self.stack.hosts.items():
            if host.runs:
                seen = {
                    Path(each).name
                    for each in self.stack.run(name, "ls", str(self.stack.network.folder)).split()
                }
                if not seen <= {name, "volumes"}:
                    raise ServiceBroken(f"{name} sees the files of {sorted(seen - {name})}.")

    def kill_each(self, faults: Sequence[str]) -> None:
        """Kill one of each in turn, while numbers come in; require after each that all are counted once."""
        api = AirflowApi.from_env()
        if self.demo:
            self.stack.run("airflow-scheduler-1", "seamline", "stream", "stop", "flights")
        self.pulse = Pulse(read_airflow_connection("kafka_default"))
        self.pulse.make_topic()
        wait_for_condition("Airflow to read the DAGs", lambda: has_dags(api), 120)
        for dag in (BATCH, STREAM):
            api.unpause(dag)
        self.pulse.send()
        self.pulse.close()
        self.say("a new pipeline's first records are read", self.pulse.await_read())
        self.say("its first build", self.pulse.build(api))
        self.build_by_resident()
        for fault in faults:
            self.strike(fault, {**FAULTS, **OF_CELERY}[fault], api)
        self.stack.run("airflow-scheduler-1", "seamline", "stream", "stop", "pulse")
        with self.measured("parts, builds by every path, a mended definition"):
            take_all_paths(self.stack, self.home / "definitions" / "paths_pipeline.py", self.pulse.sent)

    def build_by_resident(self) -> None:
        """Have a resident driver, whose executors are the cluster's, build what the submitted one has built."""
        host = "airflow-scheduler-1"
        self.stack.run(host, "seamline", "driver", "start")
        with self.measured("a build by the resident driver"):
            self.stack.run(
                host, "env", "SPARK_REMOTE=sc://localhost:15002", "seamline", "run", "pulse", "--from", "2024-01-01",
                "--to", "2024-01-03", "--reason", "by the resident driver",
            )  # fmt: skip
        self.stack.run(host, "seamline", "driver", "stop")
        self.pulse.require_exact()

    def strike(self, name: str, fault: Callable[[Trial], None], api: AirflowApi) -> None:
        """Do one fault between two sendings, and measure how long each layer takes to be right again."""
        self.pulse.send()
        began = time.monotonic()
        fault(self)
        self.pulse.send()
        self.pulse.await_read()
        self.say(f"{name}{COUNTED}", time.monotonic() - began)
        self.pulse.build(api)
        self.say(f"{name}{BUILT}", time.monotonic() - began)
        self.pulse.require_exact()

    def restart(self, host: str) -> None:
        """Kill a host, and wait until it is well again: the composition has it started again."""
        self.stack.kill(host)
        self.stack.await_well(host)

    def stream_host(self) -> str:
        """Return the host that the supervisor of the stream runs on."""
        lease = ControlTable.ensure(locate_tables("pulse")).read().lease
        assert lease
        return lease.process.split(" ")[0]

    def kill_executor(self) -> None:
        """Kill the executors on one worker."""
        for host in self.stack.services["spark-worker"].hosts:
            found = [each for each in self.stack.hosts[host].processes() if is_executor(each)]
            for each in found:
                each.kill()
            if found:
                return
        raise ServiceBroken("No executor was found on any worker.")

    def move_driver(self) -> None:
        """Kill the host of the stream, and start it again only once another one has the stream."""
        before = self.stream_host()
        self.stack.take_away(before)
        wait_for_condition("another host to take the stream", lambda: self.stream_host() != before, 240)
        self.stack.bring_back(before)

    def cut_off(self) -> None:
        """Cut the stream's host off from the network, until another has taken over; then let it see that."""
        before = self.stream_host()
        self.stack.network.cut(before)
        wait_for_condition("another host to take the stream", lambda: self.stream_host() != before, 240)
        self.stack.network.join(before)

    def end(self) -> None:
        """Stop all services."""
        with self.measured("all services are stopped"):
            self.stack.stop()


def has_dags(api: AirflowApi) -> bool:
    """Return whether Airflow has read the DAGs of the numbers."""
    try:
        return bool(api.dag(BATCH) and api.dag(STREAM))
    except NotFound:
        return False


def is_executor(process: psutil.Process) -> bool:
    """Return whether a process is an executor of Spark's."""
    try:
        return any(EXECUTOR in word for word in process.cmdline())
    except psutil.Error:
        return False


def restart_first(service: str) -> Callable[[Trial], None]:
    """Return the fault that kills the first host of a service, which is started again at once."""
    return lambda trial: trial.restart(trial.stack.services[service].hosts[0])


SERVICES = (
    "spark-worker",
    "spark-master",
    "kafka",
    "s3",
    "postgres",
    "airflow-api-server",
    "airflow-dag-processor",
    "airflow-scheduler",
    "airflow-triggerer",
)
"""Services of which the first host is killed, and started again at once."""
FAULTS: dict[str, Callable[[Trial], None]] = {
    "executor": Trial.kill_executor,
    **{name: restart_first(name) for name in SERVICES},
    "the stream's host": lambda trial: trial.restart(trial.stream_host()),
    "the stream's host for good": Trial.move_driver,
    "the stream's host is cut off": Trial.cut_off,
}
"""What is done to a cluster, by name."""
OF_CELERY: dict[str, Callable[[Trial], None]] = {
    **{name: restart_first(name) for name in ("valkey", "airflow-worker", "airflow-stream-worker")}
}
"""What is done to the services that the profile adds."""
