"""A table of PostgreSQL, its change events in a topic, and what a stream makes of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from kafka import KafkaConsumer, TopicPartition
from tests.e2e.world import ROOT
from tests.ports import free_ports
from tests.services.addresses import Postgres
from tests.services.connect import Connect

from seamline import read
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.epoch_log import each_epoch
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files

NAME, PREFIX, TABLE = "account_balances", "bank", "public.accounts"
TOPIC = f"{PREFIX}.{TABLE}"
PARTITIONS = 2
# A segment is closed after a second, and compacted as soon as the broker's cleaner comes by.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "1000",
    "delete.retention.ms": "86400000",
}
ACCOUNTS = (
    "CREATE TABLE accounts (id bigint PRIMARY KEY, country text NOT NULL, balance numeric(12, 2) NOT NULL, "
    "opened date, note text)"
)
ANSWER = "SELECT country, count(*), sum(balance) FROM accounts GROUP BY country"
Answer = dict[str, tuple[int, Any]]


class Changed:
    """The table, the connector, the topic, the definition that is shipped, and its tables."""

    def __init__(self, home: Path, kafka: KafkaConnection, database: Postgres) -> None:
        self.home, self.kafka = home, kafka
        self.connect = Connect(home, free_ports(), kafka, database, PREFIX)
        self.connection = psycopg.connect(database.url, autocommit=True)
        self.layout = Layout(home / "warehouse", NAME)
        self.definitions = home / "pipelines"
        self.definitions.mkdir()
        text = (ROOT / "include" / "examples" / f"{NAME}.py").read_text()
        (self.definitions / f"{NAME}.py").write_text(text)
        broker = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.brokers}}
        self.settings = {
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(broker),
            "GX_ANALYTICS_ENABLED": "false",
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_PIPELINES": str(self.definitions),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
        }

    def start_connector(self) -> None:
        """Start the worker that reads the table."""
        self.connect.start([TABLE], decimal_handling_mode="string")

    def seamline(self, *words: str) -> str:
        """Run a command, and require that it went well; return what it said."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        env = {**os.environ, **self.settings}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def sql(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the database, or change something there."""
        cursor = self.connection.execute(text, values or None)
        return cursor.fetchall() if cursor.description else []

    def table(self) -> Answer:
        """Return what the database says of the table."""
        return {country: (count, total) for country, count, total in self.sql(ANSWER)}

    def view(self) -> Answer:
        """Return what is answered of it."""
        if not Master.exists(self.layout):
            return {}
        found = read(
            f"{NAME}.by_country",
            warehouse=self.layout.warehouse,
            definitions=self.definitions,
            format="arrow",
        )
        rows = found.to_pylist()
        return {row["country"]: (row["accounts"], row["balance"]) for row in rows if row["accounts"]}

    def agrees(self) -> bool:
        """Return whether the answer is the table."""
        return self.is_read() and self.view() == self.table()

    def is_read(self) -> bool:
        """Return whether the stream has read the topic to its end."""
        reached: Counter[int] = Counter()
        for epoch in each_epoch(self.layout) if Master.exists(self.layout) else ():
            for run in epoch.ranges:
                reached[run.lane.partition] = max(reached[run.lane.partition], run.end)
        return dict(reached) == {part: end for part, end in self.ends().items() if end}

    def ends(self) -> dict[int, int]:
        """Return where the partitions of the topic end."""
        with TopicAdmin(self.kafka) as admin:
            return dict(admin.end_offsets(TOPIC))

    def log(self) -> list[Any]:
        """Read what the topic has, each record with its place."""
        ends = {TopicPartition(TOPIC, part): end for part, end in self.ends().items()}
        consumer = KafkaConsumer(**self.kafka.for_client(), enable_auto_commit=False)
        found: list[Any] = []
        try:
            consumer.assign(list(ends))
            consumer.seek_to_beginning()
            while any(consumer.position(place) < end for place, end in ends.items()):
                for records in consumer.poll(timeout_ms=500).values():
                    found += records
        finally:
            consumer.close()
        return found

    def changes(self) -> list[tuple[int, str, int | None]]:
        """List the changes that the topic has: the key, what was done, and at which place of the database's log."""
        found = []
        for each in self.log():
            event = json.loads(each.value) if each.value else {"op": "tombstone", "source": {}}
            found.append((json.loads(each.key)["id"], event["op"], event["source"].get("lsn")))
        return found

    def rows(self, table: str = "master", columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Read the rows of a table of the pipeline, with their places in the topic."""
        paths = Files.of(Table.open(self.layout.table(table))).paths
        names = ["_partition", "_offset", *columns]
        return [row for path in paths for row in pq.read_table(path, columns=names).to_pylist()]

    @property
    def spoken(self) -> str:
        """What the driver has said."""
        return "".join(each.read_text() for each in (self.home / "streams" / NAME).glob("*.log"))
