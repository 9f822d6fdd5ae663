"""The log as readers pin it: which epochs are held, how far a view is, and how both were at an instant."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.closing import Edges, Told, registered, told_by
from seamline.lake.layout import Layout
from seamline.lake.master import Master
from seamline.lake.pins import Files, look
from seamline.lake.tables import Table
from seamline.model.compiled import CompiledView
from seamline.model.epoch import Epoch
from seamline.model.errors import BadRange, ProtocolError
from seamline.model.intervals import stamp
from seamline.model.seam import NOTHING


@dataclass(frozen=True)
class Numbers:
    """The epochs that are held, as runs ``first..last`` (both in): what no master holds is dead (rule 2)."""

    firsts: tuple[int, ...]
    lasts: tuple[int, ...]

    @classmethod
    def of(cls, runs: Iterable[tuple[int, int]]) -> Numbers:
        """Join runs that overlap or touch."""
        joined: list[list[int]] = []
        for first, last in sorted(runs):
            if joined and first <= joined[-1][1] + 1:
                joined[-1][1] = max(joined[-1][1], last)
            else:
                joined.append([first, last])
        return cls(tuple(first for first, _ in joined), tuple(last for _, last in joined))

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    def last(self, until: int) -> int:
        """Give the greatest number at or below ``until``; NOTHING where there is none."""
        at = bisect_right(self.firsts, until) - 1
        return min(until, self.lasts[at]) if at >= 0 else NOTHING

    def plus(self, number: int) -> Numbers:
        """Add the epoch that was held next, unless a ledger that was read later has it already."""
        if number in self:
            return self
        if self.lasts and number == self.lasts[-1] + 1:
            return Numbers(self.firsts, (*self.lasts[:-1], number))
        return Numbers((*self.firsts, number), (*self.lasts, number))


@dataclass(frozen=True)
class Log:
    """What one version of the master says: E, the newest edge, W(v), and the newest epoch's row.

    ``identity`` and ``version`` are those of the master's table.
    """

    identity: str
    version: int
    epoch: int
    edge: int
    frontier: int
    newest: Epoch | None


def whole(layout: Layout, log: Log) -> Log:
    """Give the log with its newest row. ProtocolError where nobody tells of that epoch any more.

    Log clean-up may have taken the entry of an epoch that is old; the ledger has its row.
    """
    if log.newest or log.epoch == NOTHING:
        return log
    kept = look(layout.table("ledger"), ("row", log.epoch), lambda table: row_of(table, log.epoch))
    if kept is None:
        raise ProtocolError(
            f"The master holds epoch {log.epoch}, and neither its commits nor the ledger tell of it.",
            hint="bring the ledger back from a backup.",
        )
    return replace(log, newest=kept)


def log_of(table: Table, view: CompiledView) -> Log:
    """Read the master's word at the version its handle sees; without ``newest`` where its entry is gone."""
    master = Master(table)
    held = master.epoch
    newest = None if held == NOTHING else told_row(table, held)
    return Log(table.id, table.version, held, master.edge, master.frontier(view.id), newest)


@dataclass(frozen=True)
class Past:
    """What one version of the master makes sure for ever: the epochs held up to E, and the edges among them.

    ``register`` are the epochs that are holes, and those that filled some.
    """

    version: int
    epoch: int
    held: Numbers
    edges: Edges
    register: tuple[Epoch, ...] = ()

    def followed(self, log: Log) -> Past | None:
        """Go on by one commit of the master; None where it has made more than one, or another."""
        if log.version == self.version:
            return self
        if log.version != self.version + 1 or log.newest is None:
            return None
        if log.epoch == self.epoch:
            return replace(self, version=log.version)
        if log.newest.number != log.epoch:
            return None
        edges = with_rows(self.edges, [log.newest])
        register = (*self.register, *registered([log.newest]))
        return Past(log.version, log.epoch, self.held.plus(log.epoch), edges, register)


_known: dict[str, Past] = {}


def past_of(layout: Layout, log: Log) -> Past:
    """Give the epochs held and the edges; the ledger is not opened for a single commit of the master."""
    known = _known.get(log.identity)
    found = known.followed(log) if known else None
    if found is None:
        found = read_past(layout, log)
    _known[log.identity] = found
    return found


