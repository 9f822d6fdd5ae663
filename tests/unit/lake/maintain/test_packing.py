"""Packing small files: the same rows under the same numbers, beside a live stream, a sleeper and a pinned reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.past import DAYS, build
from tests.unit.shop import Sale, Shop, sales_pipeline

from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import EDGE, END, FRONTIER, PRUNES, Master
from seamline.lake.maintain import cleaning, packing
from seamline.lake.maintain.upkeep import CHECKED, maintain_tables
from seamline.lake.publish.planning import master_files
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.originals import CountedRecords, read_original_rows
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import QUARANTINE, master_schema
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.fenced_commits import TOKEN
from seamline.lake.storage.rewrites import APP
from seamline.lake.store.fetched_files import localize_file
from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import Conflict, FenceLost
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval
from seamline.plan.maintain.packing_groups import filter_packable, plan_packing
from seamline.plan.maintain.slice_upkeep import CommittedEpochs, Piece

slow = pytest.mark.slow
ORDER = [("_epoch", "ascending"), ("_partition", "ascending"), ("_offset", "ascending")]


def sized(sizes: list[int]) -> list[Piece]:
    """Make one file of each size, an epoch each."""
    return [Piece(f"{at:03d}", size, at, at, size) for at, size in enumerate(sizes)]


def names(groups: list[tuple[Piece, ...]]) -> list[str]:
    return [" ".join(each.path.lstrip("0") or "0" for each in group) for group in groups]


def test_small_neighbours_are_packed_and_large_files_are_left_alone() -> None:
    """Writing a large file again buys nothing."""
    # sizes  1 1 1 1 | 50 is half of 100 | 1 1
    assert names(plan_packing(sized([1, 1, 1, 1, 50, 1, 1]), target=100)) == ["0 1 2 3 5 6"]
    assert plan_packing(sized([3]), target=100) == []
    # 40 + 40 fit; the third would be too much, and goes with the fourth.
    assert names(plan_packing(sized([40, 40, 40, 40]), target=100)) == ["0 1", "2 3"]


def test_a_large_group_does_not_take_each_new_file_in() -> None:
    """A pipeline of a few records an hour would write all it ever read again each hour."""
    assert plan_packing(sized([40, 1]), target=100) == []
    assert names(plan_packing(sized([40, 10, 10]), target=100)) == ["1 2"]
    assert names(plan_packing(sized([40, 11, 10]), target=100)) == ["0 1 2"]
    assert names(plan_packing(sized([1, 1, 40, 1, 1, 1]), target=100)) == ["0 1", "3 4 5"]


@given(sizes=st.lists(st.integers(1, 120), max_size=60))
def test_packing_ends_with_few_files_and_loses_none(sizes: list[int]) -> None:
    """The file count follows the bytes: of 100 bytes at most 1 + 2 + 4 files stay, of sizes 36, 6 and 1."""
    left, written, rounds = sized(sizes), 0, 0
    while groups := plan_packing(left, target=100):
        gone = {piece.path for group in groups for piece in group}
        assert sum(map(len, groups)) == len(gone) and all(2 * p.unpacked < 100 for g in groups for p in g)
        for group in groups:
            size = sum(piece.unpacked for piece in group)
            assert size <= 100
            written += size
            left.append(Piece(f"{rounds}+{group[0].path}", size, group[0].first, group[-1].last, size))
        left, rounds = [piece for piece in left if piece.path not in gone], rounds + 1
    assert sum(piece.unpacked for piece in left) == sum(sizes)
    small = [piece.unpacked for piece in left if 2 * piece.unpacked < 100]
    assert len(small) <= 7 * (1 + sum(small) // 50)
    # The twelfth time that it grows by half a file of 1 is one of 100.
    assert written <= 12 * sum(sizes)


def test_only_what_the_master_holds_is_packed() -> None:
    """What is in flight may be the next commit, or dead."""
    held = CommittedEpochs(frozenset({0, 2}), (), 2)
    assert names([tuple(filter_packable([*sized([1, 1, 1, 1]), Piece("9", 1, 0, 2)], held))]) == ["0 2 9"]


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """Seven epochs, each with an early and a late sale, a build to 2, and a writer that holds token 1."""
    made = Shop(warehouse)
    for table in (made.master.table, made.ledger.table, made.slices.table):
        table.fence(1)
    for number in range(7):
        made.epoch([Sale(70 + number, "b", number), Sale(number)], edge=number in (2, 5))
    made.build(0, 2, "first")
    return made


def rows(shop: Shop, table: str = "master") -> list[dict[str, Any]]:
    return Table.open(shop.layout.table(table)).read().sort_by(ORDER).to_pylist()


def answered(shop: Shop) -> list[dict[str, Any]]:
    found = read_merged_answer(shop.compiled, shop.view, shop.layout).table
    return found.sort_by([("window_start", "ascending"), ("customer", "ascending")]).to_pylist()


def live_files(shop: Shop, table: str = "master") -> list[str]:
    return sorted(Table.open(shop.layout.table(table)).actions()["path"].to_pylist())


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen when upkeep has written the master's packed file and has not committed it."""
    commit, waiting = packing.replace_files, [act]

    def interrupted(table: Table, *given: Any, **named: Any) -> None:
        if waiting and table.root.name == "master":
            waiting.pop()()
        commit(table, *given, **named)

    monkeypatch.setattr(packing, "replace_files", interrupted)


