"""A broker that comes back with a shorter log, as a leader does that lacks what was acknowledged: the stream stops."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.failover.clusters import TOPIC, Clusters, send
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all

from seamline.model.errors import RecordsReplaced
from seamline.supervisor.supervisor_heartbeat import Heartbeat

pytestmark = pytest.mark.faults
OLD, READ = 100, 200


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    """A stream that has read what its broker has lost, while the broker was away."""
    made = Clusters(tmp_path)
    broker = made.add("kafka_a", shift=0)
    send(broker, range(OLD))
    broker.stop()
    kept = tmp_path / "kept"
    kept.mkdir()
    for part in (broker.home / "data").glob(f"{TOPIC}-*"):
        shutil.copytree(part, kept / part.name)
    broker.start()
    send(broker, range(OLD, READ))
    made.seamline("stream", "start", "shop", "--here")
    eventually("the topic to be read", lambda: len(made.read_ids()) == READ)
    broker.stop()
    for part in kept.iterdir():
        shutil.rmtree(broker.home / "data" / part.name)
        shutil.copytree(part, broker.home / "data" / part.name)
    broker.start()
    yield made
    end_all(made.home)
    broker.stop()


@pytest.mark.parametrize("more", [0, 300], ids=["shorter", "regrown"])
def test_records_that_a_broker_has_lost_are_noticed_while_the_stream_is_up(
    clusters: Clusters, more: int
) -> None:
    """Other records have the offsets of those that were read: they would never be read, and nobody would know."""
    before = clusters.read_ids()
    broker = clusters.brokers["kafka_a"]
    ended = clusters.ends("kafka_a")
    assert sum(ended.values()) < READ
    send(broker, range(1000, 1000 + max(more, 10)))

    def said() -> str:
        beat = Heartbeat.read(clusters.home, "shop")
        return beat.last_error if beat else ""

    words = eventually(
        "the stream to stop",
        lambda: said() if said().startswith(f"exit code {RecordsReplaced.exit_code}") else "",
    )
    assert "Kafka returns another record" in words if more else "but Kafka ends at" in words
    assert clusters.read_ids() == before
