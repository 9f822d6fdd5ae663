"""What is wrong outside our code: each mistake has its sentence and its exit code, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack

ROOT = Path(__file__).parents[2]
DEFINITION = """
from seamline import *

shop = Pipeline(
    name="shop",
    source=KafkaSource(
        topic="no.such.topic",
        schema="id INT NOT NULL, customer STRING, placed_at TIMESTAMP",
        event_time="placed_at",
    ),
    views=[View("by_customer", keys=["customer"], window=Tumbling("1 hour"), measures={"orders": count()})],
    batch=Batch("1 day", "2024-01-01"),
)
"""


@pytest.fixture
def busy() -> Iterator[int]:
    """Return a port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def ended(stack: StreamStack) -> tuple[int, str]:
    """Start the driver, wait for its end, and give its exit code and what it said."""
    stack.start()
    assert stack.driver
    try:
        code = stack.driver.wait(120)
    finally:
        stack.kill()
    lines = stack.log.read_text().splitlines()
    ours = [at for at, line in enumerate(lines) if line.startswith("Hint: ")]
    assert "Traceback" not in "\n".join(lines)
    assert ours, "\n".join(lines)
    return code, "\n".join(lines[ours[0] - 2 :])


def seamline(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does, on a warehouse that does not exist yet."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "include"),
        "SEAMLINE_HOME": str(home / "state"),
        "SEAMLINE_PIPELINES": str(home / "pipelines"),
        "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
    }
    command = [sys.executable, "-m", "seamline.cli", *argv]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def define(home: Path, text: str = DEFINITION) -> None:
    """Write the one definition."""
    (home / "pipelines").mkdir()
    (home / "pipelines" / "shop.py").write_text(text)


def test_a_stream_of_a_topic_that_does_not_exist(kafka: KafkaConnection, tmp_path: Path) -> None:
    """Waiting for it would look like an idle stream; making it would hide a typing error."""
    stack = StreamStack(tmp_path, DEFINITION, kafka, "shop")
    code, said = ended(stack)
    assert code == 11
    assert "'no.such.topic' does not exist" in said
    assert not stack.layout.table("master").exists()
    with TopicAdmin(kafka) as admin:
        assert "no.such.topic" not in admin.topics()


def test_a_stream_whose_broker_is_down(tmp_path: Path) -> None:
    """The supervisor tries again later; the operator must read which address is meant."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    stack = StreamStack(tmp_path, DEFINITION, KafkaConnection(address), "shop")
    code, said = ended(stack)
    assert code == 10
    assert f"No Kafka broker answers at {address}" in said
    assert not stack.layout.table("master").exists()


@pytest.mark.parametrize(
    ("argv", "code", "fact"),
    [
        (["query", "shop.by_client"], 4, "by_client"),
        (["query", "shops.by_customer"], 4, "shops"),
        (["backfill", "shop", "2024-02-02", "2024-02-01"], 5, "2024-02-02T00:00:00Z is not before"),
        (["backfill", "shop", "2024-02-01T06:00", "2024-02-02"], 5, "is inside an interval"),
        (["backfill", "shop", "2023-12-31", "2024-01-02"], 8, "before the pipeline's start"),
        (["backfill", "shop", "2998-01-01", "2999-01-01"], 8, "has not begun"),
    ],
)
def test_a_command_that_cannot_be_meant(tmp_path: Path, argv: list[str], code: int, fact: str) -> None:
    """Scripts go by the code, people by the sentence; nothing is half done."""
    define(tmp_path)
    done = seamline(tmp_path, *argv)
    assert done.returncode == code, done.stderr
    assert fact in done.stderr
    assert "Hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["pipelines"]


def test_a_definition_with_an_unknown_column(tmp_path: Path) -> None:
    """The author is told the file, the line and the field, before anything runs."""
    define(tmp_path, DEFINITION.replace('keys=["customer"]', 'keys=["client"]'))
    done = seamline(tmp_path, "check")
    line = next(at for at, text in enumerate(DEFINITION.splitlines(), 1) if "View(" in text)
    assert done.returncode == 3
    assert f"shop.py:{line}: " in done.stderr
    assert "'client'" in done.stderr
    assert "Traceback" not in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["pipelines"]


def test_a_second_demo_on_the_same_ports(tmp_path: Path, busy: int) -> None:
    """It must not touch the first one."""
    command = [sys.executable, "-m", "seamline.local.demo", "--exit"]
    command += ["--home", str(tmp_path / "demo"), "--kafka-port", str(busy)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "include")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 6
    assert str(busy) in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "demo").exists()
