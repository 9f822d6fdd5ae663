"""The shipped writer and read where the drafts of the protocol went wrong: at every commit, in every order."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.protocol.shipped import LANE, PHASES, PIPELINE, VIEW, Mortal, Stream, unanswered
from tests.unit.clocks import Clock

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.log.master import Master
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read import snapshot
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import log_store
from seamline.lake.storage.delta_table import Table
from seamline.lake.store import created_files
from seamline.lake.tables import manifest_table
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.errors import FenceLost, LeaseHeld, OffsetGap, ProtocolError
from seamline.model.measures import count, max
from seamline.spark.stream.epoch_writer import Writer

NOW = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Three records wait, one of which is refused."""
    found = Stream(tmp_path)
    found.produce(0, None, 1)
    return found


def refused(stream: Stream) -> list[int]:
    """List the offsets in the quarantine, of epochs that the master holds."""
    rows = Table.open(stream.layout.table("quarantine")).read(["_epoch", "_offset"])
    held = {each.number for each in Master.open(stream.layout).missing(-1)}
    return sorted(at for number, at in zip(*rows.to_pydict().values(), strict=True) if number in held)


def is_right(stream: Stream) -> None:
    """Compare answers, master and quarantine with the topic, all of which has been read."""
    assert stream.answered() == stream.wanted() == {0: 1, 2: 1}
    assert sorted(Table.open(stream.layout.table("master")).read(["_offset"])["_offset"].to_pylist()) == [
        0,
        2,
    ]
    assert refused(stream) == [1]


@pytest.mark.parametrize("phase", PHASES)
def test_a_death_after_any_commit_loses_and_repeats_nothing(stream: Stream, phase: str) -> None:
    """Whatever was there before the master held it is read again, under a number of its own."""
    assert stream.epoch(stream.start(), dies_after=phase) is None
    again = stream.start()
    held = [each.number for each in again.ledger.read()]
    assert held == [each.number for each in again.master.missing(-1)] == ([0] if phase in PHASES[3:] else [])
    if stream.position(again) < 3:
        whole = stream.epoch(again)
        assert whole
        # The number of an attempt that left something is not given out again.
        assert whole.number == (0 if phase == "files" else 1)
    is_right(stream)
    maintain_tables(PIPELINE, stream.layout)
    is_right(stream)


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("phase", PHASES[:-1])
def test_a_writer_that_stalls_anywhere_commits_nothing_more(stream: Stream, phase: str, reads: bool) -> None:
    """It wakes when another has started, or has read the same range, and still holds a number and a plan."""
    first = stream.start()
    others: list[Mortal] = []

    def stall(reached: str) -> None:
        if reached == phase:
            others.append(stream.start())
            if reads and stream.position(others[0]) < 3:
                stream.epoch(others[0])

    first.timing.mark = stall
    with pytest.raises(FenceLost):
        stream.epoch(first)
    if stream.position(others[0]) < 3:
        stream.epoch(others[0])
    is_right(stream)
    for table in first.tables:
        with pytest.raises(FenceLost):
            table.append([])
    third = stream.start()
    assert third.ledger.read() == third.master.missing(-1)


