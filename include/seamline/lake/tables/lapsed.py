"""What an answer of the past was made of and is gone: it is refused then, not given of what is left."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from seamline.lake.log.log_lines import LINE, TAKEN, read_app_version
from seamline.lake.log.pinned_log import Log
from seamline.lake.storage import log_store
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import BadRange
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.time.intervals import EPOCH as ZERO
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.maintain.repair_steps import has_unaccounted_gap


def require_epochs(
    layout: Layout, view: CompiledView, log: Log, held: EpochNumbers, *, epoch: int, instant: datetime
) -> None:
    """Raise BadRange if the log may have lost epochs committed by an instant, above the last it knows of then.

    Where a line begins, the numbers show it: they leap from the last that was assigned.
    """
    following = held.after(epoch)
    if following is None and log.epoch == epoch:
        following = read_cached_table(
            layout.table("master"), ("line after", instant), partial(line_after, instant)
        )
    if following is not None and has_unaccounted_gap(epoch, following):
        raise lapsed_answer_error(
            view, instant, f"epochs above {epoch} may have been in the log then and have been lost since"
        )


def line_after(instant: datetime, master: Table) -> int | None:
    """Return the first number of a line that began above E and after an instant; None if there is none."""
    first: datetime | None = None
    for version in range(master.version, -1, -1):
        commit = log_store.read_commit(master.root, version)
        if commit is None or EPOCH in commit.txns:
            break
        if LINE in commit.txns:
            first = ZERO + timedelta(milliseconds=int(commit.info.get("timestamp", 0)))
    # What was stated within a millisecond was stated at any instant of it.
    after = first is not None and first + timedelta(milliseconds=1) > instant
    return read_app_version(master, TAKEN) + 1 if after else None


def lapsed_answer_error(view: CompiledView, instant: datetime, why: str) -> BadRange:
    """Make the error that says that an answer of the past cannot be given any more."""
    return BadRange(
        f"What {view.qualified} answered at {format_utc_instant(instant)} can no longer be read: {why}.",
        hint="ask for a later instant, or for intervals of which everything is kept (seamline history).",
    )
