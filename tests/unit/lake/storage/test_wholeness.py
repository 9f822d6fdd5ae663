"""What a power cut leaves of a log: what is not whole is seen, and nothing is believed from there on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from seamline.lake.storage import data_files, log_entries, log_store, log_wholeness, table_cache
from seamline.lake.storage.delta_table import Table
from seamline.model.errors import NotWhole

SCHEMA = pa.schema([("n", pa.int64())])
CUTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut at a line's end": lambda data: data[: data.index(b"\n") + 1],
    "cut within a line": lambda data: data[:-9],
    "without its last letter": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "zeros at the end": lambda data: data[:-20] + bytes(20),
    "another letter": lambda data: data.replace(b'"path":"', b'"path":"x'),
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Six commits of a row each."""
    made = Table.ensure(tmp_path / "table", SCHEMA)
    for number in range(1, 7):
        add(made, number)
    return made


def add(table: Table, number: int) -> None:
    """Commit a row, and say so."""
    rows = pa.table({"n": [number]}, schema=SCHEMA)
    table.append(
        [data_files.write_data_file(rows, table.root, f"{number}-{table.version}.parquet")],
        txns={"a": number},
    )


def spoil(table: Table, version: int, how: str) -> None:
    """Leave of an entry what a power cut does."""
    file = log_store.entry_path(table.root, version)
    file.write_bytes(CUTS[how](file.read_bytes()))


def rows(table: Table) -> list[int]:
    """List the rows that a table shows."""
    return sorted(table.read()["n"].to_pylist())


def test_a_commit_of_ours_is_whole_as_a_whole_only(table: Table) -> None:
    """At whatever byte it is cut, or zeros begin."""
    data = log_store.entry_path(table.root, 3).read_bytes()
    assert log_entries.find_entry_flaw(data) == ""
    for at in range(len(data)):
        assert log_entries.find_entry_flaw(data[:at])
        assert log_entries.find_entry_flaw(data[:at] + bytes(len(data) - at))


def test_a_commit_of_others_is_whole_if_its_lines_are_actions(tmp_path: Path) -> None:
    """They say nothing to check them by."""
    write_deltalake(str(tmp_path), pa.table({"n": [1]}))
    data = log_store.entry_path(tmp_path, 0).read_bytes()
    assert log_entries.find_entry_flaw(data) == log_entries.find_entry_flaw(data + b"\n") == ""
    assert log_entries.find_entry_flaw(b"")
    ends = [at for at in range(len(data)) if data[at : at + 1] == b"\n"]
    for at in range(1, len(data)):
        assert bool(log_entries.find_entry_flaw(data[:at])) == (at not in ends and at - 1 not in ends)
    for text in (b"{", b"[]\n", b'{"txn": {}}\n', b'{"add": 1}\n{"remove": 2}\n', b"7"):
        assert log_entries.find_entry_flaw(text)


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("version", [4, 6])
def test_a_log_ends_before_what_is_not_whole(table: Table, version: int, how: str) -> None:
    """Opened or followed, though whole commits come after it; deltalake goes by it, or opens nothing."""
    reader = Table.open(table.root)
    log_store.entry_path(table.root, 6).rename(table.root / "kept")
    log_store.entry_path(table.root, 5).rename(table.root / "kept too")
    log_store.entry_path(table.root, 4).rename(table.root / "and this")
    follower = Table.open(table.root)
    (table.root / "and this").rename(log_store.entry_path(table.root, 4))
    (table.root / "kept too").rename(log_store.entry_path(table.root, 5))
    (table.root / "kept").rename(log_store.entry_path(table.root, 6))
    spoil(table, version, how)
    for seen in (Table.open(table.root), follower.refresh()):
        assert seen.version == version - 1
        assert seen.txn("a") == version - 1
        assert rows(seen) == list(range(1, version))
    # Where the entry that was seen last is another one now, it is looked at anew.
    assert reader.refresh().version == (5 if version == 6 else 6)


