"""What an epoch and an answer ask of a store, request by request: each is a round trip, and some are billed."""

from __future__ import annotations

import math
from collections import Counter
from threading import Event

import pyarrow as pa
import pytest
from benchmarks.scale.requests import count_epoch
from benchmarks.scale.units import read_units
from deltalake import DeltaTable
from tests.faults.rig.store_proxy import StoreProxy
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import bucket_checkpoints, log_store
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept import cached_table
from seamline.lake.storage.table_cache import read_cached_table, take_cached_table
from seamline.lake.store.locations import Location, delete_folder
from seamline.lake.store.side_by_side import Threads
from seamline.lake.tables.readiness import find_repair_reason, is_epoch_committed

pytestmark = pytest.mark.slow


def count_new(proxy: StoreProxy, before: int) -> Counter[str]:
    """Count the requests after the first so many, by method; those of deltalake are among them."""
    return Counter(method for method, _ in proxy.seen[before:])


def test_a_table_that_was_made_again_is_another(lake: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that lives on must not answer from what was deleted, nor a writer go on with it."""
    monkeypatch.setattr(cached_table, "BELIEVED", 0.0)
    schema = pa.schema([("n", pa.int64())])

    def read() -> list[int] | None:
        return read_cached_table(lake / "t", "all", lambda table: table.read()["n"].to_pylist())

    for number in (1, 2):
        Table.ensure(lake / "t", schema).append(
            [write_data_file(pa.table({"n": [number]}, schema), lake / "t", f"{number}.parquet")]
        )
        assert read() == [number]
        delete_folder(lake / "t")
        assert read() is None
    assert take_cached_table(lake / "t") is None


def test_an_epoch_and_an_answer_ask_for_nothing_that_is_known(
    shaky: Location, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tables have a file and a commit; whoever reads asks each table for its next version."""
    monkeypatch.setattr(cached_table, "BELIEVED", math.inf)
    shop = Shop(shaky)
    shop.epoch([Sale(1)], watermark=START)
    before = len(proxy.seen)
    shop.epoch([Sale(2)], watermark=START + DAY)
    assert (
        count_new(proxy, before) == {"PUT": 6} == {"PUT": math.floor(count_epoch(1, 1, read_units())["PUT"])}
    )

    def answer() -> int:
        [row] = read_merged_answer(shop.compiled, shop.view, shop.layout).table.to_pylist()
        return int(row["orders"])

    assert answer() == 2
    before = len(proxy.seen)
    assert answer() == 2
    nothing_new = count_new(proxy, before)
    shop.epoch([Sale(3)], watermark=START + DAY)
    before = len(proxy.seen)
    assert answer() == 3
    after_an_epoch = count_new(proxy, before)
    # Five tables are asked for their next version; after an epoch most of them twice, since three of them have one, and
    # a file is fetched. Two GETs and a HEAD are for one that is not there: this shop has no stream, so no control.
    assert nothing_new == {"GET": 7, "HEAD": 1}
    assert after_an_epoch <= Counter(GET=15, HEAD=2)


def test_a_publication_opens_no_table_that_is_open(shaky: Location, proxy: StoreProxy) -> None:
    """Whoever opens a table lists its log and reads its entries; whether it moved on, one request tells."""
    shop = Shop(shaky)
    shop.epoch([Sale(1)], watermark=START + DAY)
    assert not find_repair_reason(shop.layout) and is_epoch_committed(shop.layout, 0)
    before = len(proxy.seen)
    assert not find_repair_reason(shop.layout) and is_epoch_committed(shop.layout, 0)
    # Three lists find the versions of views, two requests see that the end of the master is there still; the HEAD and
    # two GETs are for a quarantine, of which there is none.
    assert count_new(proxy, before) == {"GET": 13, "HEAD": 1}


def test_no_commit_waits_for_a_checkpoint(lake: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads each commit that it sums up, one by one: every hundredth epoch took seconds."""
    table, returned, written = Table.ensure(lake / "t", pa.schema([("n", pa.int64())])), Event(), Event()
    write = DeltaTable.create_checkpoint

    def write_later(self: DeltaTable) -> None:
        assert returned.wait(30)
        write(self)
        written.set()

    monkeypatch.setattr(DeltaTable, "create_checkpoint", write_later)
    monkeypatch.setattr(table, "_checkpoint_every", 1)
    table.append([])
    assert log_store.read_last_checkpoint(table.root) == -1
    returned.set()
    assert written.wait(30)
    assert log_store.read_last_checkpoint(table.root) == table.version


def test_a_process_that_ends_commits_without_a_checkpoint(
    lake: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads can no longer be begun then: a commit that has landed would be reported as one that failed."""
    table, ended = Table.ensure(lake / "t", pa.schema([("n", pa.int64())])), Threads("checkpoint", 1)
    ended._open().shutdown()
    monkeypatch.setattr(bucket_checkpoints, "WRITING", ended)
    monkeypatch.setattr(table, "_checkpoint_every", 1)
    assert table.append([]) == table.version == 1
    assert log_store.read_last_checkpoint(table.root) == -1
