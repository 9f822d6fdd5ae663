"""Packing: small files of a table become larger ones, with the same rows in them.

A packed file of the master is of several epochs. Each row keeps the number of its own, so a cut may fall between any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.log.record_files import Sink, fill_missing_columns
from seamline.lake.storage import data_files, parquet_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.parquet_files import read_parquet_footer
from seamline.lake.storage.rewrites import (
    APP,
    Upkeep,
    discard_refused_files,
    list_live_pieces,
    replace_files,
    upkeep_file_name,
)
from seamline.model.errors import Conflict
from seamline.plan.maintain.packing_groups import TARGET, filter_packable, plan_packing
from seamline.plan.maintain.slice_upkeep import Block, CommittedEpochs, Piece

BY_TIME = ("_event_time", "_epoch", "_partition", "_offset")
"""The master's order within a file: a build of one day reads the row groups of that day."""
AS_READ = ("_epoch", "_partition", "_offset")
NUMBERS = ("_epoch", "epoch")
GROUP = 100_000
"""Rows of a row group."""
ROW = 100
"""Bytes that a row has in memory beyond those of the file: its coordinates and names are encoded to nothing there."""
AT_ONCE = 8
"""Files of one commit: what is lost when an upkeep is killed."""


def pack_table(
    table: Table,
    held: CommittedEpochs,
    *,
    order: Sequence[str],
    target: int = TARGET,
    beside: str = APP,
) -> Upkeep:
    """Pack a table's files until no two are to be joined; rows are in ``order`` in each file written.

    Every commit is decided on the version before it: what another upkeep commits in between is never taken for ours.
    With ``beside`` it is conditional on that app id too.
    """
    return pack_file_groups(
        table,
        lambda: plan_table_packing(table, held, order, target),
        lambda group: merge_table_files(table, group, order),
        name=table.root.name,
        beside=beside,
    )


def pack_file_groups(
    table: Table,
    plan: Callable[[], list[tuple[Piece, ...]]],
    write: Callable[[tuple[Piece, ...]], list[data_files.DataFile]],
    *,
    name: str,
    beside: str = APP,
) -> Upkeep:
    """Replace groups of files by what ``write`` makes of them, until ``plan`` has none; ``name`` is for people."""
    done = Upkeep()
    while groups := plan()[:AT_ONCE]:
        gone = [piece for group in groups for piece in group]
        written = [file for group in groups for file in write(group)]
        try:
            replace_files(table, gone, written, beside=beside)
        except Conflict as conflict:
            return done.plus(discard_refused_files(table, written, conflict))
        done = done.plus(Upkeep(packed={name: len(gone)}))
    return done


def plan_table_packing(
    table: Table, held: CommittedEpochs, order: Sequence[str], target: int
) -> list[tuple[Piece, ...]]:
    """Group what is to be packed of a table at the version of its handle; rows of no epoch may all be."""
    epoch = next((name for name in order if name in NUMBERS), None)
    found = (
        filter_packable(list_live_pieces(table, epoch, epoch), held) if epoch else list_epochless_files(table)
    )
    return plan_packing([measure_piece(table, each, target) for each in found], target=target)


def list_epochless_files(table: Table) -> list[Piece]:
    """List the live files of a table whose rows are of no epoch."""
    actions = table.actions().select(["path", "size_bytes"])
    return [Piece(path, size, 0, 0) for path, size in zip(*actions.to_pydict().values(), strict=True)]


def measure_piece(table: Table, piece: Piece, target: int) -> Piece:
    """Measure a file in memory by its footer; one that is large on disk is not opened."""
    if piece.size >= target:
        return replace(piece, unpacked=piece.size)
    footer = read_parquet_footer(table.root / piece.path)
    groups = range(footer.num_row_groups)
    size = sum(footer.row_group(at).total_byte_size for at in groups)
    return replace(piece, unpacked=size + ROW * footer.num_rows)


def merge_table_files(
    table: Table, group: Sequence[Piece], order: Sequence[str]
) -> list[data_files.DataFile]:
    """Write the rows of some files as one; columns that a file was written without are NULL."""
    schema = table.handle.to_pyarrow_dataset().schema.remove_metadata()
    read = [parquet_files.read_parquet_file(table.root / piece.path) for piece in group]
    rows = pa.concat_tables([fill_missing_columns(each, schema).cast(schema) for each in read])
    places = pc.sort_indices(rows.select(order), [(name, "ascending") for name in order])
    block = Block(min(piece.first for piece in group), max(piece.last for piece in group))
    sink = Sink(table.root, upkeep_file_name(table, block), schema)
    for start in range(0, len(places), GROUP):
        sink.write(rows.take(places.slice(start, GROUP)))
    return sink.close()
