"""Verdicts on epochs that the log has lost: they, and all of their attempts, count no more.

An attempt's files do not separate its epochs. Those of them that are committed are validated again by the next build.
"""

from __future__ import annotations

from collections.abc import Iterator

from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.rewrites import list_live_pieces, take_out
from seamline.lake.store.locations import list_places
from seamline.model.protocol.seam import NOTHING


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


def delete_verdicts_above(layout: Layout, end: int) -> int:
    """Delete the verdicts of attempts at epochs above ``end``, which is E of a start that has committed none yet.

    Returns the number of those attempts: each has one commit, and one file.
    """
    return sum(remove_lost_epoch_files(table, end) for table in open_verdict_tables(layout))


def remove_lost_epoch_files(table: Table, end: int) -> int:
    """Remove the files with epochs above a number from a table, again while others commit."""

    def once() -> int:
        table.refresh()
        lost = {each.path for each in list_live_pieces(table, "epoch", "epoch") if each.last > end}
        return take_out(table, lost)

    return retry_overtaken(once, attempts=None)


def open_verdict_tables(layout: Layout) -> Iterator[Table]:
    """Open the verdicts of every record version."""
    for folder in list_places(layout.table("records"), "*/verdicts"):
        if Table.exists(folder):
            yield Table.open(folder)
