"""The commands of sinks as processes of their own, which failpoints kill; the position proves where that struck."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import RowTopic
from seamline.model.protocol.sinks.positions import SinkPosition

ROOT = Path(__file__).parents[3]
POINTS = ("sink_taken", "sink_begun", "sink_half", "sink_rows", "sink_written", "sink_sent")
BEFORE = POINTS[:4]
"""Points at which the transaction has not been committed."""
KILLED = -9


@dataclass
class KilledSinks:
    """The sinks of a definition in a folder, by processes that are started for that."""

    folder: Path
    kafka: KafkaConnection
    text: str
    """The definition of the pipeline ``shop``."""
    topic: str
    owner: str
    kills: int = field(default=0, init=False)
    last: SinkPosition | None = field(default=None, init=False)
    """The position after the last start."""

    def __post_init__(self) -> None:
        definitions = self.folder / "definitions"
        definitions.mkdir()
        (definitions / "shop.py").write_text(self.text)
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": self.kafka.brokers}}
        self.env = {
            **os.environ,
            "SEAMLINE_PIPELINES": str(definitions),
            "SEAMLINE_WAREHOUSE": str(self.folder / "w"),
            "SEAMLINE_HOME": str(self.folder / "home"),
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(connection),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)]),
        }

    def seamline(self, *words: str, fail: str = "") -> tuple[int, str]:
        """Run a command, which a failpoint may end."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.e2e.sinks.small_steps", *words],
            env={**self.env, "SEAMLINE_FAIL": fail},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def send(self) -> None:
        """Send what is new."""
        code, said = self.seamline("sinks", "run", "shop", "--once")
        assert code == 0, said

    def kill(self, point: str, passing: int) -> None:
        """Send, and be killed at a point; what is committed proves where."""
        code, said = self.seamline("sinks", "run", "shop", "--once", fail=f"{point}:{passing}")
        if code == 0:
            self.last = self.position()
            return
        assert code == KILLED, said
        before, self.last = self.last, self.position()
        moved = self.last != before
        assert moved == (point not in BEFORE or passing > 1), (point, passing)
        self.kills += 1

    def position(self) -> SinkPosition | None:
        """Return the position that is committed; who asks fences the sink off, as any later process does."""
        with closing(RowTopic(self.kafka, self.topic, self.owner)) as topic:
            found = topic.read_position()
        return None if found in (None, b"empty", b"clearing") else SinkPosition.from_json(found)


@contextmanager
def deleting(kafka: KafkaConnection, *names: str) -> Iterator[KafkaConnection]:
    """Delete topics in the end."""
    yield kafka
    with TopicAdmin(kafka) as admin:
        for name in {*names} & {*admin.topics()}:
            admin.delete_topic(name)
