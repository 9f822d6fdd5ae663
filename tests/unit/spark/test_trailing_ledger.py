"""The ledger's newest row may be on its way while the next epoch is made: nothing is committed before it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from tests.protocol.shipped import Mortal, Stream, unanswered

from seamline.lake.log.ledger import Ledger
from seamline.model.errors import FenceLost, ProtocolError


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Four records wait."""
    found = Stream(tmp_path)
    found.produce(0, 1, 0, 1)
    return found


def start(stream: Stream) -> Mortal:
    """Start a driver that has what need not be waited for done beside what follows, as in a bucket."""
    writer = stream.start()
    writer.threads.early = True
    return writer


@contextmanager
def held_up(ledger: Ledger) -> Iterator[Event]:
    """Keep the ledger's commits waiting until the event is set, or the block ends."""
    go, real = Event(), ledger.table._put

    def late(draft: Path) -> bool:
        go.wait()
        return real(draft)

    ledger.table._put = late  # type: ignore[method-assign]
    try:
        yield go
    finally:
        go.set()
        ledger.table._put = real  # type: ignore[method-assign]


def numbers(stream: Stream) -> list[int]:
    """List the epochs that the ledger has rows of."""
    return [each.number for each in Ledger.ensure(stream.layout).read()]


def is_whole(stream: Stream) -> None:
    """Compare the ledger with the master, and the answer with the topic."""
    # A row may be on its way: whoever starts waits for none, and brings it itself.
    whole = stream.start().master.missing(-1)
    assert Ledger.ensure(stream.layout).read() == whole
    assert stream.answered() == stream.wanted() == dict.fromkeys(range(4), 1)


def test_an_epoch_ends_before_its_row_is_in_the_ledger(stream: Stream) -> None:
    """Readers take the row from the master; whoever asks the writer for its ledger waits."""
    writer = start(stream)
    with held_up(writer.ledger) as go:
        assert stream.epoch(writer, 2)
        assert numbers(stream) == []
        assert stream.answered() == stream.wanted() == {0: 1, 1: 1}
        go.set()
        assert writer.ledger.last == 0
    stream.epoch(writer)
    is_whole(stream)


def test_nothing_follows_a_row_that_has_failed(stream: Stream) -> None:
    """There would be a row missing in the middle, which no repair looks for."""
    writer = start(stream)
    with unanswered(writer.ledger.table, landed=False):
        assert stream.epoch(writer, 2)
        writer.threads.settle()
    with pytest.raises(OSError, match="no answer"):
        _ = writer.ledger
    with pytest.raises(OSError, match="no answer"):
        stream.epoch(writer)
    with pytest.raises(ProtocolError):
        stream.epoch(writer)
    assert (writer.master.epoch, numbers(stream)) == (0, [])
    assert [each.number for each in writer.repair_ledger()] == [0]
    assert stream.epoch(writer)
    is_whole(stream)


def test_a_repair_waits_for_what_is_on_its_way(stream: Stream) -> None:
    """It would find the row missing, and two commits would bring it."""
    writer = start(stream)
    with unanswered(writer.ledger.table, landed=True):
        assert stream.epoch(writer, 2)
        writer.repair_ledger()
    version = writer.ledger.table.version
    writer.repair_ledger()
    assert (writer.ledger.table.version, numbers(stream)) == (version, [0])
    stream.epoch(writer)
    is_whole(stream)


def test_a_row_that_a_newer_writer_has_repaired_is_refused(stream: Stream) -> None:
    """The next epoch of the older one says so, and commits nothing."""
    first = start(stream)
    with held_up(first.ledger):
        assert stream.epoch(first, 2)
        second = stream.start()
        assert numbers(stream) == [0]
    with pytest.raises(FenceLost):
        stream.epoch(first)
    assert stream.epoch(second)
    is_whole(stream)
