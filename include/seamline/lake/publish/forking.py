"""Another pipeline that begins with a pipeline's log up to a savepoint, and goes on by itself.

Files that lie wholly below the savepoint are linked, not copied: files never change. The master is put in its place
last, so a fork that was cut short leaves nothing that counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.log_lines import read_app_version
from seamline.lake.log.master import EDGE, END, ROW
from seamline.lake.maintain.released_records import LET_GO
from seamline.lake.storage import data_files, parquet_files
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.rewrites import list_live_pieces
from seamline.lake.store.locations import copy_folder, copy_unchanging_file, delete_folder, move_folder
from seamline.lake.tables import readiness
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import (
    ask_for_import,
    decide_failover,
    list_failovers,
    list_imports,
    list_restatements,
)
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange, LeaseHeld
from seamline.model.protocol.control import Lease
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_moving_ranges
from seamline.model.protocol.imported.imports import list_registered_imports
from seamline.model.protocol.savepoint import Savepoint
from seamline.model.protocol.seam import NOTHING
from seamline.model.protocol.warehouse_names import own_variable
from seamline.runtime.processes import own_process_name

LAST = "master"
RENEWED_EVERY = 5.0


def fork_pipeline(
    source: CompiledPipeline, layout: Layout, point: Savepoint, other: CompiledPipeline, to: Layout
) -> int:
    """Begin ``other`` with the log of ``source`` up to a savepoint; return the rows of its master.

    BadRange if it has a log already, is in another warehouse, reads other topics than the source or counts by other
    intervals, or the source has lost the savepoint's epoch; OutOfStep if a start has to repair the source's tables
    first.
    """
    require_one_warehouse(layout, to)
    require_new(source, other, to)
    readiness.require_repaired(layout)
    require_position(layout, point)
    held = [replace(epoch, frontiers={}) for epoch in known_epochs(layout) if epoch.number <= point.epoch]
    draft = Layout(to.warehouse, f".fork-{to.pipeline}-{uuid.uuid4().hex[:8]}")
    try:
        rows = create_fork_tables(layout, draft, held, point)
        with acquire_stream_lease(to) as lease:
            # Whoever keeps streams up may have started this one while its tables were made.
            require_no_log(other, to)
            copy_restatements(layout, to, point)
            copy_imports(layout, to, held)
            copy_failovers(layout, to, held, lease)
            move_fork_tables(draft, to)
    finally:
        delete_folder(draft.warehouse / draft.pipeline)
    return rows


def require_one_warehouse(layout: Layout, to: Layout) -> None:
    """Raise BadRange if two pipelines have tables in two places: files are linked, or copied inside of one bucket."""
    if layout.warehouse != to.warehouse:
        raise BadRange(
            f"{layout.pipeline} is in the warehouse at {layout.warehouse}, {to.pipeline} would be in that at "
            f"{to.warehouse}: a fork has both in one.",
            hint=f"set {own_variable(to.pipeline)}={layout.warehouse}, where {layout.pipeline} is.",
        )


def require_new(source: CompiledPipeline, other: CompiledPipeline, to: Layout) -> None:
    """Refuse a fork into a pipeline that has begun or reads something else, and of one that asks other systems."""
    if who := next((each for each in (source, other) if each.asks), None):
        raise BadRange(
            f"{who.name} asks another system ({', '.join(each.name for each in who.asks)}), and the topic of the "
            "answers has exactly one writer.",
            hint=f"fork pipelines without Ask, or run {other.name} from the beginning of the topics.",
        )
    theirs, ours = (each.definition for each in (source, other))
    if (set(theirs.topics), theirs.connection) != (set(ours.topics), ours.connection):
        raise BadRange(
            f"{other.name} reads {', '.join(ours.topics)} of {ours.connection}, {source.name} reads "
            f"{', '.join(theirs.topics)} of {theirs.connection}.",
            hint="a fork continues in the same topics: offsets have no meaning in others.",
        )
    if source.grid.length != other.grid.length:
        raise BadRange(
            f"{other.name} has intervals of {other.definition.batch.interval}, {source.name} of "
            f"{source.definition.batch.interval}.",
            hint="the log counts its rows by interval: declare the same interval for both.",
        )
    require_no_log(other, to)
    if Table.exists(to.table("control")):
        lease = ControlTable.ensure(to).live_lease()
        if lease is not None:
            raise LeaseHeld(f"{lease.holder} is about to run {other.name}.", hint="stop its stream first.")


def require_no_log(other: CompiledPipeline, to: Layout) -> None:
    """Refuse a fork into a pipeline that has a master."""
    if Table.exists(to.table(LAST)):
        raise BadRange(
            f"{other.name} already has a log at {to.table(LAST)}.",
            hint="fork into a pipeline that has never run.",
        )


@contextmanager
def acquire_stream_lease(to: Layout) -> Iterator[Lease]:
    """Keep a pipeline's stream from starting meanwhile; LeaseHeld if it has started."""
    control = ControlTable.ensure(to)
    lease = control.take(f"fork-{uuid.uuid4().hex[:6]}", process=own_process_name(), now=datetime.now(UTC))
    beside = ControlTable.ensure(to)
    try:
        with keep_renewing(lambda: beside.try_renew(lease), RENEWED_EVERY):
            yield lease
    finally:
        control.release(lease)


