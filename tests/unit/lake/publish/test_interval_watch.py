"""Looks at the tables of somebody who waits: right, in another process too, and cheap."""

from __future__ import annotations

import json

import pytest
from tests.unit.past import build
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.publish import interval_watch
from seamline.lake.publish.interval_watch import Watch
from seamline.model.time.intervals import Interval
from seamline.plan.publish.awaited_intervals import Until

TWO = Interval(START, START + 2 * DAY)


def watch(shop: Shop, until: Until = Until.CERTIFIED, span: Interval = TWO) -> Watch:
    """Wait for two days, as another process that was told by JSON."""
    made = Watch.of(shop.compiled, shop.layout, "sales", span, until)
    return Watch.from_json(json.loads(json.dumps(made.to_json())))


def test_a_wait_ends_with_the_last_build(tmp_path) -> None:
    """Two days: open, complete, one of them certified, both."""
    shop = Shop(tmp_path)
    complete, certified = watch(shop, Until.COMPLETE), watch(shop)
    assert complete.look().lacking == certified.look().lacking == "the stream has not started"
    shop.epoch([Sale(1), Sale(1500)], watermark=START + DAY)
    assert "open" in complete.look().lacking
    shop.epoch([], watermark=START + 2 * DAY)
    assert complete.look().lacking == ""
    assert certified.look().lacking == f"not certified yet: {START:%Y-%m-%dT%H:%M:%SZ} and 1 more"
    build(shop, "g", cut=1)
    assert "2013-01-02" in certified.look().lacking
    build(shop, "h", cut=1, day=1)
    found = certified.look()
    assert found.lacking == ""
    assert [each.generation for each in found.statements] == ["g", "h"]


def test_a_day_without_rows_is_over_when_it_has_closed(tmp_path) -> None:
    """It is never built."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)], watermark=START + 2 * DAY)
    certified = watch(shop)
    build(shop, "g", cut=0)
    assert certified.look().lacking == ""
    shop.epoch([Sale(1501)], watermark=START + 2 * DAY)
    assert certified.look().lacking == "", "what was over stays so"
    assert "2013-01-02" in watch(shop).look().lacking


def test_an_interval_with_rows_is_looked_up_once(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs come each second: a wait that reads the log's rows at each of them costs as much as the stream."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1), Sale(1500)], watermark=START + 3 * DAY)
    asked: list[set[str]] = []
    truly = interval_watch.list_accepting_epochs
    monkeypatch.setattr(
        interval_watch,
        "list_accepting_epochs",
        lambda layout, ids: asked.append({*ids}) or truly(layout, ids),
    )
    certified = watch(shop)
    for _ in range(3):
        shop.epoch([Sale(5000)], watermark=START + 3 * DAY)
        assert certified.look().lacking
    assert len(asked) == 1
