"""Generations that nobody needs: forgotten by the manifest first, then out of their table, then off the disk."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from seamline.lake.maintain.cleaning import PINNED_HOURS, list_tombstones
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.storage.rewrites import Upkeep, take_out
from seamline.lake.storage.table_cache import Files
from seamline.lake.store.locations import Location, delete_files
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.claims_table import claims_of
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.errors import Conflict
from seamline.model.protocol.manifest import Manifest, Statement
from seamline.plan.maintain.retention_rules import (
    RetentionVerdict,
    StoredGeneration,
    decide_retention,
    plan_forgetting,
)
from seamline.plan.maintain.unneeded import find_killed_build, find_last_abandoned_second

Named = Collection[tuple[str, str]]
"""Generations of one view version: (interval id, generation)."""


def list_retention_verdicts(
    layout: Layout, manifest: Manifest, *, keep: int, older_than: timedelta | None, now: datetime
) -> list[RetentionVerdict]:
    """List every generation that is there, of all versions, with whether it may be deleted."""
    rows = Builds.ensure(layout).all() if Table.exists(layout.table("builds")) else []
    built = {(row.view, row.interval, row.generation): row.at for row in rows}
    until = find_last_abandoned_second(claims_of(layout, now=now), now=now)
    held = [
        StoredGeneration(
            view,
            interval,
            generation,
            rows,
            built.get((view, interval, generation)) or find_killed_build(generation, until),
        )
        for view in manifest.births
        for (interval, generation), rows in generations_of(layout, view).items()
        if (view, interval, generation) not in manifest.forgotten
    ]
    return decide_retention(manifest, held, keep=keep, older_than=older_than, now=now)


def generations_of(layout: Layout, view: str) -> dict[tuple[str, str], int]:
    """Count the rows of every generation of a view version, by (interval id, generation)."""
    found: dict[tuple[str, str], int] = {}
    for _, interval, generation, rows in list_generation_files(layout, view):
        found[interval, generation] = found.get((interval, generation), 0) + rows
    return found


def list_generation_files(layout: Layout, view: str) -> list[tuple[str, str, str, int]]:
    """List the files of a view version's generations: path, interval id, generation, rows.

    A file is of one interval and one generation; its statistics say which, else its rows do.
    """
    root = layout.generations_of(view)
    if not Table.exists(root):
        return []
    files = Files.of(Table.open(root))
    if not files.actions.num_rows:
        return []
    columns = [
        files.actions["path"],
        files.partition("interval"),
        files.low("generation"),
        files.high("generation"),
    ]
    found = []
    for path, interval, low, high, rows in zip(
        *(column.to_pylist() for column in columns), files.actions["num_records"].to_pylist(), strict=True
    ):
        names = {low, high} if low and high else set(read_file_generations(root / path))
        if len(names) == 1:
            found.append((path, interval, names.pop(), rows))
    return found


def read_file_generations(path: Location) -> list[str]:
    """Read which generations a file is of."""
    names: list[str] = read_plain_columns(path, ["generation"])["generation"].to_pylist()
    return names


def forget_generations(
    layout: Layout,
    *,
    keep: int,
    older_than: timedelta | None = None,
    actor: str,
    reason: str,
    now: datetime | None = None,
) -> list[Statement]:
    """Let the manifest forget what may be deleted, in one commit conditional on what was read.

    Whoever publishes, or rolls back to, one of them later is refused.
    """

    def decision(manifest: Manifest) -> list[Statement]:
        at = now or datetime.now(UTC)
        found = list_retention_verdicts(layout, manifest, keep=keep, older_than=older_than, now=at)
        return plan_forgetting(found, actor=actor, reason=reason, now=at)

    return ManifestTable.ensure(layout).decide(decision)


def clean_generations(layout: Layout, manifest: Manifest) -> Upkeep:
    """Remove files of forgotten generations from their tables, and delete those removed over a day ago.

    A reader may have pinned the others. Cut short anywhere, the next one goes on.
    """
    done = Upkeep()
    for view in manifest.births:
        if Table.exists(layout.generations_of(view)):
            mine = {(interval, generation) for id, interval, generation in manifest.forgotten if id == view}
            done = (
                done.plus(remove_forgotten_files(layout, view, mine)).plus(delete_removed_files(layout, view))
                if mine
                else done
            )
    return done


def remove_forgotten_files(layout: Layout, view: str, forgotten: Named) -> Upkeep:
    """Commit the removal of the files of forgotten generations."""
    gone = {
        path
        for path, interval, name, _ in list_generation_files(layout, view)
        if (interval, name) in forgotten
    }
    try:
        count = take_out(Table.open(layout.generations_of(view)), gone)
    except Conflict as conflict:
        return Upkeep(refused=(conflict.message,))
    return Upkeep(
        left={"files of forgotten generations: a reader may have pinned them": count} if count else {}
    )


def delete_removed_files(layout: Layout, view: str) -> Upkeep:
    """Delete the files that were taken out longer ago than any read."""
    table = Table.open(layout.generations_of(view))
    live = set(table.actions()["path"].to_pylist())
    gone = [table.root / path for path in list_tombstones(table, PINNED_HOURS) - live]
    there = [each for each in gone if each.is_file()]
    delete_files(there)
    return Upkeep(deleted={"of forgotten generations": len(there)} if there else {})