def require_position(layout: Layout, point: Savepoint) -> None:
    """Refuse a savepoint of a lost epoch: records below its offsets are committed under later numbers, in no fork."""
    if not readiness.is_epoch_committed(layout, point.epoch):
        raise BadRange(
            f"Savepoint {point.name} is of epoch {point.epoch}, which the log has since lost.",
            hint=f"its records were read again: `seamline stream savepoint {layout.pipeline}` creates a new one.",
        )


def create_fork_tables(layout: Layout, draft: Layout, held: Sequence[Epoch], point: Savepoint) -> int:
    """Make the tables of the log; return the master's rows."""
    numbers = {epoch.number for epoch in held}
    taken = {name: copy_table_files(layout, draft, name, numbers) for name in (LAST, "quarantine")}
    edges = [epoch.number for epoch in held if epoch.edge]
    # Those that were left for another cluster, too: who goes back goes on above them.
    ends = {part.lane: part.end for epoch in held for part in list_moving_ranges(epoch)} | {**point.ends}
    txns = {EPOCH: point.epoch, **{f"{END}{lane}": end for lane, end in ends.items()}}
    txns |= {EDGE: edges[-1]} if edges else {}
    told = {EPOCH: point.epoch}
    if (gone := read_app_version(Table.open(layout.table("quarantine")), LET_GO)) > NOTHING:
        told[LET_GO] = min(gone, point.epoch)
    Table.open(draft.table("quarantine")).append(taken["quarantine"], txns=told)
    Table.open(draft.table(LAST)).append(taken[LAST], txns=txns, metadata={ROW: held[-1].to_json()})
    Ledger.ensure(draft).append(list(held))
    for beside in ("lookups", "imports", "schemas"):
        if (folder := layout.table(beside)).is_dir():
            copy_folder(folder, draft.table(beside))
    return sum(file.rows for file in taken[LAST])


def copy_imports(layout: Layout, to: Layout, held: Sequence[Epoch]) -> None:
    """Copy the decisions to import files that the log has registered: the fork goes on with what of them it lacks."""
    control, registered = ControlTable.ensure(to), list_registered_imports(held)
    for each in list_imports(layout):
        known = control.read().imports
        if each.lane in registered and all(each.id != other.id for other in known):
            ask_for_import(control, each, known, ())


def copy_failovers(layout: Layout, to: Layout, held: Sequence[Epoch], lease: Lease) -> None:
    """Copy the failovers that the log has registered: the fork goes on in the cluster where the log ends."""
    begun = [epoch for epoch in held if epoch.begun]
    if found := [each for each in list_failovers(layout) if any(map(each.is_registered_by, begun))]:
        decide_failover(ControlTable.ensure(to), lease, found[-1], found[:-1])


def copy_restatements(layout: Layout, to: Layout, point: Savepoint) -> None:
    """Copy what people have decided about rows of the log, except what an earlier fork has copied."""
    control = ControlTable.ensure(to)
    for each in list_restatements(layout):
        mine = replace(each, epoch=min(each.epoch, point.epoch))
        if mine not in control.read().restated:
            control.restate(mine)


def copy_table_files(
    layout: Layout, draft: Layout, name: str, numbers: set[int]
) -> list[data_files.DataFile]:
    """Link or write again the files of a table as far as their epochs are among ``numbers``."""
    table = Table.open(layout.table(name))
    schema = table.handle.to_pyarrow_dataset().schema.remove_metadata()
    made = Table.ensure(draft.table(name), schema)
    found = []
    for piece in list_live_pieces(table, "_epoch", "_epoch"):
        if piece.first > max(numbers):
            continue
        path = table.root / piece.path
        # Numbers jump where a line begins.
        if piece.last - piece.first < len(numbers) and set(range(piece.first, piece.last + 1)) <= numbers:
            copy_unchanging_file(path, made.root / path.name)
            found.append(data_files.describe_data_file(made.root, path.name))
            continue
        rows = parquet_files.read_parquet_file(path)
        rows = rows.filter(pc.is_in(rows["_epoch"], pa.array(sorted(numbers), pa.int64())))
        if rows.num_rows:
            found.append(data_files.write_data_file(rows, made.root, f"fork-{uuid.uuid4().hex}.parquet"))
    return found


def move_fork_tables(draft: Layout, to: Layout) -> None:
    """Move the tables into place, the master last; what an earlier fork left there is removed."""
    names = sorted(path.name for path in draft.table(LAST).parent.iterdir())
    for name in [*(name for name in names if name != LAST), LAST]:
        delete_folder(to.table(name))
        move_folder(draft.table(name), to.table(name))
