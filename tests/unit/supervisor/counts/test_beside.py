"""Whoever watches a stream takes statements now and then, and tells what is news."""

from __future__ import annotations

import pytest
from tests.unit.counts_world import Orders

from seamline import Counts
from seamline.lake.store.locations import Location
from seamline.supervisor.counts import beside
from seamline.supervisor.counts.beside import Taker


def test_a_topic_is_looked_at_once_a_minute_and_news_are_told_once(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is away for an hour is one line of the log."""
    orders = Orders(warehouse, Counts("orders.counts", producer="shop"))
    said, looks, clock = list[str](), iter([["away"], ["away"], [], ["took 1"]]), [0.0]
    monkeypatch.setattr(beside, "describe_taking", lambda *_: next(looks))
    monkeypatch.setattr(beside.time, "monotonic", lambda: clock[0])
    taker = Taker(orders.layout, said.append)
    for at in (0.0, 30.0, 61.0, 122.0, 150.0, 200.0):
        clock[0] = at
        taker.take_if_due(orders.compiled)
    assert said == ["away", "took 1"]
    assert next(looks, None) is None