@slow
def test_packing_changes_no_row_no_answer_and_no_mark(shop: Shop) -> None:
    """The master's commits say what is held; a commit of upkeep must say nothing about it."""
    before, answers, ledger = rows(shop), answered(shop), known_epochs(shop.layout)
    early = read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(as_of=2)).table
    apps = [EPOCH, TOKEN, EDGE, f"{END}{Lane('t', 0)}", FRONTIER + shop.view.id]
    marks = [Master.open(shop.layout).table.txn(app) for app in apps]
    assert None not in marks
    done = maintain_tables(shop.compiled, shop.layout)
    assert (done.packed["master"], done.refused) == (7, ())
    assert "packed: 7 small files of master" in str(done)
    assert len(live_files(shop)) == 1
    assert len(live_files(shop, "ledger")) == 1
    assert rows(shop) == before
    assert answered(shop) == answers
    assert read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(as_of=2)).table.equals(early)
    assert known_epochs(shop.layout) == ledger
    assert Master.open(shop.layout).missing(4) == ledger[5:]
    assert [Master.open(shop.layout).table.txn(app) for app in apps] == marks
    again = maintain_tables(shop.compiled, shop.layout)
    assert (again.packed, again.deleted, again.refused) == ({}, {}, ())


@slow
def test_rows_are_in_the_order_of_event_time_with_bounds_to_prune_by(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build of one day reads the row groups of that day, whatever epochs the file is of."""
    monkeypatch.setattr(packing, "GROUP", 7)
    maintain_tables(shop.compiled, shop.layout)
    [name] = live_files(shop)
    file_here = localize_file(shop.master.table.root / name)
    read = pq.read_table(file_here, partitioning=None)
    moments = read["_event_time"].to_pylist()
    assert moments == sorted(moments)
    footer = pq.read_metadata(file_here)
    at = footer.schema.names.index("_event_time")
    bounds = [footer.row_group(each).column(at).statistics for each in range(footer.num_row_groups)]
    assert len(bounds) == 2 and bounds[0].max < bounds[1].min
    [action] = Table.open(shop.master.table.root).actions().to_pylist()
    assert [action[f"{side}.{name}"] for name in PRUNES[:1] for side in ("min", "max")] == [0, 6]
    [file] = master_files(shop.layout)
    assert (file.first, file.last) == (moments[0], moments[-1])


@slow
def test_rows_behind_a_number_are_found_in_a_file_of_many_epochs(shop: Shop) -> None:
    """Some of its epochs are in the generation, the others in slices."""
    found = read_merged_answer(shop.compiled, shop.view, shop.layout)
    window = Interval(Sale(60).at, Sale(120).at)

    def behind() -> Any:
        return read_original_rows(
            shop.compiled,
            shop.view,
            shop.layout,
            {"customer": "b"},
            window,
            found.intervals,
            again={},
            page=0,
        )

    before = behind()
    assert list(before[0].values()) == [CountedRecords(3, 4, 0)]
    assert maintain_tables(shop.compiled, shop.layout).packed["master"] == 7
    assert behind() == before


@slow
def test_the_stream_commits_before_and_after(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handles have not seen what upkeep did, and it must not be taken for a newer writer."""
    meanwhile(monkeypatch, lambda: shop.epoch([Sale(1)]))
    assert maintain_tables(shop.compiled, shop.layout).packed["master"] == 7
    shop.epoch([Sale(2)])
    assert [row["_epoch"] for row in rows(shop)] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8]
    assert [epoch.number for epoch in shop.ledger.read()] == list(range(9))
    assert sum(row["orders"] for row in answered(shop)) == 16


