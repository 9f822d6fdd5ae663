"""What befalls a topic, on a real broker: poison, a new partition, retention, deletion, and the end by word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from seamline.cli import main
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.ledger import Ledger
from seamline.local.stack import StreamStack
from seamline.model.errors import OffsetGap, TopicRecreated
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import count_touching_holes, list_open_holes
from seamline.model.time.intervals import Interval
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.stream_state import Actual
from seamline.supervisor.observe import observe

TOPIC, EXTRAS = "shop.losses", "shop.extras"
NAME = "losses"
DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name="losses",
    source=KafkaSource(
        topic=["shop.losses", "shop.extras"],
        schema="id INT NOT NULL, placed_at TIMESTAMP",
        event_time="placed_at",
        watermark=Watermark("10 minutes", idle_after="1 hour"),
    ),
    views=[View("orders", keys=["id"], window=Tumbling("1 hour"), measures={"n": count()})],
    stream=Stream(trigger="100 milliseconds"),
    batch=Batch("1 day", "2024-01-01"),
)
"""
POISON = 7
DAY = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
PATIENCE = 300
Place = tuple[str, int, int]
"""Topic id, partition and offset."""


@pytest.fixture
def stack(
    admin: TopicAdmin, kafka: KafkaConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StreamStack]:
    made = StreamStack(tmp_path, DEFINITION, kafka, NAME, env={"SEAMLINE_POISON": "fugu"})
    for name, value in made.settings.items():
        monkeypatch.setenv(name, value)
    yield made
    if made.driver:
        made.kill()


@pytest.fixture
def admin(kafka: KafkaConnection) -> Iterator[TopicAdmin]:
    """Whoever has the topics, of this test alone."""
    with TopicAdmin(kafka) as found:
        found.create_topic(TOPIC, 1)
        found.create_topic(EXTRAS, 1)
        yield found
        found.delete_topic(TOPIC)
        found.delete_topic(EXTRAS)


def send(connection: KafkaConnection, numbers: range, partition: int = 0, topic: str = TOPIC) -> None:
    with RecordWriter(connection) as writer:
        for number in numbers:
            row = {"id": number, "placed_at": "2024-01-01T06:00:00Z"}
            if number == POISON:
                row["note"] = "fugu"
            writer.send(topic, value=json.dumps(row).encode(), partition=partition)


def stored(stack: StreamStack, table: str) -> list[Place]:
    """List the coordinates that a table holds, in order."""
    rows = DeltaTable(str(stack.layout.table(table))).to_pyarrow_table(
        columns=["_topic_id", "_partition", "_offset"]
    )
    return sorted(tuple(row.values()) for row in rows.to_pylist())


def ledger(stack: StreamStack) -> list[Epoch]:
    return Ledger.ensure(stack.layout).read()


def seen(stack: StreamStack) -> Observation:
    """Look at the stream from outside."""
    return observe(NAME, stack.layout, stack.pipeline)


def ends(stack: StreamStack) -> int:
    """Wait for the driver to end by itself; give its exit code."""
    assert stack.driver
    return stack.driver.wait(PATIENCE)


def read_to_its_end(stack: StreamStack, kafka: KafkaConnection, admin: TopicAdmin) -> list[Place]:
    """Live until the shop has closed; give what the master holds."""
    first, extras = admin.topic_id(TOPIC), admin.topic_id(EXTRAS)

    # A record that the kernel cannot bear is found by halving, and refused alone (rule 17).
    send(kafka, range(12))
    send(kafka, range(500, 507), topic=EXTRAS)
    stack.start()
    stack.drain(19, PATIENCE)
    assert stored(stack, "quarantine") == [(first, 0, POISON)]
    refused = [epoch for epoch in ledger(stack) if epoch.refused]
    assert [dict(epoch.refused) for epoch in refused] == [{"kernel error": 1}]
    detail = DeltaTable(str(stack.layout.table("quarantine"))).to_pyarrow_table()["_detail"].to_pylist()
    assert "a record was poisonous" in detail[0]

    # A partition that is added is read from its first offset.
    admin.add_partitions(TOPIC, 2)
    send(kafka, range(100, 105), partition=1)
    stack.drain(24, PATIENCE)
    accepted = [(first, 0, at) for at in range(12) if at != POISON] + [(first, 1, at) for at in range(5)]
    # Two topics are read as one.
    accepted += [(extras, 0, at) for at in range(7)]
    assert stored(stack, "master") == sorted(accepted)

    # Whoever looks sees what it does, and how far it is.
    look = seen(stack)
    assert (look.actual, look.epoch, look.holes, look.unread) == (
        Actual.RUNNING,
        ledger(stack)[-1].number,
        (),
        (),
    )
    assert (look.lag.records, look.lag.seconds, look.lag.asked) == (0, 0.0, True)
    assert set(look.lag.lanes) == {(TOPIC, 0), (TOPIC, 1), (EXTRAS, 0)}
    assert look.frontiers and set(look.frontiers.values()) == {look.epoch}
    assert any({"planned", "files", "slices"} <= epoch.took.keys() for epoch in ledger(stack))
    assert any("addBatch" in epoch.trigger for epoch in ledger(stack))

    # A finite topic is closed by declaration (rule 12): no partition has been silent for an hour.
    mark = ledger(stack)[-1].watermark
    assert mark is not None and mark < DAY.end
    assert main(["drain", NAME, "--reason", "the shop has closed"]) == 0
    stack.wait("the watermark", lambda: ledger(stack)[-1].watermark == DAY.end, PATIENCE)
    assert "the shop has closed" in ledger(stack)[-1].reason
    assert ledger(stack)[-1].edge
    assert stack.stop() == 0
    return accepted


