"""The build that ended last, which pages and metrics show with what it took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.unit.shop import Shop

from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import BuildRow, Builds, read_newest_build

NOW = datetime(2026, 11, 30, 12, 0, 0, 123_456, tzinfo=UTC)


def test_the_build_that_ended_last_is_found_by_statistics(warehouse: Location) -> None:
    """Files state instants to the millisecond, rounded outward: no row was as late as its own file said."""
    shop = Shop(warehouse)
    assert read_newest_build(shop.layout) is None
    builds = Builds.ensure(shop.layout)
    assert read_newest_build(shop.layout) is None
    for minute in (1, 3, 2):
        at = NOW + timedelta(minutes=minute)
        run = f"r{minute}"
        builds.append([BuildRow(run, shop.view.id, "2013-01-01", run, 0, 1, 1, 1, 0, 0, "", 0.1, "test", at)])
    found = read_newest_build(shop.layout)
    assert found
    assert found.run == "r3"
