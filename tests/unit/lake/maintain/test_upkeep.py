"""Upkeep against real tables: nothing that a reader or a live writer needs is touched."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.transaction import RemoveAction
from tests.unit.shop import Sale, Shop

from seamline.lake.log.ledger import Ledger
from seamline.lake.maintain import cleaning, slice_compaction
from seamline.lake.maintain.upkeep import CHECKED, maintain_tables
from seamline.lake.read import serving_table
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import QUARANTINE
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.store.locations import Location
from seamline.model.errors import BadRange, StraddlesCut
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.read_request import ReadRequest
from seamline.plan.maintain.slice_upkeep import (
    Block,
    CommittedEpochs,
    Merge,
    Piece,
    blocks_between,
    find_orphan_reason,
    list_compacted_pieces,
    plan_compaction,
)

pytestmark = pytest.mark.slow

HELD = CommittedEpochs(frozenset({0, 1, 2, 4, 5, 6}), (2, 5), 6)
BLOCKS = [Block(0, 2), Block(3, 5)]


def piece(first: int, last: int | None = None) -> Piece:
    return Piece(f"{first}-{last}", 1, first, first if last is None else last)


def answered(shop: Shop, **asked: Any) -> list[dict[str, Any]]:
    found = read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(**asked)).table
    return found.sort_by([("window_start", "ascending"), ("customer", "ascending")]).to_pylist()


def spans(shop: Shop) -> list[tuple[int, int]]:
    found = Table.open(shop.slices.table.root).read(["from_epoch", "to_epoch"]).to_pydict()
    return sorted(set(zip(found["from_epoch"], found["to_epoch"], strict=True)))


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen after upkeep has read the slices and before it commits."""
    combine, waiting = slice_compaction.states.combine_states, [act]

    def interrupted(*given: Any) -> pa.Table:
        if waiting:
            waiting.pop()()
        return combine(*given)

    monkeypatch.setattr(slice_compaction.states, "combine_states", interrupted)


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """Seven epochs with edges at 2 and 5, a build to 2, and a writer that holds token 1."""
    made = Shop(warehouse)
    for table in (made.master.table, made.ledger.table, made.slices.table):
        table.fence(1)
    for number in range(7):
        made.epoch([Sale(number), Sale(70 + number, "b", number)], edge=number in (2, 5))
    made.build(0, 2, "first")
    return made


def test_blocks_lie_between_neighbouring_edges() -> None:
    """A block over an edge could straddle a cut, and the newest one is still being written."""
    # edges   0 1 2] 3 4 5] 6 7 ...
    assert blocks_between([5, 2], until=6) == BLOCKS
    assert blocks_between([5, 2], until=4) == [Block(0, 2)]
    assert blocks_between([], until=9) == []


def test_only_pieces_that_share_a_block_are_merged() -> None:
    """Rewriting what is merged already would be work without end."""
    plan = plan_compaction([piece(0), piece(2), piece(5), piece(6)], HELD, BLOCKS)
    assert plan.merges == (Merge((Block(0, 2),), (piece(0), piece(2))),)
    assert (plan.dead, plan.open) == ((), 1)
    assert plan_compaction([piece(0, 2), piece(3, 5)], HELD, BLOCKS).merges == ()


def test_a_catch_up_over_an_edge_ties_its_blocks_together() -> None:
    """Its file cannot be removed for one block and kept for another."""
    plan = plan_compaction([piece(0), piece(1, 4), piece(5)], HELD, BLOCKS)
    assert plan.merges == (Merge((Block(0, 2), Block(3, 5)), (piece(0), piece(1, 4), piece(5))),)
    # It reaches into the open block: all that it touches waits.
    plan = plan_compaction([piece(0), piece(1, 6)], HELD, BLOCKS)
    assert (plan.merges, plan.open) == ((), 2)


def test_files_are_put_together_only_of_closed_blocks_that_need_no_merging() -> None:
    """What is still to be merged would be written twice, and what is dead may not be carried on."""
    blocks = [*BLOCKS, Block(6, 6)]
    assert list_compacted_pieces([piece(0, 2), piece(3), piece(5), piece(6), piece(7)], HELD, blocks) == [
        piece(0, 2),
        piece(5),
        piece(6),
    ]
    assert list_compacted_pieces([piece(0), piece(1), piece(4, 5)], HELD, blocks) == [piece(4, 5)]
    assert list_compacted_pieces([piece(0, 2), piece(4, 7)], HELD, blocks) == [piece(0, 2)]
    assert list_compacted_pieces([piece(0, 6)], HELD, blocks) == [piece(0, 6)]