def stop_at_a_gap(stack: StreamStack, kafka: KafkaConnection, admin: TopicAdmin) -> None:
    """Have records deleted that nobody has read; a start says which."""
    first, sending = admin.topic_id(TOPIC), datetime.now(UTC)
    send(kafka, range(200, 210))
    # While nothing runs the lag is what Kafka has and the master has not, and grows older.
    look = seen(stack)
    assert look.actual is Actual.STOPPED
    assert look.lag.lanes == {(TOPIC, 0): 10, (TOPIC, 1): 0, (EXTRAS, 0): 0}
    assert look.lag.seconds is not None and look.lag.at is not None
    assert 0 < look.lag.seconds <= (look.lag.at - sending).total_seconds()
    admin.delete_records(TOPIC, {0: 16})
    assert seen(stack).holes == (f"partition 0 of topic id {first}: offsets 12..15",)
    stack.start()
    assert ends(stack) == OffsetGap.exit_code
    assert f"partition 0 of topic id {first}: offsets 12..15" in stack.log.read_text()


@pytest.mark.faults
def test_a_bad_record_and_a_new_partition_stop_nothing(
    stack: StreamStack, kafka: KafkaConnection, admin: TopicAdmin
) -> None:
    """Records of two topics are read to the last, but for a poisonous one; what is gone unread stops a start."""
    read_to_its_end(stack, kafka, admin)
    stop_at_a_gap(stack, kafka, admin)


@pytest.mark.faults
def test_nothing_that_befalls_a_topic_is_silent(
    stack: StreamStack, kafka: KafkaConnection, admin: TopicAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    """One life of a stream: each loss is exact, stops what must stop, and a person's word lets it go on."""
    accepted, first = read_to_its_end(stack, kafka, admin), admin.topic_id(TOPIC)

    # What retention has taken before it was read stops the start, and is accepted to the offset (rule 3).
    stop_at_a_gap(stack, kafka, admin)
    capsys.readouterr()
    days = ("--from", "2024-01-03", "--to", "2024-01-04")
    assert main(["holes", "accept", NAME, "--reason", "a weekend", *days]) == 0
    assert "offsets 12..15" in capsys.readouterr().out
    assert seen(stack).holes == ()
    stack.start()
    stack.wait("the rest", lambda: (first, 0, 21) in stored(stack, "master"), PATIENCE)
    [hole] = list_open_holes(ledger(stack))
    assert [(part.lane.partition, part.start, part.end) for part in hole.ranges] == [(0, 12, 16)]
    assert count_touching_holes([hole], DAY) == 0

    # A topic deleted and made again with more records than before is another topic (rule 13).
    admin.delete_topic(TOPIC)
    admin.create_topic(TOPIC, 2)
    second = admin.topic_id(TOPIC)
    send(kafka, range(300, 330))
    assert ends(stack) in (TopicRecreated.exit_code, 11)
    stack.start()
    assert ends(stack) == TopicRecreated.exit_code
    assert any(f"{first}: everything from" in hole for hole in seen(stack).holes or ())
    assert main(["holes", "accept", NAME, "--reason", "made again"]) == 0
    stack.start()
    stack.wait("the new topic", lambda: (second, 0, 29) in stored(stack, "master"), PATIENCE)
    assert stack.stop() == 0

    accepted += [(first, 0, at) for at in range(16, 22)] + [(second, 0, at) for at in range(30)]
    assert stored(stack, "master") == sorted(accepted)
    kinds = [epoch.kind for epoch in ledger(stack)]
    assert kinds.count(EpochKind.HOLE) == 3
    assert count_touching_holes(list_open_holes(ledger(stack)), DAY) == 2
    capsys.readouterr()
    assert main(["status", NAME]) == 0
    assert "3 holes" in capsys.readouterr().out
