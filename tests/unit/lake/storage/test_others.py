"""Other writers at our tables: what changes rows is refused, whoever looks, until it is undone; the rest is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from tests.unit.shop import START, Sale, Shop

from seamline.lake.log import pinned_log
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import data_files, log_store
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import build_commit_properties
from seamline.lake.storage.foreign_commits import Change, apply_foreign_commit, find_foreign_change
from seamline.lake.storage.kept import cached_table
from seamline.lake.storage.log_entries import ENGINE, Commit
from seamline.lake.storage.rewrites import list_live_pieces, replace_files
from seamline.model.errors import ChangedByOthers, Conflict
from seamline.model.protocol.read_request import ReadRequest

SCHEMA = pa.schema([("n", pa.int64())])
ONE = pa.table({"n": [7]}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Make a table with the rows 0 to 3, a file each: version 4."""
    table = Table.ensure(tmp_path / "table", SCHEMA)
    for number in range(4):
        append(table, number)
    return table


def append(table: Table, number: int) -> None:
    rows = pa.table({"n": [number]}, schema=SCHEMA)
    table.append(
        [data_files.write_data_file(rows, table.root, f"{number}.parquet")], txns={"seamline.epoch": number}
    )


def theirs(table: Table) -> DeltaTable:
    return DeltaTable(str(table.root))


def numbers(table: Table) -> list[int]:
    return sorted(table.read()["n"].to_pylist())


CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "RESTORE": lambda table: table.restore(2),
    "DELETE": lambda table: table.delete("n = 2"),
    "DELETE of all": lambda table: table.delete(),
    "UPDATE": lambda table: table.update({"n": "n + 1"}, predicate="n = 2"),
    "WRITE": lambda table: write_deltalake(table, ONE, mode="append"),
    "WRITE over all": lambda table: write_deltalake(table, ONE, mode="overwrite"),
    "MERGE": lambda table: (
        table.merge(pa.table({"n": [2]}, schema=SCHEMA), "s.n = t.n", source_alias="s", target_alias="t")
        .when_matched_delete()
        .execute()
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_others_change_are_refused_until_they_are_as_they_were(table: Table, change: str) -> None:
    """By who opens the table, who follows it, and who has an epoch to commit; a RESTORE is believed as a whole only."""
    follower, writer = Table.open(table.root), Table.open(table.root)
    CHANGES[change](theirs(table))
    said = f"version 5 is a {change.split(maxsplit=1)[0]} by delta-rs"
    for look in (follower.refresh, follower.refresh, lambda: Table.open(table.root)):
        with pytest.raises(ChangedByOthers, match=said):
            look()
    # A RESTORE by deltalake states the protocol again, so whoever writes begins anew, and is told then.
    with pytest.raises((ChangedByOthers, Conflict)):
        append(writer, 4)
    theirs(table).optimize.compact()
    theirs(table).create_checkpoint()
    with pytest.raises(ChangedByOthers, match=said):
        Table.open(table.root)
    theirs(table).restore(3)
    with pytest.raises(ChangedByOthers, match=said) as refused:
        Table.open(table.root)
    assert ".restore(4)" in refused.value.hint
    theirs(table).restore(4)
    assert numbers(follower.refresh()) == numbers(Table.open(table.root)) == [0, 1, 2, 3]
    append(follower, 4)
    assert numbers(Table.open(table.root)) == [0, 1, 2, 3, 4]


def test_what_changes_no_rows_is_passed_by(table: Table) -> None:
    """OPTIMIZE, VACUUM, a checkpoint, and what they do to each other's files; a RESTORE over them too."""
    follower = Table.open(table.root)
    theirs(table).optimize.compact()
    theirs(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    theirs(table).create_checkpoint()
    append(follower.refresh(), 4)
    theirs(table).optimize.z_order(["n"])
    before = follower.refresh().version
    theirs(table).delete("n > 1")
    theirs(table).optimize.compact()
    theirs(table).restore(before)
    assert numbers(follower.refresh()) == numbers(Table.open(table.root)) == [0, 1, 2, 3, 4]


def test_a_partition_whose_name_is_spelled_otherwise_is_the_same(tmp_path: Path) -> None:
    """Engines write a path into the log in more or less of a URL's form."""
    schema = pa.schema([*SCHEMA, ("day", pa.string())])
    table = Table.ensure(tmp_path / "table", schema, partition_by=["day"])
    day = "2026-03-01T00:00:00 +é%"
    rows = pa.table({"n": [1], "day": [day]}, schema=schema)
    write_deltalake(str(table.root), rows, mode="append", commit_properties=build_commit_properties({}))
    theirs(table).delete()
    with pytest.raises(ChangedByOthers):
        table.refresh()
    theirs(table).restore(1)
    assert numbers(table.refresh()) == [1]


def test_a_deletion_vector_makes_a_file_another() -> None:
    """Rows that are hidden in a file are gone, though the file is there, as before."""
    file = {"path": "a.parquet", "dataChange": True}
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    hidden = Commit(3, {"operation": "DELETE"}, adds=({**file, "deletionVector": vector},), removals=(file,))
    change = apply_foreign_commit(None, hidden)
    assert change and (change.version, change.operation) == (3, "DELETE")
    shown = Commit(4, {"operation": "RESTORE"}, adds=(file,), removals=(hidden.adds[0],))
    assert apply_foreign_commit(change, shown) is None


def test_commits_of_every_release_of_ours_are_told_from_others() -> None:
    """An earlier release gave none an id; what deltalake commits for us carries our name."""
    add = ({"path": "a", "dataChange": True},)
    made = build_commit_properties({}).custom_metadata or {}
    ours = ({"engineInfo": ENGINE}, {"engineInfo": "delta-rs:py-1.6.6", **made})
    assert not any(apply_foreign_commit(None, Commit(1, info, adds=add)) for info in ours)
    assert (
        apply_foreign_commit(None, Commit(1, {"engineInfo": "delta-rs"}, {"seamline.epoch": 4}, add)) is None
    )
    for info in ({}, {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0", "txnId": "7"}):
        assert isinstance(apply_foreign_commit(None, Commit(1, info, {"theirs": 4}, add)), Change)


@pytest.mark.parametrize("feature", ["DeletionVectors", "ColumnMapping", "V2Checkpoint", "RowTracking"])
def test_a_table_that_asks_for_what_nobody_of_ours_can_do_is_refused(table: Table, feature: str) -> None:
    """With a sentence, by who follows it and who opens it: deltalake raises an error of its own, or none."""
    writer, asked = Table.open(table.root), getattr(TableFeatures, feature)
    theirs(table).alter.add_feature(asked, allow_protocol_versions_increase=True)
    for look in (table.refresh, table.refresh, lambda: Table.open(table.root)):
        with pytest.raises(ChangedByOthers, match=f"now requires .*(?i:{feature})"):
            look()
    with pytest.raises(Conflict):
        append(writer, 4)


def test_a_table_that_asks_for_what_deltalake_does_for_us_is_not(table: Table) -> None:
    """Commits go through it then."""
    theirs(table).alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    append(table.refresh(), 4)
    assert numbers(Table.open(table.root)) == [0, 1, 2, 3, 4]


def test_only_what_came_after_our_newest_commit_is_looked_at(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is opened costs one entry however long its log is; what was let pass before stays so."""
    looked: list[int] = []
    read = log_store.read_commit
    monkeypatch.setattr(
        log_store, "read_commit", lambda root, version: looked.append(version) or read(root, version)
    )
    assert find_foreign_change(table.root, read(table.root, table.version)) is None
    assert looked == []
    theirs(table).optimize.compact()
    assert find_foreign_change(table.root, read(table.root, 5)) is None
    assert looked == [4]


def test_a_log_without_a_commit_of_ours_is_believed(table: Table) -> None:
    """Clean-up has taken it, 30 days after; nobody knows of what was before, and a table is not refused for age."""
    theirs(table).optimize.compact()
    theirs(table).create_checkpoint()
    for version in range(5):
        log_store.entry_path(table.root, version).unlink()
    assert numbers(Table.open(table.root)) == [0, 1, 2, 3]


@pytest.mark.parametrize("change", ["RESTORE", "DELETE", "WRITE over all"])
def test_no_answer_is_made_of_slices_that_others_have_changed(change: str, tmp_path: Path) -> None:
    """Where rows were taken out, what is left would look like the answer."""
    shop = Shop(tmp_path)
    for number in range(3):
        shop.epoch([Sale(number)])
    [counted] = read_merged_answer(shop.compiled, shop.view, shop.layout).table["orders"].to_pylist()
    handle = DeltaTable(str(shop.slices.table.root))
    version = handle.version()
    {"RESTORE": lambda: handle.restore(version - 1), "DELETE": handle.delete}.get(
        change, lambda: write_deltalake(handle, handle.to_pyarrow_table().slice(0, 1), mode="overwrite")
    )()
    with pytest.raises(ChangedByOthers, match=f"version {version + 1} is a {change.split(maxsplit=1)[0]} by"):
        read_merged_answer(shop.compiled, shop.view, shop.layout)
    DeltaTable(str(shop.slices.table.root)).restore(version)
    assert read_merged_answer(shop.compiled, shop.view, shop.layout).table["orders"].to_pylist() == [counted]


def test_generations_of_several_days_that_others_have_packed_are_told_apart(tmp_path: Path) -> None:
    """A file has rows of two generations then, of which one counts: they are counted, day by day."""
    shop = Shop(tmp_path)
    cut = shop.epoch([Sale(0), Sale(1500)])
    for name in ("g1", "g2"):
        for day in (0, 1):
            shop.build(day, cut, f"{name}-{day}")
    shop.epoch([Sale(3)])
    DeltaTable(str(shop.generations.root)).optimize.compact()
    assert sum(read_merged_answer(shop.compiled, shop.view, shop.layout).table["orders"].to_pylist()) == 3


def test_a_ledger_whose_files_are_gone_is_looked_at_anew(tmp_path: Path) -> None:
    """A reader that follows the master alone knows the files of a ledger of before OPTIMIZE and VACUUM."""
    shop = Shop(tmp_path)
    for number in range(3):
        shop.epoch([Sale(number)], watermark=Sale(number).at)
    shop.build(0, 1, "g1")
    assert sum(read_merged_answer(shop.compiled, shop.view, shop.layout).table["orders"].to_pylist()) == 3
    ledger = DeltaTable(str(shop.ledger.table.root))
    ledger.optimize.compact()
    ledger.vacuum(0, dry_run=False, enforce_retention_duration=False)
    shop.epoch([Sale(3)], watermark=Sale(3).at)
    assert sum(read_merged_answer(shop.compiled, shop.view, shop.layout).table["orders"].to_pylist()) == 4


def pack_as_spark(table: Table, column: str) -> None:
    """Put all rows of a table into one file, with instants as INT96."""
    name, rows = "part-00000.parquet", table.refresh().read()
    written, place = data_files.write_data_file(rows, table.root, name), table.root / name
    pq.write_table(rows, place, use_deprecated_int96_timestamps=True)
    file = replace(written, size=place.stat().st_size)
    replace_files(table, list_live_pieces(table, column, column), [file])


@pytest.mark.parametrize("table", ["slices", "ledger"])
def test_instants_are_read_as_spark_packs_them(table: str, tmp_path: Path) -> None:
    """As INT96 without a zone, unless it is told otherwise; also those of years that nanoseconds do not reach."""
    shop = Shop(tmp_path)
    far = (datetime(2500, 1, 1, tzinfo=UTC) - START) // timedelta(minutes=1)
    for minutes in (0, 1, far):
        shop.epoch([Sale(minutes)], watermark=Sale(minutes).at)
    shop.build(0, 1, "g1")
    before = read_merged_answer(
        shop.compiled, shop.view, shop.layout, ReadRequest(as_of=Sale(0).at + timedelta(seconds=2))
    )
    pack_as_spark(*{"slices": (shop.slices.table, "to_epoch"), "ledger": (shop.ledger.table, "epoch")}[table])
    pinned_log.forget_past()
    cached_table._held.clear()
    REMEMBERED.answers.clear()
    after = read_merged_answer(
        shop.compiled, shop.view, shop.layout, ReadRequest(as_of=Sale(0).at + timedelta(seconds=2))
    )
    assert before.table.sort_by("window_start").to_pylist() == after.table.sort_by("window_start").to_pylist()
    assert sum(after.table["orders"].to_pylist()) == 3
    maintain_tables(shop.compiled, shop.layout)
    assert sum(read_merged_answer(shop.compiled, shop.view, shop.layout).table["orders"].to_pylist()) == 3
