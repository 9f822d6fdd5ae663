"""A pipeline over one topic of a broker that lets in only who may, and its stream as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.joined_world import eventually
from tests.e2e.world import ROOT
from tests.faults.rig.secured_broker import SecuredBroker

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.layout import Layout
from seamline.supervisor.outside import stop_stream

DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name="kept",
    source=KafkaSource(
        topic="orders",
        schema="n INT, at TIMESTAMP",
        event_time="at",
        watermark=Watermark("10 minutes", idle_after="2 seconds"),
    ),
    views=[View("hourly", keys=[], window=Tumbling("1 hour"), measures={"n": count()})],
    stream=Stream(trigger="100 milliseconds"),
    batch=Batch("1 day", "2026-01-05"),
)
"""


def send(broker: SecuredBroker, count: int) -> None:
    """Send so many orders, as somebody who may."""
    with RecordWriter(broker.connection) as writer:
        for number in range(count):
            writer.send("orders", value=json.dumps({"n": number, "at": "2026-01-05T08:00:00Z"}).encode())


def describe(connection: KafkaConnection) -> dict[str, Any]:
    """Write a connection as Airflow has it."""
    extra = {
        "bootstrap.servers": connection.brokers,
        "security.protocol": connection.security_protocol,
        "sasl.mechanism": connection.sasl_mechanism,
        "ssl.ca.location": connection.ca_file,
        "ssl.certificate.location": connection.cert_file,
        "ssl.key.location": connection.key_file,
        "ssl.key.password": connection.key_password,
    }
    if tokens := connection.tokens:
        extra["sasl.oauthbearer.method"] = "oidc"
        extra["sasl.oauthbearer.token.endpoint.url"] = tokens.url
        extra["sasl.oauthbearer.scope"] = tokens.scope
        extra["sasl.oauthbearer.extensions"] = ",".join(tokens.extensions)
        extra["https.ca.location"] = tokens.ca_file
    login = {"login": connection.username, "password": connection.password}
    return {**login, "extra": {name: value for name, value in extra.items() if value}}


class Kept:
    """The pipeline in a folder of its own; ``login`` is the Airflow connection, and may be changed."""

    def __init__(self, home: Path, broker: SecuredBroker, login: Mapping[str, Any]) -> None:
        self.home, self.broker, self.login = home, broker, dict(login)
        self.layout = Layout(home / "warehouse", "kept")
        self.more: dict[str, str] = {}
        (home / "pipelines").mkdir()
        (home / "pipelines" / "kept.py").write_text(DEFINITION)

    def seamline(self, *words: str) -> str:
        """Run a command of ours; return all that it said."""
        settings = {
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps({"conn_type": "kafka", **self.login}),
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(self.home),
            "SEAMLINE_PIPELINES": str(self.home / "pipelines"),
            "SEAMLINE_WAREHOUSE": str(self.home / "warehouse"),
            **self.more,
        }
        command = [sys.executable, "-m", "seamline.cli", *words]
        done = subprocess.run(
            command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def start(self) -> None:
        """Start the stream."""
        self.seamline("stream", "start", "kept", "--here")

    def stop(self) -> None:
        """Stop it, and see it end."""
        self.seamline("stream", "stop", "kept")
        assert stop_stream(self.layout, timeout=120)

    def log(self) -> str:
        """Return the end of its log."""
        return self.seamline("stream", "logs", "kept", "--lines", "1000")

    def list_epochs(self) -> list[Any]:
        """Return what the ledger has."""
        return list(Ledger.ensure(self.layout).read()) if Ledger.exists(self.layout) else []

    def read_to(self) -> int:
        """Return the offset up to which the stream has read."""
        return max((each.end for epoch in self.list_epochs() for each in epoch.ranges), default=0)

    def await_all(self) -> int:
        """Wait until all that was sent is read, each record once; return how many records there are."""
        with TopicAdmin(self.broker.connection) as admin:
            end = admin.end_offsets("orders")[0]
        eventually("all to be read", lambda: self.read_to() == end)
        assert sum(each.end - each.start for epoch in self.list_epochs() for each in epoch.ranges) == end
        return end
