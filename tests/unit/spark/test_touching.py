"""Which files a build reads, and of which it knows how many rows count without looking at them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.table_cache import Files
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.time.intervals import Interval
from seamline.spark.build import partial_states, share_rows
from seamline.spark.build.fast_path import GatheredReports, list_touched_files, split_into_shares
from seamline.spark.build.partial_states import Partials
from seamline.spark.build.share_rows import Share

pytestmark = pytest.mark.slow

MINUTES = 24 * 60
TODAY = Interval(START, START + DAY)
BOTH = Interval(START, START + 2 * DAY)


def without_ids(**view: object) -> CompiledPipeline:
    """Declare the sales without an event id, with another view."""
    definition = sales_pipeline().definition
    views = [replace(each, **view) for each in definition.views]
    return compile_pipeline(replace(definition, source=replace(definition.source, event_id=()), views=views))


def known(pipeline: CompiledPipeline, folder: Path, span: Interval, cut: int) -> list[str]:
    """Hold three epochs (today, over midnight, tomorrow); give what is known of their files."""
    shop = Shop(folder, pipeline)
    for minutes in ([1, 2], [MINUTES - 1, MINUTES], [MINUTES, MINUTES + 5]):
        shop.epoch([Sale(minute) for minute in minutes])
    files = Files.of(Table.open(shop.master.table.root))
    found = sorted(list_touched_files(pipeline, files, [span], cut), key=lambda each: each.path)
    assert all(each.rows == 2 for each in found)
    return [each.interval[:10] for each in found]


def test_of_a_file_within_a_day_every_row_counts(tmp_path: Path) -> None:
    """One over midnight has rows of both; a day that was not asked for is not touched at all."""
    pipeline = without_ids()
    assert known(pipeline, tmp_path / "both", BOTH, 2) == ["2013-01-01", "", "2013-01-02"]
    assert known(pipeline, tmp_path / "today", TODAY, 2) == ["2013-01-01", ""]


def test_a_file_above_the_cut_is_not_touched(tmp_path: Path) -> None:
    """Its rows are of the speed layer."""
    assert known(without_ids(), tmp_path, BOTH, 1) == ["2013-01-01", ""]


@pytest.mark.parametrize("few", [share_rows.APART, 1])
@pytest.mark.parametrize("where", ["amount > 0", "customer IS NOT NULL", "amount > 100"])
def test_what_a_view_leaves_out_of_such_a_file_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, few: int
) -> None:
    """It stands in the certificate, whether rows were looked at one by one or not, of few intervals and of many."""
    monkeypatch.setattr(partial_states, "APART", few)
    monkeypatch.setattr(share_rows, "APART", few)
    pipeline = without_ids(where=where)
    shop = Shop(tmp_path, pipeline)
    for first in (0, MINUTES - 2, MINUTES):
        shop.epoch(
            [Sale(first + each, amount=each - 2, customer=None if each == 1 else "a") for each in range(4)]
        )
    files = Files.of(Table.open(shop.master.table.root))
    own = list_touched_files(pipeline, files, [BOTH], 2)
    assert [bool(each.interval) for each in own].count(True) == 2
    apart, looked = (
        gathered(pipeline, split_into_shares(some, [], pipeline, 1))
        for some in (own, [replace(each, interval="") for each in own])
    )
    apart.add_known(own, pipeline.views)
    assert apart.counts == looked.counts
    assert sum(sum(each.not_selected.values()) for each in apart.counts.values()) > 0
    [view] = pipeline.views
    assert rows(apart, view.id) == rows(looked, view.id)


def gathered(pipeline: CompiledPipeline, work: list[Share]) -> GatheredReports:
    """Do what tasks do, without Spark."""
    found, task = GatheredReports(), Partials(pipeline, tuple(work), (BOTH,), 2, {}, 10**9)
    for number in range(len(work)):
        for kind, payload in task(number):
            found.take(kind, payload)
    return found


def rows(found: GatheredReports, view: str) -> list[object]:
    """Return the states in an order of their own."""
    whole = pa.concat_tables(found.states[view])
    return sorted(whole.to_pylist(), key=str)


def test_one_task_alone_looks_for_ids_in_every_row(tmp_path: Path) -> None:
    """No file is known there; where there are more tasks, those of a day are, and ids are looked for before."""
    pipeline = sales_pipeline()
    assert known(pipeline, tmp_path, BOTH, 2) == ["2013-01-01", "", "2013-01-02"]
    own = list_touched_files(pipeline, Files.of(Table.open(tmp_path / "shop" / "master")), [BOTH], 2)
    [share] = split_into_shares(own, [], pipeline, 4)
    assert share.alone and len(share.own) == 3 and not share.known


def test_every_file_is_in_one_share_and_on_one_side_of_it(tmp_path: Path) -> None:
    """Read twice it would count twice."""
    pipeline = without_ids()
    shop = Shop(tmp_path, pipeline)
    for minute in range(0, 3 * MINUTES, 400):
        shop.epoch([Sale(minute), Sale(minute + 399)])
    files = Files.of(Table.open(shop.master.table.root))
    own = list_touched_files(pipeline, files, [Interval(START, START + 3 * DAY)], 99)
    work = split_into_shares(own, [], pipeline, 2)
    assert sorted(path for share in work for path in (*share.own, *sum(share.known.values(), ()))) == sorted(
        files.paths
    )
    assert any(share.own for share in work) and any(share.known for share in work)
