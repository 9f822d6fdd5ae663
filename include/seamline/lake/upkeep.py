"""Upkeep: the ledger made whole, slices compacted, dead epochs removed, files deleted that nobody can commit.

It runs beside a live stream, without its token. All its commits carry an app id of their own on the version
they were decided on, so that of two upkeeps one is refused; they state that no data changes, so that the
stream's fenced appends are not (deltalake would refuse an append beside any other removal).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import RemoveAction

from seamline.lake import files, states
from seamline.lake.layout import Layout
from seamline.lake.ledger import SCHEMA, Ledger, as_row
from seamline.lake.manifest import ManifestTable
from seamline.lake.master import Master, ledger_row
from seamline.lake.slices import PRUNES
from seamline.lake.tables import TOKEN, Table
from seamline.lake.types import slices_schema
from seamline.lake.versions import live
from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.epoch import Epoch
from seamline.model.errors import Conflict, StraddlesCut
from seamline.model.manifest import Manifest
from seamline.plan.upkeep import (
    Block,
    Compaction,
    Held,
    Merge,
    Piece,
    blocks_between,
    plan_compaction,
    uncommittable,
)

APP = "seamline.upkeep"
PINNED_HOURS = 24
"""How long a removed file stays on disk for readers of an older version: as long as the log of slices."""


@dataclass(frozen=True)
class Upkeep:
    """What was done, in counts; ``left`` and ``deleted`` are files by reason, ``refused`` are sentences.

    ``repaired`` ledger rows were added, ``merged`` blocks made of ``replaced`` files, ``dead`` files of dead
    epochs taken out of their tables.
    """

    repaired: int = 0
    merged: int = 0
    replaced: int = 0
    dead: int = 0
    deleted: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()

    def plus(self, other: Upkeep) -> Upkeep:
        """Add up what two steps did."""
        return Upkeep(
            self.repaired + other.repaired,
            self.merged + other.merged,
            self.replaced + other.replaced,
            self.dead + other.dead,
            Counter(self.deleted) + Counter(other.deleted),
            Counter(self.left) + Counter(other.left),
            (*self.refused, *other.refused),
        )

    def __str__(self) -> str:
        lines = [
            f"ledger: {self.repaired} rows repaired",
            f"slices: {self.merged} blocks merged from {self.replaced} files",
            f"dead epochs: {self.dead} files taken out",
            *(f"deleted: {count} files {why}" for why, count in sorted(self.deleted.items())),
            *(f"left: {count} {why}" for why, count in sorted(self.left.items())),
            *(f"refused: {why}" for why in self.refused),
        ]
        return "\n".join(lines)


def maintain(pipeline: CompiledPipeline, layout: Layout) -> Upkeep:
    """Do all upkeep of a pipeline's tables; nothing of it changes an answer, and all of it may be cut short.

    What somebody else committed meanwhile is left to the next time and named in ``refused``.
    """
    if not Master.exists(layout):
        return Upkeep()
    master, held, done = whole_ledger(layout)
    if unknown := unexplained(master, held):
        short = f"the ledger lacks epoch {min(unknown)}, which the master holds: nothing else was done"
        return done.plus(Upkeep(refused=(short,)))
    manifest = ManifestTable.ensure(layout).read()
    for view in live(pipeline, layout).views:
        if Table.exists(layout.slices(view)):
            done = done.plus(compact(view, layout, held, bounds(manifest, view, held, master)))
            done = done.plus(cleaned(layout.slices(view), held))
        done = done.plus(unnamed(layout.generations(view)))
    if Table.exists(layout.table("quarantine")):
        done = done.plus(buried(layout.table("quarantine"), held))
        done = done.plus(cleaned(layout.table("quarantine"), held))
    return done.plus(cleaned(master.table.root, held))


def whole_ledger(layout: Layout) -> tuple[Master, Held, Upkeep]:
    """Compare the ledger with the master's commits since the last upkeep, and add the rows it lacks.

    A row that the stream adds at the same moment is there twice and read once.
    """
    ledger = Ledger.ensure(layout).table
    rows = ledger.read(["epoch", "edge"])
    master = Master.open(layout)
    checked = ledger.txn(APP)
    known = dict(zip(rows["epoch"].to_pylist(), rows["edge"].to_pylist(), strict=True))
    missing = [
        epoch
        for epoch in committed(master, after=-1 if checked is None else checked)
        if epoch.number not in known
    ]
    numbers = known | {epoch.number: epoch.edge for epoch in missing}
    edges = tuple(sorted(number for number, edge in numbers.items() if edge))
    held = Held(frozenset(numbers), edges, master.epoch)
    if not missing and checked == master.epoch:
        return master, held, Upkeep()
    written: list[files.DataFile] = []
    if missing:
        first, last = missing[0].number, missing[-1].number
        table = pa.Table.from_pylist([as_row(epoch) for epoch in missing], schema=SCHEMA)
        written = [files.write(table, ledger.root, upkept(ledger, Block(first, last)), stats=["epoch"])]
    try:
        # Without the app id of epochs, which is the stream's: two commits that carry it exclude each other.
        ledger.append(written, txns={APP: master.epoch})
    except Conflict as conflict:
        return master, held, refused(ledger, written, conflict)
    return master, held, Upkeep(repaired=len(missing))


def committed(master: Master, *, after: int) -> list[Epoch]:
    """List the epochs above ``after`` by the master's commits, in order, as far back as those go."""
    limit = master.epoch - after + 20
    while True:
        commits = master.table.handle.history(limit)
        found = {row.number: row for row in map(ledger_row, commits) if row and row.number <= master.epoch}
        if len(commits) < limit or any(number <= after for number in found):
            return [found[number] for number in sorted(found) if number > after]
        limit *= 2


