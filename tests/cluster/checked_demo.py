"""The demo's stages and its check, on services that somebody else has started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.stack import ProcessStack

from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.lake.storage.layout import definitions_folder
from seamline.local.demo.options import Options
from seamline.local.demo.scene import Scene
from seamline.local.demo.stages import BATCH, Demo, wait_for_condition
from seamline.model.errors import SetupError
from seamline.orchestration.airflow_api import AirflowApi
from seamline.supervisor.outside import read_stream_status

UNTIL = "2013-01-06"
SECONDS = 10.0


class ClusterScene(Scene):
    """The scene of a demo whose broker and Airflow are there."""

    @property
    def definitions(self) -> Path:
        """The definitions of all."""
        return definitions_folder()

    @contextmanager
    def broker(self) -> Iterator[KafkaConnection]:
        """Give the broker that there is."""
        yield read_airflow_connection("kafka_default")

    @contextmanager
    def airflow(self) -> Iterator[AirflowApi]:
        """Give the Airflow that there is."""
        yield AirflowApi.from_env()


class ClusterDemo(Demo):
    """A demo of a few days on a process stack; its answers and its journal are in ``home``."""

    def __init__(self, stack: ProcessStack, home: Path, *, backfill_days: int) -> None:
        self.stack = stack
        home.mkdir(parents=True)
        options = Options(home, True, SECONDS, UNTIL, backfill_days, 0, 0, os.environ["SEAMLINE_WAREHOUSE"])
        super().__init__(options, ClusterScene(options))

    def await_stream(self) -> None:
        """Wait until a supervisor somewhere has the stream's lease."""
        wait_for_condition("the stream to come up", lambda: read_stream_status("flights").running, 240)
        self.say("the stream is up, started by the DAG flights__stream")

    def create_backfill(self, *words: str) -> None:
        """Create a backfill by Airflow's command, on a scheduler's host."""
        self.stack.run("airflow-scheduler-1", "airflow", "backfill", "create", "--dag-id", BATCH, *words)

    def require_right(self) -> None:
        """Ask for all answers again, and have them checked; SetupError if one is wrong."""
        connection = read_airflow_connection("kafka_default")
        for side in ("merged", "batch", "speed"):
            self.keep_answer(side, side)
        self.keep_answer("airports", "merged", view="delay_by_airport")
        if not self.verify(connection, "flights.departures"):
            raise SetupError("The demo's check has failed.", hint="see the lines above.")
