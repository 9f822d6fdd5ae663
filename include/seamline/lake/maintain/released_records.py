"""Refused records that a person let go: the quarantine came back without them, and the master relied on them."""

from __future__ import annotations

from seamline.lake.engine.duckdb_connections import connection
from seamline.lake.log.log_lines import LINE, MARK, read_app_version, read_table_state
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.committed_log import committed_epochs_sql, count_epoch_rows
from seamline.lake.tables.torn_logs import QUARANTINE
from seamline.model.protocol.epoch import Epoch

LET_GO = "seamline.let_go"
"""App id in the quarantine: refused records of epochs up to this one may be gone, as a person has accepted."""


def release_refused_records(master: Master, quarantine: Table) -> None:
    """State that a person lets refused records of the master's epochs go, where the quarantine may lack some.

    Said before the master says what it relies on from now on: nothing records it any more then.
    """
    short = read_app_version(quarantine, EPOCH) < read_app_version(master.table, MARK + QUARANTINE)
    if (
        short or read_table_state(quarantine).line != master.table.txn(LINE)
    ) and master.epoch > read_app_version(quarantine, LET_GO):
        quarantine.append([], txns={LET_GO: master.epoch}, sync=True)


def count_readable_records(layout: Layout, epoch: Epoch) -> int:
    """Count the records that master and quarantine must have of an epoch: all that it read but those let go."""
    refused, quarantine = sum(epoch.refused.values()), Table.open(layout.table(QUARANTINE))
    if refused and epoch.number <= read_app_version(quarantine, LET_GO):
        there = count_epoch_rows(
            connection(), Files.of(quarantine), "_reason", committed_epochs_sql("_epoch", [epoch])
        )
        refused = min(refused, sum(there.get(epoch.number, {}).values()))
    return epoch.rows + refused