@slow
def test_of_two_upkeeps_one_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both would add the same rows."""
    before, inner = rows(shop), []
    meanwhile(monkeypatch, lambda: inner.append(maintain_tables(shop.compiled, shop.layout)))
    outer = maintain_tables(shop.compiled, shop.layout)
    assert (inner[0].packed["master"], outer.packed.get("master")) == (7, None)
    # On disk its file is looked for before the commit; a bucket is asked for nothing that the commit finds out.
    assert outer.refused in (
        ("Another upkeep of master came first and removed what this one wrote.",),
        ("master changed since version 8 was read.",),
    )
    assert rows(shop) == before
    assert len(list(shop.master.table.root.glob("upkeep-*"))) == 1


@slow
def test_what_a_killed_upkeep_wrote_is_deleted_by_the_next(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit names it, and none can once another upkeep has committed."""
    before = rows(shop)

    def die() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        meanwhile(patch, die)
        with pytest.raises(KeyboardInterrupt):
            maintain_tables(shop.compiled, shop.layout)
    [orphan] = shop.master.table.root.glob("upkeep-*")
    assert rows(shop) == before
    done = maintain_tables(shop.compiled, shop.layout)
    assert done.deleted == {"of an upkeep that another overtook": 1}
    assert not orphan.exists()
    assert rows(shop) == before


@slow
def test_a_writer_that_slept_brings_nothing_back(shop: Shop) -> None:
    """It wakes with a handle of before and a file of an epoch that a newer writer has numbered anew."""
    asleep = Master.open(shop.layout)
    asleep.table.token = 1
    mine = data_files.write_data_file(
        pa.Table.from_pylist([{"_epoch": 7}], schema=master_schema(shop.compiled)),
        asleep.table.root,
        f"000001-{7:012d}-00000-{'a' * 32}.parquet",
    )
    shop.master.table.fence(2)
    assert maintain_tables(shop.compiled, shop.layout).packed["master"] == 7
    before = rows(shop)
    with pytest.raises((FenceLost, FileNotFoundError)):
        asleep.table.append([mine], txns={EPOCH: 7})
    assert not (asleep.table.root / mine.path).exists()
    assert rows(shop) == before
    shop.epoch([Sale(3)])
    assert len(rows(shop)) == len(before) + 1


