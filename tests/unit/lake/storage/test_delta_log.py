"""Commits that this code puts into a Delta log: deltalake reads them, and nobody's is lost."""

from __future__ import annotations

import itertools
import json
import logging
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.transaction import RemoveAction

from seamline.lake.storage import column_bounds, data_files, log_entries, log_store, set_aside
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import TOKEN, build_commit_properties
from seamline.lake.store import created_files
from seamline.model.errors import Conflict, FenceLost

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("exact", pa.decimal128(38, 2)),
        ("text", pa.string()),
        ("ratio", pa.float64()),
    ]
)
PLACE = "interval"
NAMES = itertools.count()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.ensure(tmp_path / "table", pa.schema([*SCHEMA, (PLACE, pa.string())]), partition_by=[PLACE])


def written(
    table: Table, number: int, *, ratio: float = 0.5, place: str = "2026-01-01T00:00:00Z"
) -> data_files.DataFile:
    """Write a file of one row."""
    row = {
        "n": number,
        "at": datetime(2026, 1, 1, tzinfo=UTC).replace(microsecond=number),
        "exact": Decimal(f"{10**35 + number}.{number % 100:02}"),
        "text": f"a {number}" * 40,
        "ratio": ratio,
    }
    name = f"{next(NAMES)} é%.parquet"
    return data_files.write_data_file(
        pa.Table.from_pylist([row], schema=SCHEMA), table.root, name, stats=["n"], partition={PLACE: place}
    )


def told(table: Table) -> tuple[object, ...]:
    """Say all that a table tells."""
    rows = table.actions().sort_by("path")
    return (
        table.version,
        table.id,
        rows.to_pylist(),
        rows.schema,
        [table.txn(app) for app in ("a", "b", TOKEN)],
    )


def test_deltalake_reads_what_is_committed(table: Table) -> None:
    """Rows, bounds, partition, ``txn`` and what the commit says of itself."""
    version = table.append([written(table, 7)], txns={"a": 3}, metadata={"said": '{"x": 1}'})
    found = DeltaTable(str(table.root))
    assert found.version() == version == 1
    assert found.transaction_version("a") == 3
    assert found.history(1)[0]["said"] == '{"x": 1}'
    dataset = found.to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("n") == 7)[PLACE].to_pylist() == ["2026-01-01T00:00:00Z"]
    assert dataset.to_table(filter=pc.field("n") == 8).num_rows == 0
    assert not list((table.root / "_delta_log").glob("*.tmp"))


def appended(table: Table, row: pa.Table) -> None:
    """Append through deltalake, in our name: what another writer puts in is refused."""
    ours = build_commit_properties({})
    # Its own number of tries is 15, which six faster writers exceed.
    ours.max_commit_retries = 1000
    write_deltalake(str(table.root), row, mode="append", schema_mode="merge", commit_properties=ours)


@dataclass
class Life:
    """A table that this code, deltalake and people with a new definition write to, by chance."""

    table: Table
    chance: random.Random

    def ours(self) -> None:
        numbers = [self.chance.randrange(1000) for _ in range(self.chance.randrange(3))]
        ratio = self.chance.choice([0.5, float("inf")])
        txns = {self.chance.choice("ab"): self.chance.randrange(99)}
        self.table.append([written(self.table, each, ratio=ratio) for each in numbers], txns=txns)

    def theirs(self) -> None:
        schema = pa.schema([*SCHEMA, (PLACE, pa.string())])
        row = pa.Table.from_pylist([{"n": 1, "text": "x", PLACE: "2026-01-02"}], schema=schema)
        appended(self.table, row)
        self.table.refresh()

    def removed(self) -> None:
        names = {
            quote(path.name, safe=log_entries.UNQUOTED): path.name
            for path in self.table.root.glob("*.parquet")
        }
        live = [names[path] for path in self.table.actions()["path"].to_pylist() if path in names]
        if live:
            gone = RemoveAction(self.chance.choice(live), True, 1, 5, {PLACE: "2026-01-01T00:00:00Z"})
            self.table.append([], removes=[gone])

    def repeated(self) -> None:
        file = written(self.table, 5)
        self.table.append([file])
        self.table.append([replace(file, data_change=False)])

    def widened(self) -> None:
        other = Table.open(self.table.root)
        other.widen(pa.schema([(f"more_{other.version}", pa.int64())]))
        self.table.refresh()

    def cleaned(self) -> None:
        DeltaTable(str(self.table.root)).create_checkpoint()
        for version in range(self.table.version - 1):
            log_store.entry_path(self.table.root, version).unlink(missing_ok=True)


