"""The commits of upkeep, and what it says it did.

They carry an app id of their own on the version they were decided on, so that of two upkeeps one is refused, and
a stream's appends beside them are not. They state that no data changes: whoever follows the table has nothing to read.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow.compute as pc
from deltalake.transaction import RemoveAction

from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.model.errors import Conflict
from seamline.plan.maintain.slice_upkeep import Block, Piece

APP = "seamline.upkeep"
PARTITION = "partition."


@dataclass(frozen=True)
class Upkeep:
    """What upkeep has done, in counts."""

    repaired: int = 0
    """Ledger rows added."""
    merged: int = 0
    """Blocks of slices made."""
    replaced: int = 0
    """Files that those blocks replaced."""
    packed: Mapping[str, int] = field(default_factory=dict)
    """Small files that fewer ones replaced, by table."""
    dead: int = 0
    """Files of dead epochs removed from their tables."""
    forgotten: int = 0
    """Generations that may not be published any more."""
    deleted: Mapping[str, int] = field(default_factory=dict)
    """Files deleted, by reason."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Files left in place, by reason."""
    refused: tuple[str, ...] = ()
    """Sentences: what was not done, and why."""
    shortened: int = 0
    """Files of old versions deleted from logs."""

    def plus(self, other: Upkeep) -> Upkeep:
        """Add up what two steps did."""
        return Upkeep(
            self.repaired + other.repaired,
            self.merged + other.merged,
            self.replaced + other.replaced,
            Counter(self.packed) + Counter(other.packed),
            self.dead + other.dead,
            self.forgotten + other.forgotten,
            Counter(self.deleted) + Counter(other.deleted),
            Counter(self.left) + Counter(other.left),
            (*self.refused, *other.refused),
            self.shortened + other.shortened,
        )

    def __str__(self) -> str:
        lines = [
            f"ledger: {self.repaired} rows repaired",
            f"slices: {self.merged} blocks merged from {self.replaced} files",
            *(f"packed: {count} small files of {name}" for name, count in sorted(self.packed.items())),
            f"dead epochs: {self.dead} files taken out",
            *([f"forgotten: {self.forgotten} generations"] if self.forgotten else []),
            *(f"deleted: {count} files {why}" for why, count in sorted(self.deleted.items())),
            *([f"logs: {self.shortened} old entries deleted"] if self.shortened else []),
            *(f"left: {count} {why}" for why, count in sorted(self.left.items())),
            *(f"refused: {why}" for why in self.refused),
        ]
        return "\n".join(lines)


def list_live_pieces(table: Table, low: str, high: str) -> list[Piece]:
    """List the live files with their epochs, by two columns; statistics may lack where a state is not a number."""
    found = []
    actions = table.actions()
    wanted = ("path", "size_bytes", f"min.{low}", f"max.{high}")
    for row in actions.select([name for name in wanted if name in actions.column_names]).to_pylist():
        first, last = row.get(f"min.{low}"), row.get(f"max.{high}")
        if first is None or last is None:
            spans = read_plain_columns(table.root / row["path"], list({low, high}))
            first, last = pc.min(spans[low]).as_py(), pc.max(spans[high]).as_py()
        found.append(Piece(row["path"], row["size_bytes"], first, last))
    return found


def upkeep_file_name(table: Table, block: Block) -> str:
    """Name a file after the version that it was decided on."""
    return f"upkeep-{table.version:012d}-{block.first:012d}-{block.last:012d}-{uuid.uuid4().hex}.parquet"


def take_out(table: Table, paths: Collection[str]) -> int:
    """Commit that files are no part of the table any more, those of ``paths`` that are; return how many.

    Raises Conflict if another upkeep was first.
    """
    actions = table.actions()
    parts = [name for name in actions.column_names if name.startswith(PARTITION)]
    now = int(datetime.now(UTC).timestamp() * 1000)
    removes = [
        RemoveAction(
            row["path"],
            False,
            now,
            row["size_bytes"],
            {name.removeprefix(PARTITION): row[name] for name in parts},
        )
        for row in actions.select(["path", "size_bytes", *parts]).to_pylist()
        if row["path"] in paths
    ]
    if removes:
        table.append([], txns={APP: table.version + 1}, removes=removes)
    return len(removes)


def replace_files(
    table: Table, gone: Iterable[Piece], written: Iterable[data_files.DataFile], *, beside: str = APP
) -> None:
    """Put files in the place of others, in one commit that only another upkeep, or ``beside``, makes impossible."""
    now = int(datetime.now(UTC).timestamp() * 1000)
    removes = [RemoveAction(piece.path, False, now, size=piece.size) for piece in gone]
    same = [replace(file, data_change=False) for file in written]
    try:
        table.append(same, txns=dict.fromkeys((APP, beside), table.version + 1), removes=removes)
    except FileNotFoundError as error:
        raise Conflict(
            f"Another upkeep of {table.root.name} came first and removed what this one wrote.",
            hint="nothing is lost; the next upkeep continues.",
        ) from error


def discard_refused_files(table: Table, written: Iterable[data_files.DataFile], conflict: Conflict) -> Upkeep:
    """Clear away what was written for a commit that was refused, and say so."""
    for file in written:
        (table.root / file.path).unlink(missing_ok=True)
    return Upkeep(refused=(conflict.message,))
