"""What a power cut has left half-written, set aside before anything is opened.

It may die anywhere, and is done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from seamline.lake.log.log_lines import LINE, MARK
from seamline.lake.log.master import Master
from seamline.lake.storage import log_store, set_aside
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.durability import ALWAYS
from seamline.lake.storage.kept.cached_table import forget_cached_table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_damage import find_log_damage, opens_below
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.store.locations import Location, list_places
from seamline.lake.store.promises import lock_folder, may_be_torn
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.errors import OutOfStep
from seamline.model.protocol.seam import NOTHING

PLACES = (
    "*",
    "views/*/serving",
    "views/*/*/slices",
    "views/*/*/generations",
    "records/*/rows",
    "records/*/verdicts",
)
QUARANTINE = "quarantine"


def repair_torn_logs(layout: Layout, *, now: datetime, accepted: bool = False) -> list[str]:
    """Set aside what ends the tables' logs too early; return a sentence for each table that lost something by it.

    OutOfStep if that would take what a power cut cannot have taken; of the master not where a person has
    ``accepted`` that refused records are lost, which stays as it is then. Nothing is done to tables that are whole.
    """
    folder = layout.warehouse / layout.pipeline
    if not folder.is_dir():
        return []
    # A second start on this machine is kept out meanwhile.
    with lock_folder(folder, "_mending.lock"):
        roots = list_table_roots(folder) if may_be_torn(folder) else ()
        found = [each for root in roots if (each := repair_torn_log(root, now=now))]
        found += cut_back(layout, now=now, accepted=accepted)
    return found


def require_whole_logs(layout: Layout) -> None:
    """Raise OutOfStep if a power cut has torn a table: a start has to set aside what it has left."""
    folder = layout.warehouse / layout.pipeline
    for root in list_table_roots(folder) if may_be_torn(folder) else ():
        if (found := find_log_damage(root)) is not None:
            raise OutOfStep(
                f"{root} is broken at version {found.version}: {found.why}.",
                hint="start the stream, which sets aside what a power loss has left, and stop it again.",
            )


def list_table_roots(folder: Location) -> Iterator[Location]:
    """List the folders of a pipeline's tables."""
    for place in PLACES:
        for log_folder in list_places(folder, f"{place}/{log_store.FOLDER}"):
            yield log_folder.parent


def repair_torn_log(root: Location, *, now: datetime) -> str:
    """Set aside the end of one table's log, if it is not whole; say so."""
    if (found := find_log_damage(root)) is None:
        return ""
    said = f"{root.name} ends before version {found.version}: {found.why}"
    if root.name in ALWAYS and found.whole:
        # What is synced as it is written loses its last entries only, and none before one that is whole.
        raise OutOfStep(
            f"{root} is broken at version {found.version}, but {found.whole} later commits are intact: {found.why}.",
            hint="no power loss can cause this: restore the table from a backup.",
        )
    if not opens_below(root, found.version):
        raise OutOfStep(
            f"{root} is broken at version {found.version}, and nothing intact is left below it: {found.why}.",
            hint="restore the table from a backup.",
        )
    set_aside.set_aside(root, found.version, found.why, now=now)
    return said


def cut_back(layout: Layout, *, now: datetime, accepted: bool) -> list[str]:
    """Set aside the end of the master that relies on refused records which the quarantine has lost; say so."""
    match find_unmatched_commit(layout):
        case None:
            return []
        case str() if accepted:
            return []
        case str(why):
            raise out_of_step(layout.pipeline, why)
        case (version, why):
            set_aside.set_aside(layout.table("master"), version, why, now=now)
            forget_cached_table(layout.table("master"))
            return [f"master ends before version {version}: {why}"]


def find_unmatched_commit(layout: Layout) -> tuple[int, str] | str | None:
    """Find the first commit of the master that relies on refused records which the quarantine has lost, and say why.

    A sentence alone where no power cut has taken them: a statement relies on them, or something that was published.
    """
    if (held := find_quarantine_end(layout)) is None:
        return None
    master = Table.open(layout.table("master"))
    first = find_relying_version(master, MARK + QUARANTINE, held)
    commit = log_store.read_commit(master.root, first) if first is not None else None
    if first is None or commit is None or commit.txns.get(EPOCH, NOTHING) <= find_synced_epoch(layout):
        return f"the quarantine ends at epoch {held}, but the master relies on later records of it"
    return first, f"the quarantine has lost records that it relies on: it ends at epoch {held}"


def find_synced_epoch(layout: Layout) -> int:
    """Find an epoch up to which log and refused records were on disk before something of them was published."""
    history = ManifestTable.ensure(layout).read().history
    return max((each.epoch for some in history.values() for each in some), default=NOTHING)


def find_quarantine_end(layout: Layout) -> int | None:
    """Find where the quarantine ends, if the master relies on more of it.

    The master is looked at first: what it relies on was committed before.
    """
    if not Master.exists(layout):
        return None
    mark = MARK + QUARANTINE
    master = layout.table("master")
    relied = read_cached_table(master, ("txn", mark), lambda table: table.txn(mark), surely=True)
    ends = read_cached_table(layout.table(QUARANTINE), ("txn", EPOCH), lambda table: table.txn(EPOCH))
    held = NOTHING if ends is None else ends
    return held if relied is not None and relied > held else None


def find_relying_version(master: Table, mark: str, held: int) -> int | None:
    """Find the first version whose ``mark`` is above a number; None if a statement's is, or entries are gone."""
    first: int | None = None
    for version in range(master.version, -1, -1):
        if (commit := log_store.read_commit(master.root, version)) is None:
            return None
        if mark in commit.txns:
            if commit.txns[mark] <= held:
                return first
            if LINE in commit.txns:
                return None
            first = version
    return first


def out_of_step(pipeline: str, why: str) -> OutOfStep:
    """Make the error that says what a person has to decide about."""
    return OutOfStep(
        f"The tables of {pipeline} do not share one history: {why}.",
        hint="no power loss can cause this: return the table that was restored alone to its previous state. If that is "
        f"lost, `seamline repair {pipeline}` shows what can be done.",
    )