def read_past(layout: Layout, log: Log) -> Past:
    """Read the ledger and, where it lags, the master's commits."""
    written = look(layout.table("ledger"), "numbers", written_numbers) or Numbers((), ())
    known = look(layout.table("ledger"), "told", told_by) or Told()
    last = written.last(log.epoch)
    rows: list[Epoch] = []
    if log.newest and log.newest.number == log.epoch and last == log.epoch - 1:
        rows = [log.newest]
    elif last != log.epoch:
        found = look(layout.table("master"), ("missing", last), lambda table: Master(table).missing(last))
        rows = [row for row in found or [] if row.number <= log.epoch]
    runs = [*zip(written.firsts, written.lasts, strict=True), *((row.number, row.number) for row in rows)]
    register = (*known.register, *(row for row in registered(rows) if row.number > known.edges.last))
    return Past(log.version, log.epoch, Numbers.of(runs), with_rows(known.edges, rows), register)


def with_rows(known: Edges, rows: Iterable[Epoch]) -> Edges:
    """Add the edges among later epochs."""
    return known.plus([(row.number, row.edge, row.watermark) for row in rows])


def written_numbers(table: Table) -> Numbers:
    """List the epochs of the ledger from its files' statistics; read them only where numbers skip."""
    files = Files.of(table)
    counts = files.actions["num_records"].to_pylist() if files.actions.num_rows else []
    runs = []
    for first, last, rows in zip(
        files.low("epoch").to_pylist(), files.high("epoch").to_pylist(), counts, strict=True
    ):
        if first is None or last - first + 1 != rows:
            return Numbers.of((number, number) for number in table.read(["epoch"])["epoch"].to_pylist())
        runs.append((first, last))
    return Numbers.of(runs)


def moment_of(
    layout: Layout, log: Log, held: Numbers, as_of: int | datetime
) -> tuple[int, datetime | None, dict[int, datetime]]:
    """Give the last epoch at ``as_of`` (a number or an instant), its watermark, and the instants of all."""
    rows = look(layout.table("ledger"), "moments", moments) or {}
    rows = {
        **rows,
        **({log.newest.number: (log.newest.committed_at, log.newest.watermark)} if log.newest else {}),
    }
    if isinstance(as_of, datetime):
        found = max((n for n, (at, _) in rows.items() if at <= as_of and n <= log.epoch), default=NOTHING)
        asked = stamp(as_of)
    else:
        found = held.last(as_of) if as_of <= log.epoch else NOTHING
        asked = f"epoch {as_of}"
    if found == NOTHING:
        raise BadRange(
            f"Nothing is known as of {asked}.", hint=f"the master holds epochs up to {log.epoch}; ask within."
        )
    return found, rows[found][1] if found in rows else None, {number: at for number, (at, _) in rows.items()}


def frontier_at(layout: Layout, log: Log, epoch: int, view: CompiledView) -> int:
    """Give W(v) as the row of an epoch has it."""
    newest = log.newest
    if newest is None or newest.number != epoch:
        kept = look(layout.table("ledger"), ("row", epoch), lambda table: row_of(table, epoch))
        newest = kept or look(layout.table("master"), ("row", epoch), lambda table: told_row(table, epoch))
    return newest.frontiers.get(view.id, NOTHING) if newest else NOTHING


def row_of(ledger: Table, epoch: int) -> Epoch | None:
    """Read the ledger's row of an epoch."""
    rows = ledger.handle.to_pyarrow_dataset().to_table(columns=["row"], filter=pc.field("epoch") == epoch)
    return Epoch.from_json(rows["row"][0].as_py()) if rows.num_rows else None


def told_row(master: Table, epoch: int) -> Epoch | None:
    """Give the row of an epoch by the master's commits; None where its entry is gone, or there was none."""
    found = next((row for row in Master(master).rows() if row.number <= epoch), None)
    return found if found and found.number == epoch else None


def moments(table: Table) -> dict[int, tuple[datetime, datetime | None]]:
    """Read when each epoch was committed, and the watermark at it."""
    rows: pa.Table = table.read(["epoch", "committed_at", "watermark"])
    return {
        number: (at, mark)
        for number, at, mark in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)
    }
