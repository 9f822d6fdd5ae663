"""A shop that was open for some days, and what it says whoever asks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.shop import Sale, Shop, opened

from seamline.lake.read.serving_table import refresh_serving_table
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.view_versions import add_live_versions

NOW = datetime(2013, 1, 9, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A pipeline with epochs, a published day, a serving table, and a stream that somebody stopped."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    made = opened(tmp_path, monkeypatch)
    for day in range(3):
        made.epoch([Sale(day * 1440 + minute, "ab"[minute % 2], minute) for minute in range(5)])
    made.build(0, 1, "g1")
    control = ControlTable.ensure(made.layout)
    control.want(Desired.STOPPED, actor="ada", reason="to move", now=NOW)
    control.release(control.take("here:1:1", now=NOW))
    for view in add_live_versions(made.compiled, made.layout).views:
        refresh_serving_table(made.compiled, made.layout, view, [])
    return made
