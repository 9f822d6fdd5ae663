"""Checkpoints of tables in a bucket: written beside what is committed, since each reads what it sums up."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from deltalake.exceptions import DeltaError

from seamline.lake.storage.log_cleanup import BEATS, delete_old_entries
from seamline.lake.storage.log_wholeness import open_delta_handle
from seamline.lake.store.explained_errors import explain_errors
from seamline.lake.store.locations import Location
from seamline.lake.store.side_by_side import Threads

WRITING = Threads("checkpoint", 2)
log = logging.getLogger("seamline.lake")


def begin_checkpoint(root: Location, retention: timedelta) -> None:
    """Begin to write a checkpoint of a table as it is now, or a little later."""
    # A process that is about to end can begin nothing: the commit has landed all the same.
    with suppress(RuntimeError):
        WRITING.submit(write_checkpoint, (root, retention))


def write_checkpoint(asked: tuple[Location, timedelta]) -> None:
    """Write a checkpoint, by a handle that nobody else moves; without one readers have more to go through."""
    root, retention = asked
    try:
        with explain_errors(root):
            open_delta_handle(root).create_checkpoint()
        if root.name in BEATS:
            delete_old_entries(root, retention, now=datetime.now(UTC))
    except (DeltaError, OSError) as error:
        log.warning("No checkpoint of %s was written: %s", root, error)
