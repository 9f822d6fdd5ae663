"""The lineage of a real stream over a real topic, as a server of OpenLineage takes it from the driver."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.importing.commands import Commands
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all
from tests.unit.lineage.receiver import Received, receive

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.storage.delta_table import Table

pytestmark = pytest.mark.faults
TOPIC = "told.orders"
DEFINITION = """
from seamline import *

told = Pipeline(
    name="told",
    source=KafkaSource(
        topic="told.orders",
        schema="id BIGINT NOT NULL, shop STRING, amount BIGINT, at TIMESTAMP NOT NULL",
        event_time="at",
    ),
    select={"place": "upper(shop)"},
    views=[View("by_place", keys=["place"], window=Tumbling("1 hour"), measures={"total": sum("amount")})],
    stream=Stream(trigger="100 milliseconds"),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""


@pytest.fixture
def received() -> Iterator[Received]:
    """A server of OpenLineage."""
    with receive() as found:
        yield found


@pytest.fixture
def commands(tmp_path: Path, kafka: KafkaConnection, received: Received) -> Iterator[Commands]:
    """A topic of orders, the commands of a pipeline that counts them, and the settings of the official client."""
    made = Commands(tmp_path, kafka, told=DEFINITION)
    made.env |= {
        "OPENLINEAGE_URL": received.url,
        "OPENLINEAGE_NAMESPACE": "shop",
        "SEAMLINE_LINEAGE_EVERY": "200 milliseconds",
    }
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, 2)
        yield made
        end_all(made.home)
        admin.delete_topic(TOPIC)


def send(kafka: KafkaConnection, first: int, count: int) -> None:
    """Send orders, each to one of both partitions."""
    with RecordWriter(kafka) as writer:
        for id in range(first, first + count):
            value = {"id": id, "shop": "a", "amount": id, "at": f"2026-01-05T08:{id:02}:00Z"}
            writer.send(TOPIC, value=json.dumps(value).encode(), partition=id % 2)


def count_told(received: Received) -> int:
    """Count the offsets that were told; each is told once."""
    assert received.problems == []
    told: dict[int, int] = {}
    for event in list(received.events):
        for each in event["inputs"]:
            for part in each["inputFacets"].get("seamline_offsets", {"partitions": []})["partitions"]:
                assert told.setdefault(part["partition"], part["start"]) == part["start"]
                told[part["partition"]] = part["end"]
    return sum(told.values())


def find_output(event: dict[str, Any], end: str) -> dict[str, Any]:
    """Find what is written by the end of its name."""
    [found] = [each for each in event["outputs"] if each["name"].endswith(end)]
    return dict(found)


def test_a_stream_is_told_through_its_death(
    commands: Commands, kafka: KafkaConnection, received: Received
) -> None:
    """Every offset once; what a killed driver had read and not told, by the one that follows it."""
    send(kafka, 1, 4)
    commands.seamline("stream", "start", "told", "--here")
    eventually("what was read to be told", lambda: count_told(received) == 4)
    start = received.events[0]
    assert (start["eventType"], start["job"]["namespace"]) == ("START", "shop")
    assert start["job"]["name"] == "seamline.told.stream"
    [topic] = start["inputs"]
    assert (topic["namespace"], topic["name"]) == (f"kafka://{kafka.brokers}", TOPIC)
    served = find_output(start, "views/by_place/serving")
    [place] = served["facets"]["columnLineage"]["fields"]["place"]["inputFields"]
    assert (place["name"], place["field"]) == (TOPIC, "shop")
    assert place["transformations"][0]["description"] == "upper(shop)"

    heartbeat = json.loads((commands.home / "streams" / "told" / "driver.json").read_text())
    os.kill(heartbeat["pid"], signal.SIGKILL)
    send(kafka, 5, 6)
    eventually("the rest to be told", lambda: count_told(received) == 10)
    commands.seamline("stream", "stop", "told")
    eventually("the end to be told", lambda: received.states[-1] == "COMPLETE")
    states = {state: received.states.count(state) for state in received.states}
    assert (states["START"], states["ABORT"], states["COMPLETE"]) == (2, 1, 1)
    last = received.events[-1]
    master = Table.open(commands.home / "warehouse" / "told" / "master")
    assert find_output(last, "told/master")["facets"]["version"]["datasetVersion"] == str(master.version)
    assert last["run"]["facets"]["seamline_stream"]["epoch"] >= 1
    log = (commands.home / "streams" / "told" / "driver.log").read_text()
    assert "Lineage is not told" not in log
