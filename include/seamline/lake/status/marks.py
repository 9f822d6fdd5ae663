"""Marks: small files, and objects of a bucket, that say when something happened last."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from seamline.lake.status.status_files import read_json_file
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.store.locations import Location, replace_file
from seamline.lake.store.shared_objects import find_shared_object
from seamline.model.errors import SetupError
from seamline.model.time.intervals import format_utc_instant, parse_moment

RECONCILED = "reconciled"
"""The mark of Airflow's last look."""
RECONCILES_WITHIN = timedelta(minutes=10)
REFUSED = "refused"
"""The mark of the last supervisor that was refused the lease, or lost it."""
Mark = tuple[datetime, Mapping[str, Any]]
"""When something happened, and what was said of it."""


def find_stale_reconcile(layout: Layout, *, now: datetime) -> datetime | None:
    """Find Airflow's last look at a stream where that was long ago; None if it was not, or there never was one."""
    mark = read_mark(layout, RECONCILED)
    return mark[0] if mark and now - mark[0] > RECONCILES_WITHIN else None


def leave_mark(layout: Layout, name: str, *, now: datetime, **said: Any) -> None:
    """Leave a mark, in one step.

    A full disk, or a store that is away, costs the mark, and nothing else of what its owner does.
    """
    text = json.dumps({"at": format_utc_instant(now), **said})
    with suppress(OSError):
        file = locate_mark(layout, name)
        draft = file.with_suffix(f".{os.getpid()}.tmp")
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text)
        draft.replace(file)
    if find_shared_object(layout.status(name)):
        with suppress(OSError, SetupError):
            replace_file(layout.status(name), text.encode())


def read_mark(layout: Layout, name: str) -> Mark | None:
    """Return when something happened last, on this machine or on any at the bucket; None if it never did."""
    shared = find_shared_object(layout.status(name))
    rows = [read_json_file(locate_mark(layout, name)), shared.read()[0] if shared else None]
    return max(
        ((parse_moment(row["at"]), row) for row in rows if row), key=lambda mark: mark[0], default=None
    )


def locate_marks(layout: Layout, kind: str) -> Location:
    """Locate the folder of marks of which each is made once, by one of all machines at a bucket, else of this one."""
    if find_shared_object(layout.status(kind)):
        return layout.status(kind).parent / kind
    return home_folder() / kind / layout.pipeline


def locate_mark(layout: Layout, name: str) -> Path:
    """Locate a mark's file on this machine."""
    return home_folder() / "streams" / layout.pipeline / f"{name}.json"