def test_a_start_looks_for_numbers_when_nobody_else_can_take_one(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer before commits slices after the start has seen the master, and before it fences them."""
    first = stream.start()
    fence = Table.fence

    def meanwhile(table: Table, token: int) -> None:
        if token == 2 and table.root.name == "slices":
            stream.epoch(first, 1, dies_after="slices")
        fence(table, token)

    monkeypatch.setattr(Table, "fence", meanwhile)
    second = stream.start()
    stream.epoch(second)
    is_right(stream)


@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("table", ["slices", "quarantine", "master", "ledger"])
def test_a_commit_without_an_answer_counts_once(stream: Stream, table: str, landed: bool) -> None:
    """A full disk, or a network share that hangs: the writer does not know whether it is there."""
    writer = stream.start()
    tables = {each.root.name: each for each in writer.tables}
    try:
        with unanswered(tables[table], landed=landed):
            stream.epoch(writer)
    except OSError:
        pass
    # The driver goes on by reading again where its master ends.
    writer.repair_ledger()
    if stream.position(writer) < 3:
        stream.epoch(writer)
    stream.epoch(writer)
    again = stream.start()
    if stream.position(again) < 3:
        stream.epoch(again)
    assert sorted(Table.open(stream.layout.table("master")).read(["_offset"])["_offset"].to_pylist()) == [
        0,
        2,
    ]
    assert refused(stream) == [1]
    assert all(count == 1 for count in stream.answered().values())
    assert again.frontiers[VIEW.id] == (-1 if table == "slices" else again.master.epoch)


@pytest.mark.parametrize("at", range(13))
def test_a_commit_that_is_said_to_be_there_counts_once(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A share says that a link exists which it has just made, at each commit of a start and an epoch."""
    real, made = os.link, 0

    def twice(source: Path, target: Path) -> None:
        nonlocal made
        real(source, target)
        made += 1
        if made == at + 1:
            raise FileExistsError(17, "File exists")

    monkeypatch.setattr(created_files.os, "link", twice)
    stream.epoch(stream.start())
    assert made == 13
    is_right(stream)


def test_the_master_is_the_position(stream: Stream) -> None:
    """A range that is read twice, or not at all, is refused by the table itself."""
    writer = stream.start()
    stream.epoch(writer, 2)
    for start, end in ((1, 3), (3, 3 + 1)):
        number = writer.take_number()
        epoch = stream.held and writer.master.missing(-1)[0]
        assert epoch
        moved = {**vars(epoch), "number": number, "ranges": (type(epoch.ranges[0])(LANE, start, end),)}
        with pytest.raises(OffsetGap):
            writer.commit(type(epoch)(**moved), KernelResult(), ())
        writer.repair_ledger()
    with pytest.raises(ProtocolError):
        writer.commit(writer.master.missing(-1)[0], KernelResult(), ())


def test_the_position_survives_the_log_of_commits(stream: Stream) -> None:
    """History is deleted after 30 days; a pipeline may be idle for longer, and its ledger lost."""
    writer = stream.start()
    stream.epoch(writer)
    handle = DeltaTable(str(writer.master.table.root))
    handle.create_checkpoint()
    for entry in (writer.master.table.root / "_delta_log").glob("*.json"):
        if int(entry.stem) < handle.version():
            entry.unlink()
    master = Master.open(stream.layout)
    assert (master.epoch, master.edge, master.frontier(VIEW.id)) == (0, 0, 0)
    assert master.position([LANE]) == {LANE: 3}


FAILED = 60
"""Starts in a row that end before they have repaired anything: more than one checkpoint of the master's log."""


def fails(stream: Stream) -> None:
    """Take the master over and end there, as a start that is killed."""
    stream.token += 1
    Table.open(stream.layout.table("master")).fence(stream.token)


def test_an_epoch_is_held_however_often_a_start_has_failed(stream: Stream) -> None:
    """Each start commits a fence to the master; a look back that counts commits meets nothing else any more."""
    assert stream.epoch(stream.start(), dies_after="master") is None
    for _ in range(FAILED):
        fails(stream)
        assert stream.answered() == stream.wanted()
    writer = stream.start()
    assert [each.number for each in writer.ledger.read()] == [0]
    is_right(stream)


def without_entries(table: Table, below: int) -> None:
    """Write a checkpoint and take the entries of earlier commits away, as log clean-up does after 30 days."""
    table.handle.create_checkpoint()
    for version in range(below):
        log_store.entry_path(table.root, version).unlink()


def test_an_epoch_whose_entry_is_gone_is_answered_by_the_ledger(stream: Stream) -> None:
    """A stream that stood still for a month and then failed to start: the watermark is in the ledger's row."""
    stream.epoch(stream.start())
    for _ in range(3):
        fails(stream)
    without_entries(Master.open(stream.layout).table, Master.open(stream.layout).table.version)
    assert stream.answered() == stream.wanted() == {0: 1, 2: 1}
    assert stream.position(stream.start()) == 3


def test_an_epoch_that_nobody_tells_of_any_more_is_an_error(stream: Stream) -> None:
    """The ledger lacks it and log clean-up took its entry: an answer without it would be silently less."""
    stream.epoch(stream.start(), 1)
    stream.epoch(stream.start(), dies_after="master")
    fails(stream)
    without_entries(Master.open(stream.layout).table, Master.open(stream.layout).table.version)
    with pytest.raises(ProtocolError, match="neither its commits nor the ledger"):
        stream.answered()
    with pytest.raises(ProtocolError, match="the ledger ends at 0"):
        stream.start()


def test_an_epoch_is_held_though_it_has_no_rows(stream: Stream) -> None:
    """An idle stream declares edges; a topic of bad records goes on (N1)."""
    writer = stream.start()
    stream.epoch(writer, 1)
    stream.epoch(writer, 2)
    stream.epoch(writer, 2)
    assert [each.number for each in writer.ledger.read()] == [0, 1, 2]
    assert writer.frontiers == {VIEW.id: 2}
    assert stream.answered() == {0: 1}
    stream.epoch(writer)
    is_right(stream)


def test_of_two_that_start_at_once_one_gets_the_lease(tmp_path: Path) -> None:
    """The token is the version of the commit that took it: no two are the same."""
    stream = Stream(tmp_path)
    one, other = ControlTable.ensure(stream.layout), ControlTable.ensure(stream.layout)
    read = ControlTable.read

    def together(table: ControlTable) -> object:
        found = read(table)
        if table is one and other.table.version == table.table.version:
            other.take("other", now=NOW)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ControlTable, "read", together)
        with pytest.raises(LeaseHeld):
            one.take("one", now=NOW)
    held = other.read().lease
    assert held and held.holder == "other"
    clock = Clock(meanwhile=lambda: other.renew(held, now=NOW))
    with pytest.raises(LeaseHeld):
        one.take("one", now=NOW, clock=clock, wait=clock.wait)
    clock.meanwhile = lambda: None
    assert one.take("one", now=NOW, clock=clock, wait=clock.wait).token > held.token


