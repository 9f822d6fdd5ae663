"""What has been shown once, in a serving table or at an instant, beside tables that came back from a backup."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tests.protocol.powerless import TABLES, reads_on, rebooted, root, start
from tests.protocol.shipped import PIPELINE, VIEW, Stream

from seamline.lake import serving
from seamline.lake.publishing import publish_run
from seamline.lake.reads import answer
from seamline.lake.tables import Table

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
    while serving.refresh(PIPELINE, stream.layout, VIEW):
        pass
    rows = Table.open(stream.layout.serving(VIEW)).read(["id", "n", "batch_part"]).to_pydict()
    return sorted(zip(rows["id"], rows["n"], rows["batch_part"], strict=True))


def right(stream: Stream) -> list[Row]:
    """Give the answer, as ``shown`` does."""
    rows = answer(PIPELINE, VIEW, stream.layout).table.to_pydict()
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
