"""The serving table: what people see who know nothing of us."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.lake import serving
from seamline.lake.reads import answer
from seamline.lake.tables import Table

pytestmark = pytest.mark.slow

DAYS = [f"2013-01-0{day}T00:00:00Z" for day in (1, 2, 3)]


def refresh(shop: Shop, intervals: list[str]) -> None:
    serving.refresh(shop.compiled, shop.layout, shop.view, intervals)


def served(shop: Shop) -> pa.Table:
    return Table.open(shop.layout.serving(shop.view)).read()


def key(row: dict[str, object]) -> str:
    return repr((row["window_start"], row["customer"]))


@pytest.mark.parametrize("window", ["1 hour", "2 days"])
def test_served_rows_are_the_merged_answer(tmp_path: Path, window: str) -> None:
    """The table is the answer, not a second opinion."""
    shop = Shop(tmp_path, sales_pipeline(window))
    shop.epoch([Sale(1), Sale(2, None, 5), Sale(25 * 60)], watermark=START + DAY)
    shop.build(0, 0, "g")
    shop.epoch([Sale(3, amount=7)])
    refresh(shop, DAYS)
    found = answer(shop.compiled, shop.view, shop.layout).table
    columns = found.column_names
    assert sorted(served(shop).select(columns).to_pylist(), key=key) == sorted(found.to_pylist(), key=key)


def test_a_refresh_replaces_its_intervals_and_no_other(tmp_path: Path) -> None:
    """A late event on one day must not leave the old row beside the new, nor touch another day."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1), Sale(25 * 60)])
    refresh(shop, DAYS)
    shop.epoch([Sale(2), Sale(25 * 60)])
    refresh(shop, DAYS[:1])
    found = {row["interval"]: (row["orders"], row["epoch"]) for row in served(shop).to_pylist()}
    assert found == {DAYS[0]: (2, 1), DAYS[1]: (1, 0)}


def test_keys_that_a_build_took_away_vanish(tmp_path: Path) -> None:
    """Under an upsert a row without successor would stay for ever (H5)."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    refresh(shop, DAYS)
    assert served(shop).num_rows == 1
    interval = shop.compiled.grid.of(START)
    shop.publish(interval, 0, "empty", 0)
    refresh(shop, DAYS)
    assert served(shop).num_rows == 0


def test_a_refresher_that_read_first_and_commits_last_redoes_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refreshers: the one with older rows may not have the last word (rule 15)."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    refresh(shop, DAYS)
    slow, met = serving.answer, []

    def overtaken(*given: object, **named: object) -> object:
        found = slow(*given, **named)  # type: ignore[arg-type]
        if not met:
            met.append(1)
            shop.epoch([Sale(2)])
            refresh(shop, DAYS)
        return found

    monkeypatch.setattr(serving, "answer", overtaken)
    refresh(shop, DAYS)
    assert [(row["orders"], row["epoch"]) for row in served(shop).to_pylist()] == [(2, 1)]


def test_the_table_is_read_without_us(tmp_path: Path) -> None:
    """Nobody should need this package to read a number."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1, amount=4), Sale(25 * 60, amount=3)])
    refresh(shop, DAYS)
    table = Table.open(shop.layout.serving(shop.view)).handle.to_pyarrow_dataset()
    with duckdb.connect() as con:
        con.register("served", table)
        rows = con.execute("SELECT interval, total FROM served ORDER BY 1").fetchall()
    assert [(interval, int(total)) for interval, total in rows] == [(DAYS[0], 4), (DAYS[1], 3)]
