"""What an epoch and an answer ask of a store, request by request: each is a round trip, and some are billed."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.faults.rig.store_proxy import StoreProxy
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.store.locations import Location

pytestmark = pytest.mark.slow


def count_new(proxy: StoreProxy, before: int) -> Counter[str]:
    """Count the requests after the first so many, by method; those of deltalake are among them."""
    return Counter(method for method, _ in proxy.seen[before:])


def test_an_epoch_and_an_answer_ask_for_nothing_that_is_known(shaky: Location, proxy: StoreProxy) -> None:
    """Three tables have a file and a commit; whoever reads asks each table for its next version."""
    shop = Shop(shaky)  # type: ignore[arg-type]
    shop.epoch([Sale(1)], watermark=START)
    before = len(proxy.seen)
    shop.epoch([Sale(2)], watermark=START + DAY)
    assert count_new(proxy, before) == {"PUT": 6}

    def answer() -> int:
        [row] = read_merged_answer(shop.compiled, shop.view, shop.layout).table.to_pylist()
        return int(row["orders"])

    assert answer() == 2
    before = len(proxy.seen)
    assert answer() == 2
    nothing_new = count_new(proxy, before)
    shop.epoch([Sale(3)], watermark=START + DAY)
    before = len(proxy.seen)
    assert answer() == 3
    after_an_epoch = count_new(proxy, before)
    # Two of each are for a table that is not there: this shop has no stream, and so no control table.
    assert (nothing_new, after_an_epoch) == ({"GET": 9}, {"GET": 13})