def test_an_epoch_is_dead_only_below_one_that_is_held() -> None:
    """What is not held yet may be the stream's next commit (C1)."""
    assert plan_compaction([piece(3), piece(7)], HELD, BLOCKS).dead == (piece(3),)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("000001-000000000006-00000-{uuid}.parquet", "of an older token"),
        ("000001-000000000006-000000000006.parquet", "of an older token"),
        ("000002-000000000003-00000-{uuid}.parquet", "of a dead epoch"),
        ("000002-000000000003-000000000003.parquet", "of a dead epoch"),
        ("000002-000000000007-00000-{uuid}.parquet", ""),
        ("000002-000000000006-00000-{uuid}.parquet", ""),
        ("000002-000000000003-000000000007-{uuid}.parquet", ""),
        (
            "upkeep-000000000008-000000000000-000000000002-{uuid}.parquet",
            "of an upkeep that another overtook",
        ),
        ("upkeep-000000000009-000000000000-000000000002-{uuid}.parquet", ""),
        ("somebody-elses.parquet", ""),
    ],
)
def test_a_file_goes_only_if_nobody_can_commit_it(name: str, why: str) -> None:
    """A writer that slept for a week would commit a file that is gone, and every read would fail (H10)."""
    assert find_orphan_reason(name.format(uuid=uuid.uuid4().hex), HELD, token=2, upkept=9) == why


def test_compaction_changes_no_answer(shop: Shop) -> None:
    """Upkeep may run at any moment: readers must not see that it did."""
    before, early = answered(shop), answered(shop, as_of=2)
    done = maintain_tables(shop.compiled, shop.layout)
    assert (done.merged, done.replaced, done.refused) == (2, 6, ())
    assert spans(shop) == [(0, 2), (3, 5), (6, 6)]
    assert answered(shop) == before
    assert answered(shop, as_of=2) == early
    with pytest.raises(BadRange, match="merged from edge to edge"):
        answered(shop, as_of=4)
    again = maintain_tables(shop.compiled, shop.layout)
    assert (again.merged, again.dead, again.deleted) == (0, 0, {})


def test_files_do_not_grow_with_edges_and_a_cut_may_fall_on_any(warehouse: Location) -> None:
    """An edge a minute is 1,440 files a day and view; the rows of a block stay its own in whatever file they are."""
    shop = Shop(warehouse)
    for number in range(60):
        shop.epoch([Sale(number), Sale(70 + number, "b", number)], edge=number % 2 == 1)
        if number % 20 == 19:
            maintain_tables(shop.compiled, shop.layout)
    names = ("customer", "window_start", "orders", "total", "largest")

    def told(**asked: Any) -> list[tuple[Any, ...]]:
        return [tuple(row[name] for name in names) for row in answered(shop, **asked)]

    edges = range(1, 60, 2)
    before, early = told(), {edge: told(as_of=edge) for edge in edges}
    assert Table.open(shop.slices.table.root).actions().num_rows <= 4
    assert spans(shop) == [(edge - 1, edge) for edge in edges]
    for edge in edges:
        shop.build(0, edge, f"g{edge}")
        assert (told(), told(as_of=edge)) == (before, early[edge])
        assert sum(row["batch_part"] for row in answered(shop)) == 2 * (edge + 1)


