"""Upkeep: the ledger made whole, slices compacted, small files packed, what nobody needs deleted.

It runs beside a live stream and without its token.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from itertools import takewhile

from seamline.lake.log import ledger_summaries
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.ledger_files import condense_ledger_files, groups_of, iterate_edges
from seamline.lake.log.master import Master
from seamline.lake.maintain.cleaning import remove_dead_epochs, vacuum_table
from seamline.lake.maintain.ledger_packing import pack_ledger
from seamline.lake.maintain.packing import AS_READ, BY_TIME, pack_table
from seamline.lake.maintain.reprocessing_attempts import swept_attempts
from seamline.lake.maintain.retention import clean_generations, forget_generations
from seamline.lake.maintain.run_leftovers import clean_run_leftovers
from seamline.lake.maintain.slice_compaction import compact_slices, list_view_blocks, pack_slices
from seamline.lake.storage import data_files, durability
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_cleanup import delete_old_entries
from seamline.lake.storage.rewrites import APP, Upkeep, discard_refused_files, upkeep_file_name
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.storage.table_settings import parse_log_retention
from seamline.lake.tables import decision_rows
from seamline.lake.tables.claims_table import STATES, Claims
from seamline.lake.tables.control_table import PASSING, ControlTable
from seamline.lake.tables.manifest_table import APP as DECIDED
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.readiness import find_repair_reason, require_here
from seamline.lake.tables.sinks.kept_for_sinks import find_entry_for_sinks, list_files_for_sinks
from seamline.lake.tables.torn_logs import list_table_roots
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import Conflict
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.protocol.condensed import runs_of
from seamline.model.protocol.epoch import Epoch
from seamline.plan.maintain.slice_upkeep import Block, CommittedEpochs

__all__ = ["Upkeep", "maintain_tables"]

ORDERS = {
    "quarantine": AS_READ,
    "manifest": ("seq",),
    "builds": ("at",),
    "certificates": ("at",),
    "comparisons": ("at",),
    "audits": ("at",),
    "counts": ("start", "producer"),
    "master": BY_TIME,
}
"""The tables that grow by files for ever, an epoch or a run at a time, and the order of rows in packed files."""
CHECKED = "seamline.checked"
"""App id in the ledger: up to which epoch it was compared with the master's commits."""


def maintain_tables(pipeline: CompiledPipeline, layout: Layout) -> Upkeep:
    """Do all upkeep of a pipeline's tables; nothing of it changes an answer, and all of it may be cut short.

    What another process committed meanwhile is left to the next time and named in ``refused``. MovedAway if the
    pipeline has moved to another warehouse.
    """
    require_here(layout)
    if not Master.exists(layout):
        return Upkeep()
    if why := find_repair_reason(layout):
        return Upkeep(refused=(f"{why}: start the stream, it repairs them; nothing was done",))
    master, held, rows, done = whole_ledger(layout)
    lacks = done.refused
    # Blocks of slices name epochs, and what an earlier upkeep has put in the place of others lets those go.
    durability.sync_disk(master.table.root)
    if short := find_lost_ledger_rows(master, held, rows):
        return done.plus(Upkeep(refused=(f"{short}: nothing else was done",)))
    done = done.plus(of_views(pipeline, layout, master, held))
    if keep := pipeline.definition.batch.keep_generations:
        why = f"keep_generations={keep}"
        forgotten = forget_generations(layout, keep=keep, actor="upkeep", reason=why)
        done = done.plus(Upkeep(forgotten=len(forgotten)))
    manifest = ManifestTable.ensure(layout).read()
    done = done.plus(clean_generations(layout, manifest)).plus(
        clean_run_leftovers(layout, manifest, now=datetime.now(UTC))
    )
    done = done.plus(swept_attempts(layout, held))
    if Table.exists(layout.table("quarantine")):
        done = done.plus(remove_dead_epochs(layout.table("quarantine"), held))
    done = done.plus(of_records(layout, held)).plus(of_decisions(layout, held))
    # What the ledger lacks yet, only entries of the master record.
    return done if lacks else done.plus(of_logs(layout, now=datetime.now(UTC)))


def of_views(pipeline: CompiledPipeline, layout: Layout, master: Master, held: CommittedEpochs) -> Upkeep:
    """Compact the slices of every live version, and clean them and the serving tables."""
    done, manifest = Upkeep(), ManifestTable.ensure(layout).read()
    views = add_live_versions(pipeline, layout).views
    for view in views:
        if Table.exists(layout.slices(view)):
            blocks = list_view_blocks(manifest, view, held, master)
            done = done.plus(compact_slices(view, layout, held, blocks)).plus(
                pack_slices(view, layout, held, blocks)
            )
            done = done.plus(vacuum_table(layout.slices(view), held))
    for serving in sorted({layout.serving(view) for view in views}):
        if Table.exists(serving):
            done = done.plus(
                vacuum_table(serving, held, needed=partial(list_files_for_sinks, layout, serving))
            )
    return done