@pytest.mark.parametrize("seed", range(12))
def test_a_log_that_is_followed_tells_what_one_that_is_opened_does(table: Table, seed: int) -> None:
    """Whoever wrote; also past a checkpoint and lost files of commits, often and after a long while."""
    chance = random.Random(seed)
    life = Life(table, chance)
    often, late = Table.open(table.root), Table.open(table.root)
    assert told(often) == told(late)
    ways = (
        life.ours,
        life.ours,
        life.ours,
        life.theirs,
        life.removed,
        life.repeated,
        life.widened,
        life.cleaned,
    )
    for _ in range(25):
        chance.choice(ways)()
        if chance.random() < 0.6:
            assert told(often.refresh()) == told(Table.open(table.root))
    assert told(late.refresh()) == told(table.refresh()) == told(Table.open(table.root))


def test_a_listing_that_says_more_than_is_known_is_made_anew(table: Table) -> None:
    """Of what deltalake may list one day, a commit cannot be taken apart."""
    table.append([written(table, 1)])
    table._live = table.actions().append_column("vector.size", pa.nulls(1))
    table.append([written(table, 2)])
    assert told(table) == told(Table.open(table.root))


def test_whoever_comes_first_has_the_version_and_nobody_is_lost(table: Table) -> None:
    """Eight writers beside each other, two of them deltalake's own."""

    def add(worker: int) -> None:
        mine = Table.open(table.root)
        for number in range(12):
            if worker < 2:
                row = pa.table({"n": [worker * 100 + number], PLACE: ["p"]})
                appended(table, row)
            else:
                mine.append([written(mine, worker * 100 + number)], txns={f"app {worker}": number})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(8)))
    numbers = sorted(DeltaTable(str(table.root)).to_pyarrow_table(columns=["n"])["n"].to_pylist())
    assert numbers == sorted(worker * 100 + number for worker in range(8) for number in range(12))
    assert table.refresh().version == 96
    assert [table.txn(f"app {worker}") for worker in range(2, 8)] == [11] * 6


def test_of_two_that_decided_on_one_version_one_is_refused(table: Table) -> None:
    """By the app id that both carry, by a file that both take out, by another schema."""
    file = written(table, 1)
    table.append([file])
    late = Table.open(table.root)
    table.append([], txns={"a": 1})
    with pytest.raises(Conflict, match=f"{table.root.name} changed since version 1 was read"):
        late.append([], txns={"a": 1})
    late.refresh()
    gone = RemoveAction(file.path, True, 1, file.size, dict(file.partition))
    table.append([], removes=[gone])
    with pytest.raises(Conflict):
        late.append([], removes=[gone])
    late.refresh()
    table.widen(pa.schema([("more", pa.int64())]))
    with pytest.raises(Conflict):
        late.append([written(late, 2)])
    late.refresh().append([written(late, 2)])
    assert "more" in DeltaTable(str(table.root)).to_pyarrow_table().column_names


def test_what_concerns_nobody_is_passed_by(table: Table) -> None:
    """An append beside one that was decided on nothing it touches is the version after."""
    late = Table.open(table.root)
    table.append([written(table, 1)], txns={"a": 1})
    assert late.append([written(late, 2)], txns={"b": 1}) == 2
    assert (late.txn("a"), late.txn("b")) == (1, 1)
    assert late.read(["n"]).num_rows == 2


