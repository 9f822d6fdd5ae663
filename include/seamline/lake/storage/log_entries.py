"""The entries of a Delta table's log as bytes: what a commit says, how ours is spelled, whether one is whole.

Source: the Delta transaction protocol (https://github.com/delta-io/delta/blob/master/PROTOCOL.md), "Actions", "Commit
Provenance Information". A commit of ours states in its ``commitInfo``, its first line, an id of its own, the id of the
commit before it, and the number and the CRC-32 of its other lines: a power cut may leave any part of a file, or zeros.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote
from zlib import crc32

from deltalake.transaction import AddAction, RemoveAction

ID = "txnId"
"""As Delta calls it; what follows is ours."""
AFTER = "seamline.after"
LINES = "seamline.lines"
SUM = "seamline.crc32"
UNQUOTED = "/="
"""What stands in a path as it is, beside letters, digits and ``-._~``."""
ENGINE = "Seamline"
OURS = "seamline."
"""How app ids of ours begin."""
BY = "seamline.by"
"""In a commit that deltalake made for us: whose it is."""
Action = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Commit:
    """One version of a table, as its log entry has it."""

    version: int
    """-1 for a draft."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """The ``commitInfo``."""
    txns: Mapping[str, int] = field(default_factory=dict)
    """Versions of ``txn`` actions by app id."""
    adds: tuple[Mapping[str, Any], ...] = ()
    """The ``add`` actions."""
    removes: frozenset[str] = frozenset()
    """Paths of removed files, as the log spells them."""
    shape: bool = False
    """Whether it changes the schema or the settings, or asks for more of those who read or write."""
    removals: tuple[Mapping[str, Any], ...] = ()
    """The ``remove`` actions."""

    @property
    def ours(self) -> bool:
        """Return whether a release of ours made it, by itself or through deltalake."""
        return (
            self.info.get("engineInfo") == ENGINE
            or self.info.get(BY) == ENGINE
            or any(app.startswith(OURS) for app in self.txns)
        )

    @property
    def changes(self) -> bool:
        """Return whether it puts rows in or takes some out."""
        return any(each.get("dataChange", True) for each in (*self.adds, *self.removals))

    @property
    def id(self) -> str:
        """Its own id, which no other commit has; empty if another writer set none."""
        return str(self.info.get(ID) or "")

    @property
    def after(self) -> str:
        """The id of the commit that it was made after; empty if its writer did not say."""
        return str(self.info.get(AFTER) or "")


@dataclass(frozen=True)
class Draft:
    """A commit of ours before it has a version."""

    commit: Commit
    """What the commit does."""
    body: bytes
    """The entry's lines after the first."""

    @classmethod
    def of(
        cls,
        files: Iterable[AddAction | RemoveAction],
        txns: Mapping[str, int],
        metadata: Mapping[str, str],
        *,
        partition_by: list[str],
        now: datetime,
    ) -> Draft:
        """Encode a commit; ``metadata`` stands in its ``commitInfo``."""
        given = list(files)
        actions: list[Action] = [
            {"remove": encode_remove_action(each)} for each in given if isinstance(each, RemoveAction)
        ]
        actions += [{"add": encode_add_action(each)} for each in given if isinstance(each, AddAction)]
        actions += [{"txn": {"appId": app, "version": version}} for app, version in txns.items()]
        body = b"".join(map(encode_action_line, actions))
        info = {
            "timestamp": int(now.timestamp() * 1000),
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": json.dumps(partition_by)},
            "engineInfo": ENGINE,
            **metadata,
            ID: str(uuid.uuid4()),
            LINES: len(actions),
            SUM: crc32(body),
        }
        return cls(summarize_actions(-1, [{"commitInfo": info}, *actions]), body)

    def placed(self, version: int, after: str) -> tuple[Commit, bytes]:
        """Return the commit and the bytes of its entry, under a version, after the commit of an id."""
        info = {**self.commit.info, AFTER: after}
        return replace(self.commit, version=version, info=info), encode_action_line(
            {"commitInfo": info}
        ) + self.body


def encode_action_line(action: Action) -> bytes:
    """Encode an action as a line of an entry."""
    return json.dumps(action, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def parse_entry(version: int, data: bytes) -> Commit:
    """Parse an entry; ValueError with the reason where it is not whole.

    A commit of another writer is whole if each of its lines is an action: what is cut off behind a line cannot be seen.
    """
    info, rest = split_first_action(data)
    try:
        return summarize_actions(version, [info, *(json.loads(each) for each in rest.splitlines())])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a line is not an action: {error}") from error


def find_entry_flaw(data: bytes) -> str:
    """Find why the bytes of an entry are not a whole commit; empty if they are.

    The lines of one of ours are not taken apart: their sum is enough.
    """
    try:
        info, _ = split_first_action(data)
        if LINES not in info.get("commitInfo", ()):
            parse_entry(-1, data)
    except ValueError as error:
        return str(error)
    return ""


def split_first_action(data: bytes) -> tuple[Action, bytes]:
    """Return the first action of an entry, and its other lines; ValueError where ours are not those that it states."""
    if not data.strip(b"\0"):
        raise ValueError("it is filled with zeros" if data else "it is empty")
    first, _, rest = data.partition(b"\n")
    try:
        action = json.loads(first)
    except ValueError as error:
        raise ValueError(f"its first line is not JSON: {error}") from error
    info = action.get("commitInfo", {}) if isinstance(action, dict) else None
    if not isinstance(info, dict):
        raise ValueError("its first line is not an action")
    if LINES in info and (found := rest.count(b"\n")) != info[LINES]:
        raise ValueError(f"it is truncated: it has {found} of {info[LINES]} lines")
    if LINES in info and crc32(rest) != info[SUM]:
        raise ValueError("its lines are not those that were written: their checksum differs")
    return action, rest


def summarize_actions(version: int, actions: Iterable[Action]) -> Commit:
    """Sum up actions; those that say nothing of files, schema or ``txn`` are passed over, as Delta has it."""
    info: Mapping[str, Any] = {}
    txns: dict[str, int] = {}
    adds, removals, removes, shape = [], [], set(), False
    for each in actions:
        for name, action in each.items():
            match name:
                case "add":
                    adds.append(action)
                case "remove":
                    removals.append(action)
                    removes.add(action["path"])
                case "txn":
                    txns[action["appId"]] = int(action["version"])
                case "commitInfo":
                    info = action
                case "metaData" | "protocol":
                    shape = True
    return Commit(version, info, txns, tuple(adds), frozenset(removes), shape, tuple(removals))


def encode_add_action(file: AddAction) -> dict[str, Any]:
    """Encode an ``add``."""
    return {
        "path": quote(file.path, safe=UNQUOTED),
        "partitionValues": file.partition_values,
        "size": file.size,
        "modificationTime": file.modification_time,
        "dataChange": file.data_change,
        "stats": file.stats,
    }


def encode_remove_action(file: RemoveAction) -> dict[str, Any]:
    """Encode a ``remove``."""
    return {
        "path": quote(file.path, safe=UNQUOTED),
        "dataChange": file.data_change,
        "deletionTimestamp": file.deletion_timestamp,
        "extendedFileMetadata": file.partition_values is not None,
        **({"partitionValues": file.partition_values} if file.partition_values is not None else {}),
        "size": file.size,
    }