def of_records(layout: Layout, held: CommittedEpochs) -> Upkeep:
    """Pack and clean the tables that grow by files for ever."""
    done = Upkeep()
    for name, order in ORDERS.items():
        if Table.exists(layout.table(name)):
            # A manifest's rows bear the number of the version after that they were decided on: none may slip between.
            beside = DECIDED if name == "manifest" else APP
            done = done.plus(pack_table(Table.open(layout.table(name)), held, order=order, beside=beside))
            done = done.plus(vacuum_table(layout.table(name), held))
    done = done.plus(pack_ledger(Table.open(layout.table("ledger")), held))
    return done.plus(vacuum_table(layout.table("ledger"), held))


def of_decisions(layout: Layout, held: CommittedEpochs) -> Upkeep:
    """Pack and clean what people decided, and what runs claimed."""
    done = Upkeep()
    if Table.exists(layout.table("control")):
        control = ControlTable.ensure(layout).decisions
        done = done.plus(decision_rows.compact_decision_rows(control, passing=PASSING)).plus(
            vacuum_table(control.table.root, held)
        )
    if Table.exists(layout.table("claims")):
        claims = Claims.ensure(layout).decisions
        done = done.plus(decision_rows.compact_decision_rows(claims, passing=STATES)).plus(
            vacuum_table(claims.table.root, held)
        )
    return done


def of_logs(layout: Layout, *, now: datetime) -> Upkeep:
    """Shorten every log; the ledger has all that the master's entries say, and the disk what their checkpoints do."""
    folder = layout.warehouse / layout.pipeline
    durability.sync_disk(folder)
    kept = (
        (root, read_cached_table(root, "kept", lambda table: parse_log_retention(table.settings)))
        for root in list_table_roots(folder)
    )
    return Upkeep(
        shortened=sum(
            delete_old_entries(root, span, now=now, needed=find_entry_for_sinks(layout, root))
            for root, span in kept
            if span
        )
    )


def whole_ledger(layout: Layout) -> tuple[Master, CommittedEpochs, int, Upkeep]:
    """Compare the ledger with the master's commits since the last upkeep, and add the rows it lacks.

    Returns also how many records the committed epochs accepted. A row that the stream adds at the same moment is
    there twice and read once. Of all rows only which are edges is read, the rest is read condensed.
    """
    ledger = Ledger.ensure(layout).table
    groups = groups_of(ledger)
    rows = list(condense_ledger_files(groups, (), newest=False))
    known = EpochNumbers.of(run for row in rows for run in runs_of(row))
    master = Master.open(layout)
    checked = ledger.txn(CHECKED)
    missing = [
        epoch
        for epoch in list_committed_epochs(master, after=-1 if checked is None else checked)
        if epoch.number not in known
    ]
    edges = sorted({*iterate_edges(groups), *(epoch.number for epoch in missing if epoch.edge)})
    numbers = EpochNumbers.of(run for row in (*rows, *missing) for run in runs_of(row))
    held = CommittedEpochs(numbers, tuple(edges), master.epoch)
    accepted = sum(row.rows for row in (*rows, *missing))
    if not missing and checked == master.epoch:
        return master, held, accepted, Upkeep()
    made: list[data_files.DataFile] = []
    if missing:
        first, last = missing[0].number, missing[-1].number
        made = [
            ledger_summaries.write_ledger_file(
                missing, ledger.root, upkeep_file_name(ledger, Block(first, last))
            )
        ]
    try:
        # Without the app id of epochs, which is the stream's: two commits that carry it exclude each other.
        ledger.append(made, txns={APP: ledger.version + 1, CHECKED: master.epoch})
    except Conflict as conflict:
        return master, held, accepted, discard_refused_files(ledger, made, conflict)
    return master, held, accepted, Upkeep(repaired=len(missing))


def list_committed_epochs(master: Master, *, after: int) -> list[Epoch]:
    """List the epochs above ``after`` by the master's commits, in order, as far back as those go."""
    found = {row.number: row for row in takewhile(lambda row: row.number > after, master.rows())}
    return [found[number] for number in sorted(found)]


def find_lost_ledger_rows(master: Master, held: CommittedEpochs, rows: int) -> str:
    """Find committed epochs, by E or by the master's files, whose ledger rows are lost; empty if there are none.

    A file of many epochs names two of them: the others are found out by the ``rows`` that the ledger knows of.
    """
    found = Files.of(master.table)
    written = {*found.low("_epoch").to_pylist(), *found.high("_epoch").to_pylist(), held.last}
    numbers = {number for number in written if number is not None and number >= 0}
    if unknown := {number for number in numbers if number not in held.numbers}:
        return f"the ledger lacks epoch {min(unknown)}, which the master contains"
    return (
        f"the ledger lists {rows} records, but the master contains {found.rows}" if found.rows > rows else ""
    )
