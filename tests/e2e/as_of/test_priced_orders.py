"""The example of an as-of join over real topics, with its driver killed on the way: right in both layers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest
from tests.e2e.joined_oracle import Held, Late, floors, sum_or_null
from tests.e2e.joined_world import Example, eventually

from seamline.kafka.connections import KafkaConnection
from seamline.supervisor.outside import stop_stream

NAME = "priced_orders"
ORDERS, PRICES = "examples.counter_orders", "examples.counter_prices"
BUILT = ("2026-03-01T09:00:00Z", "2026-03-01T12:00:00Z")


def price_orders(held: Held) -> pd.DataFrame:
    """Return orders with the prices of their time, as pandas finds them."""
    orders, prices = held[ORDERS], held[PRICES]
    orders = orders.assign(at=pd.to_datetime(orders.ordered_at, utc=True)).sort_values("at", kind="stable")
    prices = prices.assign(at=pd.to_datetime(prices.valid_from, utc=True), price=prices.price.map(Decimal))
    prices = prices.sort_values(["at", "partition", "offset"])[["at", "sku", "price"]]
    found = pd.merge_asof(orders, prices, on="at", by="sku", tolerance=pd.Timedelta("1D"))
    return found.assign(window_start=floors(found, "ordered_at", "1h"))


def by_shop(held: Held) -> pd.DataFrame:
    """Orders and what they are worth, by shop and hour."""
    found = []
    for (shop, start), own in price_orders(held).groupby(["shop", "window_start"]):
        known = own.price.dropna()
        worth = sum_or_null(known)
        mean = None if worth is None else float(worth) / len(known)
        found.append((shop, start, len(own), worth, mean, len(own) - len(known)))
    names = ["orders_shop", "window_start", "orders", "worth", "mean_price", "without_a_price"]
    return pd.DataFrame(found, columns=names)


def by_price(held: Held) -> pd.DataFrame:
    """Orders by article, price and hour."""
    keys = ["sku", "price", "window_start"]
    found = price_orders(held).groupby(keys, dropna=False).size().reset_index(name="orders")
    return found.rename(columns={"sku": "orders_sku", "price": "prices_price"})


def count_orders(held: Held) -> pd.DataFrame:
    """Orders by shop and hour."""
    orders = held[ORDERS]
    found = orders.assign(window_start=floors(orders, "ordered_at", "1h")).groupby(["shop", "window_start"])
    return found.agg(orders=("sku", "size")).reset_index()


def choose_late_price(held: Held) -> Late:
    """Choose an order of the second hour: its article had another price a second before."""
    found = price_orders(held)
    start, end = pd.Timestamp("2026-03-01T10:10Z"), pd.Timestamp("2026-03-01T11:00Z")
    chosen = found[(found["at"] >= start) & (found["at"] < end) & found.price.notna()].iloc[0]
    then = chosen["at"] - pd.Timedelta("1s")
    row = {"sku": chosen.sku, "price": "99.00", "valid_from": then.isoformat()}
    return Late(PRICES, row, f"orders_shop={chosen.shop}", "2026-03-01T10:00:00Z", then.value // 10**6)


@pytest.fixture
def example(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Example]:
    """Have the topics, and the definition."""
    views = {"by_shop": by_shop, "by_price": by_price, "orders": count_orders}
    made = Example(tmp_path, kafka, NAME, BUILT, views)
    with made.at_work():
        yield made


@pytest.mark.faults
def test_prices_are_right_in_both_layers_whatever_dies(example: Example) -> None:
    """Before a build, after it, without the index, and when a price turns out to have been another one."""
    example.produce("--from", "2026-03-01T09:00", "--seconds", "5400", "--rate", "1")
    example.seamline("stream", "start", NAME, "--here")
    eventually("the first records to be read", example.is_read)
    assert example.differences() == ""
    example.kill_driver()
    example.produce("--from", "2026-03-01T10:30", "--seconds", "5400", "--rate", "1")
    eventually("all to be read", example.is_read)
    example.drain()
    assert example.differences() == ""
    assert example.differences("speed") == ""
    example.seamline("run", NAME, "--dirty")
    assert example.differences() == ""
    assert example.differences("batch", closed=True) == ""
    example.require_certified()
    example.audit()
    late = choose_late_price(example.held())
    before = example.explain(late)
    example.seamline("stream", "stop", NAME)
    assert stop_stream(example.layout, timeout=120)
    shutil.rmtree(example.home / "streams" / NAME / "joined")
    example.send(late.topic, late.row, late.at_ms)
    example.seamline("stream", "start", NAME, "--here")
    eventually("the late price to be read", example.is_read)
    assert example.differences() == ""
    assert example.differences("batch", closed=True) != "", "what was built is as it was"
    assert example.explain(late) != before
    example.audit()
    said = example.seamline("plan", NAME, "--why")
    assert "build 2026-03-01T10:00:00Z" in said
    example.seamline("run", NAME, "--dirty")
    assert example.differences("batch", closed=True) == ""
    assert "  build " not in example.seamline("plan", NAME)
    example.require_certified()
    example.audit()
    example.seamline("stream", "stop", NAME)
    assert stop_stream(example.layout, timeout=120)
