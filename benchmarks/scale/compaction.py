"""Logs and live files, simulated epoch by epoch and upkeep by upkeep with the shipped decisions about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import ceil

from benchmarks.scale.requests import CHECKPOINT
from seamline.lake.maintain import packing, slice_compaction
from seamline.lake.storage.table_settings import KEPT, RETENTION, parse_log_retention
from seamline.plan.maintain.packing_groups import filter_packable, plan_packing
from seamline.plan.maintain.slice_upkeep import (
    Block,
    CommittedEpochs,
    Piece,
    blocks_between,
    list_compacted_pieces,
    plan_compaction,
)
from seamline.plan.stream.epoch_numbers import count_tasks

Choose = Callable[[list[Piece]], list[Piece]]
MOST_EPOCHS = 200_000
"""What is simulated step by step at most; a longer history repeats what its last day has shown."""
STARTED = 3
"""Entries with which a table begins: made, fenced, its durability or line stated."""


@dataclass(frozen=True)
class Pace:
    """How epochs come."""

    seconds: float
    """From one epoch to the next."""
    records: float
    """In each."""
    tasks: int
    """Files of the master in each."""
    states: float
    """Of each view in each."""
    distinct: float
    """Different states of a view in a block of edges, at most."""
    edge_epochs: int
    """From one edge to the next."""
    record_bytes: float = 236
    state_bytes: float = 60
    """Unpacked."""


@dataclass
class History:
    """What upkeep has left and done."""

    slice_files: int = 0
    """Live files of a view's slices, at the end."""
    most_slice_files: int = 0
    """Before an upkeep, at most."""
    master_files: int = 0
    most_master_files: int = 0
    slice_entries: int = 0
    """Entries that the log of a view's slices keeps at the end."""
    master_entries: int = 0
    ledger_entries: int = 0
    records_rewritten: float = 0.0
    states_rewritten: float = 0.0
    records: float = 0.0
    """That were read."""
    replaced: Counter[str] = field(default_factory=Counter)
    """Small files that upkeep has read, of a view's slices and of the master."""
    upkeeps: int = 0
    footers: Counter[str] = field(default_factory=Counter)
    """That upkeep has opened to plan: those of all files that are not large, anew after each commit."""


class Numbers:
    """All numbers from 0 on: nothing dies in the model."""

    def __contains__(self, number: int, /) -> bool:
        return number >= 0


