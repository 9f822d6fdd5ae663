"""Verdicts on epochs that the log has lost, or whose rows are lost: they, and all of their attempts, count no more.

An attempt's files do not separate its epochs. Those of them that are committed are validated again by the next build.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator

from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.storage.rewrites import PARTITION, list_live_pieces, take_out
from seamline.lake.store.locations import Location, list_places
from seamline.lake.tables.reprocessed import ATTEMPT, parse_verdict
from seamline.model.protocol.seam import NOTHING

log = logging.getLogger("seamline.stream")


def newest_reprocessed_epoch(layout: Layout) -> int:
    """Return the newest epoch that was validated again by any record version, NOTHING if none was."""
    return max(
        (
            each.last
            for table in open_verdict_tables(layout)
            for each in list_live_pieces(table, "epoch", "epoch")
        ),
        default=NOTHING,
    )


def delete_lost_verdicts(layout: Layout, end: int) -> None:
    """Delete the verdicts of attempts that count no more; ``end`` is E of a start that has committed none yet.

    Those at epochs above it, and those without rows: rows and verdicts are two tables, and nobody syncs either, so a
    power cut, or a backup of one of them, may leave verdicts alone.
    """
    tables = list(open_verdict_tables(layout))
    # Each attempt has one commit, and one file.
    if gone := sum(remove_lost_epoch_files(table, end) for table in tables):
        log.warning(
            "%s attempts at reprocessing are of epochs that the log has lost and no longer count", gone
        )
    if gone := sum(remove_files(table, list_rowless_files) for table in tables):
        log.warning("%s attempts at reprocessing have lost their rows and no longer count", gone)


def remove_lost_epoch_files(table: Table, end: int) -> int:
    """Remove the files with epochs above a number from a table, again while others commit."""

    def lost(table: Table) -> set[str]:
        return {each.path for each in list_live_pieces(table, "epoch", "epoch") if each.last > end}

    return remove_files(table, lost)


def remove_files(table: Table, choose: Callable[[Table], Collection[str]]) -> int:
    """Remove the files that ``choose`` names from a table, again while others commit; return how many."""

    def once() -> int:
        table.refresh()
        return take_out(table, choose(table))

    return retry_overtaken(once, attempts=None)


def list_rowless_files(table: Table) -> set[str]:
    """List the files with verdicts that count records, and whose attempt has no rows in the table beside."""
    # After the verdicts: rows are committed before.
    there, found = list_attempts_with_rows(table.root.parent / "rows"), set()
    for row in table.actions().to_pylist():
        first, last = row.get(f"min.{ATTEMPT}"), row.get(f"max.{ATTEMPT}")
        if first is None or first != last or first not in there:
            texts = read_plain_columns(table.root / row["path"], ["verdict"])["verdict"].to_pylist()
            verdicts = map(parse_verdict, texts)
            if any((each.accepted or each.refused) and each.attempt not in there for each in verdicts):
                found.add(row["path"])
    return found


def list_attempts_with_rows(root: Location) -> set[str]:
    """List the attempts that a table has rows of; the rows of an attempt are one commit."""
    if not Table.exists(root):
        return set()
    actions = Table.open(root).actions()
    name = f"{PARTITION}{ATTEMPT}"
    return set(actions[name].to_pylist()) if name in actions.column_names else set()


def open_verdict_tables(layout: Layout) -> Iterator[Table]:
    """Open the verdicts of every record version."""
    for folder in list_places(layout.table("records"), "*/verdicts"):
        if Table.exists(folder):
            yield Table.open(folder)
