"""Packing of the ledger: as other tables, and each file sums itself up, so that nobody need read all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from seamline.lake.log.ledger_summaries import BLOCK, WHOLE, write_ledger_file
from seamline.lake.maintain.packing import measure_piece, pack_file_groups
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.parquet_files import read_parquet_footer, read_plain_columns
from seamline.lake.storage.rewrites import Upkeep, list_live_pieces, upkeep_file_name
from seamline.model.protocol.epoch import Epoch
from seamline.plan.maintain.packing_groups import TARGET, filter_packable, plan_packing, without_jumps
from seamline.plan.maintain.slice_upkeep import Block, CommittedEpochs, Piece


def pack_ledger(table: Table, held: CommittedEpochs, *, target: int = TARGET) -> Upkeep:
    """Pack a ledger's files until no two are to be joined; a file of several epochs without a summary gets one."""
    return pack_file_groups(
        table,
        lambda: plan_ledger_packing(table, held, target),
        lambda group: [merge_ledger_files(table, group)],
        name=table.root.name,
    )


def plan_ledger_packing(table: Table, held: CommittedEpochs, target: int) -> list[tuple[Piece, ...]]:
    """Group what is to be packed at the version of the table's handle."""
    found = filter_packable(list_live_pieces(table, "epoch", "epoch"), held)
    groups = [
        group
        for run in without_jumps(found)
        for group in plan_packing([measure_piece(table, each, target) for each in run], target=target)
    ]
    taken = {piece.path for group in groups for piece in group}
    return [*groups, *((each,) for each in found if each.path not in taken and has_no_summary(table, each))]


def has_no_summary(table: Table, piece: Piece) -> bool:
    """Return whether a file of several epochs does not sum itself up."""
    if piece.first == piece.last:
        return False
    return WHOLE not in (read_parquet_footer(table.root / piece.path).metadata or {})


def merge_ledger_files(table: Table, group: Sequence[Piece]) -> DataFile:
    """Write the rows of some files as one, in order and each epoch once."""
    block = Block(min(piece.first for piece in group), max(piece.last for piece in group))
    return write_ledger_file(read_ledger_epochs(table, group), table.root, upkeep_file_name(table, block))


def read_ledger_epochs(table: Table, group: Sequence[Piece]) -> Iterator[Epoch]:
    """Read the rows of some files, in order; one that was written twice is given once."""
    read = [read_plain_columns(table.root / piece.path, ["epoch", "row"]) for piece in group]
    rows = pa.concat_tables(read).sort_by("epoch")
    last = None
    for batch in rows.to_batches(max_chunksize=BLOCK):
        for number, row in zip(*batch.to_pydict().values(), strict=True):
            if number != last:
                yield Epoch.from_json(row)
            last = number
