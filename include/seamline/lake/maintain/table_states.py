"""What the tables of a pipeline say of themselves, read for a start's repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

import pyarrow.compute as pc

from seamline.lake.log.log_lines import (
    BOOT,
    LINE,
    MARK,
    SERVED,
    TAKEN,
    read_app_version,
    read_table_state,
)
from seamline.lake.log.master import Master
from seamline.lake.maintain.lost_verdicts import newest_reprocessed_epoch
from seamline.lake.storage import set_aside
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.storage.rewrites import list_live_pieces
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import NOTHING
from seamline.plan.maintain.repair_steps import (
    MasterState,
    TableState,
)


def read_slice_states(master: Master, slices: Mapping[str, Table]) -> dict[str, TableState]:
    """Read what the slices of each view say."""
    end, least = master.epoch, max(master.epoch, read_app_version(master.table, TAKEN))
    return {
        view: replace(read_table_state(table), crosses=bool(find_overmerged_panes(table, end, least)))
        for view, table in slices.items()
    }


def find_overmerged_panes(slices: Table, end: int, least: int) -> frozenset[datetime]:
    """Find slices of epochs up to E and beyond, merged before the master was brought back: the starts of their panes.

    Numbers up to ``least`` were taken by the line's begin: what was merged up to there was accepted, or is dead. Where
    nothing is beyond that, no file is looked at.
    """
    if read_app_version(slices, EPOCH) <= least:
        return frozenset()
    columns = ["pane", "from_epoch", "to_epoch"]
    found: set[datetime] = set()
    for piece in list_live_pieces(slices, "from_epoch", "to_epoch"):
        if piece.first <= end and piece.last > least:
            rows = read_plain_columns(slices.root / piece.path, columns)
            over = pc.and_(pc.less_equal(rows["from_epoch"], end), pc.greater(rows["to_epoch"], least))
            found.update(rows["pane"].filter(over).to_pylist())
    return frozenset(found)


def newest_named_epoch(layout: Layout, manifest: Manifest) -> int:
    """Return the newest number that births, floors, builds, verdicts, savepoints and serving tables name."""
    numbers = [birth - 1 for birth in manifest.births.values()]
    numbers += manifest.floors.values()
    numbers += [
        read_app_version(Table.open(root), SERVED) for root in layout.every_serving() if Table.exists(root)
    ]
    numbers.append(newest_reprocessed_epoch(layout))
    if Table.exists(layout.table("builds")):
        numbers.append(Builds(Table.open(layout.table("builds"))).newest_cut)
    if Table.exists(layout.table("control")):
        control = ControlTable.ensure(layout).read()
        numbers += [each.epoch for each in control.savepoints]
        numbers += [each.epoch for each in control.restated]
    return max(numbers, default=NOTHING)


def read_master_state(master: Master, views: Iterable[str], frontiers: Mapping[str, int]) -> MasterState:
    """Read what the master says, also of views."""
    table = master.table
    return MasterState(
        master.epoch,
        table.txn(LINE),
        table.txn(BOOT),
        read_app_version(table, TAKEN),
        set_aside.newest_aside_version(table.root, EPOCH),
        {view: read_app_version(table, MARK + view) for view in views},
        frontiers,
    )
