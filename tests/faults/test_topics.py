"""What befalls a topic while its stream is up: records are lost, made again, taken back, joined, added, poisonous."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer
from tests.faults.rig.line import PATIENCE, Line, held
from tests.faults.rig.oracle import stored
from tests.faults.rig.trial import Trial, eventually
from tests.faults.rig.workload import FIRST, Sent, bad, write, writer

from seamline.kafka.admin import TopicAdmin
from seamline.lake.log.ledger import Ledger
from seamline.model.compile.catalog import load_catalog
from seamline.model.errors import OffsetGap, TopicRecreated
from seamline.model.protocol.holes import list_open_holes
from seamline.model.protocol.offsets import Lane
from seamline.supervisor.auditing import audit


def waits_for_a_person(line: Line, code: int) -> str:
    """Wait until the supervisor says that the driver has ended with a code; give the driver's words."""

    def told() -> str:
        beat = line.heartbeat()
        return beat.last_error if beat and beat.last_error.startswith(f"exit code {code}") else ""

    return eventually(f"exit code {code}\n{line.said()}", told, PATIENCE)


def test_a_topic_truncated_past_our_position(line: Line, trial: Trial) -> None:
    """Loud, exact to the offset, and on again only by somebody's word."""
    line.send(900)
    line.supervise()
    line.drained()
    line.stop()
    with line.reader:
        line.send(900)
        before = stored(line.stack.layout, "master") + stored(line.stack.layout, "quarantine")
        ours = max(offset for _, partition, offset in before if partition == 1) + 1
        with TopicAdmin(line.kafka) as admin:
            admin.delete_records(line.topic, {1: ours + 40})
            trial.prove("40 records deleted unread", admin.beginning_offsets(line.topic)[1] == ours + 40)
        epoch = line.stack.epoch()
        line.supervise()
        said = waits_for_a_person(line, OffsetGap.exit_code)
        assert f"partition 1 of topic id {line.topic_id}: offsets {ours}..{ours + 39}" in said
        assert line.stack.epoch() == epoch
        listed = line.seamline("holes", "list", line.stack.name)
        assert f"offsets {ours}..{ours + 39}" in listed.stdout
        accepted = line.seamline("holes", "accept", line.stack.name, "--reason", "a long weekend")
        assert accepted.returncode == 0, accepted.stderr
        line.drained()
    line.stop()
    line.require_clean()
    [hole] = list_open_holes(Ledger.ensure(line.stack.layout).read())
    assert [(part.lane.partition, part.start, part.end) for part in hole.ranges] == [(1, ours, ours + 40)]
    line.judge(lost=hole.ranges, truth=False)


def test_a_topic_made_again_with_more_records_than_before(line: Line, trial: Trial) -> None:
    """Its offsets look valid, its id does not: what belongs to the one is never counted for the other."""
    line.send(600)
    line.supervise()
    line.drained()
    with line.reader, TopicAdmin(line.kafka) as admin:
        old, first = line.topic_id, line.stack.epoch()
        admin.delete_topic(line.topic)
        admin.create_topic(line.topic, 3)
        line.topic_id = admin.topic_id(line.topic)
        # New producers: what is sent to the new topic is another story.
        line.work.sequences.clear()
        again = dict(line.log)
        line.work.producers, line.work.partitions = 6, 3
        line.send(1800)
        trial.prove("another topic of the same name, and longer", old != line.topic_id)
        waits_for_a_person(line, TopicRecreated.exit_code)
        assert not [place for place in stored(line.stack.layout, "master") if place[0] == line.topic_id]
        accepted = line.seamline("holes", "accept", line.stack.name, "--reason", "made again")
        assert accepted.returncode == 0, accepted.stderr
        eventually(
            "the new topic to be read",
            lambda: (
                sum(stored(line.stack.layout, table).total() for table in ("master", "quarantine"))
                >= len(line.log)
            ),
            PATIENCE,
        )
    line.stop()
    line.require_clean()
    assert {Lane(old, part) for part in range(3)} == {
        part.lane for hole in list_open_holes(Ledger.ensure(line.stack.layout).read()) for part in hole.ranges
    }
    assert first >= 0 and again
    line.doubtful = True
    line.judge(truth=False)