def test_whoever_has_seen_what_was_set_aside_since_looks_anew(table: Table) -> None:
    """It was believed until as many commits had come: a reader of before a repair went by epochs that are lost."""
    for number in range(3):
        table.append([], txns={"epoch": number})
    reader = Table.open(table.root)
    assert reader.txn("epoch") == 2
    set_aside.set_aside(table.root, table.version - 1, "it was lost", now=datetime.now(UTC))
    assert reader.refresh().txn("epoch") == 0
    Table.open(table.root).append([], txns={"epoch": 7})
    assert reader.refresh().txn("epoch") == 7
    set_aside.set_aside(table.root, reader.version, "it was lost", now=datetime.now(UTC))
    Table.open(table.root).append([], txns={"epoch": 8})
    assert (reader.refresh().txn("epoch"), reader.version) == (8, table.version - 1)


def test_a_newer_token_ends_an_older_writer(table: Table) -> None:
    """Also where it has taken over without a word of its own since."""
    table.fence(1)
    newer = Table.open(table.root)
    newer.fence(2)
    with pytest.raises(FenceLost, match="token 2 has replaced ours, 1"):
        table.append([written(table, 1)])
    with pytest.raises(FenceLost):
        table.refresh().append([written(table, 1)])
    assert newer.append([written(newer, 1)]) == 3


def test_checkpoints_keep_the_log_short_to_read(table: Table) -> None:
    """Every fifty commits; a handle that is opened then starts there, with all that was said before."""
    for number in range(103):
        table.append([written(table, number)] if number % 10 == 0 else [], txns={"a": number})
    mark = json.loads((table.root / "_delta_log" / "_last_checkpoint").read_text())
    assert mark["version"] == 100
    for version in range(100):
        log_store.entry_path(table.root, version).unlink()
    assert told(Table.open(table.root)) == told(table)
    assert [row["timestamp"] > 0 for row in table.history(50)] == [True] * 4


def test_a_commit_stands_though_its_checkpoint_fails(
    table: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever was told that it failed would do it again."""

    class Full:
        def __getattr__(self, name: str) -> object:
            if name == "create_checkpoint":
                raise DeltaError("No space left on device")
            return getattr(table._handle, name)

    for number in range(49):
        table.append([], txns={"a": number})
    monkeypatch.setattr(Table, "handle", property(lambda self: Full()))
    with caplog.at_level(logging.WARNING, "seamline.lake"):
        assert table.append([], txns={"a": 49}) == 50
    assert "No checkpoint of table was written at version 50: No space left on device" in caplog.text


def test_a_disk_that_takes_nothing_leaves_the_version_free(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no draft."""

    def full(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            table.append([], txns={"a": 1})
    assert table.version == 0
    assert [path.name for path in (table.root / "_delta_log").iterdir()] == [f"{0:020d}.json"]
    assert table.append([], txns={"a": 1}) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["changeDataFeed"]},
        {"minReaderVersion": 1, "minWriterVersion": 4},
    ],
    ids=["named", "by its version"],
)
def test_what_this_release_does_not_know_is_left_to_deltalake(table: Table, more: dict[str, object]) -> None:
    """A table that asks more of its writers is not written to by guess."""
    log_store.entry_path(table.root, 1).write_text(json.dumps({"protocol": more}))
    table.refresh()
    with (
        patch.object(created_files, "link_draft", side_effect=AssertionError("by guess")),
        suppress(DeltaError),
    ):
        table.append([written(table, 1)], txns={"a": 1})
    assert table._appends is False


def test_the_greatest_letter_stays_the_greatest(table: Table) -> None:
    """A bound ends in it; deltalake makes another letter of it where it is escaped."""
    table.append([written(table, 1)])
    [found] = DeltaTable(str(table.root)).get_add_actions(flatten=True)["max.text"].to_pylist()
    assert found[-1] == column_bounds.LAST_LETTER


def test_what_commits_have_said_is_known_without_listing_the_log(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deltalake lists all that a log keeps, and a start asks each table after its own fence."""
    table.append([], txns={"old": 1})
    other = Table.open(table.root)
    looked = Table.open(table.root)
    table.append([], txns={"new": 1})
    other.append([], txns={"old": 2})
    monkeypatch.setattr(DeltaTable, "update_incremental", None)
    assert [looked.refresh().txn(name) for name in ("old", "new", "none")] == [2, 1, None]
    table.refresh().append([], txns={"new": 2})
    assert [table.txn(name) for name in ("old", "new", "none")] == [2, 2, None]
