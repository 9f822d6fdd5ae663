"""Rows that repeat an event id, found by tasks that each read a part of the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.lives.frames import Here
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.lake.storage.table_cache import Files
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.time.intervals import Interval
from seamline.plan.batch import work_shares
from seamline.spark.build import repeated_ids, spilled_states
from seamline.spark.build.fast_path import GatheredReports, list_touched_files, split_into_shares
from seamline.spark.build.partial_states import Partials
from seamline.spark.build.repeated_ids import NO_PLACES, find_repeated_rows
from seamline.spark.build.share_rows import ShareTask
from seamline.spark.build.spilled_states import PIECES, Unit, split_into_units

BOTH = Interval(START, START + 2 * DAY)
MINUTES = 24 * 60
CHOOSY = compile_pipeline(
    replace(
        sales_pipeline().definition,
        views=[replace(each, where="amount > 1") for each in sales_pipeline().definition.views],
    )
)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Hold sales of two days: ids that are there twice in a file, in two files, in two days, and thrice."""
    shop = Shop(tmp_path, CHOOSY)
    for sales in (
        [Sale(1, id=1, amount=5), Sale(2, id=1, amount=7), Sale(3, id=2, amount=2)],
        [Sale(4, id=2, amount=9), Sale(5, id=3, amount=1)],
        [Sale(MINUTES - 1, id=3, amount=8), Sale(MINUTES, id=3, amount=4), Sale(MINUTES + 1, id=1, amount=3)],
        [Sale(MINUTES + 2, id=1, amount=6), Sale(MINUTES + 3, id=4, amount=6), Sale(6, id=2, amount=3)],
    ):
        shop.epoch(sales)
    return Files.of(shop.master.table)


def built(work: ShareTask, repeats: repeated_ids.Places) -> tuple[object, list[dict[str, Any]]]:
    """Do what tasks do with the rows that repeat an id; give counts and states."""
    found = GatheredReports()
    task = Partials(work.pipeline, work.shares, work.spans, work.cut, {}, 10**9, repeats)
    for number in range(len(work.shares)):
        for kind, payload in task(number):
            found.take(kind, payload)
    [view] = work.pipeline.views
    rows = pa.concat_tables(found.states[view.id]).group_by(["customer", "pane"])
    return found, sorted(
        rows.aggregate([("rows", "sum"), ("total__sum", "sum"), ("largest__value", "max")]).to_pylist(),
        key=str,
    )


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [{}, {"MOST_TWICE": 0}, {"MOST_TWICE": 0, "INLINE": 0}, {"INLINE": 0}])
@pytest.mark.parametrize("slots", [2, 3, 9])
def test_any_number_of_tasks_finds_the_rows_that_one_finds(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, int], slots: int
) -> None:
    """Of each id in a day the first by the order of reading counts, wherever the others are."""
    own = list_touched_files(CHOOSY, files, [BOTH], 9)
    given = (BOTH,), 9
    alone = ShareTask(CHOOSY, tuple(split_into_shares(own, [], CHOOSY, slots)), *given)
    whole, expected = built(alone, NO_PLACES)
    monkeypatch.setattr(work_shares, "LEAST", 1)
    for name, bound in bounds.items():
        monkeypatch.setattr(repeated_ids, name, bound)
    shares = tuple(split_into_shares(own, [], CHOOSY, slots))
    assert len(shares) == min(slots, 4) and any(share.known for share in shares)
    work = ShareTask(CHOOSY, shares, *given)
    repeats = find_repeated_rows(Here(), work, 11, slots, tmp_path / "ids")  # type: ignore[arg-type]
    assert bool(repeats.paths) == ("INLINE" in bounds)
    found, states = built(work, repeats)
    assert isinstance(found, GatheredReports) and isinstance(whole, GatheredReports)
    found.add_known(own, CHOOSY.views)
    assert states == expected
    assert found.counts == whole.counts
    assert [each.duplicates for each in whole.counts.values()] == [4, 1]


def test_what_all_parts_report_is_bounded(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound of each part alone would let thousands of parts fill the driver."""
    monkeypatch.setattr(work_shares, "LEAST", 1)
    monkeypatch.setattr(repeated_ids, "count_parts", lambda *_, **__: 1_000)
    monkeypatch.setattr(repeated_ids, "MOST_TWICE", 1_000)
    monkeypatch.setattr(repeated_ids, "ALL_INLINE", 16_000, raising=False)
    bounds: list[Any] = []

    def sent(*asked: Any) -> list[Any]:
        bounds.append(asked[3])
        return [(repeated_ids.TWICE, bytes(8))] if len(bounds) == 1 else []

    monkeypatch.setattr(repeated_ids, "send_to_parts", sent)
    own = list_touched_files(CHOOSY, files, [BOTH], 9)
    work = ShareTask(CHOOSY, tuple(split_into_shares(own, [], CHOOSY, 2)), (BOTH,), 9)
    assert find_repeated_rows(Here(), work, 11, 2, tmp_path) == NO_PLACES  # type: ignore[arg-type]
    finding, repeating = bounds
    hashes = np.repeat(np.arange(3, dtype=np.uint64), 2)
    assert [*finding(iter([hashes[:4].tobytes()]))] == [(repeated_ids.TWICE, hashes[:4:2].tobytes())]
    assert [*finding(iter([hashes.tobytes()]))] == [(repeated_ids.MANY, b"")]
    assert repeating.most == 16


def test_a_large_interval_is_taken_apart_and_a_small_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece is in one unit."""
    monkeypatch.setattr(spilled_states, "UNIT_BYTES", 100)
    units = split_into_units({5: 100, 7: 350})
    assert units[0] == (Unit(5), 100)
    bounds = [(unit.low, unit.high) for unit, _ in units[1:]]
    assert bounds[0][0] == 0 and bounds[-1][1] == PIECES and len(bounds) == 4
    assert all(high == low for (_, high), (low, _) in zip(bounds, bounds[1:], strict=False))
