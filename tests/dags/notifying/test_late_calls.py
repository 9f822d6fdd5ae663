"""What a definition calls for intervals that are late may be asynchronous, as its other functions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.orchestration.freshness_deadline import tell_overdue

LATE: list[str] = []


async def page(*, pipeline: str, interval: str) -> None:
    """Wake somebody."""
    await asyncio.sleep(0)
    LATE.append(f"{pipeline} {interval}")


def test_a_function_that_is_asynchronous_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coroutine that nobody awaits has woken nobody, and the interval counted as told."""
    LATE.clear()
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    shop = Shop(tmp_path / "warehouse")
    shop.epoch([Sale(1)], watermark=START + 2 * DAY)
    batch = replace(shop.compiled.definition.batch, fresh_within="1 hour")
    late = replace(shop.compiled.definition, batch=batch, on_late=f"{__name__}.page")
    for _ in range(2):
        [interval] = tell_overdue(replace(shop.compiled, definition=late), shop.layout)
    assert [f"shop {interval}"] == LATE
