"""A sink that runs, and has nothing new to send, when somebody asks that it send something again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.shop import Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store
from tests.unit.sinks.sending_shop import SINK, held, shown

from seamline.lake.tables.sinks.recorded_positions import read_copy
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.sinks import told_copy
from seamline.sinks.sink_list import ask_for_range, clear_target
from seamline.sinks.sink_runner import SinkRunner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_steps")]
Asking = Callable[[CompiledPipeline, Shop], object]


@pytest.mark.parametrize(
    "ask",
    [
        lambda compiled, shop: clear_target(compiled, shop.layout, SINK),
        lambda compiled, shop: ask_for_range(compiled, shop.layout, SINK, RangeAgain("2013-01-01T00:00:00Z")),
    ],
    ids=["everything", "a range"],
)
def test_a_sink_that_waits_sees_that_it_is_asked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, ask: Asking
) -> None:
    """A target that was cleared would be empty until a next row comes, on a quiet day until tomorrow."""
    store = Store()
    monkeypatch.setattr("seamline.sinks.targets.KafkaTarget", lambda *_: MemoryTarget(store))
    monkeypatch.setattr("seamline.sinks.targets.read_airflow_connection", lambda *_: None)
    monkeypatch.setattr(told_copy, "LOOKS_EVERY", 0.0)
    compiled = replace(shop.compiled, definition=replace(shop.compiled.definition, sinks=[SINK]))
    runner: Any = SinkRunner(compiled, shop.layout, SINK, threading.Event())
    assert runner.try_to_send()
    own = runner.sending
    assert runner.try_to_send()
    assert runner.sending is own
    rows = {*store.rows}
    ask(compiled, shop)
    store.seen.clear()
    assert runner.try_to_send()
    assert {place for place, _ in store.seen} == rows
    assert held(store) == shown(shop)
    copy = read_copy(shop.layout, SINK.id)
    assert copy
    assert copy.position == SinkPosition.from_json(str(store.position))
    assert copy.position.settled
    runner.close()
