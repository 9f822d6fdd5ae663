"""The page of producers' counts: each gap by name, and what is not known yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.counts_world import FIRST, START, Orders, order, says

from seamline import Counts
from seamline.lake.store.locations import Location
from seamline.lake.tables.certificates_table import Certificates
from seamline.model.protocol.certificate_checks import Certificate

DEFINITION = """
from tests.unit.counts_world import declare
from seamline import Counts

orders = declare(Counts("orders.counts", producer="shop"))
"""


@pytest.fixture
def orders(client: Any, tmp_path: Path, warehouse: Location) -> Orders:
    """Orders of three producers of a day that is over, and a certificate from before anybody said what it had sent."""
    (tmp_path / "definitions" / "orders.py").write_text(DEFINITION)
    made = Orders(warehouse, Counts("orders.counts", producer="shop"))
    made.read(
        [order(1, "01:10"), order(2, "02:10", "us"), order(3, "02:20", "us"), order(4, "03:30", "asia")],
        watermark=FIRST.end,
    )
    view = made.compiled.views[0]
    kept = Certificate(
        "by_shop", view.fingerprint, "g", FIRST, 0, "manual__1", "", START, (), counts=(made.counted(),)
    )
    Certificates.ensure(made.layout).append([kept])
    made.state(says("eu", "00:00", "2026-01-02", 3), says("us", "00:00", "03:00", 1))
    return made


def test_gaps_have_names(client: Any, orders: Orders) -> None:
    """Who has sent more than was read, who less, and who has said nothing of part of the day."""
    text = client.get("/pipelines/orders/counts").text
    gaps = text[text.index('id="gaps"') : text.index("Not stated")]
    assert '<tr><td>eu</td><td><time datetime="2026-01-01T00:00:00Z">' in gaps
    assert '2 <span class="tag missing">missing</span>' in gaps
    assert '1 <span class="tag surplus">surplus</span>' in gaps
    unstated = text[text.index('id="unstated"') :]
    assert '<tr><td>us</td><td><time datetime="2026-01-01T03:00:00Z">' in unstated
    assert "is closed, and what was read of it is not what was sent" in text
    assert "says something else" in text and "manual__1</a>" in text
    assert "/pipelines/orders/counts" in client.get("/pipelines/orders/completeness").text


def test_what_cannot_be_counted_is_said(client: Any, orders: Orders) -> None:
    """A span of too many intervals, and a pipeline whose producers say nothing."""
    text = client.get("/pipelines/orders/counts?from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z").text
    assert "has more than 400 intervals" in text
    assert "No interval has records or statements" in (
        client.get("/pipelines/orders/counts?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z").text
    )
    assert "none has <code>counts=</code>" in client.get("/pipelines/shop/counts").text
