"""The ledger's files in the order of their epochs, and the rows of a condensed log that they make."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.log.ledger_summaries import LedgerFile
from seamline.lake.storage import parquet_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.table_cache import Files
from seamline.model.protocol.condensed import Summed, condense_epochs, count_of, first_of
from seamline.model.protocol.epoch import Epoch


@dataclass(frozen=True)
class Group:
    """Files whose epochs overlap, as where a row was written twice; nearly always one."""

    files: tuple[LedgerFile, ...]
    """By first epoch, ascending; never empty."""

    @property
    def first(self) -> int:
        """The lowest epoch."""
        return self.files[0].first

    @property
    def last(self) -> int:
        """The highest epoch."""
        return max(file.last for file in self.files)

    def condense(self) -> list[Epoch]:
        """Condense all epochs."""
        return self.files[0].condense() if len(self.files) == 1 else condense_epochs(self.read())

    def read(self) -> list[Epoch]:
        """Read all epochs, in order; one that is there twice is returned once."""
        found = {each.number: each for file in self.files for each in file.read()}
        return [found[number] for number in sorted(found)]

    def iterate(self, least: int = -1) -> Iterator[Epoch]:
        """Iterate over all epochs from ``least`` on, in order, a row group at a time where the file sums up its own."""
        blocks = self.files[0].read_blocks() if len(self.files) == 1 else []
        wanted = [at for at, block in enumerate(blocks) if block[-1].number >= least]
        found = (self.files[0].read([at]) for at in wanted) if blocks else iter([self.read()])
        for epochs in found:
            yield from (each for each in epochs if each.number >= least)

    def read_newest(self, count: int) -> list[Epoch]:
        """Read the last epochs, ``count`` of them at least where there are so many."""
        blocks = self.files[0].read_blocks() if len(self.files) == 1 else []
        wanted, groups = count, list[int]()
        for at in reversed(range(len(blocks))):
            if wanted <= 0:
                break
            groups.insert(0, at)
            wanted -= count_of(blocks[at])
        return self.files[0].read(groups) if blocks else self.read()

    def groups_with_rows(self, intervals: Collection[str]) -> list[Epoch]:
        """Read the row groups that have rows of some intervals."""
        blocks = self.files[0].read_blocks() if len(self.files) == 1 else []
        if not blocks:
            return self.read()
        wanted = [
            at
            for at, block in enumerate(blocks)
            if any(not row.accepted.keys().isdisjoint(intervals) for row in block)
        ]
        return self.files[0].read(wanted)

    def split_at_cuts(self, cuts: Sequence[int], *, newest: bool) -> Iterator[Epoch]:
        """Return rows that cross no cut, those of a row group with a cut in it one by one.

        With ``newest`` those of the last one too.
        """
        blocks = self.files[0].read_blocks() if len(self.files) == 1 else []
        if not blocks:
            yield from self.read()
        for at, block in enumerate(blocks):
            if is_crossed_by_cut(first_of(block[0]), block[-1].number, cuts) or (
                newest and at + 1 == len(blocks)
            ):
                yield from self.files[0].read([at])
            else:
                yield from block


def is_crossed_by_cut(first: int, last: int, cuts: Sequence[int]) -> bool:
    """Return whether one of the ``cuts``, in order, parts the epochs ``first..last``."""
    at = bisect_right(cuts, first - 1)
    return at < len(cuts) and cuts[at] < last


def groups_of(table: Table) -> tuple[Group, ...]:
    """List the live files of a ledger, by their statistics; a file without any is looked into."""
    files = Files.of(table)
    if not files.actions.num_rows:
        return ()
    facts = (files.low("epoch"), files.high("epoch"), files.actions["num_records"])
    instants = (files.high("watermark"), files.low("committed_at"))
    facts = (*facts, *(each.cast(INSTANT).cast(pa.int64()) for each in instants))
    found = [
        LedgerFile(path, *told) if None not in told[:3] else scan_ledger_file(path)
        for path, *told in zip(files.paths, *(each.to_pylist() for each in facts), strict=True)
    ]
    groups: list[list[LedgerFile]] = []
    reached = -1
    for file in sorted(found, key=lambda each: (each.first, each.last, each.path)):
        if groups and file.first <= reached:
            groups[-1].append(file)
        else:
            groups.append([file])
        reached = max(reached, file.last)
    return tuple(Group(tuple(files)) for files in groups)


def scan_ledger_file(path: str) -> LedgerFile:
    """Find out what statistics should have said."""
    rows = parquet_files.read_parquet_file(path, ["epoch", "watermark", "committed_at"])
    bounds = pc.min(rows["epoch"]).as_py(), pc.max(rows["epoch"]).as_py(), rows.num_rows
    instants = pc.max(rows["watermark"]), pc.min(rows["committed_at"])
    return LedgerFile(path, *bounds, *(each.cast(pa.int64()).as_py() for each in instants))


def row_of(groups: Sequence[Group], number: int) -> Epoch | None:
    """Read the row of an epoch; None if there is none."""
    at = bisect_right(groups, number, key=lambda group: group.first) - 1
    rows = groups[at].split_at_cuts([number - 1, number], newest=False) if at >= 0 else ()
    return next((row for row in rows if row.number == number and not isinstance(row, Summed)), None)


def condense_ledger_files(
    groups: Sequence[Group], cuts: Iterable[int], *, newest: bool = True
) -> Iterator[Epoch]:
    """Condense a ledger to rows that cross no cut; with ``newest`` the last epoch is a row of its own."""
    parts = sorted(set(cuts))
    for group in groups:
        last = newest and group is groups[-1]
        if last or is_crossed_by_cut(group.first, group.last, parts):
            yield from group.split_at_cuts(parts, newest=last)
        else:
            yield from group.condense()


def iterate_edges(groups: Iterable[Group]) -> Iterator[int]:
    """Iterate over the edges of a ledger, those of a batch of rows at a time."""
    for group in groups:
        for file in group.files:
            with parquet_files.open_parquet_file(file.path) as opened:
                for rows in opened.iter_batches(columns=["epoch", "edge"]):
                    yield from rows.column("epoch").filter(rows.column("edge")).to_pylist()
