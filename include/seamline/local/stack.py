"""A stream outside Airflow, for tests and benchmarks: a definition, its driver process, and what it has done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout, list_pipelines_apart, locate_tables
from seamline.lake.tables.control_table import ControlTable
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import SetupError
from seamline.model.protocol.holes import list_moving_ranges
from seamline.model.protocol.job_arguments import StreamJob
from seamline.model.protocol.warehouse_names import own_variable
from seamline.runtime.processes import own_process_name
from seamline.supervisor.job_files import job_command

EVERY = 0.1
"""Seconds between two looks at what is waited for."""


@dataclass
class StreamStack:
    """One pipeline's stream, driven without a supervisor so that a test can kill it."""

    home: Path
    """The folder of everything, which serves as SEAMLINE_HOME."""
    definition: str
    """The source of the definition file."""
    connection: KafkaConnection
    """The broker."""
    name: str
    """The pipeline's name."""
    env: Mapping[str, str] = field(default_factory=dict)
    """More settings for its processes."""
    driver: subprocess.Popen[bytes] | None = None
    """None while none was started."""

    def __post_init__(self) -> None:
        folder = self.home / "pipelines"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.py").write_text(self.definition)

    @property
    def settings(self) -> dict[str, str]:
        """The environment of everything that works on this stack."""
        return {
            **os.environ,
            **dict.fromkeys(map(own_variable, list_pipelines_apart()), ""),
            "SEAMLINE_HOME": str(self.home),
            "SEAMLINE_WAREHOUSE": str(self.home / "warehouse"),
            "SEAMLINE_PIPELINES": str(self.home / "pipelines"),
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(
                {"conn_type": "kafka", "extra": {"bootstrap.servers": self.connection.brokers}}
            ),
            **self.env,
        }

    @property
    def layout(self) -> Layout:
        """The tables of the stack's pipeline."""
        settings = self.settings
        own = settings.get(own_variable(self.name))
        return locate_tables(self.name, own or settings["SEAMLINE_WAREHOUSE"])

    @property
    def pipeline(self) -> CompiledPipeline:
        """The compiled definition."""
        return load_pipeline(self.home / "pipelines", self.name)

    @property
    def log(self) -> Path:
        """The driver's output."""
        return self.home / f"{self.name}.log"

    def start(self, **env: str) -> int:
        """Take the lease as a supervisor would, start the driver, and return its token."""
        control = ControlTable.ensure(self.layout)
        held = control.read().lease
        if held:
            control.release(held)
        token = control.take(f"stack {os.getpid()}", process=own_process_name(), now=datetime.now(UTC)).token
        command = [*job_command("stream"), *StreamJob(self.name, token).to_argv()]
        with self.log.open("ab") as output:
            self.driver = subprocess.Popen(
                command,
                env={**self.settings, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return token

    def stop(self, timeout: float = 90) -> int:
        """Ask the driver to finish its epoch, and return its exit code."""
        assert self.driver
        self.driver.send_signal(signal.SIGTERM)
        return self.driver.wait(timeout)

    def kill(self) -> None:
        """SIGKILL the driver with its JVM and Python workers, and wait until they are gone."""
        assert self.driver
        try:
            family = [psutil.Process(self.driver.pid)]
            family += family[0].children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        for process in family:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self.driver.wait(30)
        psutil.wait_procs(family, 30)

    def wait(self, what: str, done: Callable[[], bool], timeout: float = 180, every: float = EVERY) -> None:
        """Wait for a condition; SetupError with the log's tail when the driver ends or time is up."""
        until = time.monotonic() + timeout
        while not done():
            ended = self.driver is not None and self.driver.poll() is not None
            if ended or time.monotonic() > until:
                code = self.driver.returncode if self.driver else None
                tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
                raise SetupError(f"Waited for {what}; the driver's exit code is {code}.\n{tail}")
            time.sleep(every)

    def epoch(self) -> int:
        """Return E, -1 while there is no master."""
        return Master.open(self.layout).epoch if Master.exists(self.layout) else -1

    def offsets_read(self) -> int:
        """Return the number of offsets that the ledger's epochs cover."""
        if not Ledger.exists(self.layout):
            return 0
        epochs = Ledger.ensure(self.layout).read()
        return sum(len(part) for epoch in epochs for part in list_moving_ranges(epoch))

    def drain(self, offsets: int, timeout: float = 180, every: float = EVERY) -> None:
        """Wait until so many offsets are read and an edge stands at the end; a look takes 10 ms of a core."""

        def drained() -> bool:
            if self.offsets_read() < offsets:
                return False
            master = Master.open(self.layout)
            return master.edge == master.epoch

        self.wait(f"{offsets} offsets to be read", drained, timeout, every)

    def heartbeat(self) -> dict[str, Any]:
        """Return what the driver last said of itself."""
        found: dict[str, Any] = json.loads((self.home / "streams" / self.name / "driver.json").read_text())
        return found
