"""Since which version a serving table has shown a row as it is, as far as files of earlier versions are still there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from seamline.lake.read.sinks.served_changes import UNCOMPARED
from seamline.lake.read.sinks.shown_rows import ShownRows
from seamline.lake.storage.log_entries import Commit
from seamline.lake.storage.log_store import read_commit
from seamline.lake.tables.sinks.served_versions import read_commit_time
from seamline.model.errors import NotFound

WALKED = 100
"""Commits that are looked at: in a bucket each is a request."""


@dataclass(frozen=True)
class ShownSince:
    """Since when a row has been shown as it is."""

    version: int
    """The version of the serving table."""
    at: datetime | None
    """When that was committed, UTC; None if its commit does not say."""
    exact: bool
    """Whether the version before it showed another row, or none; else it may have been shown so for longer."""


def find_shown_since(shown: ShownRows, row: pa.Table, places: Sequence[str]) -> ShownSince:
    """Walk back from a version that shows a row to the one that made it so."""
    interval = row["interval"][0].as_py()
    files = {path for path, each in shown.version.files.items() if each == interval}
    since, exact = shown.version.number, False
    for number in range(shown.version.number, max(shown.version.number - WALKED, 0), -1):
        commit = read_commit(shown.version.root, number)
        if commit is None or commit.shape:
            break
        added = files & {add["path"] for add in commit.adds}
        files = (files - added) | list_removed(commit, interval)
        if not added:
            continue
        since, version = number, replace(shown.version, files=dict.fromkeys(files, interval))
        try:
            before = replace(shown, version=version).find(row, places)
        except NotFound:
            break
        if list_values(before) != list_values(row):
            exact = True
            break
    return ShownSince(since, read_commit_time(shown.version.root, since), exact)


def list_removed(commit: Commit, interval: str) -> set[str]:
    """List the files of an interval that a commit has removed, and those of which it does not say the interval."""
    told = {each["path"]: (each.get("partitionValues") or {}).get("interval") for each in commit.removals}
    return {path for path, each in told.items() if each in (None, interval)}


def list_values(rows: pa.Table) -> list[Mapping[str, Any]]:
    """List what rows say, without what says of when they are."""
    names = [name for name in rows.column_names if name not in UNCOMPARED]
    found: list[Mapping[str, Any]] = rows.select(names).to_pylist()
    return found