def test_the_stream_commits_before_and_after_a_compaction(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that upkeep could fence out would fall over every hour."""
    meanwhile(monkeypatch, lambda: shop.epoch([Sale(1)]))
    assert maintain_tables(shop.compiled, shop.layout).merged == 2
    # The stream's handles have not seen upkeep's commits.
    shop.epoch([Sale(2)])
    assert spans(shop) == [(0, 2), (3, 5), (6, 6), (7, 7), (8, 8)]
    assert [epoch.number for epoch in shop.ledger.read()] == list(range(9))
    assert sum(row["orders"] for row in answered(shop)) == 16


def test_of_two_upkeeps_one_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both would add their blocks: every slice twice."""
    before = answered(shop)
    inner = []
    meanwhile(monkeypatch, lambda: inner.append(maintain_tables(shop.compiled, shop.layout)))
    outer = maintain_tables(shop.compiled, shop.layout)
    assert (inner[0].merged, outer.merged) == (2, 0)
    assert "changed since" in outer.refused[0]
    assert answered(shop) == before
    # One file of each block, and those two in one.
    assert len(list(shop.slices.table.root.glob("upkeep-*"))) == 3


@pytest.mark.everywhere
def test_dead_epochs_are_taken_out_and_nothing_younger(shop: Shop) -> None:
    """The slices of an epoch in flight are there before the master holds it (C1)."""
    dead, held, flying = (next(shop.numbers) for _ in range(3))
    for number in (dead, flying):
        shop.slices.append(shop.partials([Sale(5)]), from_epoch=number, to_epoch=number)
    quarantine = Table.ensure(shop.layout.table("quarantine"), QUARANTINE)
    for number in (dead, flying):
        row = pa.Table.from_pylist([{"_epoch": number}], schema=QUARANTINE)
        quarantine.append([data_files.write_data_file(row, quarantine.root, f"{number}.parquet")])
    shop.epoch([Sale(1)], number=held, edge=False)
    before = answered(shop)
    assert maintain_tables(shop.compiled, shop.layout).dead == 2
    assert spans(shop)[-2:] == [(held, held), (flying, flying)]
    assert quarantine.refresh().read(["_epoch"])["_epoch"].to_pylist() == [flying]
    assert answered(shop) == before


def test_dead_rows_that_others_packed_with_held_ones_are_taken_out(shop: Shop) -> None:
    """A user's OPTIMIZE leaves no file of a dead epoch alone; packing must not carry its rows on for ever."""
    for _ in range(2):
        dead = next(shop.numbers)
        shop.slices.append(shop.partials([Sale(5)]), from_epoch=dead, to_epoch=dead)
        shop.epoch([Sale(1)])
    DeltaTable(str(shop.slices.table.root)).optimize.compact()
    later = [shop.epoch([Sale(1)]) for _ in range(4)]
    before = answered(shop)
    assert {7, 9} <= {last for _, last in spans(shop)}
    assert maintain_tables(shop.compiled, shop.layout).refused == ()
    assert answered(shop) == before
    assert sorted(last for _, last in spans(shop)) == [*range(7), 8, 10, *later]


def test_slices_above_the_frontier_wait(shop: Shop) -> None:
    """Those of a view that is behind have gaps: its catch-up writes them again (rule 6)."""
    for _ in range(2):
        shop.epoch([Sale(9)], frontier=6)
    assert maintain_tables(shop.compiled, shop.layout).merged == 2
    assert spans(shop) == [(0, 2), (3, 5), (6, 6)]


def test_no_block_reaches_over_a_views_birth(warehouse: Location) -> None:
    """The epoch before a birth is a floor like a cut and need not be an edge."""
    shop = Shop(warehouse, born=2)
    for number in range(6):
        shop.epoch([Sale(number)], edge=number == 5, frontier=1 if number < 2 else None)
    assert maintain_tables(shop.compiled, shop.layout).merged == 1
    assert spans(shop) == [(2, 5)]


def test_a_block_that_ends_at_a_lost_epoch_keeps_its_rows(shop: Shop) -> None:
    """A floor, or the cut of a generation that was withdrawn, may name a number that the log has lost since."""
    shop.epoch([Sale(1)], edge=False)
    lost = next(shop.numbers)
    floor = Statement(Act.FLOOR, shop.view.id, epoch=lost, interval="2030-01-01T00:00:00Z")
    shop.manifest.decide(lambda _: [floor])
    later = shop.epoch([Sale(1)], edge=True)
    before = answered(shop)
    for _ in range(2):
        maintain_tables(shop.compiled, shop.layout)
        assert answered(shop) == before
    assert spans(shop) == [(0, 2), (3, 5), (6, 7), (later, later)]


def test_a_slice_over_an_edge_raises(shop: Shop) -> None:
    """It is a bug to be seen (rule 9), not to be spread."""
    shop.slices.append(shop.partials([Sale(5)]), from_epoch=1, to_epoch=4)
    before = shop.slices.table.version
    with pytest.raises(StraddlesCut):
        maintain_tables(shop.compiled, shop.layout)
    assert Table.open(shop.slices.table.root).version == before


def test_the_ledger_is_repaired_beside_a_live_writer(shop: Shop) -> None:
    """Rows that are missing in the middle, too: a cut may have fallen on one of them."""
    shop.epoch([Sale(9)], ledger=False)
    shop.epoch([Sale(9)])
    late = shop.epoch([Sale(9)], ledger=False)
    assert maintain_tables(shop.compiled, shop.layout).repaired == 2
    assert [epoch.number for epoch in Ledger.ensure(shop.layout).read()] == list(range(10))
    # The writer was only slow: its own row comes after all, by a handle that has not seen the repair.
    shop.ledger.append(shop.master.missing(late - 1))
    found = Ledger.ensure(shop.layout)
    assert [epoch.number for epoch in found.read()] == list(range(10))
    assert found.table.txn(EPOCH) == late
    assert maintain_tables(shop.compiled, shop.layout).repaired == 0


def test_a_ledger_that_cannot_be_repaired_stops_upkeep(shop: Shop) -> None:
    """What looks dead may only be forgotten."""
    first = shop.ledger.table.actions().sort_by("min.epoch").slice(0, 1).to_pylist()[0]
    remove = RemoveAction(first["path"], False, 0, size=first["size_bytes"])
    shop.ledger.table.append([], removes=[remove])
    Table.open(shop.ledger.table.root).append([], txns={CHECKED: 6})
    done = maintain_tables(shop.compiled, shop.layout)
    assert "lacks epoch 0" in done.refused[0]
    assert (done.merged, done.dead, done.deleted) == (0, 0, {})


def test_what_nobody_can_commit_is_deleted(shop: Shop) -> None:
    """A crash leaves files; those of a writer that may still live are not ours."""
    shop.slices.table.fence(2)
    names = [f"000001-{7:012d}-{7:012d}.parquet", f"000002-{8:012d}-{8:012d}.parquet", "notes.parquet"]
    for name in names:
        data_files.write_data_file(pa.table({"x": [1]}), shop.slices.table.root, name)
    done = maintain_tables(shop.compiled, shop.layout)
    assert done.deleted == {"of an older token": 1}
    assert done.left["slices files that a writer may still commit"] == 2
    assert [(shop.slices.table.root / name).exists() for name in names] == [False, True, True]


def test_removed_files_stay_for_readers_for_a_day(shop: Shop) -> None:
    """A reader that pinned the version before must still find its files."""
    maintain_tables(shop.compiled, shop.layout)
    done = maintain_tables(shop.compiled, shop.layout)
    assert done.left["slice files whose block is still open"] == 1
    root = shop.slices.table.root
    left = {path.name for path in root.glob("00*.parquet")}
    assert len(left) == 7
    old = datetime.now(UTC) - timedelta(days=2)
    file = data_files.write_data_file(shop.partials([]), root, f"000001-{3:012d}-{9:012d}.parquet")
    table = Table.open(root)
    table.append([file])
    table.append([], removes=[RemoveAction(file.path, False, int(old.timestamp() * 1000), size=file.size)])
    assert maintain_tables(shop.compiled, shop.layout).deleted == {"removed over a day ago": 1}
    assert {path.name for path in root.glob("00*.parquet")} == left


def test_what_refreshes_replaced_leaves_the_disk_a_day_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream refreshes every few seconds, for years."""
    day = shop.interval(Sale(0)).id
    for _ in range(3):
        serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, [day])
    root = shop.layout.serving(shop.view)
    before = Table.open(root).read()
    maintain_tables(shop.compiled, shop.layout)
    assert len(list(root.glob("*.parquet"))) == 3
    monkeypatch.setattr(cleaning, "PINNED_HOURS", 0)
    assert maintain_tables(shop.compiled, shop.layout).deleted["removed over a day ago"] >= 2
    assert len(list(root.glob("*.parquet"))) == 1
    assert Table.open(root).read().equals(before)
