"""A start's repair of a pipeline's tables, from what they say themselves: it may die anywhere, and is done again.

With what a power cut left half-written set aside (``mending``) and the tables taken over, what they say of each other
decides whether a new line begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from seamline.lake.joins.restatements import read_restated
from seamline.lake.log.epoch_log import condense_open_log, newest_epochs, read_condensed_log
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.log_lines import (
    BOOT,
    LINE,
    MARK,
    TAKEN,
    read_app_version,
    read_boot_number,
    read_table_state,
)
from seamline.lake.log.master import FRONTIER, Master
from seamline.lake.maintain.absent_rows import list_absent_generations
from seamline.lake.maintain.ledger_trimming import trim_ledger
from seamline.lake.maintain.lost_decisions import find_lost_restatement, list_lost_restatements
from seamline.lake.maintain.table_states import (
    find_overmerged_panes,
    newest_named_epoch,
    read_master_state,
    read_slice_states,
)
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.fencing_tokens import newest_token
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.torn_logs import QUARANTINE, find_unmatched_commit, out_of_step
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.protocol.condensed import runs_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid
from seamline.model.time.reached_intervals import find_spanning_views, list_filled_intervals
from seamline.plan.maintain.repair_steps import (
    Acceptance,
    Bring,
    Go,
    MasterState,
    Step,
    Stop,
    SyncedState,
    Trim,
    find_master_losses,
    plan_repair_steps,
    plan_withdrawals,
)

log = logging.getLogger("seamline.stream")


@dataclass(frozen=True)
class Tables:
    """The tables that a start has taken over."""

    master: Master
    """The table of accepted records, which the others follow."""
    quarantine: Table
    """The table of refused records."""
    ledger: Ledger
    """The table of epochs."""
    slices: Mapping[str, Table]
    """By version id, ``name/fingerprint``; versions that are no longer fed are among them."""

    @property
    def others(self) -> dict[str, Table]:
        """Return the tables that follow the master's line, by name."""
        return {QUARANTINE: self.quarantine, "ledger": self.ledger.table, **self.slices}


def require_committed_cuts(layout: Layout, ledger: Ledger, master: Master) -> None:
    """Raise OutOfStep if a generation is served that has counted epochs that are not committed, or lost decisions."""
    manifest = ManifestTable.ensure(layout).read()
    why = next(find_master_losses(MasterState(master.epoch), {}, highest_served_cut(manifest)), "")
    why = why or find_uncommitted_cut(manifest, lambda: condense_open_log(ledger, master))
    if why := why or find_lost_restatement(layout, manifest):
        raise out_of_step(layout.pipeline, why)


def find_contradictions(layout: Layout, views: Collection[str] = ()) -> Iterator[str]:
    """Find what of the tables cannot be of one history, without changing anything.

    ``views`` are those of the definition: a start opens their slices, whether the manifest knows of them or not.
    """
    if isinstance(why := find_unmatched_commit(layout), str):
        yield why
    yield from check_control_tokens(layout)
    if Master.exists(layout):
        manifest = ManifestTable.ensure(layout).read()
        followers = (layout.table(name) for name in (QUARANTINE, "ledger"))
        others = {root.name: read_table_state(Table.open(root)) for root in followers if Table.exists(root)}
        roots = {id: layout.slices_of(id) for id in {*manifest.births, *views}}
        slices = {id: Table.open(root) for id, root in roots.items() if Table.exists(root)}
        # Last: what a live stream and upkeep commit meanwhile is in it.
        master = Master.open(layout)
        yield from find_master_losses(
            read_master_state(master, slices, {}),
            {**others, **read_slice_states(master, slices)},
            highest_served_cut(manifest),
        )
        if why := find_uncommitted_cut(manifest, lambda: read_condensed_log(layout)):
            yield why
        yield from list_lost_restatements(layout, manifest, newest_epochs(layout, 1))
        for each in list_absent_generations(layout, manifest):
            what = f"generation {each.generation} of {each.view} {each.interval}"
            yield f"{what} is served, and its table lacks rows of it"


def find_uncommitted_cut(manifest: Manifest, rows: Callable[[], Iterable[Epoch]]) -> str:
    """Find a generation that is served up to an epoch below E that was never committed; empty if there is none.

    ``rows`` reads the log condensed: it is read where something is served.
    """
    cuts = {each.epoch: each for each in manifest.published.values() if each.epoch > NOTHING}
    numbers = numbers_of(rows()) if cuts else EpochNumbers((), ())
    for cut, each in sorted(cuts.items()):
        if cut not in numbers:
            return f"generation {each.generation} is served up to epoch {cut}, which the log does not contain"
    return ""


def numbers_of(rows: Iterable[Epoch]) -> EpochNumbers:
    """Return the epochs that the rows of a condensed log stand for."""
    return EpochNumbers.of(run for row in rows for run in runs_of(row))


def check_control_tokens(layout: Layout) -> Iterator[str]:
    """Check whether the control table is older than some start: what was decided since is in no table."""
    if Table.exists(layout.table("control")):
        # The tables first: a token is given out before any of them carries it.
        carried = newest_token(layout.table("control").parent)
        if carried > (given := ControlTable.ensure(layout).given):
            yield f"control has assigned tokens up to {given}, but the tables carry {carried}"


