"""A shop with some rows, and sinks that go in small steps."""

from __future__ import annotations

import pytest
from tests.unit.shop import DAY, START, Sale, Shop
from tests.unit.sinks.sending_shop import refresh

from seamline.lake.store.locations import Location
from seamline.sinks import sending


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let sinks say how they do in a folder of the test, and let a transaction take two changes."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setattr("seamline.lake.read.sinks.served_changes.BATCH", 2)
    monkeypatch.setattr("seamline.lake.read.sinks.shown_rows.BATCH", 2)
    monkeypatch.setattr(sending, "MOST_BATCHES", 1)


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """A shop with some rows that are shown."""
    shop = Shop(warehouse)
    shop.epoch(
        [Sale(1), Sale(2, None, 5), Sale(25 * 60), Sale(70, "b"), Sale(49 * 60)], watermark=START + DAY
    )
    refresh(shop)
    return shop
