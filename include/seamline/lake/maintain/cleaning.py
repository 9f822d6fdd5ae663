"""Cleaning: rows of dead epochs leave their tables, files that nobody can commit leave the disk (rule 16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from datetime import UTC, datetime

from seamline.lake.storage import set_aside
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import TOKEN
from seamline.lake.storage.rewrites import APP, Upkeep, discard_refused_files, replace_files
from seamline.lake.store.locations import Location, delete_files, list_names
from seamline.model.errors import Conflict
from seamline.plan.maintain.slice_upkeep import CommittedEpochs, Piece, find_orphan_reason

PINNED_HOURS = 24
"""How long a removed file stays on disk for readers of an older version: as long as the log of slices."""


def remove_dead_epochs(root: Location, held: CommittedEpochs) -> Upkeep:
    """Remove the rows of dead epochs from the quarantine, whose files are of one epoch each."""
    table = Table.open(root)
    gone = [
        Piece(row["path"], row["size_bytes"], row["min._epoch"], row["max._epoch"])
        for row in table.actions().to_pylist()
        if row.get("min._epoch") is not None
        and row["min._epoch"] == row["max._epoch"]
        and held.dead(row["max._epoch"])
    ]
    if not gone:
        return Upkeep()
    try:
        replace_files(table, gone, [])
    except Conflict as conflict:
        return discard_refused_files(table, [], conflict)
    return Upkeep(dead=len(gone))


def vacuum_table(
    root: Location, held: CommittedEpochs, *, needed: Callable[[], Set[str]] = frozenset[str]
) -> Upkeep:
    """Delete files that no commit names and none can (rule 16), and those removed longer ago than any read.

    Those of commits that were set aside stay as long as these do, and those that are ``needed``: that is asked after
    the table was looked at, so that who begins to need something is either seen or finds the newest version (rule 32).
    """
    set_aside.delete_expired_aside(root, now=datetime.now(UTC))
    kept = set_aside.list_aside_files(root)
    on_disk = [name for name in list_names(root) if name.endswith(".parquet") and name not in kept]
    # The table is opened after the folder was listed: what was committed in between is in the table.
    table = Table.open(root)
    live = set(table.actions()["path"].to_pylist())
    removed, expired = list_tombstones(table, 0), list_tombstones(table, PINNED_HOURS)
    waited = needed() if expired else frozenset()
    deleted: Counter[str] = Counter()
    left: Counter[str] = Counter()
    gone: list[Location] = []
    for name in set(on_disk) - live:
        if name in waited:
            left["removed files that a sink has still to compare"] += 1
            continue
        if name in removed:
            why = "removed over a day ago" if name in expired else ""
        else:
            why = find_orphan_reason(name, held, token=table.txn(TOKEN), upkept=table.txn(APP))
        if why:
            gone.append(root / name)
            deleted[why] += 1
        elif name in removed:
            left["files removed less than a day ago: a reader may have pinned them"] += 1
        else:
            left[f"{root.name} files that a writer may still commit"] += 1
    delete_files(gone)
    return Upkeep(deleted=deleted, left=left)


def list_tombstones(table: Table, hours: int) -> set[str]:
    """List the files that commits removed more than so many hours ago, as far as the log remembers."""
    found = table.handle.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False)
    return set(found)
