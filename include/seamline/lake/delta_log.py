"""The log of a Delta table on a file system: one JSON file a commit, put there by who comes first.

Source: the Delta transaction protocol (https://github.com/delta-io/delta/blob/master/PROTOCOL.md), "Delta Log
Entries", "Actions". A commit is a file of its own, written whole and then linked under its number, which fails
where that number is taken: what excludes two writers is the file system, for this code and for deltalake alike.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deltalake.transaction import AddAction, RemoveAction

from seamline.model.errors import ProtocolError

FOLDER = "_delta_log"
UNQUOTED = "/="
"""What stands in a path as it is, beside letters, digits and ``-._~``."""
ENGINE = "Seamline"


@dataclass(frozen=True)
class Commit:
    """One version: what it says of itself, its ``txn`` actions by app id, and its files, by their path in the log.

    ``shape`` tells that it has another schema, or other settings, or asks for more of those who read or write.
    """

    version: int
    info: Mapping[str, Any] = field(default_factory=dict)
    txns: Mapping[str, int] = field(default_factory=dict)
    adds: tuple[Mapping[str, Any], ...] = ()
    removes: frozenset[str] = frozenset()
    shape: bool = False


def entry(root: Path, version: int) -> Path:
    """Name the file of a version."""
    return root / FOLDER / f"{version:020d}.json"


def read(root: Path, version: int) -> Commit | None:
    """Read a commit; None where there is no such version, or its file was cleaned away after a checkpoint.

    ProtocolError where the file is no commit: a disk that lost power may leave it empty.
    """
    file = entry(root, version)
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return None
    try:
        if not lines:
            raise ValueError("it is empty")
        return parsed(version, lines)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(
            f"{file} is no commit of a Delta table: {error}.",
            hint="bring it back from a backup; if it is the newest and nothing came after it, take it away.",
        ) from error


def parsed(version: int, lines: Iterable[bytes]) -> Commit:
    """Take a commit apart; actions that say nothing of files, schema or ``txn`` are passed over, as Delta has it."""
    info: Mapping[str, Any] = {}
    txns: dict[str, int] = {}
    adds, removes, shape = [], [], False
    for line in lines:
        for name, action in json.loads(line).items():
            match name:
                case "add":
                    adds.append(action)
                case "remove":
                    removes.append(action["path"])
                case "txn":
                    txns[action["appId"]] = int(action["version"])
                case "commitInfo":
                    info = action
                case "metaData" | "protocol":
                    shape = True
    return Commit(version, info, txns, tuple(adds), frozenset(removes), shape)


def actions(
    files: Iterable[AddAction | RemoveAction],
    txns: Mapping[str, int],
    metadata: Mapping[str, str],
    *,
    partition_by: list[str],
    now: datetime,
) -> list[bytes]:
    """Spell the lines of a commit; ``metadata`` stands in its ``commitInfo``."""
    info = {
        "timestamp": int(now.timestamp() * 1000),
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": json.dumps(partition_by)},
        "engineInfo": ENGINE,
        **metadata,
    }
    lines: list[dict[str, Any]] = [{"commitInfo": info}]
    lines += [{"remove": removed(each)} for each in files if isinstance(each, RemoveAction)]
    lines += [{"add": added(each)} for each in files if isinstance(each, AddAction)]
    lines += [{"txn": {"appId": app, "version": version}} for app, version in txns.items()]
    return [json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() for line in lines]


def added(file: AddAction) -> dict[str, Any]:
    """Spell an ``add``."""
    return {
        "path": quote(file.path, safe=UNQUOTED),
        "partitionValues": file.partition_values,
        "size": file.size,
        "modificationTime": file.modification_time,
        "dataChange": file.data_change,
        "stats": file.stats,
    }


def removed(file: RemoveAction) -> dict[str, Any]:
    """Spell a ``remove``."""
    return {
        "path": quote(file.path, safe=UNQUOTED),
        "dataChange": file.data_change,
        "deletionTimestamp": file.deletion_timestamp,
        "extendedFileMetadata": file.partition_values is not None,
        **({"partitionValues": file.partition_values} if file.partition_values is not None else {}),
        "size": file.size,
    }


def put(root: Path, version: int, lines: Iterable[bytes]) -> bool:
    """Commit a version, whole or not at all; False where somebody else has it, OSError where nothing can be written."""
    folder = root / FOLDER
    draft = folder / f"_commit_{uuid.uuid4().hex}.json.tmp"
    try:
        draft.write_bytes(b"\n".join(lines) + b"\n")
        os.link(draft, entry(root, version))
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def checkpointed(root: Path) -> int:
    """Give the version of the last checkpoint, before which files of commits may be gone; -1 for none."""
    try:
        return int(json.loads((root / FOLDER / "_last_checkpoint").read_bytes())["version"])
    except (FileNotFoundError, ValueError):
        return -1
