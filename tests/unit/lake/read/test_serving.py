"""The serving table: what people see who know nothing of us."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import duckdb
import pyarrow as pa
import pytest
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.read import answer_cache, serving_table
from seamline.lake.read import serving_lag as module
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.serving_lag import SERVED
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.definition import windows
from seamline.model.errors import ChangedByOthers
from seamline.model.time.zone_clock import Clock
from seamline.spark.stream.serving_refresher import Refresher

pytestmark = pytest.mark.slow

HOUR = timedelta(hours=1)
DAYS = [f"2013-01-0{day}T00:00:00Z" for day in (1, 2, 3)]


def refresh(shop: Shop, intervals: list[str]) -> None:
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, intervals)


def served(shop: Shop) -> pa.Table:
    return Table.open(shop.layout.serving(shop.view)).read()


def key(row: dict[str, object]) -> str:
    return repr((row["window_start"], row["customer"]))


@pytest.mark.parametrize("window", ["1 hour", "2 days"])
def test_served_rows_are_the_merged_answer(warehouse: Location, window: str) -> None:
    """The table is the answer, not a second opinion."""
    shop = Shop(warehouse, sales_pipeline(window))
    shop.epoch([Sale(1), Sale(2, None, 5), Sale(25 * 60)], watermark=START + DAY)
    shop.build(0, 0, "g")
    shop.epoch([Sale(3, amount=7)])
    refresh(shop, DAYS)
    found = read_merged_answer(shop.compiled, shop.view, shop.layout).table
    columns = found.column_names
    assert sorted(served(shop).select(columns).to_pylist(), key=key) == sorted(found.to_pylist(), key=key)


@pytest.mark.everywhere
def test_a_refresh_replaces_what_is_behind_and_no_other(warehouse: Location) -> None:
    """A late event on one day must not leave the old row beside the new, nor touch another day."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1), Sale(25 * 60)])
    refresh(shop, [])
    shop.epoch([Sale(2)])
    refresh(shop, [])
    found = {row["interval"]: (row["orders"], row["epoch"]) for row in served(shop).to_pylist()}
    assert found == {DAYS[0]: (2, 1), DAYS[1]: (1, 0)}
    assert stated(shop) == (1, "1")


def stated(shop: Shop) -> tuple[int | None, str]:
    """Return the epoch up to which the table says that it counts, by its last txn and in words."""
    table = Table.open(shop.layout.serving(shop.view))
    return table.txn(SERVED), str(table.metadata()[serving_table.HELD])


def test_a_refresher_makes_up_for_one_that_was_killed(warehouse: Location) -> None:
    """Intervals that get no more rows would stay as they were before the kill, for ever."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    refresh(shop, [])
    shop.epoch([Sale(2)])
    shop.epoch([Sale(25 * 60)])
    Refresher(shop.compiled, shop.layout).close()
    assert {row["interval"]: row["orders"] for row in served(shop).to_pylist()} == {DAYS[0]: 2, DAYS[1]: 1}
    assert stated(shop) == (2, "2")


def test_a_view_whose_table_cannot_be_refreshed_is_in_the_way_of_no_other(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that another writer has changed is refused, and is tried again beside the others."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    asked: list[str] = []

    def refreshed(pipeline: CompiledPipeline, layout: Layout, view: CompiledView) -> bool:
        asked.append(view.name)
        if view.name == shop.view.name:
            raise ChangedByOthers("changed", hint="bring it back.")
        return False

    monkeypatch.setattr(serving_table, "refresh_serving_table", refreshed)
    other = replace(shop.view, name="other")
    refresher = Refresher(replace(shop.compiled, views=(shop.view, other)), shop.layout)
    refresher.refresh()
    refresher.refresh()
    assert asked == [shop.view.name, "other"] * 2


def test_a_view_that_has_caught_up_is_shown(warehouse: Location) -> None:
    """While it was behind its refreshes could not count the rows, and nothing touches their day again."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    refresher = Refresher(shop.compiled, shop.layout)
    refresher.refresh()
    shop.epoch([Sale(2)], frontier=0)
    refresher.refresh()
    assert [row["orders"] for row in served(shop).to_pylist()] == [1]
    assert stated(shop) == (0, "0")
    shop.slices.append(shop.partials([Sale(2)]), from_epoch=1, to_epoch=1)
    shop.epoch([])
    refresher.close()
    assert [row["orders"] for row in served(shop).to_pylist()] == [2]
    assert stated(shop) == (2, "2")


