"""The commands of a person whose pipelines, warehouse and broker are a test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.world import ROOT

from seamline.kafka.connections import KafkaConnection


class Commands:
    """A home with ``pipelines`` and ``warehouse``, and the commands there."""

    def __init__(self, home: Path, kafka: KafkaConnection | None, **definitions: str) -> None:
        self.home = home
        (home / "pipelines").mkdir()
        for name, text in definitions.items():
            (home / "pipelines" / f"{name}.py").write_text(text)
        broker = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.brokers if kafka else ""}}
        self.env = {
            **os.environ,
            **({"AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(broker)} if kafka else {}),
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_PIPELINES": str(home / "pipelines"),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
        }

    def seamline(self, *words: str, code: int = 0) -> str:
        """Run a command; return what it said."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "seamline.cli", *words],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
