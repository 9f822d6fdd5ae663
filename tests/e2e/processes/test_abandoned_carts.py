"""The example of a process function over a real topic, with its driver killed on the way: right in both layers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.joined_oracle import LATE
from tests.e2e.joined_world import Example, eventually

from seamline.kafka.connections import KafkaConnection
from seamline.supervisor.outside import stop_stream

NAME = "abandoned_carts"
BUILT = ("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
SENT = ("--from", "2026-03-01T09:00", "--rate", "1")


@pytest.fixture
def example(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Example]:
    """Have the topic, and the definition."""
    made = Example(tmp_path, kafka, NAME, BUILT)
    with made.at_work():
        yield made


@pytest.mark.faults
def test_carts_are_right_in_both_layers_whatever_dies(example: Example) -> None:
    """Before a build, after it, and when a visitor turns out to have come back."""
    example.produce(*SENT, "--seconds", "7200")
    example.seamline("stream", "start", NAME, "--here")
    eventually("the first clicks to be read", example.is_read)
    example.kill_driver()
    example.produce("--from", "2026-03-01T11:00", "--rate", "1", "--seconds", "3600")
    eventually("all to be read", example.is_read)
    example.drain()
    assert example.differences() == ""
    assert example.differences("speed") == ""
    example.seamline("run", NAME, "--dirty")
    assert example.differences() == ""
    assert example.differences("batch", closed=True) == ""
    example.require_certified()
    example.audit()
    late = LATE[NAME](example.held(), BUILT)
    example.send(late.topic, late.row, late.at_ms)
    eventually("the late click to be read", example.is_read)
    assert example.differences() == ""
    assert example.differences("batch", closed=True) != "", "what was built is as it was"
    said = example.seamline(
        "explain", example.joined, "--key", late.key, "--key", "kind=bought", "--window", late.window
    )
    assert "  yes  the parts merged give the answer" in said and "row of examples.cart_clicks/" in said
    example.audit()
    example.seamline("run", NAME, "--dirty")
    assert example.differences("batch", closed=True) == ""
    assert "  build " not in example.seamline("plan", NAME)
    example.require_certified()
    example.seamline("stream", "stop", NAME)
    assert stop_stream(example.layout, timeout=120)
