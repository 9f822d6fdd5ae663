"""What builds leave behind beside their generations: build rows, certificates, publications."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.publish.generation_history import list_past_generations
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.model.protocol.certificate_checks import Certificate, Check
from seamline.model.time.intervals import Interval
from seamline.plan.publish.generation_fates import PastGeneration

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = ("2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z")
ticks = count()


def sell_two_days(shop: Shop) -> None:
    """Sell on two days that have closed, and build the first of them."""
    sales = [Sale(1, "a", 10), Sale(2, "b", 5), Sale(70, None, 3), Sale(1500, "a", 1)]
    shop.epoch(sales, watermark=START + 3 * DAY)
    build(shop, "g", cut=0)


def build(
    shop: Shop,
    id: str,
    *,
    cut: int,
    day: int = 0,
    passed: bool = True,
    publish: bool = True,
    expected: str | None = None,
    at: datetime | None = None,
) -> Interval:
    """Build a day as a run would: states, build row, certificate, and the publication unless it is not wanted."""
    interval = Interval(START + day * DAY, START + (day + 1) * DAY)
    manifest = shop.manifest.read()
    current = manifest.published.get((shop.view.id, interval.id))
    at = at or NOW + timedelta(minutes=next(ticks))
    shop.build(day, cut, id, publish=False)
    sales = [
        sale
        for number, some in shop.events.items()
        if number <= cut
        for sale in some
        if shop.interval(sale) == interval
    ]
    rows = len(shop.pieces(sales))
    Builds.ensure(shop.layout).append(
        [
            BuildRow(
                run=f"run-{id}",
                view=shop.view.id,
                interval=interval.id,
                generation=id,
                cut=cut,
                rows=rows,
                state_rows=len(sales),
                rows_read=len(sales),
                duplicates=0,
                not_selected=0,
                expected=(current.generation if current else "") if expected is None else expected,
                seconds=1.5,
                reason=f"build {id}",
                at=at,
                planned=manifest.version,
            )
        ]
    )
    judged = Certificate(
        shop.view.name,
        shop.view.fingerprint,
        id,
        interval,
        cut,
        f"run-{id}",
        f"build {id}",
        at,
        (Check("all", passed, "as it should be" if passed else "1 too few"),),
    )
    Certificates.ensure(shop.layout).append([judged])
    if publish:
        shop.publish(interval, cut, id, rows, at=at)
    return interval


def past_of(shop: Shop, day: int = 0) -> list[PastGeneration]:
    """List a day's generations."""
    interval = Interval(START + day * DAY, START + (day + 1) * DAY)
    return list_past_generations(shop.layout, shop.manifest.read(), shop.view.name, interval)


def query(shop: Shop, column: str) -> list[Any]:
    """Return a column of the answer."""
    found: list[Any] = read_merged_answer(shop.compiled, shop.view, shop.layout).table[column].to_pylist()
    return found