def test_a_partition_added_under_load(line: Line, trial: Trial) -> None:
    """It is read from its first offset, within moments, in the same run."""
    line.supervise()
    with line.reader, line.flowing(80):
        line.await_beyond(1)
        token = Ledger.ensure(line.stack.layout).read()[-1].token
        with TopicAdmin(line.kafka) as admin:
            admin.add_partitions(line.topic, 5)
            trial.prove("two partitions more", len(admin.partitions(line.topic)) == 5)
        began = time.monotonic()
        # New producers take the new partitions: a producer stays with its own.
        extra = [(3 + at % 2, line.work.record(f"new{at % 2}")) for at in range(200)]
        with writer(line.kafka, line.topic_id, line.log) as out:
            write(out, line.topic, extra)

        def read() -> bool:
            return {3, 4} <= {
                part.lane.partition
                for epoch in Ledger.ensure(line.stack.layout).read()
                for part in epoch.ranges
            }

        eventually("the new partitions to be read", read, PATIENCE)
        trial.measure("added to read", time.monotonic() - began)
    line.drained()
    line.stop()
    line.require_clean()
    epochs = line.judge()
    assert {epoch.token for epoch in epochs} == {token}


def test_transactions_that_are_aborted_and_one_that_hangs(line: Line, trial: Trial) -> None:
    """What was taken back is nowhere; what is undecided is waited for, and what comes after it as well."""
    line.supervise()
    producer = KafkaProducer(
        **line.kafka.for_client(), transactional_id=f"{line.topic}.tx", transaction_timeout_ms=120_000
    )
    producer.init_transactions()

    def transaction(count: int, *, good: bool) -> None:
        producer.begin_transaction()
        futures = [
            (record, producer.send(line.topic, value=record.value, key=b"k", partition=partition))
            for partition, record in line.work.take(count)
        ]
        producer.flush()
        if good:
            producer.commit_transaction()
            for record, future in futures:
                place = future.get(10)
                line.log[line.topic_id, place.partition, place.offset] = record
        else:
            producer.abort_transaction()

    # What an aborted transaction took of a sequence is gone with it.
    line.doubtful = True
    with line.reader:
        line.send(100)
        for number in range(12):
            transaction(50, good=number % 3 != 1)
        line.send(100)
        producer.begin_transaction()
        hanging = producer.send(line.topic, value=b"{}", key=b"k", partition=0)
        producer.flush()
        at = hanging.get(10).offset
        line.send(100)
        eventually("what is decided to be read", lambda: line.stack.offsets_read() > 600, PATIENCE)
        line.drained()
        ranges = [part for epoch in Ledger.ensure(line.stack.layout).read() for part in epoch.ranges]
        assert max(part.end for part in ranges if part.lane.partition == 0) <= at
        producer.abort_transaction()
        producer.close()
        line.drained()
        eventually(
            "what came after it",
            lambda: (
                max(
                    part.end
                    for epoch in Ledger.ensure(line.stack.layout).read()
                    for part in epoch.ranges
                    if part.lane.partition == 0
                )
                > at
            ),
            PATIENCE,
        )
    line.stop()
    line.require_clean()
    there = held(line)
    trial.prove("200 records were aborted, and one hung", len(there) == len(line.log) == 100 * 3 + 50 * 8)
    line.judge()


