"""The log as readers pin it: which epochs are committed, how far a view is, and how both were at an instant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.log.epoch_log import of_ledger
from seamline.lake.log.ledger_files import Group, groups_of, row_of
from seamline.lake.log.log_edges import FOLLOWED, NEVER, Edges
from seamline.lake.log.log_lines import LINE, MARK
from seamline.lake.log.master import Master
from seamline.lake.storage import parquet_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.compile.evolution import Timed
from seamline.model.errors import BadRange, ProtocolError
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.protocol.condensed import condense_epochs, first_of, runs_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import keep_hole_epochs
from seamline.model.protocol.seam import NOTHING
from seamline.model.recent import Recent
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND


@dataclass(frozen=True)
class Log:
    """What one version of the master says of the log and of one view."""

    identity: str
    """The id of the master's table."""
    version: int
    """The version of the master's table."""
    epoch: int
    """E, the newest committed epoch; -1 for none."""
    edge: int
    """The newest edge; -1 for none."""
    frontier: int
    """W(v), the last epoch in the view's slices."""
    newest: Epoch | None
    """The row of ``epoch``; None if its commit entry is gone, or before the first epoch."""
    line: int | None = None
    """The line that the log is on; None if the table names none."""
    mark: int = NOTHING
    """The newest number in the view's slices that the master relies on; -1 for none."""
    commit: str = ""
    """The id of the version's commit; empty if its writer gave it none."""
    after: str = ""
    """The id of the commit that it was made after; empty if its writer did not say."""


def fill_newest_row(layout: Layout, log: Log) -> Log:
    """Fill in the log's newest row. ProtocolError if neither commits nor ledger have it.

    Log clean-up may have taken the entry of an epoch that is old; the ledger has its row.
    """
    if log.newest or log.epoch == NOTHING:
        return log
    kept = read_cached_table(
        layout.table("ledger"), ("row", log.epoch), lambda table: read_ledger_row(table, log.epoch)
    )
    if kept is None:
        raise ProtocolError(
            f"The master is at epoch {log.epoch}, but neither its commits nor the ledger record that epoch.",
            hint="restore the ledger from a backup.",
        )
    return replace(log, newest=kept)


def log_of(table: Table, view: CompiledView) -> Log:
    """Read the master's word at the version its handle sees; without ``newest`` where its entry is gone."""
    master = Master(table)
    held = master.epoch
    newest = None if held == NOTHING else read_master_row(table, held)
    mark, line = table.txn(MARK + view.id), table.txn(LINE)
    reach = master.edge, master.frontier(view.id), newest, line, NOTHING if mark is None else mark
    return Log(table.id, table.version, held, *reach, table.newest, table.after)


@dataclass(frozen=True)
class CommittedPast:
    """What one version of the master settles for ever."""

    version: int
    """The version of the master's table."""
    epoch: int
    """E, the newest committed epoch; -1 for none."""
    held: EpochNumbers
    """Numbers of the committed epochs, up to E."""
    edges: Edges
    """Edges up to E."""
    register: tuple[Epoch, ...] = ()
    """Epochs that are holes, and those that filled some, ascending."""
    line: int | None = None
    """The line that the log is on; None if the table names none."""
    clocks: tuple[Epoch, ...] = ()
    """The first epoch of each run of epochs that derive event times in one way, ascending."""
    commit: str = ""
    """The id of the version's commit; empty if its writer gave it none."""

    def list_clock_runs(self, timed: Timed) -> list[tuple[int, int]]:
        """List the runs of epochs that derived event times so: first and last of each, ascending."""
        ends = [*(first_of(epoch) - 1 for epoch in self.clocks[1:]), NEVER]
        return [
            (first_of(epoch), end)
            for epoch, end in zip(self.clocks, ends, strict=False)
            if timed.is_of_clock(epoch)
        ]

    def extend(self, log: Log) -> CommittedPast | None:
        """Extend by one commit of the master; None if it is not known to be the next, or is on another line.

        Commits are known by their ids: a start that takes epochs out of the master uses their versions again.
        """
        if (log.version, log.commit, log.line) == (self.version, self.commit, self.line):
            return self
        follows = bool(log.after) and log.after == self.commit
        if not follows or log.newest is None or log.line != self.line:
            return None
        if log.epoch == self.epoch:
            return replace(self, version=log.version, commit=log.commit)
        if log.newest.number != log.epoch or len(self.edges.later.numbers) >= FOLLOWED:
            return None
        edges = self.edges.plus([log.newest])
        register = tuple(condense_epochs([*self.register, *keep_hole_epochs([log.newest])]))
        clocks = tuple(keep_clock_changes([*self.clocks, log.newest]))
        return CommittedPast(
            log.version, log.epoch, self.held.plus(log.epoch), edges, register, log.line, clocks, log.commit
        )


_known: Recent[str, CommittedPast] = Recent(256)
"""By the id of the master's table."""


def past_of(layout: Layout, log: Log) -> CommittedPast:
    """Return the committed epochs and the edges; the ledger is not opened for a single commit of the master."""
    known = _known.get(log.identity)
    found = known.extend(log) if known else None
    if found is None:
        found = read_past(layout, log)
    _known[log.identity] = found
    return found


def forget_past() -> None:
    """Forget what was read of ledgers, so that they are read again: files that were known are gone."""
    _known.clear()


