"""Whoever watches a stream takes statements now and then, and tells what is news."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.counts_world import Orders

from seamline import Counts
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.supervisor.counts import beside
from seamline.supervisor.counts.beside import Taker

MINUTE = 60.0


def orders(warehouse: Location) -> Orders:
    return Orders(warehouse, Counts("orders.counts", producer="shop"))


def look(taker: Taker, compiled: CompiledPipeline) -> None:
    """Look, and wait for what was begun."""
    taker.take_if_due(compiled)
    if taker.thread:
        taker.thread.join(MINUTE)


def test_a_topic_is_looked_at_once_a_minute_and_news_are_told_once(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is away for an hour is one line of the log."""
    shop = orders(warehouse)
    said, looks, clock = list[str](), iter([["away"], ["away"], [], ["took 1"]]), [0.0]
    monkeypatch.setattr(beside, "describe_taking", lambda *_, **__: next(looks))
    monkeypatch.setattr(beside.time, "monotonic", lambda: clock[0])
    taker = Taker(shop.layout, said.append)
    for at in (0.0, 30.0, 61.0, 122.0, 150.0, 200.0):
        clock[0] = at
        look(taker, shop.compiled)
    assert said == ["away", "took 1"]
    assert next(looks, None) is None


def test_a_topic_that_takes_long_keeps_nobody_waiting_and_ends_when_it_is_over(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alerts are looked for by who takes; two who take at once would be in each other's way."""
    shop, begun, said = orders(warehouse), list[Callable[[], bool]](), list[str]()
    asked, end = threading.Event(), threading.Event()

    def take(*_: Any, stopping: Callable[[], bool]) -> list[str]:
        begun.append(stopping)
        asked.set()
        end.wait(MINUTE)
        return ["stopped"] if stopping() else ["took all"]

    monkeypatch.setattr(beside, "describe_taking", take)
    taker = Taker(shop.layout, said.append, every=0.0)
    taker.take_if_due(shop.compiled)
    assert asked.wait(MINUTE)
    taker.take_if_due(shop.compiled)
    taker.close(within=0.0)
    end.set()
    taker.close(within=MINUTE)
    taker.take_if_due(shop.compiled)
    assert (len(begun), said) == (1, ["stopped"])


def test_without_statements_no_thread_is_begun(warehouse: Location) -> None:
    """Most pipelines have none."""
    shop = orders(warehouse)
    without = Orders(warehouse, None)  # type: ignore[arg-type]
    taker = Taker(shop.layout, print, every=0.0)
    taker.take_if_due(without.compiled)
    assert taker.thread is None
