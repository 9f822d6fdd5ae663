"""Tables held open between reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from seamline.lake.storage import data_files, table_cache
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept import cached_table

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.ensure(tmp_path / "table", SCHEMA)


def add(table: Table, number: int) -> None:
    table.append(
        [data_files.write_data_file(pa.table({"n": [number]}, SCHEMA), table.root, f"{number}.parquet")]
    )


def rows(table: Table) -> int | None:
    return table_cache.read_cached_table(table.root, "rows", lambda seen: seen.read().num_rows)


def test_what_another_commits_is_seen_at_once(table: Table) -> None:
    """And what was found is found again, not read again, as long as nothing has happened."""
    calls = []

    def count(seen: Table) -> int:
        calls.append(seen.version)
        return seen.read().num_rows

    for number in range(3):
        add(table, number)
        assert [table_cache.read_cached_table(table.root, "count", count) for _ in range(3)] == [
            number + 1
        ] * 3
    assert calls == [1, 2, 3]


def test_a_handle_finds_on_where_the_next_version_was_cleaned_away(table: Table) -> None:
    """The process slept for a week: the file of the version after its own is gone, that of the newest is there."""
    add(table, 0)
    assert rows(table) == 1
    for number in range(1, 6):
        add(table, number)
    table.handle.create_checkpoint()
    for old in range(table.version):
        (table.root / "_delta_log" / f"{old:020d}.json").unlink()
    assert rows(table) == 6


def test_a_table_made_anew_at_the_same_place_is_another(table: Table, tmp_path: Path) -> None:
    """Its versions begin again."""
    add(table, 0)
    add(table, 1)
    assert rows(table) == 2
    table.root.rename(tmp_path / "elsewhere")
    assert rows(Table.ensure(tmp_path / "table", SCHEMA)) == 0


def test_a_handle_that_is_handed_over_is_one_persons(table: Table) -> None:
    """A writer goes on with what a start has looked at; whoever looks later has a handle of his own."""
    root = table.root
    table.append([], txns={"a": 1})
    assert table_cache.take_cached_table(root) is None
    assert table_cache.read_cached_table(root, "a", lambda table: table.txn("a")) == 1
    held = cached_table._held.get(root)
    assert held is not None
    Table.open(root).append([], txns={"a": 2})
    mine = table_cache.take_cached_table(root)
    assert mine is held.table and mine.txn("a") == 2
    mine.append([], txns={"a": 3})
    assert table_cache.read_cached_table(root, "a", lambda table: table.txn("a")) == 3
    again = cached_table._held.get(root)
    assert again is not None and again.table is not mine


def test_what_is_seen_of_one_version_has_a_bound(table: Table) -> None:
    """An idle table was asked for one instant of the past after another, and all answers were kept."""
    looks: list[int] = []
    for instant in [*range(3 * cached_table.SEEN), 3 * cached_table.SEEN - 1, 0]:
        table_cache.read_cached_table(table.root, ("at", instant), lambda _: looks.append(1))
    held = cached_table._held.get(table.root)
    assert held is not None and len(held.seen) == cached_table.SEEN
    assert len(looks) == 3 * cached_table.SEEN + 1, (
        "the newest is remembered, though it is None; the oldest is not"
    )


@pytest.mark.parametrize("anew", [True, False])
def test_a_handle_of_a_table_that_is_gone_is_not_handed_over(
    table: Table, tmp_path: Path, *, anew: bool
) -> None:
    """Whoever writes makes the table then, or opens the one that was made at the same place."""
    add(table, 0)
    assert rows(table) == 1
    table.root.rename(tmp_path / "elsewhere")
    if anew:
        Table.ensure(table.root, SCHEMA)
    assert table_cache.take_cached_table(table.root) is None
