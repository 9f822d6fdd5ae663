"""Whether a pipeline's tables may be built from, merged and published: not before a start has repaired them.

A power cut leaves of each table any part of what was not synced. What is made of them before a start has looked may
be of epochs that it will take out, and would count them twice once they are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from seamline.lake.log.ledger import Ledger
from seamline.lake.log.ledger_files import groups_of, row_of
from seamline.lake.log.log_lines import MARK, TAKEN, read_app_version, read_table_state
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, name_warehouse
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.torn_logs import QUARANTINE
from seamline.model.errors import OutOfStep, PublishRefused
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import NOTHING
from seamline.plan.maintain.repair_steps import TableState

STATE = "table state"


def require_here(layout: Layout) -> None:
    """Raise MovedAway if the pipeline has moved to another warehouse."""
    root = layout.table("control")
    if moved := read_cached_table(root, "moved", lambda table: ControlTable(table).see().moved):
        raise moved.refusal(layout.pipeline, name_warehouse(layout.warehouse))


def require_repaired(layout: Layout) -> None:
    """Raise OutOfStep if a start has to repair the tables first."""
    if why := find_repair_reason(layout):
        raise OutOfStep(
            f"The tables of {layout.pipeline} must be repaired first: {why}.",
            hint="power was lost or a table was restored: start the stream, which repairs them before its first epoch.",
        )


def find_repair_reason(layout: Layout) -> str:
    """Find why upkeep, builds and publications leave the tables alone until a start has been; empty if they need not.

    The ledger is looked at before the master, which holds what it has rows of but for those that a repair has taken
    out; what the master relies on is looked at after it. Slices of versions that the manifest does not know are
    nobody's: it came back from before their birth.
    """
    if (ledger := read_cached_table(layout.table("ledger"), STATE, read_table_state)) is None:
        return ""
    known = (
        read_cached_table(layout.table("manifest"), "state", lambda table: ManifestTable(table).fold())
        or Manifest()
    )
    slices = {id: root for id, root in layout.every_slices().items() if id in known.births}
    followers = {QUARANTINE: layout.table(QUARANTINE), **slices}
    names = tuple(followers)
    reliance = partial(read_reliance, names)
    master = read_cached_table(layout.table("master"), (STATE, names), reliance, surely=True)
    if master is None:
        return ""
    if ledger.line != master.state.line and ledger != TableState():
        return "the ledger is not of the master's line"
    if ledger.epoch > max(master.state.epoch, master.taken):
        return f"the ledger has epoch {ledger.epoch}, but the master ends at {master.state.epoch}"
    for name, root in followers.items():
        found = read_cached_table(root, STATE, read_table_state) or TableState()
        if found.epoch < master.marks[name]:
            return (
                f"{name} ends at epoch {found.epoch}, but the master relies on it up to {master.marks[name]}"
            )
        if found.line != master.state.line and found != TableState():
            return f"{name} is not of the master's line"
    return ""


@dataclass(frozen=True)
class Reliance:
    """What the master says of itself and of tables that follow it, at one version."""

    state: TableState
    """Its own."""
    taken: int
    """The numbers that were taken by its last statement."""
    marks: Mapping[str, int]
    """The epochs up to which it relies on others, by their names."""


def read_reliance(names: Sequence[str], master: Table) -> Reliance:
    """Read what the master says of the tables of some names."""
    marks = {name: read_app_version(master, MARK + name) for name in names}
    return Reliance(read_table_state(master), read_app_version(master, TAKEN), marks)


def require_committed(layout: Layout, cut: int, generation: str) -> None:
    """Raise PublishRefused if the epoch that a generation was built up to is not committed.

    It has lost it since, and reads its records again under another number, which is not in the generation's cut.
    """
    if cut == NOTHING or not Master.exists(layout) or is_epoch_committed(layout, cut):
        return
    raise PublishRefused(
        f"Generation {generation} was built up to epoch {cut}, which the log has since lost.",
        hint="its records are read again under another number: build the interval again.",
    )


def require_known_decisions(layout: Layout, restated: int, generation: str) -> None:
    """Raise PublishRefused if a generation was made with restatements that the control table has lost since."""
    if restated > (made := len(list_restatements(layout))):
        raise PublishRefused(
            f"Generation {generation} was made with {restated} restatements, of which the control table has {made}.",
            hint="the others were lost with it: make them again, and build the interval again.",
        )


def is_epoch_committed(layout: Layout, number: int) -> bool:
    """Return whether the master has committed an epoch: the ledger has its row, or lags behind."""
    written, last = read_cached_table(
        layout.table("ledger"), ("written", number), partial(row_and_last, number)
    ) or (
        False,
        NOTHING,
    )
    asked = partial(has_committed, number, written, last)
    key = ("committed", number, written, last)
    return bool(read_cached_table(layout.table("master"), key, asked, surely=True))


def has_committed(number: int, written: bool, last: int, table: Table) -> bool:
    """Return whether a master has committed an epoch, by what the ledger says: whether it has its row, and its last."""
    master = Master(table)
    # A ledger of a later line may end above what the master contains, and lack some of that.
    after = last if last <= master.epoch else number - 1
    return number <= master.epoch and (written or any(row.number == number for row in master.missing(after)))


def row_and_last(number: int, table: Table) -> tuple[bool, int]:
    """Return whether a ledger has an epoch's row, and the last epoch that it has."""
    return row_of(groups_of(table), number) is not None, Ledger(table).last
