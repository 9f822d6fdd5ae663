"""Power cuts on slices that get no more: the start that finds them short is the only one to say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.protocol.powerless import cut, reads_on, rebooted, start, versions
from tests.protocol.shipped import PIPELINE, VIEW, Stream

from seamline.lake.read.merged_read import read_merged_answer
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.sources import Rule
from seamline.model.protocol.read_request import ReadRequest

EDITED = compile_pipeline(replace(PIPELINE.definition, rules=[Rule("positive", "id >= 0")]))
"""Another record version: slices of the one before get no more, and are served until the new one is built."""


def claimed(stream: Stream) -> tuple[list[int], int]:
    """Answer by the version that stands still: the records that it counts, and the epoch up to which it says so."""
    rebooted()
    found = read_merged_answer(
        stream.pipeline, stream.pipeline.views[0], stream.layout, ReadRequest(version=VIEW.fingerprint)
    )
    return found.table["id"].to_pylist(), found.until


def edited(stream: Stream, patch: pytest.MonkeyPatch) -> dict[str, int]:
    """Hold three epochs, and start under an edited definition; give the tables' versions before."""
    writer = start(stream, boot=7, patch=patch)
    for end in (1, 2, 3):
        stream.epoch(writer, end)
    before = versions(stream.layout)
    stream.pipeline = EDITED
    start(stream, boot=7, patch=patch)
    return before


@pytest.mark.parametrize("starts", [1, 2])
def test_slices_that_get_no_more_claim_nothing_that_they_have_lost(
    tmp_path: Path, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start lowered what the master relies on, and left W: the next answer was short and said it was whole."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 0, 0])
    before = edited(stream, monkeypatch)
    assert claimed(stream) == ([0, 1, 2], 2)
    cut(stream, {"slices": before["slices"] - 1}, "gone")
    assert claimed(stream) == ([0, 1], 1)
    for boot in range(8, 8 + starts):
        start(stream, boot=boot, patch=monkeypatch)
        assert claimed(stream) == ([0, 1], 1)


def test_slices_that_get_some_again_make_up_for_what_they_have_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definition is edited back: W says from where on they are caught up."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 0, 0])
    before = edited(stream, monkeypatch)
    cut(stream, {"slices": before["slices"] - 1}, "gone")
    start(stream, boot=8, patch=monkeypatch)
    stream.pipeline = PIPELINE
    writer = start(stream, boot=8, patch=monkeypatch)
    reads_on(stream, writer, monkeypatch.setattr)
    assert claimed(stream) == ([0, 1, 2, 3], writer.master.epoch)


def test_slices_that_get_no_more_and_are_whole_keep_what_they_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line begins after every power cut: W of a version that stands still is stated as it was."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 0, 0])
    edited(stream, monkeypatch)
    writer = start(stream, boot=8, patch=monkeypatch)
    assert claimed(stream) == ([0, 1, 2], 2)
    assert set(writer.frontiers) == {EDITED.views[0].id}
    stream.epoch(writer, 4)
    assert claimed(stream) == ([0, 1, 2], 2)
