"""A stream whose cluster is gone goes on from another one: each record once, or the stated overlap and no other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.e2e.failover.clusters import IDENTITY, PARTS, TOPIC, Clusters, send
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all

from seamline.model.errors import BadRange
from seamline.model.protocol.epoch import EpochKind
from seamline.model.protocol.holes import list_open_holes

pytestmark = pytest.mark.faults
SHIFT = 7
READ, REPLICATED, ALL = 200, 300, 500


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[str], Clusters]]:
    """Make two clusters and a stream that has read what the first had when it was killed."""
    clusters: list[Clusters] = []

    def make(identity: str) -> Clusters:
        found = Clusters(tmp_path, identity=identity)
        clusters.append(found)
        found.add("kafka_a", shift=0)
        found.add("kafka_b", shift=SHIFT)
        send(found.brokers["kafka_a"], range(READ))
        found.seamline("stream", "start", "shop", "--here")
        eventually("the first cluster to be read", lambda: len(found.read_ids()) == READ)
        send(found.brokers["kafka_b"], range(REPLICATED))
        found.brokers["kafka_a"].kill()
        found.seamline("stream", "stop", "shop")
        eventually("the stream to have ended", lambda: found.stopped())
        return found

    yield make
    for each in clusters:
        end_all(each.home)
        for broker in each.brokers.values():
            broker.stop()


def reads_more(clusters: Clusters, before: int) -> bool:
    """Return whether the log has more rows than before."""
    return len(clusters.read_ids()) > before


def go_on(clusters: Clusters, name: str, begin: int, end: int) -> None:
    """Start the stream, send more, and kill its driver twice while it reads."""
    clusters.seamline("stream", "start", "shop", "--here")
    middle = begin + (end - begin) // 2
    for first, last in ((begin, middle), (middle, end)):
        before = len(clusters.read_ids())
        eventually("records to be read", partial(reads_more, clusters, before))
        clusters.kill_driver()
        send(clusters.brokers[name], range(first, last))
    eventually("the other cluster to be read", lambda: set(clusters.read_ids()) == {*range(end)})
    eventually("the answer", lambda: clusters.answer()[:1] != [])


def test_by_offsets_each_record_is_read_once(made: Callable[[str], Clusters]) -> None:
    """Where the file says so, to the offset: nothing is in doubt where a person has declared that."""
    clusters = made("")
    file = clusters.home / "offsets.json"
    file.write_text(json.dumps({TOPIC: {"0": SHIFT + READ // PARTS}}))
    words = ("stream", "failover", "shop", "--to", "kafka_b", "--by", str(file), "--nothing-missing")
    assert "names no offset of shop.orders/1" in clusters.seamline(*words, code=BadRange.exit_code)
    file.write_text(json.dumps({TOPIC: {str(part): SHIFT + READ // PARTS for part in range(PARTS)}}))
    said = clusters.seamline(*words, "--dry-run")
    assert "kafka_a does not answer" in said and "read to 100; what was not read is unknown" in said
    assert f"shop.orders/0 on kafka_b, read from {SHIFT + 100}; Kafka has {SHIFT} to {SHIFT + 150}" in said
    clusters.seamline(*words)
    go_on(clusters, "kafka_b", REPLICATED, ALL)
    assert clusters.read_ids() == Counter(range(ALL))
    assert clusters.answer() == [str(ALL), str(sum(range(ALL)))]
    epochs = clusters.epochs()
    [begun] = [epoch for epoch in epochs if epoch.begun]
    assert begun.kind is EpochKind.FAILOVER and not list_open_holes(epochs)


def test_by_event_id_what_is_read_again_is_known_and_the_way_back_too(
    made: Callable[[str], Clusters],
) -> None:
    """The overlap is dropped exactly; what may be missing is a hole of the event times that a person states."""
    clusters = made(IDENTITY)
    words = ("stream", "failover", "shop", "--by", "event_id", "--margin", "30 seconds")
    lost = ("--lost-from", "2026-01-05", "--lost-to", "2026-01-06")
    said = clusters.seamline(*words, "--to", "kafka_b", *lost)
    assert "up to 32 accepted and 0 refused records are read again" in said
    go_on(clusters, "kafka_b", REPLICATED, ALL)
    assert clusters.answer() == [str(ALL), str(sum(range(ALL)))]
    assert clusters.read_ids() == Counter(range(ALL))
    [hole] = list_open_holes(clusters.epochs())
    assert str(hole.bounds) == "2026-01-05T00:00:00Z/2026-01-06T00:00:00Z"
    # Back: the first cluster gets what it lacks, and the second is still there.
    clusters.brokers["kafka_a"].start()
    send(clusters.brokers["kafka_a"], range(READ, ALL + 50))
    clusters.seamline(*words, "--to", "kafka_a", code=BadRange.exit_code)
    said = clusters.seamline(*words, "--to", "kafka_a", "--restart")
    assert "nothing is missing: all records of the old cluster were read" in said
    go_on(clusters, "kafka_a", ALL + 50, ALL + 100)
    assert clusters.answer() == [str(ALL + 100), str(sum(range(ALL + 100)))]
    assert len([epoch for epoch in clusters.epochs() if epoch.begun]) == 2


def test_by_timestamp_the_stated_overlap_counts_twice_and_no_other(
    made: Callable[[str], Clusters],
) -> None:
    """The statement names as many records and their event times; no interval that they touch is certified."""
    clusters = made("")
    said = clusters.seamline(
        "stream",
        "failover",
        "shop",
        "--to",
        "kafka_b",
        "--by",
        "timestamp",
        "--margin",
        "30 seconds",
        "--nothing-missing",
    )
    assert "up to 32 accepted and 0 refused records are read again" in said and "may count twice" in said
    go_on(clusters, "kafka_b", REPLICATED, ALL)
    again = range(READ - 32, READ)
    assert clusters.read_ids() == Counter(range(ALL)) + Counter(again)
    assert clusters.answer() == [str(ALL + 32), str(sum(range(ALL)) + sum(again))]
    [hole] = list_open_holes(clusters.epochs())
    assert hole.begun and hole.bounds
    assert f"{hole.bounds.start:%H:%M:%S}" == "06:02:48" and "may count twice" in hole.reason
    listed = clusters.seamline("holes", "list", "shop")
    assert "may count twice" in listed
