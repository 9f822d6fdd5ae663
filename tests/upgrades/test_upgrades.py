"""Warehouses that earlier revisions have written: they are opened, migrated, and answer as they did, and streams go on.

Each folder has a warehouse, what the release itself answered from it, and the script that wrote both.
"""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.shipped import PIPELINE, Stream

from seamline import Tumbling, View, count
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.table_format import migrate, require_format
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import SeamlineError
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side

HERE = Path(__file__).parent
RELEASES = sorted(path.parent.name for path in HERE.glob("*/warehouse.tar.gz"))
LATER = compile_pipeline(
    replace(
        PIPELINE.definition,
        views=[
            View("by_record", keys=["id"], window=Tumbling("1 day"), measures={"n": count(), "m": count()})
        ],
    )
)
SERVED = LATER.views[0]


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> Path:
    """The folder of a release."""
    return HERE / request.param


@pytest.fixture
def layout(release: Path, tmp_path: Path) -> Layout:
    """Its tables, as they were left."""
    with tarfile.open(release / "warehouse.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    REMEMBERED.answers.clear()
    return Layout(tmp_path, "shop")


def said(release: Path) -> list[dict[str, Any]]:
    """Return what the release answered."""
    found: list[dict[str, Any]] = json.loads((release / "answers.json").read_text())
    assert any("error" not in each for each in found)
    return found


def ask(layout: Layout, question: dict[str, Any]) -> dict[str, Any]:
    """Ask one of its questions, and write the answer as it did."""
    asked = {name: question[name] for name in ("version", "side", "as_of")}
    try:
        told = read_merged_answer(
            LATER, SERVED, layout, ReadRequest(**{**asked, "side": Side(asked["side"])})
        )
    except SeamlineError as problem:
        return {**asked, "error": type(problem).__name__}
    rows = told.table.sort_by([("window_start", "ascending"), ("id", "ascending")]).to_pylist()
    return {
        **asked,
        "rows": [{name: str(value) for name, value in row.items()} for row in rows],
        "intervals": {id: each.status.value for id, each in sorted(told.intervals.items())},
        "complete_to": told.complete_to,
    }


def test_it_answers_as_it_did(release: Path, layout: Layout) -> None:
    """Every version and layer, now and as of earlier epochs, before a migration and after one."""
    require_format(layout)
    for question in said(release):
        assert ask(layout, question) == question
    migrate(layout, actor="ada")
    REMEMBERED.answers.clear()
    for question in said(release):
        assert ask(layout, question) == question


def test_a_stream_goes_on(release: Path, layout: Layout) -> None:
    """The next driver reads on where the last one ended, counts what was counted once, and new records beside."""
    [before] = [
        each
        for each in said(release)
        if each["version"] == SERVED.fingerprint and each["side"] == "merged" and each["as_of"] is None
    ]
    stream = Stream(layout.warehouse, pipeline=LATER, token=99)
    writer = stream.start()
    read = stream.position(writer)
    stream.topic = [None] * read
    stream.produce(0, 5)
    epoch = stream.epoch(writer)
    assert epoch is not None and epoch.number > before["complete_to"]
    REMEMBERED.answers.clear()
    after = ask(layout, before)
    counts = {(row["id"], row["window_start"]): (row["n"], row["m"]) for row in before["rows"]}
    found = {(row["id"], row["window_start"]): (row["n"], row["m"]) for row in after["rows"]}
    assert {place: found.get(place) for place in counts} == counts
    assert sorted(id for id, _ in found.keys() - counts.keys()) == sorted(map(str, (read, read + 1)))
    assert after["complete_to"] == epoch.number