def highest_served_cut(manifest: Manifest) -> int:
    """Return the highest cut that is served."""
    return max((each.epoch for each in manifest.published.values()), default=NOTHING)


def repair_tables(
    tables: Tables,
    frontiers: Mapping[str, int],
    *,
    layout: Layout,
    pipeline: CompiledPipeline,
    token: int,
    acceptance: Acceptance | None = None,
) -> Go:
    """Repair what a start must before it commits an epoch; return the last number taken, and W of each frontier.

    OutOfStep if a person has to decide, and has not by ``acceptance``.
    """
    manifest = ManifestTable.ensure(layout)
    told = newest_named_epoch(layout, manifest.read())
    steps = plan_table_repair(tables, frontiers, token=token, named=told, accepted=acceptance is not None)
    if acceptance:
        withdraw_lost_answers(layout, tables, pipeline, manifest, steps, acceptance)
    for step in steps:
        apply_repair_step(layout.pipeline, tables, step)
    last = steps[-1]
    assert isinstance(last, Go)
    return Go(last.number, {view: last.frontiers[view] for view in frontiers})


def withdraw_lost_answers(
    layout: Layout,
    tables: Tables,
    pipeline: CompiledPipeline,
    manifest: ManifestTable,
    steps: Iterable[Step],
    acceptance: Acceptance,
) -> None:
    """Withdraw all answers from epochs that were never committed; a start that dies here repeats it."""
    rows, now = read_condensed_log(layout), datetime.now(UTC)
    numbers = numbers_of(rows)
    every = {interval for row in rows for interval in row.accepted}
    spanning = find_spanning_views(pipeline.grid, pipeline.views)
    unsure = {
        view: unsure_of(
            tables, pipeline.grid, table, list_filled_intervals(pipeline.grid, spanning.get(view), every)
        )
        for view, table in tables.slices.items()
    }
    lacking = {
        (each.view, each.interval, each.generation)
        for each in list_absent_generations(layout, manifest.read())
    }
    taken = next(step.taken for step in steps if isinstance(step, SyncedState))
    restated = read_restated(pipeline, layout, rows)
    manifest.decide(
        lambda current: plan_withdrawals(
            current,
            unsure,
            held=numbers,
            absent=lacking,
            taken=taken,
            restated=restated,
            acceptance=acceptance,
            now=now,
        )
    )


def unsure_of(tables: Tables, grid: Grid, slices: Table, every: Collection[str]) -> Collection[str]:
    """List the intervals of which a view's slices may count other than what the master contains.

    Of slices of a later line these are ``every`` one with rows: what that line lost, it has read again under later
    numbers. Slices of an earlier line have only not been brought to the master's yet.
    """
    if (slices.txn(LINE) or 0) > (tables.master.table.txn(LINE) or 0):
        return every
    return {
        grid.of(pane).id for pane in find_overmerged_panes(slices, tables.master.epoch, tables.master.epoch)
    }


def plan_table_repair(
    tables: Tables, frontiers: Mapping[str, int], *, token: int, named: int, accepted: bool = False
) -> list[Step]:
    """Plan what a start has to do; slices that get no more are compared with what the master says of them, too."""
    told = {view: tables.master.frontier(view) for view in tables.slices}
    return plan_repair_steps(
        read_master_state(tables.master, tables.slices, {**told, **frontiers}),
        read_table_state(tables.quarantine),
        read_table_state(tables.ledger.table),
        read_slice_states(tables.master, tables.slices),
        boot=read_boot_number(),
        token=token,
        named=named,
        accepted=accepted,
    )


def apply_repair_step(pipeline: str, tables: Tables, step: Step) -> None:
    """Apply one step."""
    match step:
        case Stop(why):
            raise out_of_step(pipeline, why)
        case SyncedState(line, started, taken, frontiers):
            tables.quarantine.sync()
            relied = {QUARANTINE: tables.quarantine, **tables.slices}
            begin_line(tables.master.table, line, started, taken, frontiers, relied)
        case Trim(_, line, named):
            trim_ledger(tables.ledger, tables.master, line=line, named=named)
        case Bring(name, line):
            tables.others[name].append([], txns={LINE: line})


def begin_line(
    master: Table,
    line: int,
    started: int,
    taken: int,
    frontiers: Mapping[str, int],
    relied: Mapping[str, Table],
) -> None:
    """Record in the master that a line begins, and what it relies on."""
    marks = {MARK + name: read_app_version(table, EPOCH) for name, table in relied.items()}
    stated = {FRONTIER + view: frontier for view, frontier in frontiers.items()}
    master.append([], txns={LINE: line, BOOT: started, TAKEN: taken, **marks, **stated}, sync=True)
    # The first line of all is no news.
    level = logging.INFO if taken == NOTHING else logging.WARNING
    log.log(level, "Line %s begins: numbers go on above %s, W is %s", line, taken, dict(frontiers))