@dataclass
class Log:
    """Entries of a table's log by when they were written; upkeep deletes what its retention does not keep."""

    kept: float
    entries: int = STARTED
    first: int = 0
    marks: list[tuple[float, int]] = field(default_factory=list)
    """When each checkpoint was written, and of which version."""

    def add(self, now: float, many: int = 1) -> None:
        """Add entries; each fiftieth version has a checkpoint."""
        before = self.entries - 1
        self.entries += many
        for version in range((before // CHECKPOINT + 1) * CHECKPOINT, self.entries, CHECKPOINT):
            self.marks.append((now, version))

    def shorten(self, now: float) -> None:
        """Delete below the newest checkpoint that is older than what is kept."""
        old = [version for at, version in self.marks if at < now - self.kept]
        if old:
            self.first = old[-1]
            self.marks = [mark for mark in self.marks if mark[1] >= self.first]

    @property
    def length(self) -> int:
        """The entries that are there."""
        return self.entries - self.first


def kept_entries(table: str, seconds: float, upkeep: float) -> float:
    """Return the most entries that a log keeps, of epochs so many seconds apart, before an upkeep that is as far."""
    return (parse_log_retention({RETENTION: KEPT[table]}).total_seconds() + upkeep) / seconds + CHECKPOINT


def simulate(pace: Pace, *, epochs: int, upkeep_epochs: int) -> History:
    """Hold so many epochs, with an upkeep after so many of them each time."""
    simulation = Simulation(pace)
    for number in range(min(epochs, MOST_EPOCHS)):
        simulation.hold(number)
        if (number + 1) % upkeep_epochs == 0:
            simulation.keep_up(number)
    return simulation.ended()


class Simulation:
    """A view's slices, the master, the ledger's log."""

    def __init__(self, pace: Pace) -> None:
        self.pace, self.told = pace, History()
        self.slices: list[Piece] = []
        self.master: list[Piece] = []
        self.edges: list[int] = []
        self.large = 0
        """Files of the master that are never packed."""
        self.names = count()
        self.logs = {
            name: Log(parse_log_retention({RETENTION: KEPT[name]}).total_seconds())
            for name in ("slices", "master", "ledger")
        }

    def piece(self, first: int, last: int, size: float) -> Piece:
        """Make a file."""
        held = int(size)
        return Piece(str(next(self.names)), held, first, last, held)

    def hold(self, number: int) -> None:
        """Commit an epoch."""
        pace, now = self.pace, number * self.pace.seconds
        self.slices.append(self.piece(number, number, pace.states * pace.state_bytes))
        share = pace.records / pace.tasks * (pace.record_bytes + packing.ROW)
        if 2 * share < packing.TARGET:
            self.master += [self.piece(number, number, share) for _ in range(pace.tasks)]
        else:
            self.large += pace.tasks
        for log in self.logs.values():
            log.add(now)
        if number % pace.edge_epochs == pace.edge_epochs - 1:
            self.edges.append(number)
        self.told.records += pace.records

    def keep_up(self, last: int) -> None:
        """Do what an upkeep does."""
        now = last * self.pace.seconds
        self.told.most_slice_files = max(self.told.most_slice_files, len(self.slices))
        self.told.most_master_files = max(self.told.most_master_files, len(self.master) + self.large)
        held = CommittedEpochs(Numbers(), tuple(self.edges), last)
        blocks = blocks_between(self.edges, until=last)
        self.compact(held, blocks, now)
        target = slice_compaction.TARGET
        self.slices = self.pack(
            self.slices, "slices", target, now, lambda some: list_compacted_pieces(some, held, blocks)
        )
        self.master = self.pack(
            self.master, "master", packing.TARGET, now, lambda some: filter_packable(some, held)
        )
        for log in self.logs.values():
            log.shorten(now)
        self.told.upkeeps += 1

    def compact(self, held: CommittedEpochs, blocks: Sequence[Block], now: float) -> None:
        """Merge slices from edge to edge, in one commit."""
        plan = plan_compaction(self.slices, held, blocks)
        gone = {piece.path for merge in plan.merges for piece in merge.pieces}
        if not gone:
            return
        made = []
        for merge in plan.merges:
            states = sum(piece.unpacked for piece in merge.pieces) / self.pace.state_bytes
            self.told.states_rewritten += states
            for block in merge.blocks:
                size = min(states / len(merge.blocks), self.pace.distinct) * self.pace.state_bytes
                made.append(self.piece(block.first, block.last, size))
        self.slices = [piece for piece in self.slices if piece.path not in gone] + made
        self.told.replaced["slices"] += len(gone)
        self.logs["slices"].add(now)

    def pack(self, pieces: list[Piece], name: str, target: int, now: float, choose: Choose) -> list[Piece]:
        """Pack small files until no two are to be joined.

        Upkeep plans again after some groups, and opens each file's footer for that. What it plans then are the groups
        that are left; here they are taken at once.
        """
        while groups := plan_packing(small := choose(pieces), target=target):
            gone = {piece.path for group in groups for piece in group}
            made = [self.joined(group) for group in groups]
            commits = ceil(len(groups) / packing.AT_ONCE)
            left = len(small) + self.opened(name) - (len(gone) - len(made)) / 2
            self.told.footers[name] += round(commits * left)
            self.told.replaced[name] += len(gone)
            written = sum(piece.unpacked for piece in made)
            if name == "master":
                self.told.records_rewritten += written / (self.pace.record_bytes + packing.ROW)
            else:
                self.told.states_rewritten += written / self.pace.state_bytes
            pieces = [piece for piece in pieces if piece.path not in gone] + made
            self.logs[name].add(now, commits)
        self.told.footers[name] += len(small) + self.opened(name)
        return pieces

    def opened(self, name: str) -> int:
        """Count the files that are opened to see that they are large: in memory, but not on disk."""
        return self.large if name == "master" else 0

    def joined(self, group: Iterable[Piece]) -> Piece:
        """Join files."""
        some = list(group)
        return self.piece(
            min(each.first for each in some),
            max(each.last for each in some),
            sum(each.unpacked for each in some),
        )

    def ended(self) -> History:
        """Return what there is at the end."""
        told = self.told
        told.slice_files, told.master_files = len(self.slices), len(self.master) + self.large
        told.most_slice_files = max(told.most_slice_files, len(self.slices))
        told.most_master_files = max(told.most_master_files, told.master_files)
        lengths = {name: log.length for name, log in self.logs.items()}
        told.slice_entries, told.master_entries, told.ledger_entries = (
            lengths[name] for name in ("slices", "master", "ledger")
        )
        return told


def count_epoch_tasks(records: float, partitions: int) -> int:
    """Count the tasks of an epoch: one for each partition, fewer where each would have little to read."""
    return max(1, min(partitions, count_tasks(ceil(records))))
