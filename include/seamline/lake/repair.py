"""A start's repair of a pipeline's tables, from what they say themselves: it may die anywhere, and is done again.

Before anything is opened, what a power cut left half-written is set aside (``mend``). With the tables taken over, what
they say of each other decides whether a new line begins (``agree``).
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

from seamline.lake import aside, delta_log
from seamline.lake.builds import Builds
from seamline.lake.control import ControlTable
from seamline.lake.damage import damage, opens_below
from seamline.lake.durability import ALWAYS
from seamline.lake.layout import Layout
from seamline.lake.ledger import Ledger
from seamline.lake.lines import BOOT, LINE, MARK, TAKEN, boot, number, word
from seamline.lake.manifest import ManifestTable
from seamline.lake.master import FRONTIER, Master
from seamline.lake.rewrites import pieces
from seamline.lake.tables import EPOCH, Table
from seamline.lake.trimming import trim
from seamline.model.errors import NotFound, OutOfStep
from seamline.model.manifest import Manifest
from seamline.model.seam import NOTHING
from seamline.plan.repair import Bring, Go, Said, State, Step, Stop, Trim, beyond, repair

PLACES = (
    "*",
    "views/*/serving",
    "views/*/*/slices",
    "views/*/*/generations",
    "records/*/rows",
    "records/*/verdicts",
)
QUARANTINE = "quarantine"
log = logging.getLogger("seamline.stream")


@dataclass(frozen=True)
class Tables:
    """The tables that a start has taken over; ``slices`` by the id of their view, those that stand still included."""

    master: Master
    quarantine: Table
    ledger: Ledger
    slices: Mapping[str, Table]

    @property
    def others(self) -> dict[str, Table]:
        """Give the tables that follow the master's line, by name."""
        return {QUARANTINE: self.quarantine, "ledger": self.ledger.table, **self.slices}


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second start on this machine out meanwhile."""
    with (folder / "_mending.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def mend(layout: Layout, *, now: datetime) -> list[str]:
    """Set aside what ends the tables' logs too early; give a sentence for each table that lost something by it.

    OutOfStep where that would take what a power cut cannot have taken. Nothing is done to tables that are whole.
    """
    folder = layout.warehouse / layout.pipeline
    if not folder.is_dir():
        return []
    with alone(folder):
        found = [each for root in roots(folder) if (each := mended(root, now=now))]
        if why := unmatched(layout):
            version, told = why
            aside.set_aside(layout.table("master"), version, told, now=now)
            found.append(f"master ends before version {version}: {told}")
    return found


def roots(folder: Path) -> Iterator[Path]:
    """Give the folders of a pipeline's tables."""
    for place in PLACES:
        for log_folder in sorted(folder.glob(f"{place}/{delta_log.FOLDER}")):
            yield log_folder.parent


def mended(root: Path, *, now: datetime) -> str:
    """Set aside the end of one table's log, if it is not whole; say so."""
    if (found := damage(root)) is None:
        return ""
    said = f"{root.name} ends before version {found.version}: {found.why}"
    if root.name in ALWAYS and found.whole:
        # What is synced as it is written loses its last entries only, and none before one that is whole.
        raise OutOfStep(
            f"{root} is broken at version {found.version}, and {found.whole} later commits are whole: {found.why}.",
            hint="no power cut does this: bring the table back from a backup.",
        )
    if not opens_below(root, found.version):
        raise OutOfStep(
            f"{root} is broken at version {found.version}, and nothing whole is left below it: {found.why}.",
            hint="bring the table back from a backup.",
        )
    aside.set_aside(root, found.version, found.why, now=now)
    return said


def unmatched(layout: Layout) -> tuple[int, str] | None:
    """Find the first commit of the master that relies on refused records which the quarantine has lost.

    The master is looked at first: what it relies on was committed before. OutOfStep where a statement relies on them.
    """
    if not Master.exists(layout):
        return None
    master, mark = Table.open(layout.table("master")), MARK + QUARANTINE
    relied = master.txn(mark)
    try:
        held = number(Table.open(layout.table(QUARANTINE)), EPOCH)
    except NotFound:
        held = NOTHING
    if relied is None or relied <= held:
        return None
    if (first := relying(master, mark, held)) is None:
        raise OutOfStep(
            f"The quarantine ends at epoch {held}, and the master relies on its records up to epoch {relied}.",
            hint="no power cut does this: bring the quarantine back from a backup.",
        )
    return first, f"the quarantine has lost records that it relies on: it ends at epoch {held}"


