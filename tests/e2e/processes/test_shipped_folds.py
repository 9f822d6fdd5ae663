"""The shipped pattern, alarm and co-group over real topics: right in both layers, whatever comes late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.joined_world import Example, eventually
from tests.e2e.processes.folded_oracle import FOLDED, LATER

from seamline.kafka.connections import KafkaConnection
from seamline.supervisor.outside import stop_stream

pytestmark = pytest.mark.faults
HOURS = ("2026-03-01T09:00:00Z", "2026-03-01T12:00:00Z")
DAYS = ("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
CASES = {"merged_sessions": (HOURS, "1"), "sensor_alarms": (DAYS, "4"), "stolen_passwords": (HOURS, "1")}


@pytest.fixture(params=sorted(CASES))
def example(request: pytest.FixtureRequest, kafka: KafkaConnection, tmp_path: Path) -> Iterator[Example]:
    """Have the topics, and the definition."""
    built, _ = CASES[request.param]
    made = Example(tmp_path, kafka, request.param, built, FOLDED[request.param])
    with made.at_work():
        yield made


def test_it_is_right_in_both_layers(example: Example) -> None:
    """Before a build, after it, and when something comes late."""
    built, rate = CASES[example.name]
    example.produce("--from", "2026-03-01T09:00", "--rate", rate, "--seconds", "10790")
    example.seamline("stream", "start", example.name, "--here")
    eventually("all to be read", example.is_read)
    example.drain()
    assert example.differences() == ""
    assert example.differences("speed") == ""
    example.seamline("run", example.name, "--dirty")
    assert example.differences() == ""
    assert example.differences("batch", closed=True) == ""
    example.require_certified()
    example.audit()
    late = LATER[example.name](example.held(), built)
    example.send(late.topic, late.row, late.at_ms)
    eventually("the late row to be read", example.is_read)
    assert example.differences() == ""
    assert example.differences("batch", closed=True) != "", "what was built is as it was"
    keys = [word for key in late.key.split() for word in ("--key", key)]
    said = example.seamline("explain", example.joined, *keys, "--window", late.window)
    assert "  yes  the parts merged give the answer" in said
    example.audit()
    example.seamline("run", example.name, "--dirty")
    assert example.differences("batch", closed=True) == ""
    assert "  build " not in example.seamline("plan", example.name)
    example.require_certified()
    example.seamline("stream", "stop", example.name)
    assert stop_stream(example.layout, timeout=120)
