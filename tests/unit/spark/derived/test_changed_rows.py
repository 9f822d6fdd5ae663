"""The driver's indexes of tables: what is done at an epoch, and what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.lake.engine.test_changed_index import find_changelog, make_log
from tests.unit.model.changes.test_changelogs import BANK

from seamline.lake.engine.changed_index import ChangedIndex
from seamline.lake.joins.log_stamps import LogStamps
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.seam import NOTHING
from seamline.spark.stream.derived.changed_rows import ChangedRows
from seamline.spark.stream.derived.kept_indexes import Kept

AT = datetime(2026, 1, 5, tzinfo=UTC)


def test_an_epoch_without_changes_writes_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index stands at it all the same: a start reads no epoch again that brought nothing."""
    monkeypatch.setattr(
        LogStamps, "stamp", lambda _, epoch, __: SimpleNamespace(to_json=lambda: f"epoch {epoch.number}")
    )
    writer: Any = SimpleNamespace(pipeline=compile_pipeline(BANK), layout=None, restated=0, indexed={})
    source: Any = None
    changed, changelog, written = ChangedRows(writer, tmp_path / "changed", source), find_changelog(BANK), []
    monkeypatch.setattr(changed.saved, "save", lambda made, index, epoch: written.append(epoch.number))
    kept = Kept(ChangedIndex(changelog, tmp_path / "index"), NOTHING, None, 0)
    epochs = [rows for rows in make_log(changelog, 5) if rows.num_rows][:2]
    epochs.insert(1, epochs[0].slice(0, 0))
    for number, rows in enumerate(epochs):
        epoch: Any = SimpleNamespace(number=number, committed_at=AT)
        changed.take_in(changelog, kept, rows, epoch)
        assert kept.index.stamp == f"epoch {number}"
        assert writer.indexed == {changelog.name: kept.index.count_rows()}
    assert written == [0, 2]
    kept.index.close()
