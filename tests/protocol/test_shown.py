"""What has been shown once, in a serving table or at an instant, beside tables that came back from a backup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tests.protocol import shipped
from tests.protocol.powerless import TABLES, cut, is_right, reads_on, rebooted, root, start, versions
from tests.protocol.shipped import PIPELINE, VIEW, Stream

from seamline.lake.publish.publishing import publish_run
from seamline.lake.read import serving_table
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.model.errors import BadRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.plan.maintain.repair_steps import Acceptance

Row = tuple[int, int, int]


def kept(stream: Stream, backup: Path, *names: str) -> None:
    """Keep tables as they are."""
    for name in names:
        copytree(root(stream.layout, name), backup / name)


def brought_back(stream: Stream, backup: Path, *names: str) -> None:
    """Put tables back as they were kept, with no process running."""
    for name in names:
        rmtree(root(stream.layout, name))
        copytree(backup / name, root(stream.layout, name))
    rebooted()


def shown(stream: Stream) -> list[Row]:
    """Bring the serving table up to date; give its rows by record: how often it counts, and in a generation."""
    while serving_table.refresh_serving_table(PIPELINE, stream.layout, VIEW):
        pass
    rows = Table.open(stream.layout.serving(VIEW)).read(["id", "n", "batch_part"]).to_pydict()
    return sorted(zip(rows["id"], rows["n"], rows["batch_part"], strict=True))


def right(stream: Stream) -> list[Row]:
    """Return the answer, as ``shown`` does."""
    rows = read_merged_answer(PIPELINE, VIEW, stream.layout).table.to_pydict()
    return sorted(zip(rows["id"], rows["n"], rows["batch_part"], strict=True))


def test_a_publication_that_an_older_manifest_does_not_know_is_shown_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table went on with it, and would not have shown what is published next, under versions it knew."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 1])
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 2)
    kept(stream, tmp_path / "backup", "manifest")
    stream.build(0, 0, "g")
    publish_run(PIPELINE, stream.layout, "g")
    stream.epoch(writer)
    assert shown(stream) == [(0, 1, 1), (1, 1, 1), (2, 1, 0)]
    brought_back(stream, tmp_path / "backup", "manifest")
    start(stream, boot=7, patch=monkeypatch)
    assert shown(stream) == right(stream) == [(0, 1, 0), (1, 1, 0), (2, 1, 0)]
    stream.build(0, 0, "h")
    publish_run(PIPELINE, stream.layout, "h")
    assert shown(stream) == right(stream) == [(0, 1, 1), (1, 1, 1), (2, 1, 0)]


def test_a_number_that_a_serving_table_has_counted_is_not_given_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log came back of one piece, and read on from there: the table took the other epoch for the one it showed."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 0, 0, 1, 1])
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    kept(stream, tmp_path / "backup", *TABLES)
    stream.epoch(writer, 2)
    stream.epoch(writer, 3)
    shown(stream)
    brought_back(stream, tmp_path / "backup", *TABLES)
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 4)
    reads_on(stream, writer, monkeypatch.setattr)
    assert shown(stream) == right(stream)
    assert stream.answered() == dict.fromkeys(range(6), 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], datetime]:
    """Let epochs say when they were held, and give an instant after the last."""
    real = shipped.Epoch
    monkeypatch.setattr(
        shipped, "Epoch", lambda *told, **more: replace(real(*told, **more), committed_at=datetime.now(UTC))
    )
    return lambda: datetime.now(UTC)


def told(stream: Stream, at: datetime) -> list[int]:
    """Return the records that were counted at an instant."""
    return sorted(
        read_merged_answer(PIPELINE, VIEW, stream.layout, ReadRequest(served_at=at)).table["id"].to_pylist()
    )


@pytest.mark.parametrize("how", ["a power cut", "a person's decision"])
def test_what_was_shown_of_epochs_that_are_lost_is_told_no_more(
    how: str, clock: Callable[[], datetime], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was of fewer records than were on the screen, and called final."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 0])
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.epoch(writer, 2)
    acceptance = None
    if how != "a power cut":
        acceptance = Acceptance("somebody", "the backup is what there is")
        stream.build(0, 1, "g")
        publish_run(PIPELINE, stream.layout, "g")
    stream.epoch(writer, 3)
    then = clock()
    assert told(stream, then) == [0, 1, 2]
    cut(stream, {"master": before["master"]}, "gone")
    start(stream, boot=8, patch=monkeypatch, acceptance=acceptance)
    with pytest.raises(BadRange, match="epochs above 0 may have been in the log then"):
        told(stream, then)
    since = clock()
    reads_on(stream, start(stream, boot=8, patch=monkeypatch), monkeypatch.setattr)
    is_right(stream)
    with pytest.raises(BadRange, match="epochs above 0 may have been in the log then"):
        told(stream, then)
    with pytest.raises(BadRange, match="epochs above 0 may have been in the log then"):
        told(stream, since)
    assert told(stream, clock()) == [0, 1, 2]


def test_what_was_shown_while_nothing_ran_is_told_whatever_lines_begin(
    clock: Callable[[], datetime], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine was started anew, and nothing was lost by that."""
    stream = Stream(tmp_path / "home", topic=[0, 0])
    stream.epoch(start(stream, boot=7, patch=monkeypatch), 1)
    stopped = clock()
    for boot in (8, 9):
        writer = start(stream, boot=boot, patch=monkeypatch)
    assert told(stream, stopped) == told(stream, clock()) == [0]
    stream.epoch(writer)
    assert told(stream, stopped) == [0]
    assert told(stream, clock()) == [0, 1]


def test_after_a_loss_the_present_is_told_before_anything_is_read(
    clock: Callable[[], datetime], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes, and what the line began with is all that there is."""
    stream = Stream(tmp_path / "home", topic=[0, 0])
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.epoch(writer, 2)
    cut(stream, {"master": before["master"]}, "gone")
    then = clock()
    start(stream, boot=8, patch=monkeypatch)
    with pytest.raises(BadRange, match="epochs above 0 may have been in the log then"):
        told(stream, then)
    assert told(stream, clock()) == [0]
