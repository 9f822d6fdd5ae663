"""Kafka Connect with Debezium's connector to PostgreSQL: ``make services`` fetches it, and a test runs its own."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
from tests.services.addresses import KafkaConnection, Postgres
from tests.services.programs import HOME
from tests.services.server import ServiceBroken, launch, require_answer, tie

from seamline.local.checkout import Checkout
from seamline.local.install import fetch_parts
from seamline.runtime.java import java_home, kafka_jars, list_java_parts

LISTING = Path(__file__).with_suffix(".toml")
JARS = HOME / "connect"
WORKER = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "plugin.discovery": "service_load",
    # What a worker has sent since it last wrote its offsets down, or was stopped, is sent again by the next one.
    "offset.flush.interval.ms": "600000",
    "producer.linger.ms": "5",
}
CONNECTOR = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "publication.autocreate.mode": "filtered",
    "poll.interval.ms": "50",
}


def find_jars(folder: Path = JARS) -> list[Path]:
    """Return the jars that a broker lacks; ServiceBroken where one was not fetched."""
    found = [folder / part.jar for part in list_java_parts("connect", LISTING)]
    if missing := [each.name for each in found if not each.exists()]:
        raise ServiceBroken(
            f"{missing[0]} is not in {folder}.\n\nHint: `make services` fetches it, 13 MB in all."
        )
    return found


def fetch(folder: Path = JARS) -> None:
    """Bring the jars that are missing."""
    fetch_parts(Checkout(HOME.parents[1]), "connect", LISTING, folder)


class Connect:
    """One worker with one connector, which captures tables of one database."""

    def __init__(
        self, home: Path, port: int, kafka: KafkaConnection, database: Postgres, prefix: str
    ) -> None:
        self.home, self.port, self.kafka, self.database, self.prefix = home, port, kafka, database, prefix
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def slot(self) -> str:
        """The replication slot that keeps what was not read yet."""
        return f"{self.prefix}_slot"

    def start(self, tables: Iterable[str], *, schemas: bool = False, **more: str) -> None:
        """Start the worker, and wait until its task runs; ``more`` are settings with _ for a dot."""
        self.starts += 1
        log = self.home / f"connect-{self.starts}.log"
        worker, connector = self.home / "worker.properties", self.home / "connector.json"
        enabled = str(schemas).lower()
        offsets = self.home / "connect.offsets"
        write_properties(
            worker,
            {
                **WORKER,
                "bootstrap.servers": self.kafka.brokers,
                "listeners": f"http://127.0.0.1:{self.port}",
                "offset.storage.file.filename": str(offsets),
                "key.converter.schemas.enable": enabled,
                "value.converter.schemas.enable": enabled,
            },
        )
        connector.write_text(json.dumps({"name": self.prefix, "config": self.settings(tables, more)}))
        path = os.pathsep.join(map(str, [*find_jars(), *kafka_jars()]))
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", path]
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = [str(java_home() / "bin" / "java"), *options, main, str(worker), str(connector)]
        self.process = launch(log, [*tie(), *command])
        require_answer("Kafka Connect", self.process, log, self.runs)

    def settings(self, tables: Iterable[str], more: Mapping[str, str]) -> dict[str, str]:
        """Return the connector's settings."""
        return {
            **CONNECTOR,
            "topic.prefix": self.prefix,
            "slot.name": self.slot,
            "publication.name": f"{self.prefix}_publication",
            "table.include.list": ",".join(tables),
            "database.hostname": self.database.host,
            "database.port": str(self.database.port),
            "database.user": self.database.user,
            "database.password": self.database.password,
            "database.dbname": self.database.database,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def runs(self) -> bool:
        """Return whether the connector's task runs."""
        try:
            status = self.ask(f"/connectors/{self.prefix}/status")
        except OSError:
            return False
        return [each["state"] for each in status["tasks"]] == ["RUNNING"]

    def stop(self) -> None:
        """Let the worker end, which writes its offsets down."""
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=60)
            self.process = None

    def kill(self) -> None:
        """End the worker at once: what it had sent since it wrote its offsets down, it sends again."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def drop_slot(self) -> None:
        """Let the database forget the slot, which would keep it from being dropped."""
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
                "WHERE slot_name = %s AND active",
                [self.slot],
            )
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                [self.slot],
            )

    def ask(self, path: str) -> Any:
        """Ask the worker."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.loads(answer.read())


def write_properties(file: Path, settings: Mapping[str, str]) -> None:
    """Write settings as Java reads them."""
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


if __name__ == "__main__":
    fetch()