def read_past(layout: Layout, log: Log) -> CommittedPast:
    """Read the ledger condensed and, where it lags, the master's commits."""
    known = read_cached_table(layout.table("ledger"), "written", LedgerPast.of) or LedgerPast()
    last = known.held.last(log.epoch)
    rows: list[Epoch] = []
    if log.newest and log.newest.number == log.epoch and last == log.epoch - 1:
        rows = [log.newest]
    elif last != log.epoch:
        found = read_cached_table(
            layout.table("master"), ("missing", last), lambda table: Master(table).missing(last)
        )
        rows = [row for row in found or [] if row.number <= log.epoch]
    runs = [
        *zip(known.held.firsts, known.held.lasts, strict=True),
        *((row.number, row.number) for row in rows),
    ]
    register = (*known.register, *(row for row in keep_hole_epochs(rows) if row.number > known.edges.last))
    clocks = tuple(keep_clock_changes([*known.clocks, *rows]))
    return CommittedPast(
        log.version,
        log.epoch,
        EpochNumbers.of(runs),
        known.edges.plus(rows),
        register,
        log.line,
        clocks,
        log.commit,
    )


@dataclass(frozen=True)
class LedgerPast:
    """What a ledger says of the log."""

    held: EpochNumbers = EpochNumbers((), ())
    """Numbers of the committed epochs."""
    edges: Edges = Edges()
    """Edges in the ledger's files."""
    register: tuple[Epoch, ...] = ()
    """Epochs that are holes, and those that filled some, ascending."""
    clocks: tuple[Epoch, ...] = ()
    """The first epoch of each run of epochs that derive event times in one way, ascending."""

    @classmethod
    def of(cls, table: Table) -> LedgerPast:
        """Read it condensed."""
        rows = of_ledger(table)
        held = EpochNumbers.of(run for row in rows for run in runs_of(row))
        return cls(
            held, Edges.of(groups_of(table)), tuple(keep_hole_epochs(rows)), tuple(keep_clock_changes(rows))
        )


def keep_clock_changes(rows: Iterable[Epoch]) -> Iterator[Epoch]:
    """Keep the first row, and each that derives event times in another way than the one before, or may."""
    before: tuple[str, str] | None = None
    for row in rows:
        if (told := (row.clock, row.record_version)) != before:
            yield row
        before = told


def moment_of(
    layout: Layout, log: Log, held: EpochNumbers, as_of: int | datetime
) -> tuple[int, Epoch | None]:
    """Return the last epoch at ``as_of`` (a number or an instant), and its row where that is still there."""
    if isinstance(as_of, datetime):
        found = read_cached_table(
            layout.table("ledger"), ("at", as_of, log.epoch), lambda it: last_at(it, as_of, log.epoch)
        )
        if log.newest and log.newest.committed_at <= as_of:
            found = log.newest.number
        number, asked = NOTHING if found is None else found, format_utc_instant(as_of)
    else:
        number, asked = held.last(as_of) if as_of <= log.epoch else NOTHING, f"epoch {as_of}"
    if number == NOTHING:
        raise BadRange(
            f"No epoch is known as of {asked}.", hint=f"the master contains epochs up to {log.epoch}."
        )
    row = log.newest if log.newest and log.newest.number == number else None
    return number, row or read_cached_table(
        layout.table("ledger"), ("row", number), lambda table: read_ledger_row(table, number)
    )


def last_at(ledger: Table, instant: datetime, until: int) -> int | None:
    """Return the last epoch up to ``until`` that was committed by an instant."""
    micros = (instant - EPOCH) // MICROSECOND
    for group in reversed(groups_of(ledger)):
        if group.first <= until and any(file.since is None or file.since <= micros for file in group.files):
            rows = read_commit_times(group)
            mask = pc.and_(pc.less_equal(rows["epoch"], until), pc.less_equal(rows["committed_at"], instant))
            if (rows := rows.filter(mask)).num_rows:
                last: int = pc.max(rows["epoch"]).as_py()
                return last
    return None


def read_commit_times(group: Group) -> pa.Table:
    """Read when each epoch of some files was committed."""
    return pa.concat_tables(
        parquet_files.read_parquet_file(file.path, ["epoch", "committed_at"]) for file in group.files
    )


def frontier_at(layout: Layout, log: Log, epoch: int, view: CompiledView) -> int:
    """Return W(v) as the row of an epoch has it."""
    newest = log.newest
    if newest is None or newest.number != epoch:
        kept = read_cached_table(
            layout.table("ledger"), ("row", epoch), lambda table: read_ledger_row(table, epoch)
        )
        newest = kept or read_cached_table(
            layout.table("master"), ("row", epoch), lambda table: read_master_row(table, epoch)
        )
    return newest.frontiers.get(view.id, NOTHING) if newest else NOTHING


def read_ledger_row(ledger: Table, epoch: int) -> Epoch | None:
    """Read the ledger's row of an epoch."""
    return row_of(groups_of(ledger), epoch)


def read_master_row(master: Table, epoch: int) -> Epoch | None:
    """Read the row of an epoch by the master's commits; None if its entry is gone, or there was none."""
    found = next((row for row in Master(master).rows() if row.number <= epoch), None)
    return found if found and found.number == epoch else None