@pytest.mark.parametrize("how", CUTS)
def test_a_writer_is_told_what_is_not_whole(table: Table, how: str) -> None:
    """It commits nothing before a start has seen to it: a number must not be used for two things."""
    spoil(table, 6, how)
    writer = Table.open(table.root)
    with pytest.raises(NotWhole, match=r"0006\.json is not intact: ") as told:
        add(writer, 7)
    assert (told.value.table, told.value.version) == (str(table.root), 6)
    assert told.value.file == str(log_store.entry_path(table.root, 6))
    with pytest.raises(NotWhole):
        writer.fence(1)
    assert writer.version == 5


def test_a_table_of_which_nothing_is_whole_is_named(tmp_path: Path) -> None:
    """There is nothing before its first commit."""
    made = Table.ensure(tmp_path / "table", SCHEMA)
    log_store.entry_path(made.root, 0).write_bytes(b"")
    with pytest.raises(NotWhole, match="0000.json is not intact: it is empty"):
        Table.open(made.root)


def test_only_what_is_above_the_newest_checkpoint_is_looked_at(table: Table) -> None:
    """What is below was believed long ago, and there are weeks of it."""
    DeltaTable(str(table.root)).create_checkpoint()
    add(table, 7)
    spoil(table, 3, "empty")
    assert rows(Table.open(table.root)) == list(range(1, 8))
    (table.root / "_delta_log" / "_last_checkpoint").unlink()
    assert log_wholeness.find_whole_checkpoint(table.root) == 6
    assert rows(Table.open(table.root)) == list(range(1, 8))


@pytest.mark.parametrize("how", ["empty", "cut off", "gone", "zeros"])
def test_a_checkpoint_that_is_not_whole_is_named(table: Table, how: str) -> None:
    """deltalake opens nothing from it."""
    DeltaTable(str(table.root)).create_checkpoint()
    add(table, 7)
    file = log_wholeness.classic_checkpoint_path(table.root, 6)
    data = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut off": data[:-30], "zeros": bytes(len(data))}[how])
    with pytest.raises(NotWhole, match=r"0006\.checkpoint\.parquet is not intact: it is"):
        Table.open(table.root)
    assert log_wholeness.find_whole_checkpoint(table.root) == -1
    assert table.refresh().version == 7


def test_a_log_that_was_replaced_is_read_anew(table: Table) -> None:
    """A start sets aside what is not whole, and what comes after it: whoever follows must not mix both."""
    reader = Table.open(table.root)
    assert table_cache.read_cached_table(table.root, "rows", rows) == [1, 2, 3, 4, 5, 6]
    for version in (6, 5):
        log_store.entry_path(table.root, version).unlink()
    starter = Table.open(table.root)
    for number in (50, 60, 70):
        add(starter, number)
    assert rows(reader.refresh()) == [1, 2, 3, 4, 50, 60, 70]
    assert table_cache.read_cached_table(table.root, "rows", rows) == [1, 2, 3, 4, 50, 60, 70]
    assert reader.newest == starter.newest


def test_ids_go_from_commit_to_commit(table: Table) -> None:
    """Also over what deltalake writes for us."""
    table.widen(pa.schema([("more", pa.int64())]))
    add(table, 8)
    commits = [found for version in range(9) if (found := log_store.read_commit(table.root, version))]
    assert len({commit.id for commit in commits} - {""}) == 9
    assert [commit.after for commit in commits[1:] if commit.after] == [
        commits[at - 1].id for at in (1, 2, 3, 4, 5, 6, 8)
    ]


def test_a_log_that_is_mended_while_it_is_read_is_read_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start after a power cut takes away a broken end, which others have seen a moment before."""
    spoil(table, 6, "cut within a line")
    read = log_wholeness.read_delta_handle

    def mended(root: Path, version: int | None) -> DeltaTable:
        try:
            return read(root, version)
        finally:
            log_store.entry_path(table.root, 6).unlink(missing_ok=True)

    monkeypatch.setattr(log_wholeness, "read_delta_handle", mended)
    assert log_wholeness.open_whole_table(table.root)[0].version() == 5
