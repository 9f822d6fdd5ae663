"""Upkeep beside sinks: what a sink has still to compare stays, in files and in the log, and nothing else does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.shop import Sale, Shop

from seamline.lake.maintain import cleaning
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.read import serving_table
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.log_cleanup import delete_old_entries
from seamline.lake.store.locations import Location
from seamline.lake.tables.sinks.kept_for_sinks import find_version_for_sinks
from seamline.lake.tables.sinks.recorded_positions import (
    SinkCopy,
    begin_copy,
    forget_copy,
    list_copied_sinks,
    locate_copy,
    read_copy,
    replace_copy,
)
from seamline.lake.tables.sinks.served_versions import ServedVersions
from seamline.model.protocol.sinks.positions import SinkPosition

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop whose serving table is at version 5; each version has replaced the file of the one before."""
    monkeypatch.setattr(cleaning, "PINNED_HOURS", 0)
    shop = Shop(warehouse)
    for amount in range(5):
        shop.epoch([Sale(1, amount=amount)])
        serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
    return shop


def copy_at(version: int, toward: int | None = None, view: str = "sales") -> SinkCopy:
    """Return the copy of a sink that stands at a version, or is on the way to one."""
    return SinkCopy(view, "topic t", "2013-01-01T00:00:00Z", SinkPosition("f", version, toward))


@pytest.mark.everywhere
def test_files_that_a_sink_has_still_to_compare_stay(shop: Shop) -> None:
    """A sink that was down for a day goes on from what its target shows."""
    begin_copy(shop.layout, "out", copy_at(2))
    begin_copy(shop.layout, "other", copy_at(0, view="another"))
    done = maintain_tables(shop.compiled, shop.layout)
    assert done.left["removed files that a sink has still to compare"] == 3
    versions = ServedVersions(shop.layout.serving(shop.view))
    for number in (2, 3, 4, 5):
        assert all((versions.root / path).exists() for path in versions.read(number).files)
    assert not any((versions.root / path).exists() for path in versions.read(1).files)
    forget_copy(shop.layout, "out")
    maintain_tables(shop.compiled, shop.layout)
    assert not any((versions.root / path).exists() for path in versions.read(2).files)


def test_log_entries_from_a_needed_version_on_stay(shop: Shop) -> None:
    """Which files a version had is in its log alone."""
    table = Table.open(shop.layout.serving(shop.view))
    table.handle.create_checkpoint()
    later = datetime.now(UTC) + timedelta(days=2)
    assert delete_old_entries(table.root, timedelta(days=1), now=later, needed=3) == 0
    assert delete_old_entries(table.root, timedelta(days=1), now=later, needed=5) == 5


def test_a_first_copy_replaces_none(tmp_path: Path) -> None:
    """A process that was fenced off and has not heard of it must not let files go that its successor needs."""
    shop = Shop(tmp_path / "w")
    begin_copy(shop.layout, "out", copy_at(-1, 3))
    assert find_version_for_sinks(shop.layout, "sales") == 3
    replace_copy(shop.layout, "out", copy_at(4))
    begin_copy(shop.layout, "out", copy_at(-1, 9))
    assert read_copy(shop.layout, "out") == copy_at(4)
    assert find_version_for_sinks(shop.layout, "sales") == 4
    assert list_copied_sinks(shop.layout) == ["out"]


def test_a_copy_that_cannot_be_read_lets_nothing_go(tmp_path: Path) -> None:
    """Who does not know what a sink needs leaves it everything."""
    shop = Shop(tmp_path / "w")
    assert find_version_for_sinks(shop.layout, "sales") is None
    begin_copy(shop.layout, "out", copy_at(4))
    locate_copy(shop.layout, "out").write_bytes(b"{")
    assert find_version_for_sinks(shop.layout, "sales") == 0


def shorten_log(shop: Shop) -> ServedVersions:
    """Let the log of the serving table begin at version 5, and replace the file of that version."""
    root = shop.layout.serving(shop.view)
    Table.open(root).handle.create_checkpoint()
    later = datetime.now(UTC) + timedelta(days=2)
    assert delete_old_entries(root, timedelta(days=1), now=later) == 5
    shop.epoch([Sale(1, amount=9)])
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
    return ServedVersions(root)


def test_a_copy_that_cannot_be_read_keeps_files_whose_log_is_gone(shop: Shop) -> None:
    """A power cut may leave the first copy empty: the log seldom has the first version by then."""
    versions = shorten_log(shop)
    begin_copy(shop.layout, "out", copy_at(5))
    locate_copy(shop.layout, "out").write_bytes(b"")
    maintain_tables(shop.compiled, shop.layout)
    assert all((versions.root / path).exists() for path in versions.read(5).files)


def test_a_sink_whose_version_is_gone_is_in_the_way_of_no_other(shop: Shop) -> None:
    """Another engine may have shortened the log: who cannot go on costs nobody else the files."""
    versions = shorten_log(shop)
    begin_copy(shop.layout, "lost", copy_at(1))
    begin_copy(shop.layout, "out", copy_at(5))
    maintain_tables(shop.compiled, shop.layout)
    assert all((versions.root / path).exists() for path in versions.read(5).files)
