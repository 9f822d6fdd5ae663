"""Compaction of slices: rows are merged between neighbouring edges only (rule 9), dead epochs left out.

Files then contain as many such blocks side by side as their size allows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.log.master import Master
from seamline.lake.log.record_files import fill_missing_columns
from seamline.lake.maintain.packing import GROUP, measure_piece, pack_file_groups
from seamline.lake.storage import data_files, parquet_files
from seamline.lake.storage.arrow_types import slices_schema
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.rewrites import (
    Upkeep,
    discard_refused_files,
    list_live_pieces,
    replace_files,
    upkeep_file_name,
)
from seamline.lake.tables.slices import PRUNES
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import Conflict, StraddlesCut
from seamline.model.protocol.manifest import Manifest
from seamline.plan.maintain.packing_groups import plan_packing
from seamline.plan.maintain.slice_upkeep import (
    Block,
    CommittedEpochs,
    Compaction,
    Merge,
    Piece,
    blocks_between,
    list_compacted_pieces,
    plan_compaction,
)

TARGET = 32 << 20
"""Bytes, unpacked, of a file of slices: small enough to be read for a few windows."""


def list_view_blocks(
    manifest: Manifest, view: CompiledView, held: CommittedEpochs, master: Master
) -> list[Block]:
    """List the blocks of a view: between edges, and never over its birth, a floor or a cut of its own."""
    own = [epoch for (name, _), epoch in manifest.floors.items() if name == view.id]
    cuts = [each.epoch for (name, _), some in manifest.history.items() if name == view.id for each in some]
    birth = manifest.births.get(view.id, 0) - 1
    return blocks_between([*held.edges, *own, *cuts, birth], until=min(held.last, master.frontier(view.id)))


def compact_slices(view: CompiledView, layout: Layout, held: CommittedEpochs, blocks: list[Block]) -> Upkeep:
    """Merge a view's slices block by block and take dead epochs out, in one commit."""
    table = Table.open(layout.slices(view))
    plan = plan_compaction(list_live_pieces(table, "from_epoch", "to_epoch"), held, blocks)
    gone = [*plan.dead, *(piece for merge in plan.merges for piece in merge.pieces)]
    done = Upkeep(left=count_open_slices(plan))
    if not gone:
        return done
    written = [file for merge in plan.merges for file in write_merged_blocks(view, table, merge, held)]
    try:
        replace_files(table, gone, written)
    except Conflict as conflict:
        return done.plus(discard_refused_files(table, written, conflict))
    return done.plus(Upkeep(merged=len(written), replaced=len(gone) - len(plan.dead), dead=len(plan.dead)))


def pack_slices(
    view: CompiledView, layout: Layout, held: CommittedEpochs, blocks: list[Block], *, target: int = TARGET
) -> Upkeep:
    """Pack small files of closed blocks, rows as they are, until no two are to be joined.

    Each row keeps the epochs of its own block: a cut may still fall on any edge.
    """
    table = Table.open(layout.slices(view))
    return pack_file_groups(
        table,
        lambda: plan_slice_packing(table, held, blocks, target),
        lambda group: side_by_side(view, table, group, held),
        name=f"slices of {view.id}",
    )


def plan_slice_packing(
    table: Table, held: CommittedEpochs, blocks: list[Block], target: int
) -> list[tuple[Piece, ...]]:
    """Group the files that are to become one."""
    alone = list_compacted_pieces(list_live_pieces(table, "from_epoch", "to_epoch"), held, blocks)
    return plan_packing([measure_piece(table, each, target) for each in alone], target=target)


def side_by_side(
    view: CompiledView, table: Table, group: tuple[Piece, ...], held: CommittedEpochs
) -> list[data_files.DataFile]:
    """Write the rows of some files as one, those of a pane together; others than us may have put dead ones in."""
    schema = slices_schema(view)
    read = [parquet_files.read_parquet_file(table.root / piece.path) for piece in group]
    rows = pa.concat_tables([fill_missing_columns(each, schema).cast(schema) for each in read])
    rows = filter_committed_rows(rows, held).sort_by([("pane", "ascending"), ("from_epoch", "ascending")])
    name = upkeep_file_name(table, Block(group[0].first, max(piece.last for piece in group)))
    return (
        [data_files.write_data_file(rows, table.root, name, stats=PRUNES, group=GROUP)]
        if rows.num_rows
        else []
    )


def count_open_slices(plan: Compaction) -> dict[str, int]:
    """Count the slices that are not to be merged yet."""
    return {"slice files whose block is still open": plan.open} if plan.open else {}


def write_merged_blocks(
    view: CompiledView, table: Table, merge: Merge, held: CommittedEpochs
) -> Iterator[data_files.DataFile]:
    """Write one file for each block that has rows; StraddlesCut if a row crosses an edge."""
    schema = slices_schema(view)
    read = [parquet_files.read_parquet_file(table.root / piece.path) for piece in merge.pieces]
    rows = pa.concat_tables([fill_missing_columns(each, schema).cast(schema) for each in read])
    rows, placed = filter_committed_rows(rows, held), 0
    for block in merge.blocks:
        inside = pc.and_(
            pc.greater_equal(rows["from_epoch"], block.first), pc.less_equal(rows["to_epoch"], block.last)
        )
        own = rows.filter(inside)
        placed += own.num_rows
        if own.num_rows:
            # A block may end at a number that the log has lost; rows that name it would be dead.
            last = block.last if block.last in held.numbers else pc.max(own["to_epoch"]).as_py()
            yield written_block(view, table, Block(block.first, last), states.combine_states(view, [own]))
    if placed != rows.num_rows:
        raise StraddlesCut(
            f"{rows.num_rows - placed} slices of {view.qualified} around epoch {merge.blocks[0].first} cross an edge.",
            hint="compaction stays between edges (rule 9): this is a bug; nothing was changed.",
        )


def filter_committed_rows(rows: pa.Table, held: CommittedEpochs) -> pa.Table:
    """Keep the rows of epochs that are committed."""
    numbers = [epoch for epoch in pc.unique(rows["to_epoch"]).to_pylist() if epoch in held.numbers]
    return rows.filter(pc.is_in(rows["to_epoch"], pa.array(numbers, pa.int64())))


def written_block(view: CompiledView, table: Table, block: Block, partials: pa.Table) -> data_files.DataFile:
    """Write the states of one block as a file."""
    for name, epoch in (("from_epoch", block.first), ("to_epoch", block.last)):
        partials = partials.append_column(name, pa.array([epoch] * partials.num_rows, pa.int64()))
    return data_files.write_data_file(
        partials.cast(slices_schema(view)), table.root, upkeep_file_name(table, block), stats=PRUNES
    )
