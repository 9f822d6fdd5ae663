"""The heartbeat of a stream that makes no epochs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from seamline.spark.stream.pulse import RENEWED_AFTER, Pulse


@pytest.mark.parametrize(("asks", "written"), [(["scored"], 3), ([], 0)])
def test_an_idle_stream_that_asks_says_how_that_goes(
    asks: list[str], written: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Else what asks would seem to be silent, and an alert would tell of it."""
    pulse, said, now = Pulse(tmp_path / "driver.json"), [], [1000.0]

    def beat(*_: Any) -> None:
        pulse.written = now[0]
        said.append(now[0])

    monkeypatch.setattr(pulse, "beat", beat)
    monkeypatch.setattr("seamline.spark.stream.pulse.time.monotonic", lambda: now[0])
    writer: Any = SimpleNamespace(pipeline=SimpleNamespace(asks=asks))
    for _ in range(9):
        pulse.renew(SimpleNamespace(), writer, SimpleNamespace())  # type: ignore[arg-type]
        now[0] += RENEWED_AFTER / 3
    assert len(said) == written
