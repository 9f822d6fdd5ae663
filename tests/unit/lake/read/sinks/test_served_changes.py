"""The difference of two versions of a serving table: applied to the one it makes the other, and it has one order."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.lake.log.log_lines import VIEW_VERSION
from seamline.lake.read import serving_table
from seamline.lake.read.sinks.served_changes import Comparison, RowChanges, iterate_changes
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location
from seamline.lake.tables.sinks.served_versions import ServedVersions
from seamline.model.errors import NotFound

pytestmark = pytest.mark.slow

PLACES = ("customer", "window_start", "window_end")
Rows = dict[tuple[Any, ...], dict[str, Any]]


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """A shop whose serving table has seen late rows, a build, a certificate and a rollback."""
    shop = Shop(warehouse)
    steps = [
        lambda: shop.epoch([Sale(1), Sale(2, None, 5), Sale(25 * 60)], watermark=START + DAY),
        lambda: shop.epoch([Sale(3, amount=7), Sale(49 * 60, "b")]),
        lambda: shop.build(0, 0, "g"),
        lambda: shop.epoch([Sale(4, "c"), Sale(26 * 60)], watermark=START + 3 * DAY),
        lambda: shop.build(0, 2, "h"),
    ]
    for step in steps:
        step()
        serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
    return shop


def versions_of(shop: Shop) -> ServedVersions:
    """Open the versions of the shop's serving table."""
    return ServedVersions(shop.layout.serving(shop.view))


def rows_at(shop: Shop, version: int) -> Rows:
    """Return what a version shows, by place, as deltalake reads it."""
    table = Table.open(shop.layout.serving(shop.view)).handle
    table.load_as_version(version)
    rows = pa.table(table.to_pyarrow_dataset().to_table()).to_pylist()
    return {place_of(row): row for row in rows}


def place_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what identifies a row."""
    return tuple(row[name] for name in PLACES)


def compare(
    shop: Shop, start: int, end: int, when: str = "change", *, skip: int = 0, olds: bool = True
) -> list[RowChanges]:
    """Compare two versions; -1 is before any."""
    versions = versions_of(shop)
    before = None if start < 0 else versions.read(start)
    return [*iterate_changes(Comparison(before, versions.read(end), PLACES, when, olds=True), skip)]


def unlike(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what says of when it is."""
    return {name: each for name, each in row.items() if name not in ("epoch", "manifest_version")}


@pytest.mark.everywhere
def test_a_difference_makes_one_version_of_the_other(shop: Shop) -> None:
    """A target that applies it shows what the serving table shows, and nothing is sent that is as it was."""
    newest = versions_of(shop).find_newest()
    assert newest >= 5
    for start, end in combinations(range(-1, newest + 1), 2):
        before: Rows = {} if start < 0 else rows_at(shop, start)
        held = dict(before)
        for part in compare(shop, start, end):
            assert part.olds is not None
            olds = {place_of(row): row for row in part.olds.to_pylist()}
            for row in part.upserts.to_pylist():
                place = place_of(row)
                assert olds.get(place) == before.get(place)
                assert place not in before or unlike(before[place]) != unlike(row)
                held[place] = row
            for row in part.deletions.to_pylist():
                assert olds[place_of(row)] == held.pop(place_of(row))
        wanted = rows_at(shop, end)
        assert {place: unlike(row) for place, row in held.items()} == {
            place: unlike(row) for place, row in wanted.items()
        }


def test_a_difference_goes_on_by_number(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a target has of a difference is a number: another process must come to the same order."""
    monkeypatch.setattr("seamline.lake.read.sinks.served_changes.BATCH", 2)
    newest = versions_of(shop).find_newest()

    def spell(parts: list[RowChanges]) -> list[Any]:
        return [row for part in parts for row in (*part.upserts.to_pylist(), *part.deletions.to_pylist())]

    whole = spell(compare(shop, -1, newest))
    assert len(whole) > 4
    for skip in range(len(whole) + 1):
        assert spell(compare(shop, -1, newest, skip=skip)) == whole[skip:]


@pytest.mark.parametrize(("when", "column"), [("complete", "complete"), ("certified", "certified")])
def test_rows_are_sent_once_they_are_to_be_seen(shop: Shop, when: str, column: str) -> None:
    """A row that becomes certified is sent although nothing else of it has changed; one that is not yet is not."""
    newest = versions_of(shop).find_newest()
    sent: set[Any] = set()
    for start in range(-1, newest):
        before: Rows = {} if start < 0 else rows_at(shop, start)
        for part in compare(shop, start, start + 1, when):
            for row in part.upserts.to_pylist():
                assert row[column]
                old = before.get(place_of(row))
                assert old is None or not old[column] or unlike(old) != unlike(row)
                sent.add(place_of(row))
    assert sent == {place for place, row in rows_at(shop, newest).items() if row[column]}
    assert sent


def test_another_version_of_the_view_is_compared_row_by_row(tmp_path: Path) -> None:
    """A flip replaces all files and perhaps the columns; its rows are changes, and no row is left of the old one."""
    shop = Shop(tmp_path / "w")
    shop.epoch([Sale(1), Sale(70)], watermark=START + DAY)
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
    other = sales_pipeline("2 hours")
    assert other.views[0].fingerprint != shop.view.fingerprint
    rows = rows_at(shop, 1)
    [first, *_] = rows.values()
    schema = serving_table.serving_schema(other.views[0])
    schema = schema.remove(schema.get_field_index("phase"))
    wide = {**first, "window_end": first["window_start"] + timedelta(hours=2)}
    file = pa.Table.from_pylist([wide], schema=schema).drop_columns(["interval"])
    table = Table.open(shop.layout.serving(shop.view))
    name, partition = "20130101T000000Z-0.parquet", {"interval": first["interval"]}
    written = data_files.write_data_file(file, table.root, name, stats=["customer"], partition=partition)
    table.append([written], metadata={VIEW_VERSION: other.views[0].fingerprint}, instead=schema)
    [part] = compare(shop, 1, 2)
    assert part.upserts.num_rows == 1
    assert "phase" not in part.upserts.column_names
    assert {place_of(row) for row in part.deletions.to_pylist()} == rows.keys()


def test_a_version_that_is_gone_is_said_to_be(shop: Shop) -> None:
    """A sink that was down for longer than logs are kept must not compare with something else."""
    versions = versions_of(shop)
    newest = versions.find_newest()
    near = versions.read(newest)
    assert versions.read(newest) is near
    with pytest.raises(NotFound, match=f"Version {newest + 5} "):
        versions.read(newest + 5)


def test_versions_are_followed_commit_by_commit(shop: Shop) -> None:
    """A version that is read from the one before has the same files as one that is read from its checkpoint."""
    followed, newest = versions_of(shop), versions_of(shop).find_newest()
    for number in range(newest + 1):
        found, opened = followed.read(number), versions_of(shop).read(number)
        assert found == opened
        assert found.view in ("", shop.view.fingerprint)
