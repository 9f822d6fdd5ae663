"""Logs are as long as they have to be, and every version that is kept can be opened."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.unit.shop import Sale, Shop

from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.ledger import Ledger
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage import data_files, log_store
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_cleanup import delete_old_entries
from seamline.lake.storage.log_damage import find_log_damage
from seamline.lake.storage.log_wholeness import classic_checkpoint_path
from seamline.lake.storage.table_settings import HOUR, RETENTION, parse_log_retention
from seamline.lake.tables import torn_logs
from seamline.lake.tables.control_table import ControlTable
from seamline.spark.stream.epoch_writer import Writer

SCHEMA = pa.schema([("n", pa.int64())])
NOW = datetime.now(UTC)
AGE = timedelta(hours=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a ledger of 130 commits, with checkpoints at 50 and 100, and a file in each tenth."""
    table = Table.ensure(tmp_path_factory.mktemp("made") / "ledger", SCHEMA)
    for number in range(1, 131):
        add(table, number)
    return table.root


@pytest.fixture
def table(made: Path, tmp_path: Path) -> Table:
    return Table.open(Path(shutil.copytree(made, tmp_path / "ledger")))


def add(table: Table, number: int) -> None:
    """Commit a number, and each tenth time a row."""
    if number % 10:
        table.append([], txns={"a": number})
        return
    file = data_files.write_data_file(
        pa.table({"n": [number]}, schema=SCHEMA), table.root, f"{table.version}-{number}.parquet"
    )
    table.append([file], txns={"a": number})


def age(root: Path, *, until: int) -> None:
    """Let all of a log up to a version be older than it is kept."""
    then = time.time() - AGE.total_seconds()
    for file in (root / log_store.FOLDER).iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) <= until:
            os.utime(file, (then, then))


def entries(root: Path) -> list[int]:
    """List the versions whose entries are there."""
    return sorted(int(file.stem) for file in (root / log_store.FOLDER).glob("*.json"))


def shorten(table: Table, most: int = 1000) -> int:
    """Take a turn."""
    return delete_old_entries(table.root, parse_log_retention(table.settings), now=NOW, most=most)


def test_every_version_of_the_last_hour_can_be_opened(table: Table) -> None:
    """Who has pinned one, or asks for the table as of then, needs the checkpoint below it and all that came after."""
    age(table.root, until=119)
    assert shorten(table) == 100 + 1
    assert entries(table.root) == list(range(100, 131))
    for version in range(100, 131):
        assert DeltaTable(str(table.root), version=version).to_pyarrow_table().num_rows == version // 10
    age(table.root, until=60)
    assert not shorten(table)


def test_a_checkpoint_that_is_young_holds_back_what_is_below_it(table: Table) -> None:
    """Its version was not there an hour ago: the one before it was."""
    age(table.root, until=99)
    assert shorten(table) == 50
    assert entries(table.root) == list(range(50, 131))


def test_nothing_goes_without_a_checkpoint_that_is_whole(table: Table) -> None:
    """A power cut may leave one of its full size and empty."""
    age(table.root, until=130)
    for version in (50, 100):
        file = classic_checkpoint_path(table.root, version)
        file.write_bytes(bytes(file.stat().st_size))
    age(table.root, until=130)
    assert not shorten(table)
    assert entries(table.root) == list(range(131))


