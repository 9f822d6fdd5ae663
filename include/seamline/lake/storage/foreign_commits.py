"""What other writers have done to the rows of a table, after a commit of ours.

Source: the Delta transaction protocol (https://github.com/delta-io/delta/blob/master/PROTOCOL.md), "Add File and Remove
File", ``dataChange``. A commit that puts rows in or takes some out says so; OPTIMIZE says that it does not. No release
of ours commits after another's that does, so what comes after our newest commit is all that has to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from deltalake.table import ProtocolVersions

from seamline.lake.storage import log_store
from seamline.lake.storage.log_entries import Commit
from seamline.lake.store.locations import Location
from seamline.model.errors import ChangedByOthers, NotWhole

KNOWN = frozenset(
    {"appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants", "timestampNtz"}
)
MAPPED = 2
"""The version of readers that stands for column mapping alone."""


@dataclass(frozen=True)
class Change:
    """What another writer changed in a table; a file with another deletion vector counts as another file."""

    version: int
    """The first commit that changed rows."""
    operation: str
    """What that commit calls itself."""
    engine: str
    """Who wrote that commit."""
    came: frozenset[str] = frozenset()
    """Files that were added since and are there."""
    gone: frozenset[str] = frozenset()
    """Files that were there before and are not now."""

    def refusal(self, root: Location) -> ChangedByOthers:
        """Say who has changed a table, and how that is undone."""
        before = self.version - 1
        return ChangedByOthers(
            f"{root} has been changed by another writer: its version {self.version} is a {self.operation} by "
            f"{self.engine}.",
            hint=f"restore it to version {before}, in Python by DeltaTable({str(root)!r})"
            f".restore({before}), in Spark SQL by RESTORE TABLE delta.`{root}` TO VERSION AS OF {before}. If files "
            "were deleted, by VACUUM or by hand, restore the folder from a backup.",
        )


def apply_foreign_commit(change: Change | None, commit: Commit) -> Change | None:
    """Return what is changed after one more commit; None if all files are what they were, as by RESTORE."""
    if commit.ours or (change is None and not commit.changes):
        return change
    known = change or Change(commit.version, *read_commit_origin(commit.info))
    came, gone = update_changed_files(
        known, set(map(data_file_key, commit.removals)), set(map(data_file_key, commit.adds))
    )
    return Change(known.version, known.operation, known.engine, came, gone) if came or gone else None


def update_changed_files(
    known: Change, out: set[str], into: set[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the files that differ after some were put out and some in: what goes that came is as before."""
    came = (known.came - out) | (into - (known.gone - out) - (out - known.came))
    gone = (known.gone | (out - known.came)) - into
    return frozenset(came), frozenset(gone)


def read_commit_origin(info: Mapping[str, Any]) -> tuple[str, str]:
    """Say what a commit calls itself, and which engine made it."""
    return str(info.get("operation") or "commit"), str(info.get("engineInfo") or "another writer")


def data_file_key(action: Mapping[str, Any]) -> str:
    """Name a file, and the rows of it that count. Engines spell one path in more or less of a URL's form."""
    path, vector = unquote(unquote(action["path"])), action.get("deletionVector")
    return f"{path} without {sorted(vector.items())}" if vector else path


def list_unknown_features(protocol: ProtocolVersions) -> list[str]:
    """List what a table asks of its readers and writers that neither we nor deltalake can do."""
    asked = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    if protocol.min_reader_version == MAPPED:
        asked.add("columnMapping")
    return sorted(asked - KNOWN)


def foreign_features_error(root: Location, features: Iterable[str]) -> ChangedByOthers:
    """Make the error that says what another writer has made a table ask for, and how that is undone."""
    named = ", ".join(features)
    return ChangedByOthers(
        f"{root} has been changed by another writer: it now requires {named} of its readers or writers.",
        hint=f"Seamline does not support that: remove it, in Spark SQL by ALTER TABLE delta.`{root}` DROP FEATURE, "
        "with TRUNCATE HISTORY where Delta asks for it, or restore the folder from a backup.",
    )


def find_foreign_change(root: Location, newest: Commit | None) -> Change | None:
    """Find what others have changed up to a table's newest commit, from our own last one on.

    None if none of ours is found before an entry that is gone, by another's log clean-up: who looked in the meantime
    has got the error. Ours is done by writers, which refuse such a table first.
    """
    found: list[Commit] = []
    for commit in walk_commits_back(root, newest):
        if commit.ours:
            return fold_foreign_commits(reversed(found))
        found.append(commit)
    return None


def walk_commits_back(root: Location, newest: Commit | None) -> Iterable[Commit]:
    """Go back from a commit, as far as entries are there."""
    commit = newest
    while commit is not None:
        yield commit
        try:
            commit = log_store.read_commit(root, commit.version - 1) if commit.version else None
        except NotWhole:
            return


def fold_foreign_commits(commits: Iterable[Commit]) -> Change | None:
    """Go through commits in their order."""
    change = None
    for commit in commits:
        change = apply_foreign_commit(change, commit)
    return change