def unexplained(master: Master, held: Held) -> set[int]:
    """List epochs that the master holds, by its number or by its files, and whose ledger rows are lost."""
    written = {row.get("min._epoch") for row in master.table.actions().to_pylist()}
    return {number for number in [*written, held.last] if number is not None and number >= 0} - set(
        held.numbers
    )


def bounds(manifest: Manifest, view: CompiledView, held: Held, master: Master) -> list[Block]:
    """List the blocks of a view: between edges, and never over its birth, a floor or a cut of its own."""
    own = [epoch for (name, _), epoch in manifest.floors.items() if name == view.id]
    cuts = [each.epoch for (name, _), some in manifest.history.items() if name == view.id for each in some]
    birth = manifest.births.get(view.id, 0) - 1
    return blocks_between([*held.edges, *own, *cuts, birth], until=min(held.last, master.frontier(view.id)))


def compact(view: CompiledView, layout: Layout, held: Held, blocks: list[Block]) -> Upkeep:
    """Merge a view's slices block by block and take dead epochs out, in one commit."""
    table = Table.open(layout.slices(view))
    plan = plan_compaction(pieces(table), held, blocks)
    gone = [*plan.dead, *(piece for merge in plan.merges for piece in merge.pieces)]
    done = Upkeep(left=waiting(plan))
    if not gone:
        return done
    written = [file for merge in plan.merges for file in merged(view, table, merge, held)]
    try:
        replace_files(table, gone, written)
    except Conflict as conflict:
        return done.plus(refused(table, written, conflict))
    return done.plus(Upkeep(merged=len(written), replaced=len(gone) - len(plan.dead), dead=len(plan.dead)))


def waiting(plan: Compaction) -> dict[str, int]:
    """Name the slices that are not to be merged yet."""
    return {"slice files whose block is still open": plan.open} if plan.open else {}


def pieces(table: Table) -> list[Piece]:
    """List the live files of slices with their epochs; statistics may lack where a state is not a number."""
    found = []
    for row in table.actions().to_pylist():
        first, last = row.get("min.from_epoch"), row.get("max.to_epoch")
        if first is None or last is None:
            spans = pq.read_table(
                table.root / row["path"], columns=["from_epoch", "to_epoch"], partitioning=None
            )
            first, last = pc.min(spans["from_epoch"]).as_py(), pc.max(spans["to_epoch"]).as_py()
        found.append(Piece(row["path"], row["size_bytes"], first, last))
    return found


