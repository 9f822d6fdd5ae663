"""A supervisor's look at its stream: sinks that cannot be started keep no alert from being sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.shop import sales_pipeline

from seamline.lake.storage.layout import Layout
from seamline.supervisor import watcher
from seamline.supervisor.watcher import Watcher


def test_sinks_that_cannot_be_started_are_in_the_way_of_no_alert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that cannot be opened, or a machine without room for a process, is not the stream's end of alerts."""
    said: list[str] = []
    alerts: list[str] = []
    monkeypatch.setattr(watcher, "notify_alerts", lambda *_, **__: alerts.append("sent"))
    looking = Watcher(Layout(tmp_path, "shop"), every=3600.0, say=said.append)
    monkeypatch.setattr(looking.definitions, "now", lambda: {"shop": sales_pipeline()})

    def refuse(_: object) -> None:
        raise PermissionError("sinks.log")

    monkeypatch.setattr(looking.sinks, "keep", refuse)
    monkeypatch.setattr(looking.taker, "take_if_due", lambda _: None)
    looking.watch_once()
    assert alerts == ["sent"]
    assert said == ["sinks not looked at: PermissionError: sinks.log"]
    looking.close()
