"""A view's catch-up on the shipped tables: its block is added once, whatever happens after its commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.protocol.shipped import VIEW, Mortal, Stream, caught_up, unanswered

from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.model.errors import ProtocolError


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Two records wait."""
    found = Stream(tmp_path)
    found.produce(0, 1)
    return found


def failing(stream: Stream, writer: Mortal, *, landed: bool) -> None:
    """Hold the first record in an epoch whose slices are not there, or are without their writer's knowing."""
    with unanswered(writer.slices[VIEW.id].table, landed=landed):
        stream.epoch(writer, 1)
    assert writer.frontiers[VIEW.id] == -1


@pytest.mark.parametrize("landed", [False, True])
def test_a_block_that_an_epoch_followed_is_not_added_again(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    """The epoch leaves its number where the block left its own; with the master not held it counted twice."""
    writer = stream.start()
    failing(stream, writer, landed=landed)
    assert stream.answered() == {}
    caught_up(writer, monkeypatch.setattr)
    assert stream.epoch(writer, dies_after="slices") is None
    again = stream.start()
    caught_up(again, monkeypatch.setattr)
    stream.epoch(again)
    assert stream.answered() == stream.wanted() == {0: 1, 1: 1}


def test_no_epoch_follows_one_of_which_nobody_knows(stream: Stream) -> None:
    """The tables are looked at first: the next may say what is not so, and the ledger would lack it for long."""
    writer = stream.start()
    with unanswered(writer.master.table, landed=False), pytest.raises(OSError, match="no answer"):
        stream.epoch(writer, 1)
    with pytest.raises(ProtocolError, match="may or may not be in the master"):
        stream.epoch(writer)
    writer.repair_ledger()
    stream.epoch(writer)
    assert stream.answered() == stream.wanted() == {0: 1, 1: 1}


def test_a_block_gives_no_number_out_again(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a dead attempt is the highest there is, also when a block of older epochs comes after it."""
    writer = stream.start()
    failing(stream, writer, landed=False)
    caught_up(writer, monkeypatch.setattr)
    stream.epoch(writer, dies_after="slices")
    again = stream.start()
    caught_up(again, monkeypatch.setattr)
    table = Table.open(again.slices[VIEW.id].table.root)
    assert table.txn(EPOCH) == 1
    assert stream.start().take_number() == 2


def test_slices_whose_commit_was_not_answered_are_not_added_again(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view is behind by the master's word, and is not: its catch-up looks at the table anew."""
    writer = stream.start()
    failing(stream, writer, landed=True)
    caught_up(writer, monkeypatch.setattr)
    stream.epoch(writer)
    assert stream.answered() == stream.wanted() == {0: 1, 1: 1}


@pytest.mark.parametrize("dies_after", ["", "slices", "quarantine", "master"])
def test_a_long_way_is_gone_in_steps_beside_the_live_stream(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, dies_after: str
) -> None:
    """Live epochs are held between two steps, also by a driver that dies; each record counts once."""
    writer = stream.start()
    failing(stream, writer, landed=False)
    for end in range(2, 6):
        stream.produce(0)
        stream.epoch(writer, end)
    reached = [writer.frontiers[VIEW.id]]
    while writer.behind:
        assert caught_up(writer, monkeypatch.setattr, most=2)
        reached.append(writer.frontiers[VIEW.id])
        if len(reached) == 2:
            stream.produce(1)
            stream.epoch(writer, dies_after=dies_after)
            if dies_after:
                writer = stream.start()
    stream.epoch(writer)
    assert reached[:3] == [-1, 1, 3]
    assert stream.answered() == stream.wanted() == dict.fromkeys(range(7), 1)
    assert not caught_up(writer, monkeypatch.setattr)
