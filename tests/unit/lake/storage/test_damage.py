"""Where a table's log has to end after a power cut."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from seamline.lake.storage import log_damage, log_store, set_aside
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.log_damage import Damage

SCHEMA = pa.schema([("n", pa.int64())])
NOW = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of four commits with a row each, a checkpoint after the second."""
    found = Table.ensure(tmp_path / "table", SCHEMA)
    for number in range(1, 5):
        rows = pa.table({"n": [number]}, schema=SCHEMA)
        found.append([write_data_file(rows, found.root, f"{number}.parquet", stats=["n"])])
        if number == 2:
            found.handle.create_checkpoint()
    return found


def entry(table: Table, version: int) -> Path:
    """Name an entry."""
    return log_store.entry_path(table.root, version)


def rows(table: Table) -> list[int]:
    """Read the table as it is on disk."""
    return sorted(Table.open(table.root).read()["n"].to_pylist())


def test_a_whole_log_has_no_end(table: Table) -> None:
    """Also where the entries below its checkpoint were cleaned away."""
    assert log_damage.find_log_damage(table.root) is None
    for version in range(2):
        entry(table, version).unlink()
    assert log_damage.find_log_damage(table.root) is None


def test_entries_that_go_meanwhile_below_a_checkpoint_end_nothing(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log clean-up runs beside a start that looks: what is above the checkpoint is not set aside for that."""
    read = log_damage.bytes_of

    def meanwhile(root: Path, version: int) -> bytes | None:
        for older in range(2):
            entry(table, older).unlink(missing_ok=True)
        return read(root, version)

    monkeypatch.setattr(log_damage, "bytes_of", meanwhile)
    assert log_damage.find_log_damage(table.root) is None


def test_a_broken_entry_below_a_checkpoint_ends_a_log_that_can_do_without(table: Table) -> None:
    """The checkpoint reached the disk before it: what the commit said of itself is lost."""
    entry(table, 1).write_bytes(b"")
    assert log_damage.find_log_damage(table.root) == Damage(1, "it is empty", 4, 3)


def test_a_broken_entry_below_a_checkpoint_is_let_be_where_the_log_needs_what_is_above(table: Table) -> None:
    """The checkpoint has what it said; nothing older can be opened."""
    entry(table, 0).unlink()
    entry(table, 1).write_bytes(b"")
    assert log_damage.find_log_damage(table.root) is None


def test_a_broken_entry_is_let_be_in_a_table_that_is_synced_as_it_is_written(tmp_path: Path) -> None:
    """It was broken long after it was written, and the checkpoint has what it said."""
    table = Table.ensure(tmp_path / "manifest", SCHEMA)
    table.append([])
    table.append([])
    table.handle.create_checkpoint()
    entry(table, 1).write_bytes(b"")
    assert log_damage.find_log_damage(table.root) is None


def test_a_log_ends_before_its_first_broken_entry_though_later_ones_are_whole(table: Table) -> None:
    """They were decided on what is not there."""
    entry(table, 3).write_bytes(b"")
    assert log_damage.find_log_damage(table.root) == Damage(3, "it is empty", 4, 1)
    set_aside.set_aside(table.root, 3, "it is empty", now=NOW)
    assert rows(table) == [1, 2]
    assert log_damage.find_log_damage(table.root) is None


def test_a_gap_ends_a_log(table: Table) -> None:
    """The next commit would meet what comes after it."""
    entry(table, 3).unlink()
    assert log_damage.find_log_damage(table.root) == Damage(3, "it is missing, but later ones exist", 4, 1)


def test_a_file_that_is_lost_below_a_checkpoint_ends_the_log_there(table: Table) -> None:
    """The checkpoint was written out before what it names: it is set aside with the entries."""
    (table.root / "2.parquet").unlink()
    found = log_damage.find_log_damage(table.root)
    assert found == Damage(2, "2.parquet is missing", 4, 2)
    names = set_aside.set_aside(table.root, found.version, found.why, now=NOW)
    assert {"_last_checkpoint", "00000000000000000002.checkpoint.parquet"} < set(names)
    assert rows(table) == [1]


def test_a_start_that_dies_while_it_sets_aside_is_followed_by_one_that_goes_on(table: Table) -> None:
    """Entries go from the newest down: whatever is left is broken at the same place."""
    (table.root / "2.parquet").unlink()
    real = Path.rename
    for survives in range(3):
        moved = 0

        def rename(path: Path, target: Path, most: int = survives) -> Path:
            nonlocal moved
            if moved == most:
                raise OSError("no power")
            moved += 1
            return real(path, target)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "rename", rename)
            with pytest.raises(OSError, match="no power"):
                set_aside.set_aside(table.root, 2, "lost", now=NOW.replace(minute=survives))
        found = log_damage.find_log_damage(table.root)
        assert found is not None and found.version == 2
    set_aside.set_aside(table.root, 2, "lost", now=NOW.replace(hour=1))
    assert log_damage.find_log_damage(table.root) is None
    assert rows(table) == [1]
