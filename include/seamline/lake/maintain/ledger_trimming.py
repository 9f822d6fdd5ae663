"""Rows of the ledger that no history of the master has: taken out, in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from deltalake.transaction import RemoveAction

from seamline.lake.log.ledger import Ledger
from seamline.lake.log.ledger_summaries import write_ledger_file
from seamline.lake.log.log_lines import LINE
from seamline.lake.log.master import Master
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.storage.table_cache import Files
from seamline.model.protocol.epoch import Epoch
from seamline.plan.maintain.repair_steps import list_unchained_epochs


def trim_ledger(ledger: Ledger, master: Master, *, line: int, named: bool) -> None:
    """Remove rows above E, and move the ledger to a line.

    With ``named`` those go too that are out of the chain, in which each row names the one before it; the whole ledger
    is read for that.
    """
    if named:
        rows = [each for each in ledger.read() if each.number <= master.epoch]
        gone = list_unchained_epochs([*rows, *master.missing(rows[-1].number if rows else -1)])
        gone |= {each.number for each in ledger.read_after(master.epoch)}
    else:
        gone = {each.number for each in ledger.read_after(master.epoch)}
    removed, kept = find_epoch_files(ledger, gone)
    left = [each for each in kept if each.number not in gone]
    ledger.table.append(write_kept_rows(ledger, left), txns={LINE: line}, removes=removed, sync=True)


def find_epoch_files(ledger: Ledger, numbers: Collection[int]) -> tuple[list[RemoveAction], list[Epoch]]:
    """Find the files with rows of some epochs, and all that is in them, in order."""
    if not numbers:
        return [], []
    live, now = Files.of(ledger.table), int(datetime.now(UTC).timestamp() * 1000)
    least, most = min(numbers), max(numbers)
    found, texts = [], list[str]()
    facts = zip(
        live.actions["path"].to_pylist(),
        live.paths,
        live.actions["size_bytes"].to_pylist(),
        live.low("epoch").to_pylist(),
        live.high("epoch").to_pylist(),
        strict=True,
    )
    for name, path, size, low, high in facts:
        if low is None or (low <= most and high >= least):
            found.append(RemoveAction(name, True, now, size, {}))
            texts += read_plain_columns(path, ["row"])["row"].to_pylist()
    rows = {each.number: each for each in map(Epoch.from_json, texts)}
    return found, [rows[number] for number in sorted(rows)]


def write_kept_rows(ledger: Ledger, rows: list[Epoch]) -> Iterable[DataFile]:
    """Write the rows that stay."""
    if rows:
        name = (
            f"{ledger.table.token or 0:06d}-{rows[0].number:012d}-{rows[-1].number:012d}-{uuid.uuid4().hex}"
        )
        yield write_ledger_file(rows, ledger.table.root, f"{name}.parquet")
