"""What killed builds left below the generations' folders, and reports that nobody will look for."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from seamline.lake.maintain.cleaning import list_tombstones
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.rewrites import Upkeep
from seamline.lake.store.locations import delete_folder
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.claims_table import claims_of
from seamline.lake.tables.generations import CLOSED
from seamline.model.errors import Conflict
from seamline.model.protocol.manifest import Manifest
from seamline.plan.maintain.unneeded import (
    find_last_abandoned_second,
    list_expired_reports,
    parse_build_start,
)


def clean_run_leftovers(layout: Layout, manifest: Manifest, *, now: datetime) -> Upkeep:
    """Delete the folders of builds that nobody waits for, of all view versions, and old reports."""
    until = find_last_abandoned_second(claims_of(layout, now=now), now=now)
    done = Upkeep()
    for view in manifest.births:
        if Table.exists(layout.generations_of(view)):
            done = done.plus(delete_abandoned_builds(Table.open(layout.generations_of(view)), until))
    return done.plus(delete_old_reports(layout, manifest, now=now))


def delete_abandoned_builds(table: Table, until: int) -> Upkeep:
    """Delete the folders of generations that no commit names and that were begun up to a second.

    That a build has no claim, or is old, proves nothing: it may have slept, or been cut off, and be at its last file.
    So the table is closed to it first. Every build's commit carries CLOSED: one that has not seen the closing is
    refused by it, one that has does not commit. What had committed before is seen then, and stays.
    """
    closing = [
        at for at in map(parse_build_start, list_uncommitted_folders(table)) if at is not None and at <= until
    ]
    try:
        if closing and (table.txn(CLOSED) or 0) < max(closing):
            table.append([], txns={CLOSED: until})
    except Conflict as conflict:
        return Upkeep(refused=(conflict.message,))
    left, count = 0, 0
    for name in list_uncommitted_folders(table):
        at = parse_build_start(name)
        if at is not None and at <= (table.txn(CLOSED) or 0):
            delete_folder(table.root / name)
            count += 1
        else:
            left += 1
    return Upkeep(
        deleted={"(folders) of builds that were given up": count} if count else {},
        left={"generations that no commit names: their build may still run": left} if left else {},
    )


def list_uncommitted_folders(table: Table) -> Collection[str]:
    """List the folders of generations of which no file is in the table, or was until a while ago."""
    folders = {
        path.name for path in table.root.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))
    }
    paths = {*table.actions()["path"].to_pylist(), *list_tombstones(table, 0)}
    return folders - {path.partition("/")[0] for path in paths}


def delete_old_reports(layout: Layout, manifest: Manifest, *, now: datetime) -> Upkeep:
    """Delete the reports of runs that built nothing anybody may serve any more."""
    if not layout.table("reports").is_dir() or not Table.exists(layout.table("builds")):
        return Upkeep()
    rows = [(row.run, row.view, row.interval, row.generation, row.at) for row in Builds.ensure(layout).all()]
    count = 0
    for run in list_expired_reports(manifest, rows, now=now):
        if layout.report(run).is_dir():
            delete_folder(layout.report(run))
            count += 1
    return Upkeep(deleted={"(folders) of reports of what is served no more": count} if count else {})
