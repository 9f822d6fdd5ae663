"""The merged read against real tables, held to the plain merge of model/protocol/seam.py."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.lake.read import file_cache, merged_read
from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import table_cache
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept import cached_table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, delete_folder
from seamline.model.errors import (
    BadRange,
    ExpressionError,
    NotFound,
    ProtocolError,
    ReadUnstable,
    StraddlesCut,
)
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side, Status, list_seam_slices, merge_states

pytestmark = pytest.mark.slow

Rows = dict[tuple[str | None, datetime], tuple[int, int, int]]


def asked(shop: Shop, **asked: object) -> Answer:
    return read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(**asked))  # type: ignore[arg-type]


def rows(found: Answer) -> Rows:
    return {
        (row["customer"], row["window_start"]): (row["orders"], int(row["total"]), row["largest"])
        for row in found.table.to_pylist()
    }


def oracle(shop: Shop, cuts: dict[int, int], side: Side, *, until: int | None = None) -> Rows:
    """Merge in plain Python: per day the events up to its cut, and the slices above it."""
    until = max(shop.events, default=-1) if until is None else until
    states: dict[tuple[str | None, datetime], list[tuple[int, ...]]] = {}
    for number, sales in shop.events.items():
        for piece in shop.pieces(sales, number):
            day = (piece.pane - START) // DAY
            cut = -1 if side is Side.SPEED else cuts.get(day, -1)
            speed = bool(list_seam_slices([piece], cut=cut, until=until)) and side is not Side.BATCH
            batch = number <= cut and side is not Side.SPEED
            if speed or batch:
                start = piece.pane - (piece.pane - START) % shop.view.window.length
                states.setdefault((piece.key[0], start), []).append(piece.states)
    measures = [each.measure for each in shop.view.measures]
    return {place: merge_states(measures, some) for place, some in states.items()}  # type: ignore[misc]


def filled(shop: Shop, seed: int, epochs: int = 12) -> dict[int, int]:
    """Commit random epochs, late events among them, and build random days at random cuts."""
    dice = random.Random(seed)
    cuts: dict[int, int] = {}
    for _ in range(epochs):
        sales = [
            Sale(dice.randrange(4 * 24 * 60), dice.choice(["a", "b", None]), dice.randrange(100))
            for _ in range(dice.randrange(6))
        ]
        held = shop.epoch(sales)
        if dice.random() < 0.4:
            day, cut = dice.randrange(4), dice.randint(0, held)
            if cut >= cuts.get(day, -1):
                shop.build(day, cut, f"g{held}")
                cuts[day] = cut
    return cuts


@pytest.mark.parametrize("window", ["1 hour", "1 day", "2 days"])
@pytest.mark.parametrize("seed", range(2))
def test_every_side_equals_the_plain_merge(warehouse: Location, seed: int, window: str) -> None:
    """The seam's rule, any split into epochs, any lateness, any cut: the engine counts what the oracle counts."""
    shop = Shop(warehouse, sales_pipeline(window))
    cuts = filled(shop, seed)
    for side in Side:
        found = asked(shop, side=side)
        assert rows(found) == oracle(shop, cuts, side)
        for row in found.table.to_pylist():
            assert row["batch_part"] + row["speed_part"] == row["orders"]


