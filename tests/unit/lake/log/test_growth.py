"""What is read does not grow with the number of epochs there have been: counted at two sizes, of the same last days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from benchmarks.history import WORK
from benchmarks.past import CLOSED, TAIL, Past

from seamline.lake.log import epoch_log, ledger_summaries, pinned_log
from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.ledger_files import groups_of
from seamline.lake.log.ledger_summaries import BLOCK, LedgerFile
from seamline.lake.maintain.upkeep import whole_ledger
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.storage import log_wholeness
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept import cached_table
from seamline.lake.tables.reprocessed import Reprocessed, read_reprocessed_log
from seamline.model.protocol import condensed as sums
from seamline.model.protocol.condensed import Summed, condense_epochs, count_of
from seamline.model.protocol.epoch import Epoch
from seamline.plan.batch.reprocessing_plan import Verdict
from seamline.serve.lookup_versions import lookups_of

pytestmark = pytest.mark.slow
SIZES = (1_000, 8_000)
MOST = TAIL + 2 * BLOCK + CLOSED
"""Epochs that may be decoded: those that are not packed, and the row groups of the day that is asked about."""


@dataclass
class Counts:
    """Ledger rows that were decoded: one by one, and as sums; and rows of which columns were read at once."""

    epochs: int = 0
    sums: int = 0
    rows: int = 0


@pytest.fixture(scope="module")
def pasts(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Past]:
    """Make the warehouses."""
    return {size: Past(tmp_path_factory.mktemp(str(size)), size, 20).make() for size in SIZES}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Count from here on, in a process that knows nothing yet."""
    for known in (
        epoch_log._folded,
        pinned_log._known,
        cached_table._held,
        ledger_summaries._kept,
        REMEMBERED.answers,
    ):
        known.clear()
    found, row, text = Counts(), Epoch.from_row, Epoch.from_json

    def from_row(facts: Any) -> Epoch:
        found.sums += 1
        return row(facts)

    def from_json(said: str) -> Epoch:
        found.epochs += 1
        found.sums -= 1
        return text(said)

    monkeypatch.setattr(Epoch, "from_row", from_row)
    monkeypatch.setattr(Epoch, "from_json", from_json)
    whole = pq.read_table

    def read_table(source: Any, *args: Any, **named: Any) -> Any:
        assert "row" not in (named.get("columns") or ()), f"all rows of {source} are read"
        return whole(source, *args, **named)

    monkeypatch.setattr(pq, "read_table", read_table)
    all_of = Table.read

    def read(self: Table, columns: list[str] | None = None) -> Any:
        rows = all_of(self, columns)
        found.rows += rows.num_rows
        return rows

    monkeypatch.setattr(Table, "read", read)
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", WORK)
def test_what_is_decoded_has_a_bound(pasts: dict[int, Past], counts: Counts, name: str, size: int) -> None:
    """A restart after weeks must not run out of memory."""
    WORK[name](pasts[size])
    assert counts.epochs <= MOST
    assert counts.sums <= 3 * (SIZES[0] // BLOCK + size // BLOCK + 8)
    assert SIZES[-1] / 4 > MOST


@pytest.mark.parametrize("name", ["start", "plan", "status", "certify"])
def test_a_log_that_is_kept_for_a_day_is_opened_once(
    pasts: dict[int, Past], counts: Counts, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each opening lists it: 86,400 entries of an epoch a second."""
    found: Counter[str] = Counter()
    open_it = log_wholeness.open_whole_table

    def opened(root: Path) -> Any:
        found[root.name] += 1
        return open_it(root)

    monkeypatch.setattr(log_wholeness, "open_whole_table", opened)
    WORK[name](pasts[SIZES[0]])
    assert found["master"] == 1
    assert max(found["quarantine"], found["slices"]) <= 1


@pytest.mark.parametrize("size", SIZES)
def test_upkeep_goes_by_sums(pasts: dict[int, Past], counts: Counts, size: int) -> None:
    """It comes every hour, beside the stream, for years."""
    assert whole_ledger(pasts[size].layout)[1].last == size - 1
    assert counts.epochs <= MOST
    assert counts.rows <= MOST


@pytest.mark.parametrize("size", SIZES)
def test_what_has_to_read_all_of_it_holds_little(
    pasts: dict[int, Past], counts: Counts, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """After records were judged again, or with look-ups: each epoch is read, one row group after the other."""
    past, pieces = pasts[size], list[int]()
    one, add = LedgerFile.read, sums.sum_epochs
    verdicts = {0: Verdict(0, "again", accepted={"2026-01-01T00:00:00Z": 1})}

    def epochs(self: LedgerFile, groups: Sequence[int] | None = None) -> list[Epoch]:
        pieces.append(len(found := one(self, groups)))
        return found

    def summed(rows: list[Epoch]) -> Summed:
        pieces.append(len(rows))
        return add(rows)

    monkeypatch.setattr(LedgerFile, "read", epochs)
    monkeypatch.setattr(sums, "sum_epochs", summed)
    monkeypatch.setattr(Reprocessed, "verdicts", lambda self: verdicts)
    expected = epoch_log.read_condensed_log(past.layout)
    found = read_reprocessed_log(past.compiled, past.layout)
    assert count_of(found) == size == count_of(expected)
    assert counts.epochs >= size
    lookups_of(past.compiled, past.layout)
    assert counts.epochs >= 2 * size
    assert max(pieces) <= 1_000
    assert [each.accepted for each in condense_epochs(found)] == [
        each.accepted for each in condense_epochs(expected)
    ]


def test_the_warehouse_is_what_a_stream_would_have_left(pasts: dict[int, Past]) -> None:
    """It is written without making each epoch: the ledger's rows and sums must be those of its epochs all the same."""
    past = pasts[SIZES[0]]
    plain = known_epochs(past.layout)
    assert list(plain) == [past.row(number) for number in range(past.epochs)]
    assert epoch_log.read_condensed_log(past.layout) == [*condense_epochs(plain[:-1]), plain[-1]]
    [packed, *_] = groups_of(Table.open(past.layout.table("ledger")))
    blocks = [condense_epochs(plain[low : low + BLOCK]) for low in range(0, past.packed, BLOCK)]
    blocks[-1] = condense_epochs(plain[BLOCK * (len(blocks) - 1) : past.packed])
    assert packed.files[0].read_blocks() == blocks