PINS = 8


@pytest.mark.parametrize("moment", range(PINS))
def test_a_reader_misses_nothing_whatever_happens_between_its_pins(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """An epoch, a compaction and a publication come between two pins, each of which a reader sees or does not."""
    writer = stream.start()
    for end in (1, 2):
        stream.epoch(writer, end, edge=end == 2)
    before = stream.wanted()
    looks, happened = 0, False
    look = snapshot.read_cached_table

    def meanwhile(*given: object) -> object:
        nonlocal looks, happened
        looks += not happened
        if looks == moment + 1 and not happened:
            happened = True
            happens(stream, writer)
        return look(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        for module in (snapshot, manifest_table):
            patch.setattr(module, "read_cached_table", meanwhile)
        found = read_merged_answer(PIPELINE, VIEW, stream.layout)
    assert happened == (looks == moment + 1)
    if not happened:
        happens(stream, writer)
    counts = dict(zip(*found.table.select(["id", "n"]).to_pydict().values(), strict=True))
    assert counts == {at: 1 for number, at in stream.held if number <= found.epoch}
    assert before.keys() <= counts.keys()
    assert stream.answered() == stream.wanted()
    assert looks < PINS or happened


def happens(stream: Stream, writer: Mortal) -> None:
    """Hold another epoch, join slices, and publish what was built."""
    stream.epoch(writer)
    stream.build(0, 1, "g")
    publish_run(PIPELINE, stream.layout, "g")
    assert maintain_tables(PIPELINE, stream.layout).refused == ()


def test_a_birth_comes_before_the_first_slice(stream: Stream) -> None:
    """Rows that a later version never saw would be missing from its answers (C5)."""
    stream.epoch(stream.start(), 1)
    later = Writer(stream.layout, later_version(), 2)
    born = ManifestTable.ensure(stream.layout).read().births
    [other] = [view.id for view in later_version().views]
    assert born == {VIEW.id: 0, other: 1}
    assert later.frontiers == {VIEW.id: 0, other: 0}


def later_version() -> CompiledPipeline:
    """Declare the view with one measure more."""
    view = replace(PIPELINE.definition.views[0], measures={"n": count(), "last": max("id")})
    return compile_pipeline(replace(PIPELINE.definition, views=[view]))


def test_a_file_that_is_gone_is_not_committed(stream: Stream) -> None:
    """A driver may sleep for a week before its commit; every read after it would fail (H10)."""
    writer = stream.start()

    def gone(reached: str) -> None:
        if reached == "quarantine":
            for path in writer.master.table.root.glob("*.parquet"):
                path.unlink()

    writer.timing.mark = gone
    with pytest.raises(FileNotFoundError, match="vanished before its commit"):
        stream.epoch(writer)
    assert Master.open(stream.layout).epoch == -1
    writer.timing.mark = lambda _: None
    writer.repair_ledger()
    stream.epoch(writer)
    is_right(stream)