def test_a_window_that_the_watermark_has_passed_is_complete(warehouse: Location) -> None:
    """No row says so: the day is over because another has begun."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)], watermark=START)
    refresh(shop, [])
    shop.epoch([Sale(50 * 60)], watermark=START + 2 * DAY)
    refresh(shop, [])
    assert {row["interval"]: row["complete"] for row in served(shop).to_pylist()} == {
        DAYS[0]: True,
        DAYS[2]: False,
    }


def test_what_was_published_by_one_that_was_killed_is_shown(warehouse: Location) -> None:
    """A run that dies between its publication and its refresh leaves the old rows."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    refresh(shop, [])
    shop.publish(shop.compiled.grid.of(START), 0, "empty", 0)
    Refresher(shop.compiled, shop.layout).close()
    assert served(shop).num_rows == 0


def test_a_table_that_is_far_behind_goes_on_step_by_step(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresher that failed for days may not need the memory of days."""
    monkeypatch.setattr(module, "STEP", 2)
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    refresh(shop, [])
    for minute in range(2, 6):
        shop.epoch([Sale(minute)])
    refresh(shop, [])
    assert stated(shop) == (2, "2")
    refresh(shop, [])
    assert stated(shop) == (4, "4")
    assert not serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)


def test_windows_that_a_new_release_of_tzdata_moves_are_shown_where_they_are(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A country gave its summer time up: queries knew, and the table showed the days of before until more rows came."""
    text = DEFINITION.replace('Tumbling("1 hour")', 'Tumbling("1 day", zone="Europe/Berlin")')
    shop = Shop(warehouse, sales_pipeline(text=text))
    shop.epoch([Sale(1), Sale(22 * 60 + 30)])
    refresh(shop, [])
    assert [row["orders"] for row in served(shop).to_pylist()] == [2]
    ahead = Clock(ahead=(2 * 3_600_000_000,))
    monkeypatch.setattr(windows, "clock_of", lambda zone, start: ahead)
    moved = sales_pipeline(text=text)
    assert moved.views[0].id == shop.view.id
    # Another process: none learns of new rules while it runs.
    answer_cache.REMEMBERED.answers.clear()
    shop.compiled, shop.view = moved, moved.views[0]
    assert [serving_table.refresh_serving_table(moved, shop.layout, shop.view) for _ in range(2)] == [
        True,
        False,
    ]
    starts = {row["window_start"]: row["orders"] for row in served(shop).to_pylist()}
    assert starts == {START - 2 * HOUR: 1, START + 22 * HOUR: 1}


def test_keys_that_a_build_took_away_vanish(warehouse: Location) -> None:
    """Under an upsert a row without successor would stay for ever (H5)."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    refresh(shop, DAYS)
    assert served(shop).num_rows == 1
    interval = shop.compiled.grid.of(START)
    shop.publish(interval, 0, "empty", 0)
    refresh(shop, DAYS)
    assert served(shop).num_rows == 0


def test_a_refresher_that_read_first_and_commits_last_redoes_its_work(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refreshers: the one with older rows may not have the last word (rule 15)."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    refresh(shop, DAYS)
    slow, met = serving_table.read_merged_answer, []

    def overtaken(*given: object, **named: object) -> object:
        found = slow(*given, **named)  # type: ignore[arg-type]
        if not met:
            met.append(1)
            shop.epoch([Sale(2)])
            refresh(shop, DAYS)
        return found

    monkeypatch.setattr(serving_table, "read_merged_answer", overtaken)
    refresh(shop, DAYS)
    assert [(row["orders"], row["epoch"]) for row in served(shop).to_pylist()] == [(2, 1)]


def test_the_table_is_read_without_us(warehouse: Location) -> None:
    """Nobody should need this package to read a number."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1, amount=4), Sale(25 * 60, amount=3)])
    refresh(shop, DAYS)
    table = Table.open(shop.layout.serving(shop.view)).handle.to_pyarrow_dataset()
    with duckdb.connect() as con:
        con.register("served", table)
        rows = con.execute("SELECT interval, total FROM served ORDER BY 1").fetchall()
    assert [(interval, int(total)) for interval, total in rows] == [(DAYS[0], 4), (DAYS[1], 3)]