def relying(master: Table, mark: str, held: int) -> int | None:
    """Give the first version whose ``mark`` is above a number; None where a statement's is, or entries are gone."""
    first: int | None = None
    for version in range(master.version, -1, -1):
        if (commit := delta_log.read(master.root, version)) is None:
            return None
        if mark in commit.txns:
            if commit.txns[mark] <= held:
                return first
            if LINE in commit.txns:
                return None
            first = version
    return first


def require_served(layout: Layout, master: Master) -> None:
    """Raise OutOfStep where a generation is served that has seen more than the master holds."""
    served = ManifestTable.ensure(layout).read().published.values()
    published = max((each.epoch for each in served), default=NOTHING)
    if why := beyond(Said(master.epoch), {}, published):
        raise out_of_step(why)


def out_of_step(why: str) -> OutOfStep:
    """Say what a person has to decide about."""
    return OutOfStep(
        f"The tables are not of one history: {why}.",
        hint="no power cut does this: bring the table that was restored alone back to what it was.",
    )


def agree(tables: Tables, frontiers: Mapping[str, int], *, token: int, named: int = NOTHING) -> Go:
    """Do what a start has to before it holds an epoch; give the last number taken, and W of each view.

    OutOfStep where a person has to decide. ``named`` is as in ``plan.repair``.
    """
    steps = planned(tables, frontiers, token=token, named=named)
    for step in steps:
        do(tables, step)
    last = steps[-1]
    assert isinstance(last, Go)
    return last


def planned(tables: Tables, frontiers: Mapping[str, int], *, token: int, named: int) -> list[Step]:
    """List what a start has to do."""
    end = tables.master.epoch
    return repair(
        said(tables, frontiers),
        word(tables.quarantine),
        word(tables.ledger.table),
        {view: replace(word(table), crosses=crosses(table, end)) for view, table in tables.slices.items()},
        boot=boot(),
        token=token,
        named=named,
    )


def crosses(slices: Table, end: int) -> bool:
    """Tell whether some slices are of epochs up to E and beyond: they were merged before the master was brought back.

    Where nothing of theirs is beyond, no file is looked at.
    """
    if number(slices, EPOCH) <= end:
        return False
    columns = ["from_epoch", "to_epoch"]
    for piece in pieces(slices, *columns):
        if piece.first <= end < piece.last:
            rows = pq.read_table(slices.root / piece.path, columns=columns, partitioning=None)
            over = zip(rows["from_epoch"].to_pylist(), rows["to_epoch"].to_pylist(), strict=True)
            if any(first <= end < last for first, last in over):
                return True
    return False


def named(layout: Layout, manifest: Manifest) -> int:
    """Give the newest number that births, builds and savepoints name."""
    numbers = [birth - 1 for birth in manifest.births.values()]
    if Table.exists(layout.table("builds")):
        numbers.append(Builds(Table.open(layout.table("builds"))).newest_cut)
    if Table.exists(layout.table("control")):
        control = ControlTable.ensure(layout).read()
        numbers += [each.epoch for each in control.savepoints]
        numbers += [each.epoch for each in control.restated]
    return max(numbers, default=NOTHING)


def said(tables: Tables, frontiers: Mapping[str, int]) -> Said:
    """Read what the master says."""
    master = tables.master.table
    return Said(
        tables.master.epoch,
        master.txn(LINE),
        master.txn(BOOT),
        number(master, TAKEN),
        aside.newest(master.root, EPOCH),
        {view: number(master, MARK + view) for view in tables.slices},
        frontiers,
    )


def do(tables: Tables, step: Step) -> None:
    """Take one step."""
    match step:
        case Stop(why):
            raise out_of_step(why)
        case State(line, started, taken, frontiers):
            tables.quarantine.sync()
            relied = {QUARANTINE: tables.quarantine, **tables.slices}
            state(tables.master.table, line, started, taken, frontiers, relied)
        case Trim(_, line, named):
            trim(tables.ledger, tables.master, line=line, named=named)
        case Bring(name, line):
            tables.others[name].append([], txns={LINE: line})


def state(
    master: Table,
    line: int,
    started: int,
    taken: int,
    frontiers: Mapping[str, int],
    relied: Mapping[str, Table],
) -> None:
    """Say in the master that a line begins, and what it relies on."""
    marks = {MARK + name: number(table, EPOCH) for name, table in relied.items()}
    stated = {FRONTIER + view: frontier for view, frontier in frontiers.items()}
    master.append([], txns={LINE: line, BOOT: started, TAKEN: taken, **marks, **stated}, sync=True)
    # The first line of all is no news.
    level = logging.INFO if taken == NOTHING else logging.WARNING
    log.log(level, "Line %s begins: numbers go on above %s, W is %s", line, taken, dict(frontiers))
