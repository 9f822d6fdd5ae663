"""What upkeep and repair do to a table's log, on disk and in a bucket."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.unit.shop import START, Sale, Shop

from seamline.cli.machine_checks import check_folders
from seamline.lake.storage import log_store, set_aside, table_cache
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept import cached_table
from seamline.lake.storage.log_cleanup import delete_old_entries
from seamline.lake.storage.log_entries import Commit
from seamline.lake.store.locations import Location, delete_files, list_names
from seamline.lake.tables.readiness import find_repair_reason, is_epoch_committed

pytestmark = [pytest.mark.slow, pytest.mark.everywhere]
SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def table(warehouse: Location) -> Table:
    """A table of four commits with a row each, and a checkpoint after the third."""
    made = Table.ensure(warehouse / "p" / "t", SCHEMA)
    for number in range(1, 5):
        made.append(
            [write_data_file(pa.table({"n": [number]}, SCHEMA), made.root, f"{number}.parquet", stats=["n"])],
            txns={"n": number},
        )
        if number == 3:
            made.handle.create_checkpoint()
    return made


def rows(table: Table) -> list[int]:
    """Read the table as a newcomer does."""
    return sorted(Table.open(table.root).read()["n"].to_pylist())


def test_old_entries_go_below_a_checkpoint(table: Table) -> None:
    """A log that only grows is listed for longer and longer; what is left opens at each of its versions."""
    later = datetime.now(UTC) + timedelta(days=2)
    assert delete_old_entries(table.root, timedelta(days=1), now=later - timedelta(days=2)) == 0
    assert delete_old_entries(table.root, timedelta(days=1), now=later) == 3
    left = [name for name in sorted(list_names(table.root / log_store.FOLDER)) if name.endswith(".json")]
    assert left == [log_store.name_entry(3), log_store.name_entry(4)]
    assert rows(table) == [1, 2, 3, 4] and Table.open(table.root).txn("n") == 4
    table.refresh().append([], txns={"n": 5})
    assert Table.open(table.root).txn("n") == 5


def test_a_table_is_there_without_its_first_entry_and_its_mark(table: Table, warehouse: Location) -> None:
    """Clean-up takes the one and a repair the other; who takes it for none makes it anew, and loses what it held."""
    log_folder = table.root / log_store.FOLDER
    delete_files(
        [*(log_store.entry_path(table.root, version) for version in range(3)), log_folder / log_store.LAST]
    )
    assert Table.exists(table.root)
    assert Table.ensure(table.root, SCHEMA).txn("n") == 4
    assert not Table.exists(warehouse / "p") and not Table.exists(warehouse / "p" / "none")


def test_entries_that_are_set_aside_end_the_log_and_are_kept_for_a_while(table: Table) -> None:
    """A repair takes back what was lost elsewhere; numbers that were used once are remembered."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    names = set_aside.set_aside(table.root, 3, "the quarantine has lost it", now=now)
    assert names[0] == log_store.LAST and names[-1] == log_store.name_entry(3) and len(names) == 4
    assert rows(table) == [1, 2]
    assert set_aside.newest_aside_version(table.root, "n") == 4
    assert set_aside.list_aside_files(table.root) == {"3.parquet", "4.parquet"}
    set_aside.delete_expired_aside(table.root, now=now + set_aside.KEPT)
    assert set_aside.newest_aside_version(table.root, "n") == 4
    set_aside.delete_expired_aside(table.root, now=now + set_aside.KEPT + timedelta(seconds=1))
    assert set_aside.newest_aside_version(table.root, "n") == -1


def test_a_reader_that_lives_on_sees_that_an_end_was_set_aside(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer with epochs that nobody holds any more, and their records come again under other numbers."""
    monkeypatch.setattr(cached_table, "BELIEVED", 0.0)

    def read() -> list[int] | None:
        return table_cache.read_cached_table(
            table.root, "all", lambda held: sorted(held.read()["n"].to_pylist())
        )

    assert read() == [1, 2, 3, 4]
    set_aside.set_aside(table.root, 4, "it was lost elsewhere", now=datetime.now(UTC))
    assert read() == [1, 2, 3]


def test_no_epoch_is_committed_that_another_process_has_set_aside(warehouse: Location) -> None:
    """What is published up to such an epoch counts records that are read again under another number."""
    shop = Shop(warehouse)
    for number in range(2):
        shop.epoch([Sale(number)], watermark=START)
    assert is_epoch_committed(shop.layout, 1) and not find_repair_reason(shop.layout)
    master = Table.open(shop.layout.table("master"))
    set_aside.set_aside(master.root, master.version, "it was lost elsewhere", now=datetime.now(UTC))
    assert is_epoch_committed(shop.layout, 0) and not is_epoch_committed(shop.layout, 1)
    assert find_repair_reason(shop.layout) == "the ledger has epoch 1, but the master ends at 0"


def test_a_reader_goes_on_where_its_store_failed_for_a_moment(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a table is still there is only a question; to open it is tried again a few times."""
    read_entry, failures = log_store.read_commit, [OSError("SlowDown")]

    def read_or_fail(root: Location, version: int) -> Commit | None:
        if failures:
            raise failures.pop()
        return read_entry(root, version)

    monkeypatch.setattr(cached_table, "BELIEVED", 0.0)
    assert table_cache.read_cached_table(table.root, "n", lambda held: held.txn("n")) == 4
    monkeypatch.setattr(log_store, "read_commit", read_or_fail)
    assert table_cache.read_cached_table(table.root, "n", lambda held: held.txn("n")) == 4
    assert not failures


def test_doctor_tries_the_place_of_the_warehouse(warehouse: Location) -> None:
    """Whoever cannot write there learns it before a stream does."""
    found = {each.name: each for each in check_folders()}
    assert found["SEAMLINE_WAREHOUSE"].good and str(warehouse) in str(found["SEAMLINE_WAREHOUSE"])
