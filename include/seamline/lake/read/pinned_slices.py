"""Slices as a reader pins them, compared with what the master says of them."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.lake.log.log_lines import LINE
from seamline.lake.log.pinned_log import Log
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import OutOfStep
from seamline.model.protocol.seam import NOTHING


@dataclass(frozen=True)
class Sliced:
    """What one version of a view's slices table has."""

    files: Files
    """Of the version that was pinned."""
    epoch: int
    """The newest epoch that was committed to it; -1 for none."""
    line: int | None
    """The line of the log that the slices belong to; None if the table names none."""

    @classmethod
    def of(cls, table: Table) -> Sliced:
        """Read the slices at the version that a table's handle sees."""
        epoch = table.txn(EPOCH)
        return cls(Files.of(table), NOTHING if epoch is None else epoch, table.txn(LINE))


def pin_slices(layout: Layout, view: CompiledView, log: Log) -> Sliced | None:
    """Pin a view's slices, None if there is no table; OutOfStep if they are of another line than the master."""
    found = read_cached_table(layout.slices(view), "sliced", Sliced.of)
    if found is not None and found.line != log.line and (found.epoch, found.line) != (NOTHING, None):
        raise under_repair_error(layout, f"the slices of {view.id}")
    return found


def require_line(layout: Layout, log: Log) -> None:
    """Raise OutOfStep if the ledger is of another line than the master.

    Asked before the ledger is read: once it is brought to the line, its rows are the line's.
    """
    found = read_cached_table(
        layout.table("ledger"), "line", lambda table: (table.txn(EPOCH), table.txn(LINE))
    )
    if found is not None and found[1] != log.line and found != (None, None):
        raise under_repair_error(layout, "the ledger")


def find_complete_epoch(log: Log, found: Sliced | None) -> int:
    """Find the epoch up to which slices contain what the master says: W, or less where commits were lost."""
    newest = found.epoch if found else NOTHING
    return min(log.frontier, newest) if newest < log.mark else log.frontier


def under_repair_error(layout: Layout, what: str) -> OutOfStep:
    """Make the error that says that an answer has to wait for a start."""
    return OutOfStep(
        f"The tables of {layout.pipeline} are being repaired: {what} is not of the master's line.",
        hint="start the stream; its start completes the repair.",
    )
