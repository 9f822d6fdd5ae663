"""The log as the tables give it condensed: whatever files the ledger is in, it says what all its rows say."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.log import ledger_summaries
from seamline.lake.log.epoch_log import (
    known_epochs,
    list_accepting_epochs,
    newest_epochs,
    of_ledger,
    read_condensed_log,
)
from seamline.lake.log.ledger_files import groups_of
from seamline.lake.maintain import ledger_packing
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.rewrites import list_live_pieces, replace_files
from seamline.lake.tables.readiness import is_epoch_committed
from seamline.model.protocol.condensed import Summed, condense_epochs, count_of, first_of

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Blocks of four epochs."""
    monkeypatch.setattr(ledger_summaries, "BLOCK", 4)
    monkeypatch.setattr(ledger_packing, "BLOCK", 4)
    return Shop(tmp_path)


def filled(shop: Shop, epochs: int, seed: int = 0) -> None:
    """Hold epochs, with dead numbers between."""
    dice = random.Random(seed)
    for step in range(epochs):
        if dice.random() < 0.2:
            next(shop.numbers)
        shop.epoch([Sale(1 + 60 * step)], edge=dice.random() < 0.4, watermark=START + step * DAY)


def check(shop: Shop) -> None:
    """Compare with the plain log, parted anywhere."""
    plain = known_epochs(shop.layout)
    for cut in (None, *(each.number for each in plain)):
        cuts = [] if cut is None else [cut]
        short = read_condensed_log(shop.layout, cuts=cuts)
        assert short == [*condense_epochs(plain[:-1], cuts), plain[-1]]
        if cut is not None:
            until = read_condensed_log(shop.layout, until=cut)
            assert until == condense_epochs([each for each in plain if each.number <= cut], [cut])


@pytest.mark.parametrize("seed", range(3))
def test_a_condensed_log_is_the_log(shop: Shop, seed: int) -> None:
    """Single files, packed ones, both, and what only the master has."""
    filled(shop, 5, seed)
    check(shop)
    maintain_tables(shop.compiled, shop.layout)
    check(shop)
    filled(shop, 6, seed)
    check(shop)
    maintain_tables(shop.compiled, shop.layout)
    shop.epoch([Sale(5)], ledger=False)
    shop.epoch([Sale(5)], ledger=False)
    check(shop)


def packed(shop: Shop) -> list[str]:
    """Hold epochs in one packed file, and give the files."""
    filled(shop, 11)
    maintain_tables(shop.compiled, shop.layout)
    found = [
        file.path for group in groups_of(Table.open(shop.layout.table("ledger"))) for file in group.files
    ]
    assert len(found) == 1
    return found


def replaced(shop: Shop, rows: pa.Table) -> None:
    """Put another file in the place of the ledger's only one, as OPTIMIZE does."""
    table = Table.open(shop.layout.table("ledger"))
    replace_files(
        table,
        list_live_pieces(table, "epoch", "epoch"),
        [write_data_file(rows, table.root, "foreign.parquet", stats=["epoch"])],
    )


def test_a_packed_file_tells_without_being_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start after weeks reads the footer, and the last block for the newest epoch."""
    packed(shop)
    read: list[object] = []
    groups = ledger_summaries.LedgerFile.read
    monkeypatch.setattr(
        ledger_summaries.LedgerFile,
        "read",
        lambda file, blocks=None: read.append(blocks) or groups(file, blocks),
    )
    found = read_condensed_log(shop.layout)
    assert count_of(found) == 11
    assert read == [[2]]


def test_a_file_without_a_summary_is_read_and_gets_one(shop: Shop) -> None:
    """Ledgers of earlier releases have none, and OPTIMIZE by others leaves none."""
    [path] = packed(shop)
    before = read_condensed_log(shop.layout)
    replaced(shop, pq.read_table(path).replace_schema_metadata())
    assert of_ledger(Table.open(shop.layout.table("ledger"))) == before
    assert maintain_tables(shop.compiled, shop.layout).packed == {"ledger": 1}
    assert maintain_tables(shop.compiled, shop.layout).packed == {}
    check(shop)


def test_a_summary_that_does_not_fit_is_not_believed(shop: Shop) -> None:
    """It is checked against the file's own statistics."""
    [path] = packed(shop)
    before = read_condensed_log(shop.layout)
    rows = pq.read_table(path)
    wrong = dict(pq.read_metadata(path).metadata)
    wrong[ledger_summaries.WHOLE] = wrong[ledger_summaries.WHOLE].replace(b'"count":', b'"count":1')
    replaced(shop, rows.replace_schema_metadata(wrong))
    assert of_ledger(Table.open(shop.layout.table("ledger"))) == before


def test_a_row_that_was_written_twice_counts_once(shop: Shop) -> None:
    """Upkeep repairs while the stream appends the same row."""
    packed(shop)
    shop.ledger.append(shop.master.missing(8))
    check(shop)
    maintain_tables(shop.compiled, shop.layout)
    check(shop)


def test_a_packed_file_spans_no_jump(shop: Shop) -> None:
    """Numbers leap by a million where a start is sure of nothing: a look by number must not meet both sides."""
    filled(shop, 4)
    for _ in range(5000):
        next(shop.numbers)
    filled(shop, 4)
    maintain_tables(shop.compiled, shop.layout)
    first, second = groups_of(Table.open(shop.layout.table("ledger")))
    assert second.first - first.last >= 5000
    check(shop)


def test_of_a_longer_ledger_only_the_rest_is_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page asks every second."""
    filled(shop, 8)
    before = read_condensed_log(shop.layout)
    shop.epoch([Sale(1)])
    shop.epoch([Sale(1)])
    read: list[int] = []
    groups = ledger_summaries.LedgerFile.read
    monkeypatch.setattr(
        ledger_summaries.LedgerFile,
        "read",
        lambda file, blocks=None: read.append(file.first) or groups(file, blocks),
    )
    after = read_condensed_log(shop.layout)
    assert len(read) == 3
    assert count_of(after) == count_of(before) + 2
    assert first_of(after[0]) == 0
    assert isinstance(after[0], Summed)


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("written", range(4))
def test_a_ledger_of_a_later_line_hides_no_epoch_of_the_master(
    shop: Shop, written: int, packing: bool
) -> None:
    """A master from a backup holds epochs that this ledger never had, or has no more, below numbers that it has."""
    for step in range(6):
        shop.epoch([Sale(1 + 24 * 60 * step)], edge=step % 2 == 0, ledger=step < written)
    rows = shop.master.missing(-1)
    if packing:
        maintain_tables(shop.compiled, shop.layout)
    later = [replace(row, number=row.number + 1_000_000) for row in rows]
    shop.ledger.append(later[:3])
    shop.ledger.append(later[3:])
    assert [row.number for row in known_epochs(shop.layout)] == [0, 1, 2, 3, 4, 5]
    check(shop)
    assert [is_epoch_committed(shop.layout, number) for number in (0, 4, 5, 6, 1_000_005)] == [True] * 3 + [
        False
    ] * 2
    for count in (1, 2, 5, 9):
        assert newest_epochs(shop.layout, count) == rows[-count:]
    for row in rows:
        assert list_accepting_epochs(shop.layout, row.accepted) == [row]
    assert list_accepting_epochs(shop.layout, ["never"]) == []