def test_a_compacted_topic(lines: Callable[..., Line], seed: int, trial: Trial) -> None:
    """Offsets that compaction took away are no loss, and no reason to stop."""
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "1000",
        "delete.retention.ms": "0",
    }
    line = lines(seed, config=config)
    for _ in range(4):
        line.send(150)
        time.sleep(1.2)

    def compacted() -> bool:
        line.send(3)
        return len(held(line)) < len(line.log) // 2

    eventually("the broker to compact", compacted, 120, every=3.0)
    trial.prove("records compacted away", True)
    line.supervise()
    with line.reader:
        line.drained()
        for _ in range(3):
            line.send(50)
            line.drained()
    line.stop()
    line.require_clean()
    # Of the log as it was read: later records of a key take earlier ones away while we look.
    read = stored(line.stack.layout, "master") + stored(line.stack.layout, "quarantine")
    assert set(held(line)) <= set(read)
    assert max(read.values()) == 1
    line.log = {place: line.log[place] for place in read}
    line.doubtful = True
    line.judge(truth=False)
    # Offsets that the cleaner has taken, before they were read or since, are no findings.
    pipeline = load_catalog(Path(line.stack.settings["SEAMLINE_PIPELINES"])).pipeline(line.stack.name)
    told = audit(pipeline, line.stack.layout, env=line.stack.settings)
    assert told.findings == ()
    trial.prove("offsets that Kafka no longer has", any(lane.blank or lane.untold for lane in told.lanes))


def test_poison_of_every_kind(line: Line, trial: Trial) -> None:
    """Every one is in the quarantine with its place and a reason, and no stream ever stopped because of data."""
    line.supervise()
    kinds = [Sent(f"p{at % 3}", -1, None, value) for at, value in enumerate(bad("p0", FIRST))]
    with line.reader, line.flowing(60):
        line.await_beyond(0)
        token = Ledger.ensure(line.stack.layout).read()[-1].token
        for _ in range(3):
            with writer(line.kafka, line.topic_id, line.log) as out:
                write(out, line.topic, [(int(each.producer[1:]), each) for each in kinds])
        trial.prove(f"{len(kinds)} kinds of poison sent", len(kinds) >= 20)
    line.drained()
    line.stop()
    line.require_clean()
    epochs = line.judge()
    assert {epoch.token for epoch in epochs} == {token}
    reasons = {reason for epoch in epochs for reason in epoch.refused}
    assert len(reasons) >= 8, reasons


@pytest.mark.parametrize("poison", ["fugu"])
def test_a_record_that_breaks_the_kernel(
    lines: Callable[..., Line], seed: int, trial: Trial, poison: str
) -> None:
    """It is found by halving and refused alone; its neighbours are where they belong."""
    line = lines(seed, env={"SEAMLINE_POISON": poison})
    line.supervise()
    with line.reader:
        line.send(400)
        record = Sent(
            "p0", -1, None, b'{"producer": "p0", "seq": 5, "at": "2024-01-05T00:00:00Z", "x": "fugu"}'
        )
        with writer(line.kafka, line.topic_id, line.log) as out:
            write(out, line.topic, [(0, record)])
        line.send(400)
        line.drained()
    line.stop()
    line.require_clean()
    epochs = line.judge()
    trial.prove("the kernel failed", sum(epoch.refused.get("kernel error", 0) for epoch in epochs) == 1)


def test_a_record_that_kills_the_driver_each_time(
    lines: Callable[..., Line], seed: int, trial: Trial
) -> None:
    """As the machine does where memory runs out: each start knows what the one before has died of.

    The record is refused alone, its neighbours are where they belong, and the supervisor does not give up.
    """
    line = lines(seed, env={"SEAMLINE_DEADLY": "fugu"})
    record = Sent("p0", -1, None, b'{"producer": "p0", "seq": 5, "at": "2024-01-05T00:00:00Z", "x": "fugu"}')
    with line.reader:
        line.send(400)
        with writer(line.kafka, line.topic_id, line.log) as out:
            write(out, line.topic, [(0, record)])
        line.send(400)
        line.supervise()
        line.drained(3 * PATIENCE)
    line.stop()
    line.require_clean()
    epochs = line.judge()
    trial.prove("the record was refused", sum(epoch.refused.get("kernel error", 0) for epoch in epochs) == 1)
    tokens = {epoch.token for epoch in epochs}
    trial.prove(f"the driver died, tokens {tokens}", max(tokens) > 5)
    assert not (line.folder / "attempt.json").exists()
