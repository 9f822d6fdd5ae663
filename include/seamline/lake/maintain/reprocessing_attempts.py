"""Rows of attempts at validating records again that came to nothing: out of their table, then off the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import pyarrow.compute as pc

from seamline.lake.maintain.cleaning import PINNED_HOURS, list_tombstones
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.storage.rewrites import PARTITION, Upkeep, take_out
from seamline.lake.store.locations import Location, list_places, path_below
from seamline.lake.tables.reprocessed import ATTEMPT, EPOCHS, read_version_verdicts
from seamline.model.errors import Conflict
from seamline.plan.maintain.failed_attempts import dead_attempts
from seamline.plan.maintain.slice_upkeep import CommittedEpochs

REASON = "of an attempt at reprocessing that another overtook"


def swept_attempts(layout: Layout, held: CommittedEpochs) -> Upkeep:
    """Clear away what dead attempts of every record version left."""
    done = Upkeep()
    for folder in list_places(layout.table("records"), "*"):
        if Table.exists(folder / "rows") and Table.exists(folder / "verdicts"):
            done = done.plus(clean_version_attempts(folder, held))
    return done


def clean_version_attempts(folder: Location, held: CommittedEpochs) -> Upkeep:
    """Clear away what dead attempts of one record version left."""
    # The attempts are listed first: earlier verdicts do not decide about those that begin later.
    attempts = {path: path.name.partition("=")[2] for path in (folder / "rows").glob(f"{ATTEMPT}=*")}
    epochs = {attempt: epochs_of(path) for path, attempt in attempts.items()}
    verdicts = {number: each.attempt for number, each in read_version_verdicts(folder).items()}
    dead = dead_attempts(epochs, verdicts, held.dead)
    if not dead:
        return Upkeep()
    table = Table.open(folder / "rows")
    files = table.actions().select(["path", f"{PARTITION}{ATTEMPT}"])
    try:
        take_out(
            table,
            {path for path, attempt in zip(*files.to_pydict().values(), strict=True) if attempt in dead},
        )
    except Conflict as conflict:
        return Upkeep(refused=(conflict.message,))
    return delete_attempt_files(table, {path for path, attempt in attempts.items() if attempt in dead})


def epochs_of(folder: Location) -> set[int]:
    """Read which epochs an attempt is about: as it wrote down, else by its rows; a file cut short says nothing.

    Nobody syncs what it wrote down.
    """
    if (folder / EPOCHS).is_file():
        lines = (folder / EPOCHS).read_bytes().split()
        if lines and all(line.isdigit() for line in lines):
            return set(map(int, lines))
    found: set[int] = set()
    for path in folder.glob("*.parquet"):
        try:
            found |= set(pc.unique(read_plain_columns(path, ["_epoch"])["_epoch"]).to_pylist())
        except (OSError, ValueError):
            continue
    return found


def delete_attempt_files(table: Table, folders: Collection[Location]) -> Upkeep:
    """Delete the files of dead attempts, but those that a reader may have pinned, and then their folders."""
    live = set(table.actions()["path"].to_pylist())
    pinned = live | (list_tombstones(table, 0) - list_tombstones(table, PINNED_HOURS))
    count: Counter[str] = Counter()
    left = 0
    for folder in folders:
        for path in list_places(folder, "*.parquet"):
            if path_below(path, table.root) in pinned:
                left += 1
            else:
                path.unlink(missing_ok=True)
                count[REASON] += 1
        if not any(folder.glob("*.parquet")):
            (folder / EPOCHS).unlink(missing_ok=True)
            folder.rmdir()
    why = "files of dead attempts at reprocessing: a reader may have pinned them"
    return Upkeep(deleted=count, left={why: left} if left else {})