@slow
def test_a_pinned_reader_finds_its_files_for_a_day(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build may read one version for hours."""
    pinned, old = Table.open(shop.master.table.root), live_files(shop)
    before = pinned.read().sort_by(ORDER)
    maintain_tables(shop.compiled, shop.layout)
    maintain_tables(shop.compiled, shop.layout)
    assert pinned.read().sort_by(ORDER).equals(before)
    monkeypatch.setattr(cleaning, "PINNED_HOURS", 0)
    done = maintain_tables(shop.compiled, shop.layout)
    assert done.deleted["removed over a day ago"] >= 7
    assert not any((shop.master.table.root / name).exists() for name in old)
    assert Table.open(shop.master.table.root).read().sort_by(ORDER).equals(before)


@slow
def test_files_of_before_a_column_was_added_are_packed_with_later_ones(shop: Shop) -> None:
    """What was not declared when a record was read is NULL."""
    plain = sales_pipeline().definition
    wider = compile_pipeline(replace(plain, source=replace(plain.source, added=("channel STRING",))))
    Master.ensure(shop.layout, wider)
    shop.master.table.refresh()
    shop.compiled = wider
    shop.epoch([Sale(9)])
    before = rows(shop)
    assert {row["channel"] for row in before} == {None}
    assert maintain_tables(wider, shop.layout).packed["master"] == 8
    assert rows(shop) == before
    assert "channel" in pq.read_schema(localize_file(shop.master.table.root / live_files(shop)[0])).names


@slow
def test_refused_records_in_flight_are_not_packed_with_those_that_count(shop: Shop) -> None:
    """The master may never hold their epoch: they must be found again, alone."""
    dead, held, flying = (next(shop.numbers) for _ in range(3))
    quarantine = Table.ensure(shop.layout.table("quarantine"), QUARANTINE)
    for number in (0, 1, 1, dead, flying):
        row = pa.Table.from_pylist([{"_epoch": number}], schema=QUARANTINE)
        name = f"{number}-{os.urandom(4).hex()}.parquet"
        quarantine.append([data_files.write_data_file(row, quarantine.root, name)])
    shop.epoch([Sale(1)], number=held)
    done = maintain_tables(shop.compiled, shop.layout)
    assert (done.dead, done.packed["quarantine"]) == (1, 3)
    assert [row["_epoch"] for row in rows(shop, "quarantine")] == [0, 1, 1, flying]
    assert len(live_files(shop, "quarantine")) == 2


@slow
def test_a_ledger_row_lost_in_the_middle_of_a_packed_file_stops_upkeep(shop: Shop) -> None:
    """The file's bounds name other epochs; what looks dead may only be forgotten."""
    maintain_tables(shop.compiled, shop.layout)
    table = Table.open(shop.ledger.table.root)
    kept = [row for row in table.read().to_pylist() if row["epoch"] != 3]
    [old] = packing.list_live_pieces(table, "epoch", "epoch")
    again = data_files.write_data_file(
        pa.Table.from_pylist(kept, schema=table.read().schema), table.root, "again.parquet"
    )
    packing.replace_files(table, [old], [again])
    assert Table.open(table.root).txn(CHECKED) == 6
    done = maintain_tables(shop.compiled, shop.layout)
    assert "the ledger lists 12 records, but the master contains 14" in done.refused[0]
    assert (done.packed, done.deleted) == ({}, {})


@slow
def test_an_infinite_number_costs_statistics_and_nothing_else(shop: Shop) -> None:
    """Of such a file no bounds are known, the epoch's neither."""
    for name in live_files(shop)[:2]:
        table = Table.open(shop.master.table.root)
        [old] = [each for each in packing.list_live_pieces(table, "_epoch", "_epoch") if each.path == name]
        bare = replace(
            data_files.describe_data_file(table.root, name), stats=f'{{"numRecords": {2}}}', data_change=False
        )
        (table.root / f"bare-{name}").write_bytes((table.root / name).read_bytes())
        packing.replace_files(table, [old], [replace(bare, path=f"bare-{name}")])
    before = rows(shop)
    assert maintain_tables(shop.compiled, shop.layout).packed["master"] == 7
    assert rows(shop) == before


@slow
def test_many_groups_are_committed_a_few_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upkeep that is killed after hours has packed what it packed."""
    monkeypatch.setattr(packing, "AT_ONCE", 1)
    table = Table.open(shop.master.table.root)
    before, version = rows(shop), table.version
    held = CommittedEpochs(frozenset(range(7)), (2, 5), 6)
    # On disk the footer is the most of such a file: in memory three are less than one.
    size = max(table.actions()["size_bytes"].to_pylist())
    done = packing.pack_table(table, held, order=packing.BY_TIME, target=size + 1)
    assert done.packed["master"] >= 6
    assert Table.open(table.root).version > version + 1
    assert Table.open(table.root).txn(APP) == Table.open(table.root).version
    assert rows(shop) == before


def test_a_span_of_a_day_is_what_readers_may_take() -> None:
    """docs/operating.md says so."""
    assert timedelta(hours=cleaning.PINNED_HOURS) == timedelta(days=1)


@slow
def test_the_ledger_is_packed_beside_its_writer(shop: Shop) -> None:
    """One file an epoch is a million a week: every start would open them all."""
    maintain_tables(shop.compiled, shop.layout)
    shop.epoch([Sale(9)])
    found = Ledger.ensure(shop.layout)
    assert [epoch.number for epoch in found.read()] == list(range(8))
    assert found.table.txn(EPOCH) == 7
    assert len(live_files(shop, "ledger")) == 2


@slow
def test_what_runs_wrote_is_packed_beside_those_that_publish(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file a run is thousands a year, which every plan would open; a decision in between is made again."""
    for number in range(3):
        build(shop, f"g{number}", cut=6)
    tables = ("manifest", "builds", "certificates")

    def held() -> list[list[dict[str, Any]]]:
        return [sorted(Table.open(shop.layout.table(name)).read().to_pylist(), key=repr) for name in tables]

    before, state = held(), shop.manifest.read()
    decided = ManifestTable.ensure(shop.layout)
    decided.read()
    done = maintain_tables(shop.compiled, shop.layout)
    assert {name: done.packed[name] for name in tables} == {"manifest": 6, "builds": 3, "certificates": 3}
    assert held() == before
    assert replace(shop.manifest.read(), version=state.version) == state
    one = Statement(Act.PUBLISH, shop.view.id, epoch=6, interval=Sale(0).at.isoformat(), generation="late")
    with pytest.raises(Conflict, match="manifest changed since"):
        decided.commit([one])
    assert ManifestTable.ensure(shop.layout).decide(lambda _: [one]) == [one]
    # Builds are appended by handles of before, on no condition.
    asleep = Builds.ensure(shop.layout)
    build(shop, "g3", cut=6)
    maintain_tables(shop.compiled, shop.layout)
    asleep.append([replace(asleep.all()[0], run="slow")])
    assert len(asleep.all()) == 5
    assert [each.generation for each in shop.manifest.read().history[shop.view.id, DAYS[0]]] == [
        "first",
        "g0",
        "g1",
        "g2",
        "g3",
    ]
