"""A commit in a bucket is in the log once, or not at all, whatever the network and the store do to its request."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from tests.faults.rig.store_proxy import StoreProxy, Trouble

from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import TOKEN
from seamline.lake.store import bucket as buckets
from seamline.lake.store.bucket import Bucket
from seamline.lake.store.locations import Location, delete_files
from seamline.lake.store.store_probe import probe_creation
from seamline.model.errors import Conflict, FenceLost, StoreUnavailable

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("impatient")]
SCHEMA = pa.schema([("n", pa.int64())])


def commit_path(version: int) -> str:
    """Mean the requests about a version."""
    return f"_delta_log/{version:020d}.json$"


def append(table: Table, number: int, **more) -> int:
    """Commit a row."""
    file = write_data_file(pa.table({"n": [number]}, SCHEMA), table.root, f"{number}.parquet")
    return table.append([file], **more)


def rows(root: Location) -> list[int]:
    """Return the rows that another reader finds."""
    return sorted(Table.open(root).read()["n"].to_pylist())


@pytest.mark.parametrize(
    ("trouble", "fenced"),
    [
        *((each, True) for each in Trouble if each is not Trouble.TRUNCATED),
        (Trouble.LOST_REPLY, False),
        (Trouble.CONFLICT, False),
    ],
)
def test_a_commit_lands_once(shaky: Location, proxy: StoreProxy, trouble: Trouble, fenced: bool) -> None:
    """A lost reply that is taken for a lost fence would end a healthy stream."""
    table = Table.ensure(shaky / "t", SCHEMA)
    if fenced:
        table.fence(1)
    version = table.version + 1
    proxy.strike(trouble, commit_path(version), method="PUT", times=2, seconds=1.0)
    append(table, 1, txns={"app": 1})
    append(table, 2, txns={"app": 2})
    proxy.clear()
    assert proxy.struck[trouble] >= 1
    assert rows(shaky / "t") == [1, 2]
    assert Table.open(shaky / "t").txn("app") == 2


def test_a_commit_that_lands_after_its_writer_gave_up_counts_once(shaky: Location, proxy: StoreProxy) -> None:
    """Nobody knew, and nobody insisted: whoever tries again finds that it is there."""
    table = Table.ensure(shaky / "t", SCHEMA)
    proxy.strike(Trouble.LATE, commit_path(1), method="PUT", times=99, seconds=2.0)
    with pytest.raises(OSError, match="s3://"):
        append(table, 1, txns={"app": 1})
    proxy.clear()
    assert rows(shaky / "t") == [1] and Table.open(shaky / "t").txn("app") == 1
    with pytest.raises(Conflict):
        append(table, 2, txns={"app": 1})
    assert rows(shaky / "t") == [1]


@pytest.mark.parametrize("trouble", [Trouble.LOST_REPLY, Trouble.CONFLICT, Trouble.SLOW_DOWN])
def test_a_fence_is_lost_to_a_newer_writer_alone(
    shaky: Location, proxy: StoreProxy, trouble: Trouble
) -> None:
    """What the network does to the newer one's fence helps nobody."""
    older = Table.ensure(shaky / "t", SCHEMA)
    older.fence(1)
    proxy.strike(trouble, commit_path(older.version + 1), method="PUT")
    newer = Table.open(shaky / "t")
    newer.fence(2)
    assert proxy.struck[trouble] == 1
    assert append(newer, 1) == newer.version
    with pytest.raises(FenceLost, match="token 2 has replaced ours, 1"):
        append(older, 2)
    assert rows(shaky / "t") == [1] and Table.open(shaky / "t").txn(TOKEN) == 2


@pytest.mark.parametrize(
    ("method", "trouble"),
    [
        ("GET", Trouble.TRUNCATED),
        ("GET", Trouble.SLOW_DOWN),
        ("GET", Trouble.REFUSED),
        ("PUT", Trouble.LOST_REPLY),
        ("PUT", Trouble.SLOW_DOWN),
    ],
)
def test_what_changes_nothing_twice_is_asked_again(
    shaky: Location, proxy: StoreProxy, method: str, trouble: Trouble
) -> None:
    """A data file has a name of its own, so that putting it twice is putting it once."""
    table = Table.ensure(shaky / "t", SCHEMA)
    proxy.strike(trouble, "1.parquet$", method=method, times=2)
    append(table, 1)
    (shaky / "copy").write_bytes((shaky / "t" / "1.parquet").read_bytes())
    assert proxy.struck[trouble] == 2
    assert rows(shaky / "t") == [1]


def test_the_probe_finds_a_store_that_lets_two_win(lake: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """On such a store two writers would both believe that they have committed."""
    assert probe_creation(lake) == ("", "")
    create = Bucket.create
    monkeypatch.setattr(Bucket, "create", lambda self, key, data: create(self, key, data) or True)
    assert "8 of 8 writers" in probe_creation(lake)[0]
    monkeypatch.undo()


def test_a_store_that_is_away_is_an_error_of_the_store(shaky: Location, proxy: StoreProxy) -> None:
    """It may come back: nobody's record is to blame."""
    monkey = pytest.MonkeyPatch()
    monkey.setattr(buckets, "PATIENCE", timedelta(seconds=0.2))
    buckets.open_bucket.cache_clear()
    proxy.strike(Trouble.REFUSED, "", times=999)
    with pytest.raises(StoreUnavailable, match="s3://"):
        (shaky / "x").read_bytes()
    monkey.undo()


@pytest.mark.parametrize("method", ["GET", "PUT", "POST|DELETE"])
def test_a_store_that_says_conflict_of_what_creates_nothing_is_one_that_may_do_it_later(
    shaky: Location, proxy: StoreProxy, method: str
) -> None:
    """Clients take that reply for an object that is there already; nobody has asked whether there is one."""
    (shaky / "a.bin").write_bytes(b"a")
    act = {
        "GET": (shaky / "a.bin").read_bytes,
        "PUT": lambda: (shaky / "a.bin").write_bytes(b"b"),
        "POST|DELETE": lambda: delete_files([shaky / "a.bin"]),
    }[method]
    proxy.strike(Trouble.CONFLICT, "a.bin|delete", method=method)
    with pytest.raises(StoreUnavailable):
        act()
    act()


def test_a_table_is_made_by_a_store_that_was_busy(shaky: Location, proxy: StoreProxy) -> None:
    """deltalake takes a conflict for a table that is there, and finds none."""
    proxy.strike(Trouble.CONFLICT, commit_path(0), method="PUT")
    assert append(Table.ensure(shaky / "t", SCHEMA), 1) == 1
    assert proxy.struck[Trouble.CONFLICT] == 1


def test_what_deltalake_is_told_of_a_log_is_said_in_our_words(shaky: Location, proxy: StoreProxy) -> None:
    """It takes a conflict for an entry that is there: whoever reads would not know that it may pass."""
    one, other = Table.ensure(shaky / "t", SCHEMA), Table.ensure(shaky / "t", SCHEMA)
    append(other, 1)
    one.refresh()
    proxy.strike(Trouble.CONFLICT, commit_path(1), method="GET", times=9)
    with pytest.raises(StoreUnavailable, match="did not do what it was asked"):
        one.actions()
    proxy.clear()
    assert one.actions().num_rows == 1