def merged(view: CompiledView, table: Table, merge: Merge, held: Held) -> Iterator[files.DataFile]:
    """Write one file for each block that has rows; StraddlesCut where a row crosses an edge."""
    schema = slices_schema(view)
    read = [pq.read_table(table.root / piece.path, partitioning=None) for piece in merge.pieces]
    rows = pa.concat_tables([each.select(schema.names).cast(schema) for each in read])
    alive = [epoch for epoch in pc.unique(rows["to_epoch"]).to_pylist() if epoch in held.numbers]
    rows = rows.filter(pc.is_in(rows["to_epoch"], pa.array(alive, pa.int64())))
    placed = 0
    for block in merge.blocks:
        inside = pc.and_(
            pc.greater_equal(rows["from_epoch"], block.first), pc.less_equal(rows["to_epoch"], block.last)
        )
        own = rows.filter(inside)
        placed += own.num_rows
        if own.num_rows:
            yield written_block(view, table, block, states.combine(view, [own]))
    if placed != rows.num_rows:
        raise StraddlesCut(
            f"{rows.num_rows - placed} slices of {view.qualified} around epoch {merge.blocks[0].first} cross an edge.",
            hint="compaction stays between edges (rule 9): this is a bug; nothing was changed.",
        )


def written_block(view: CompiledView, table: Table, block: Block, partials: pa.Table) -> files.DataFile:
    """Write the states of one block as a file."""
    for name, epoch in (("from_epoch", block.first), ("to_epoch", block.last)):
        partials = partials.append_column(name, pa.array([epoch] * partials.num_rows, pa.int64()))
    return files.write(partials.cast(slices_schema(view)), table.root, upkept(table, block), stats=PRUNES)


def upkept(table: Table, block: Block) -> str:
    """Name a file after the version that it was decided on."""
    return f"upkeep-{table.version:012d}-{block.first:012d}-{block.last:012d}-{uuid.uuid4().hex}.parquet"


def replace_files(table: Table, gone: Iterable[Piece], written: Iterable[files.DataFile]) -> None:
    """Put files in the place of others, in one commit that only another upkeep makes impossible."""
    now = int(datetime.now(UTC).timestamp() * 1000)
    removes = [RemoveAction(piece.path, False, now, size=piece.size) for piece in gone]
    same = [replace(file, data_change=False) for file in written]
    table.append(same, txns={APP: table.version + 1}, removes=removes)


def refused(table: Table, written: Iterable[files.DataFile], conflict: Conflict) -> Upkeep:
    """Clear away what was written for a commit that was refused, and say so."""
    for file in written:
        (table.root / file.path).unlink(missing_ok=True)
    return Upkeep(refused=(conflict.message,))


def buried(root: Path, held: Held) -> Upkeep:
    """Take the rows of dead epochs out of the quarantine, whose files are of one epoch each."""
    table = Table.open(root)
    gone = [
        Piece(row["path"], row["size_bytes"], row["min._epoch"], row["max._epoch"])
        for row in table.actions().to_pylist()
        if row.get("min._epoch") is not None
        and row["min._epoch"] == row["max._epoch"]
        and held.dead(row["max._epoch"])
    ]
    if not gone:
        return Upkeep()
    try:
        replace_files(table, gone, [])
    except Conflict as conflict:
        return refused(table, [], conflict)
    return Upkeep(dead=len(gone))


def cleaned(root: Path, held: Held) -> Upkeep:
    """Delete files that no commit names and none can (rule 16), and those removed longer ago than any read."""
    on_disk = [path.name for path in root.glob("*.parquet")]
    # The table is opened after the folder was listed: what was committed in between is in the table.
    table = Table.open(root)
    live = set(table.actions()["path"].to_pylist())
    removed, expired = tombstones(table, 0), tombstones(table, PINNED_HOURS)
    deleted: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for name in set(on_disk) - live:
        if name in removed:
            why = "removed over a day ago" if name in expired else ""
        else:
            why = uncommittable(name, held, token=table.txn(TOKEN), upkept=table.txn(APP))
        if why:
            (root / name).unlink(missing_ok=True)
            deleted[why] += 1
        elif name in removed:
            left["files removed less than a day ago: a reader may have pinned them"] += 1
        else:
            left[f"{root.name} files that a writer may still commit"] += 1
    return Upkeep(deleted=deleted, left=left)


def tombstones(table: Table, hours: int) -> set[str]:
    """List the files that commits removed more than so many hours ago, as far as the log remembers."""
    found = table.handle.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False)
    return set(found)


def unnamed(root: Path) -> Upkeep:
    """Count the generations' folders that no commit names: their build may still run, so they stay."""
    if not Table.exists(root):
        return Upkeep()
    folders = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))}
    named = {path.partition("/")[0] for path in Table.open(root).actions()["path"].to_pylist()}
    count = len(folders - named)
    return Upkeep(
        left={"generations that no commit names: their build may still run": count} if count else {}
    )
