"""A version that is born at a start is told which rows the master has, whatever the ledger says before its repair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tests.protocol.powerless import cut, reads_on, rebooted, root, start, versions
from tests.protocol.shipped import DAY, PIPELINE, START, Stream

from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.pipeline import View
from seamline.model.definition.sources import Rule
from seamline.model.definition.windows import Tumbling
from seamline.model.measures import count
from seamline.plan.batch.reprocessing_plan import Verdict
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.spark.build.reprocessing import reprocess_epochs

WIDER = compile_pipeline(
    replace(
        PIPELINE.definition,
        views=[View("by_record", keys=["id"], window=Tumbling("1 day"), measures={"m": count()})],
    )
)


def test_a_version_lacks_the_days_that_only_the_master_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger was of a later line: the new version answered for the second day, and had none of its rows."""
    stream = Stream(tmp_path / "home", topic=[0, 1])
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.epoch(writer, 2)
    copytree(root(stream.layout, "master"), tmp_path / "backup")
    cut(stream, before, "gone")
    reads_on(stream, start(stream, boot=8, patch=monkeypatch), monkeypatch.setattr)
    rmtree(root(stream.layout, "master"))
    copytree(tmp_path / "backup", root(stream.layout, "master"))
    stream.pipeline = WIDER
    start(stream, boot=8, patch=monkeypatch, acceptance=Acceptance("somebody", "the backup is what there is"))
    rebooted()
    manifest = ManifestTable.ensure(stream.layout).read()
    born = WIDER.views[0].id
    assert manifest.births[born] == 2
    assert manifest.filled[born] == PIPELINE.grid.of(START + DAY).id


def test_a_version_lacks_the_days_that_judging_again_has_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view that was added after a mending answered nothing for a day that had been refused, until a build."""
    stream = Stream(tmp_path / "home", topic=[0])
    stream.epoch(start(stream, boot=7, patch=monkeypatch), 1)
    stream.pipeline = compile_pipeline(replace(WIDER.definition, rules=(Rule("positive", "id >= 0"),)))
    day = PIPELINE.grid.of(START + 3 * DAY).id
    Reprocessed(stream.pipeline, stream.layout).commit([], [Verdict(0, "attempt", {day: 1})])
    start(stream, boot=7, patch=monkeypatch)
    born = stream.pipeline.views[0].id
    manifest = ManifestTable.ensure(stream.layout).read()
    assert (manifest.filled[born], manifest.is_building(born, day)) == (day, True)


def test_a_version_does_not_wait_for_records_that_the_log_has_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong rule's epochs were lost by a power cut after the birth: nothing was to be judged again, ever."""
    wrong = compile_pipeline(replace(PIPELINE.definition, rules=(Rule("wrong", "id < 0"),)))
    stream = Stream(tmp_path / "home", pipeline=wrong, topic=[0, 1])
    writer = start(stream, boot=7, patch=monkeypatch)
    before = {
        table: Table.open(root(stream.layout, table)).version for table in ("master", "quarantine", "ledger")
    }
    stream.epoch(writer, 1)
    stream.pipeline = WIDER
    start(stream, boot=7, patch=monkeypatch)
    born = WIDER.views[0].id
    assert born not in ManifestTable.ensure(stream.layout).read().filled, "a record waits to be judged again"
    cut(stream, before, "gone")
    writer = start(stream, boot=8, patch=monkeypatch)
    stream.epoch(writer)
    reprocess_epochs(None, WIDER, stream.layout, until=writer.number)  # type: ignore[arg-type]
    manifest = ManifestTable.ensure(stream.layout).read()
    day = PIPELINE.grid.of(START + DAY).id
    assert born in manifest.filled
    assert not manifest.is_building(born, day)
