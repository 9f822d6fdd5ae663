"""App ids by which tables say of which history they are, and the run of the machine; what they say by them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import psutil

from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.model.protocol.seam import NOTHING
from seamline.plan.maintain.repair_steps import TableState

LINE = "seamline.line"
"""The token of the start that began the table's line."""
BOOT = "seamline.boot"
"""In the master: the run of the machine at the last statement."""
TAKEN = "seamline.taken"
"""In the master: every number up to this one had been given out, or was skipped, by the last statement."""
MARK = "seamline.mark/"
"""In the master, by table: the newest epoch that it contained by the master's commit."""
SERVED = "seamline.served"
"""App id in a serving table: every row counts each event of the epochs up to this one."""
SHOWN = "seamline.shown"
"""App id in a serving table: its rows show what the manifest had published by this version of it."""
VIEW_VERSION = "seamline.version"
"""In the metadata of a serving table's commit: the fingerprint of the view version that it shows."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
BITS = 60


@cache
def read_boot_number() -> int:
    """Name this run of the machine by a number: another one means that power may have been lost between."""
    try:
        return int(BOOT_ID.read_text().replace("-", "")[: BITS // 4], 16)
    except (OSError, ValueError):
        return int(psutil.boot_time())


def read_table_state(table: Table) -> TableState:
    """Read what a table says."""
    return TableState(read_app_version(table, EPOCH), table.txn(LINE))


def read_app_version(table: Table, app: str) -> int:
    """Read the version of an app id in a table, NOTHING if it has none."""
    found = table.txn(app)
    return NOTHING if found is None else found