def test_a_checkpoint_is_on_disk_before_anything_goes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut leaves neither."""
    age(table.root, until=119)
    done: list[str] = []
    monkeypatch.setattr(
        "seamline.lake.storage.durability.sync_files", lambda paths: done.extend(p.name for p in paths)
    )
    monkeypatch.setattr("seamline.lake.storage.durability.sync_folder", lambda path: done.append(path.name))
    real = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        done.append("gone")
        real(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    shorten(table)
    assert done[:3] == [classic_checkpoint_path(table.root, 100).name, log_store.FOLDER, "gone"]
    assert "gone" not in done[:2]


def test_a_turn_takes_the_oldest_and_the_next_goes_on(table: Table) -> None:
    """A log of millions, which an earlier release has kept, must not hold up one upkeep; a turn may die anywhere."""
    age(table.root, until=119)
    reader = Table.open(table.root)
    assert [shorten(table, 40) for _ in range(4)] == [40, 40, 21, 0]
    log_store.entry_path(table.root, 0).write_bytes(b"left by a turn that died")
    assert find_log_damage(table.root) is None
    assert Table.open(table.root).read().num_rows == 13
    assert shorten(table) == 1
    add(table, 131)
    assert reader.refresh().read().num_rows == 13


def test_what_a_power_cut_takes_after_a_turn_is_set_aside(table: Table) -> None:
    """The checkpoint that stays is enough to open what is left."""
    age(table.root, until=119)
    shorten(table)
    log_store.entry_path(table.root, 120).write_bytes(b"")
    assert "ledger ends before version 120" in torn_logs.repair_torn_log(table.root, now=NOW)
    assert Table.open(table.root).read().num_rows == 11


def test_deltalake_cleans_nothing_by_itself(table: Table) -> None:
    """It would after its own commits: by its own checkpoint, which is not on disk, and by a list of the whole log."""
    age(table.root, until=130)
    while table.version < 147:
        table.append([], txns={"a": table.version})
    for number in range(4):
        table.widen(pa.schema([(f"more_{number}", pa.int64())]))
    assert log_store.read_last_checkpoint(table.root) > 100
    assert entries(table.root) == list(range(table.version + 1))


def test_a_start_changes_the_settings_of_tables_that_are_there(tmp_path: Path) -> None:
    """Made by an earlier release they keep thirty days; what somebody has set himself stays."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    layout = shop.layout
    told = {"delta.checkpointInterval": "50", "delta.dataSkippingNumIndexedCols": "-1"}
    older(layout.table("master"), told)
    older(layout.table("ledger"), {**told, RETENTION: "interval 3 days"})
    Writer(layout, shop.compiled, 1)
    said = {name: Table.open(layout.table(name)).settings for name in ("master", "quarantine", "ledger")}
    assert [said[name][RETENTION] for name in said] == [
        "interval 1 days",
        "interval 1 days",
        "interval 3 days",
    ]
    assert {each["delta.enableExpiredLogCleanup"] for each in said.values()} == {"false"}
    versions = [Table.open(layout.table(name)).version for name in said]
    Writer(layout, shop.compiled, 2)
    again = [Table.open(layout.table(name)).version for name in said]
    assert max(b - a for a, b in zip(versions, again, strict=True)) <= 2


def older(root: Path, settings: dict[str, str]) -> None:
    """Take away the settings that an earlier release did not make a table with."""
    first = log_store.entry_path(root, 0)
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for each in actions:
        if "metaData" in each:
            each["metaData"]["configuration"] = settings
    first.write_text("".join(json.dumps(each) + "\n" for each in actions))


def test_upkeep_shortens_every_log(tmp_path: Path) -> None:
    """And nothing that anybody asks for is gone with it."""
    shop = Shop(tmp_path)
    for number in range(60):
        shop.epoch([Sale(number)])
    reader = Ledger.ensure(shop.layout)
    before = known_epochs(shop.layout)
    for name in ("ledger", "master"):
        age(shop.layout.table(name), until=55)
    done = maintain_tables(shop.compiled, shop.layout)
    assert entries(shop.layout.table("ledger"))[0] == 50
    # Two hours are less than a day.
    assert entries(shop.layout.table("master"))[0] == 0
    assert f"logs: {done.shortened} old entries deleted" in str(done)
    reader.table.refresh()
    assert reader.read() == before == known_epochs(shop.layout)
    Writer(shop.layout, shop.compiled, 1)
    assert known_epochs(shop.layout) == before


def test_a_lease_shortens_its_own_log(tmp_path: Path) -> None:
    """No upkeep comes to the table of a resident driver."""
    control = ControlTable.ensure(Layout(tmp_path, "driver"))
    assert control.table.settings[RETENTION] == HOUR
    lease = control.take("me", now=NOW)
    for number in range(101):
        if number == 60:
            age(control.table.root, until=control.table.version)
        lease = control.renew(lease, now=NOW)
    assert entries(control.table.root)[0] == 50
