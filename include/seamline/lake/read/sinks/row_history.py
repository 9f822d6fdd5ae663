"""Since which version a serving table has shown a row as it is, as far as files of earlier versions are still there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from seamline.lake.read.sinks.served_changes import UNCOMPARED
from seamline.lake.read.sinks.shown_rows import ShownRows
from seamline.lake.storage.log_store import read_commit
from seamline.lake.tables.sinks.served_versions import ServedVersion
from seamline.model.errors import NotFound

WALKED = 300
"""Commits that are looked at."""


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
    version, since, exact = shown.version, shown.version.number, False
    for number in range(version.number, max(version.number - WALKED, 0), -1):
        commit = read_commit(version.root, number)
        if commit is None or commit.shape:
            break
        added = {add["path"] for add in commit.adds} & version.files.keys()
        version = step_back(version, added, commit.removes, row["interval"][0].as_py())
        if not added:
            continue
        since = number
        try:
            before = replace(shown, version=version).find(row, places)
        except NotFound:
            break
        if list_values(before) != list_values(row):
            exact = True
            break
    return ShownSince(since, read_time(shown.version, since), exact)


def step_back(
    version: ServedVersion, added: set[str], removed: frozenset[str], interval: str
) -> ServedVersion:
    """Return the version before one, as far as it may have rows of an interval."""
    files = {path: each for path, each in version.files.items() if path not in added}
    return replace(version, number=version.number - 1, files=files | dict.fromkeys(removed, interval))


def list_values(rows: pa.Table) -> list[Mapping[str, Any]]:
    """List what rows say, without what says of when they are."""
    names = [name for name in rows.column_names if name not in UNCOMPARED]
    found: list[Mapping[str, Any]] = rows.select(names).to_pylist()
    return found


def read_time(version: ServedVersion, number: int) -> datetime | None:
    """Read when a version was committed."""
    commit = read_commit(version.root, number)
    told = commit.info.get("timestamp") if commit else None
    return datetime.fromtimestamp(told / 1000, UTC) if isinstance(told, int) else None
