"""What was read is still what Kafka has: a start looks at the newest record of each lane that the log keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.protocol.shipped import LANE, START, Mortal, Stream
from tests.protocol.test_starts import topics

from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables import log_tails as lake
from seamline.lake.tables.log_tails import find_log_tails
from seamline.model.errors import RecordsReplaced
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.log_tail import Tail, hash_record_value, list_replaced_lanes
from seamline.model.protocol.offsets import Lane, OffsetRange, Vector
from seamline.spark.session.attempt_notes import KEPT, Note
from seamline.spark.tasks.kernel_attempts import make_unread_record

OTHER = Lane("t", 1)
READ = {Lane("t", 0): Tail(4, 1_000, hash_record_value(b"a")), OTHER: Tail(9, 2_000)}


def test_the_newest_record_is_found_whichever_table_has_it(tmp_path: Path) -> None:
    """A refused one too, of whose value the quarantine may keep less; an offset without a record is passed over."""
    stream = Stream(tmp_path, topic=[0, 1])
    writer = stream.start()

    def found(ends: Vector) -> dict[Lane, Tail]:
        there = find_log_tails(Files.of(writer.master.table), Files.of(writer.quarantine), ends)
        with register_tables() as con:
            assert con.sql("SELECT 1").fetchall() == [(1,)], "the thread's connection is free again"
        return there

    assert found({LANE: 0}) == {}
    stream.epoch(writer)
    at = int(stream.sent.timestamp() * 1000)
    assert found({LANE: 2}) == {LANE: Tail(1, at, hash_record_value(stream.value(1)))}
    assert found({LANE: 5, OTHER: 5}) == {LANE: Tail(1, at, hash_record_value(stream.value(1)))}
    stream.produce(None)
    stream.epoch(writer)
    assert found({LANE: 3}) == {LANE: Tail(2, at)}
    assert found({LANE: 2}) == {LANE: Tail(1, at, hash_record_value(stream.value(1)))}
    assert found({LANE: 3 + lake.NEAR}) == {}


def test_a_record_that_was_passed_over_unread_is_no_tail(tmp_path: Path) -> None:
    """Its time is that of its passing, which Kafka never gives: each start would stop there."""
    stream = Stream(tmp_path, topic=[0, 1])
    writer = stream.start()
    stream.epoch(writer)
    at = int(stream.sent.timestamp() * 1000)
    stream.produce(2)
    hold_unread_record(stream, writer)
    found = find_log_tails(Files.of(writer.master.table), Files.of(writer.quarantine), {LANE: 3})
    assert found == {LANE: Tail(1, at, hash_record_value(stream.value(1)))}


def hold_unread_record(stream: Stream, writer: Mortal) -> None:
    """Hold an epoch of the topic's last record, as a driver does that cannot even keep it."""
    part = OffsetRange(LANE, len(stream.topic) - 1, len(stream.topic))
    config = KernelConfig(
        pipeline=writer.pipeline,
        topic_ids={"orders": LANE.topic_id},
        token=writer.token,
        epoch=writer.take_number(),
        committed={LANE: part.start},
        views=writer.current,
        master=writer.master.table.root,
        quarantine=writer.quarantine.root,
        condemned="the driver died of it",
    )
    result = run([make_unread_record(Note((part,), KEPT), {"orders": LANE.topic_id})], config)
    epoch = Epoch(
        config.epoch,
        writer.token,
        START,
        writer.pipeline.record_version,
        edge=True,
        ranges=(part,),
        refused=dict(result.refused),
        clock=writer.pipeline.clock,
    )
    writer.commit(epoch, result, writer.current)


@pytest.mark.parametrize(
    ("given", "lost"),
    [
        ({OTHER: Tail(9, 2_000, hash_record_value(b"x"))}, []),
        ({OTHER: Tail(9, 2_001, hash_record_value(b"x"))}, [OTHER]),
        ({OTHER: Tail(10, 5_000)}, []),
        ({Lane("t", 0): READ[Lane("t", 0)]}, []),
        ({Lane("t", 0): Tail(4, 1_000, hash_record_value(b"b"))}, [Lane("t", 0)]),
        ({Lane("t", 0): Tail(4, 1_000, hash_record_value(None))}, [Lane("t", 0)]),
        ({}, []),
    ],
    ids=["same", "later", "a gap", "same value", "another value", "no value", "nothing"],
)
def test_another_record_at_the_offset_is_a_loss(given: dict[Lane, Tail], lost: list[Lane]) -> None:
    """A gap is none: compaction, retention and aborted transactions leave some."""
    assert list_replaced_lanes(READ, given) == lost


def test_a_start_stops_where_offsets_were_filled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unclean election: the broker ends where it did, and what it gives is not what was read."""
    asked: list[dict[Any, int]] = []
    given = {("orders", 1): Tail(9, 7_000, hash_record_value(b"x"))}

    def firsts(connection: object, places: dict[Any, int]) -> dict[Any, Tail]:
        asked.append(places)
        return given

    monkeypatch.setattr("seamline.spark.stream.read_topics.read_first_records", firsts)
    found = topics(["t", "t"], {0: 5, 1: 0}, {0: 9, 1: 12})
    with pytest.raises(RecordsReplaced, match="another record than the one that was read at 9 of t/1"):
        found.require_kept({**READ, Lane("gone", 0): Tail(3, 1)})
    assert asked == [{("orders", 1): 9}], "what retention has deleted is not asked for, nor another topic"
    given["orders", 1] = Tail(9, 2_000, hash_record_value(b"x"))
    found.require_kept(READ)
