"""A shop whose sales are sent to a target in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.unit.shop import Shop
from tests.unit.sinks.memory_target import MemoryTarget, Place, Store, index_rows, unlike

from seamline import KafkaSink
from seamline.lake.read import serving_table
from seamline.lake.storage.delta_table import Table
from seamline.model.definition.sinks.sink_base import Sink
from seamline.sinks.sink_runner import SinkRunner

SINK = KafkaSink("sales", topic="sales.out")


def refresh(shop: Shop) -> None:
    """Bring the serving table up to date."""
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)


def send(shop: Shop, store: Store, sink: Sink = SINK) -> SinkRunner:
    """Send what is new, as a process does that is started for that."""
    opening: Callable[[Any, Any], MemoryTarget] = lambda *_: MemoryTarget(store)  # noqa: E731 - a factory
    runner = SinkRunner(shop.compiled, shop.layout, sink, threading.Event(), once=True, opening=opening)
    runner.run()
    return runner


def shown(shop: Shop) -> dict[Place, dict[str, Any]]:
    """Return the rows that the serving table shows."""
    return index_rows(Table.open(shop.layout.serving(shop.view)).read())


def held(store: Store) -> dict[Place, dict[str, Any]]:
    """Return the rows that a target holds."""
    return {place: unlike(row) for place, row in store.rows.items()}