@pytest.mark.parametrize("seed", range(2))
def test_as_of_an_epoch_answers_as_the_tables_were(warehouse: Location, seed: int) -> None:
    """An answer of the past may not see what came after it."""
    shop = Shop(warehouse)
    filled(shop, seed)
    for epoch in (0, 5, 11):
        cuts = {}
        for (_, interval), history in shop.manifest.read().history.items():
            if known := [each.epoch for each in history if each.epoch <= epoch]:
                cuts[(shop.compiled.grid.named(interval).start - START) // DAY] = known[-1]
        assert rows(asked(shop, as_of=epoch)) == oracle(shop, cuts, Side.MERGED, until=epoch)
        at = START + timedelta(seconds=epoch, milliseconds=1)
        assert rows(asked(shop, as_of=at)) == rows(asked(shop, as_of=epoch))


def test_as_of_what_is_not_held_is_refused(warehouse: Location) -> None:
    """A number the master does not hold would be answered with something else."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    for moment in (7, START - DAY):
        with pytest.raises(BadRange):
            asked(shop, as_of=moment)


def test_bounds_are_half_open_on_the_window_start(warehouse: Location) -> None:
    """Two neighbouring ranges share no row and miss none."""
    shop = Shop(warehouse)
    shop.epoch([Sale(minute) for minute in (0, 59, 60, 119, 120)])
    hour = timedelta(hours=1)
    found = rows(asked(shop, start=START + hour, end=START + 2 * hour))
    assert found == {("a", START + hour): (2, 2, 1)}
    with pytest.raises(BadRange):
        asked(shop, start=START, end=START)


def test_where_takes_keys_only(warehouse: Location) -> None:
    """A condition on anything but a key would have no meaning for merged states."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1, "a"), Sale(1, "b"), Sale(1, None)])
    assert set(rows(asked(shop, where="customer = 'b'"))) == {("b", START)}
    assert set(rows(asked(shop, where="customer IS NULL"))) == {(None, START)}
    with pytest.raises(ExpressionError):
        asked(shop, where="amount > 1")


def test_dead_epochs_and_slices_the_master_does_not_hold_do_not_count(warehouse: Location) -> None:
    """A crash between slices and master leaves rows behind that nobody may count (rule 2)."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    dead = next(shop.numbers)
    shop.slices.append(shop.partials([Sale(1)]), from_epoch=dead, to_epoch=dead)
    assert rows(asked(shop)) == {("a", START): (1, 1, 1)}
    shop.epoch([Sale(1)])
    assert rows(asked(shop)) == {("a", START): (2, 2, 1)}


def test_dead_rows_beside_held_ones_in_a_file_do_not_count(warehouse: Location) -> None:
    """A user's OPTIMIZE puts the slices of dead epochs and of held ones into one file."""
    shop = Shop(warehouse)
    for _ in range(9):
        shop.epoch([Sale(1)])
        dead = next(shop.numbers)
        shop.slices.append(shop.partials([Sale(1)]), from_epoch=dead, to_epoch=dead)
    held = shop.epoch([Sale(1)])
    before = {side: rows(asked(shop, side=side)) for side in Side}
    assert before[Side.MERGED] == {("a", START): (10, 10, 1)}
    DeltaTable(str(shop.slices.table.root)).optimize.compact()
    assert Table.open(shop.slices.table.root).actions().num_rows == 1
    assert {side: rows(asked(shop, side=side)) for side in Side} == before
    assert rows(asked(shop, as_of=held)) == before[Side.MERGED]
    assert rows(asked(shop, as_of=8)) == {("a", START): (5, 5, 1)}


def test_an_epoch_that_the_ledger_misses_counts(warehouse: Location) -> None:
    """The master's commit is the point at which an epoch is held; the ledger may lag (rule 1)."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    shop.epoch([Sale(1)], ledger=False)
    shop.epoch([Sale(1)], ledger=False)
    assert rows(asked(shop)) == {("a", START): (3, 3, 1)}


def test_a_view_that_is_behind_answers_up_to_its_frontier(warehouse: Location) -> None:
    """A lagging view never looks like zero: it says how far it is (rule 6)."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    shop.epoch([Sale(1)], frontier=0)
    found = asked(shop)
    assert rows(found) == {("a", START): (1, 1, 1)}
    assert (found.complete_to, found.epoch) == (0, 1)


def test_a_slice_over_a_cut_is_an_error(warehouse: Location) -> None:
    """Counting it would count events twice; leaving it out would lose some (rule 9)."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    shop.epoch([Sale(1)])
    shop.build(0, 0, "g")
    shop.slices.append(shop.partials([Sale(2)]), from_epoch=0, to_epoch=1)
    with pytest.raises(StraddlesCut):
        asked(shop)


@pytest.mark.parametrize("published", ["absent", "short"])
def test_a_generation_that_is_not_all_there_is_never_answered(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch, published: str
) -> None:
    """A generation that is gone reads as an empty one unless its stated rows are compared (C7)."""
    monkeypatch.setattr(merged_read, "ATTEMPTS", 2)
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    interval = shop.build(0, 0, "g", short_of=0 if published == "absent" else 1)
    if published == "absent":
        shop.publish(interval, 0, "other", 1)
    with pytest.raises(ReadUnstable):
        asked(shop)


def test_a_file_that_vanished_starts_the_read_again(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upkeep may take a file between pin and read; the answer is still the right one (rule 16)."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    take, calls = merged_read.read_counted_states, []

    def once(*given: object) -> pa.Table:
        calls.append(1)
        if len(calls) == 1:
            raise FileNotFoundError("gone")
        return take(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(merged_read, "read_counted_states", once)
    assert rows(asked(shop)) == {("a", START): (1, 1, 1)}
    assert len(calls) == 2


def test_an_interval_that_is_building_gives_no_number(warehouse: Location) -> None:
    """A version born later lacks the events before its birth until a generation brings them (rule 7)."""
    shop = Shop(warehouse, born=1)
    shop.epoch([Sale(1), Sale(25 * 60)])
    shop.epoch([Sale(2), Sale(25 * 60)])
    shop.build(0, 1, "g")
    found = asked(shop)
    assert rows(found) == {("a", START): (2, 2, 1)}
    assert [each.status for each in found.intervals.values()] == [Status.CERTIFIED, Status.BUILDING]
    assert "building" in found.summary()


def test_the_answer_says_how_far_it_is_right(warehouse: Location) -> None:
    """complete_to is the least over the intervals, and only certified ones without news are final."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1), Sale(25 * 60)])
    shop.epoch([], watermark=START + DAY)
    shop.build(0, 1, "g0")
    day = asked(shop, end=START + DAY)
    assert (day.final, day.complete_to, day.exact_duplicates_to) == (True, 1, 1)
    assert day.table.to_pylist()[0]["certified"] is True
    assert day.table.to_pylist()[0]["complete"] is True
    both = asked(shop)
    assert (both.final, both.exact_duplicates_to) == (False, -1)
    assert [row["complete"] for row in both.table.to_pylist()] == [True, False]
    shop.epoch([Sale(2)])
    late = asked(shop, end=START + DAY)
    assert late.intervals["2013-01-01T00:00:00Z"].status is Status.DIRTY
    assert late.intervals["2013-01-01T00:00:00Z"].rows_since == 1
    assert asked(shop, end=START + DAY, side=Side.BATCH).complete_to == 1


def test_another_served_version_is_refused(warehouse: Location) -> None:
    """The manifest says which version answers; this definition's tables are not it."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    other = Shop(warehouse / "other", sales_pipeline("1 day")).view
    shop.manifest.read()
    shop.manifest.commit([Statement(Act.FLIP, other.id, epoch=0)])
    with pytest.raises(ProtocolError):
        asked(shop)


def test_a_stream_that_never_ran_is_not_found(warehouse: Location) -> None:
    """An empty answer would look like no sales."""
    compiled = sales_pipeline()
    with pytest.raises(NotFound):
        read_merged_answer(compiled, compiled.views[0], Layout(warehouse, "shop"))


def test_handles_follow_a_table_that_was_made_anew(
    tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handle kept open may not answer for a folder that was cleared and filled again; in a bucket not for long."""
    monkeypatch.setattr(cached_table, "BELIEVED", 0.0)
    shop = Shop(warehouse)
    shop.epoch([Sale(1), Sale(1)])
    assert rows(asked(shop)) == {("a", START): (2, 2, 1)}
    delete_folder(warehouse)
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    assert rows(asked(shop)) == {("a", START): (1, 1, 1)}
    assert table_cache.read_cached_table(tmp_path / "nowhere", "x", lambda table: table.version) is None


def test_the_same_question_has_the_same_answer_until_something_happens(warehouse: Location) -> None:
    """It is not read again; an epoch, or a publication, makes it another."""
    shop = Shop(warehouse)
    shop.epoch([Sale(5, "a", 3), Sale(7, "b", 4)])
    first = asked(shop)
    assert asked(shop).table is first.table
    assert asked(shop, where="customer = 'a'").table is not first.table
    shop.epoch([Sale(9, "a", 2)])
    second = asked(shop)
    assert rows(second) == oracle(shop, {}, Side.MERGED) != rows(first)
    shop.build(0, 1, "g1")
    third = asked(shop)
    assert third.table is not second.table
    assert rows(third) == oracle(shop, {0: 1}, Side.MERGED) == rows(second)


def test_small_files_are_read_once_and_large_ones_where_they_are(tmp_path: Path) -> None:
    """A file that was put in the place of another is another; what does not fit is not kept at all."""
    held = file_cache.CachedFiles(small=2_000, most=10**6)
    path, large = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"n": [1]}), path)
    pq.write_table(pa.table({"n": list(range(10_000))}), large)
    [table], others = held.of([str(path), str(large)])
    assert others == [str(large)]
    assert held.of([str(path)])[0][0] is table
    path.unlink()
    pq.write_table(pa.table({"n": [2]}), path)
    assert held.of([str(path)])[0][0].to_pydict() == {"n": [2]}
    assert file_cache.CachedFiles(small=2_000, most=100).of([str(path)]) == ([], [str(path)])
    with pytest.raises(FileNotFoundError):
        held.of([str(tmp_path / "nowhere")])
