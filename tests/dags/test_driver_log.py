"""The page of a driver's last lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dags.server import Client


def test_the_last_lines_of_a_driver_are_a_page(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows a task's button sees why a stream has failed, without a shell on its host."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path))
    assert client.get("/pipelines/shop/log").status_code == 404
    log = tmp_path / "streams" / "shop" / "driver.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number} <b>\n" for number in range(9)))
    found = client.get("/pipelines/shop/log", params={"lines": 2})
    assert found.headers["content-type"].startswith("text/plain")
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.text == "line 7 <b>\nline 8 <b>\n"
    assert client.get("/pipelines/nobodys/log").status_code == 404
