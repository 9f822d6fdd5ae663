"""The history of a Delta table: the files of a version, or those that were appended since it was imported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from seamline.lake.imports.history_facts import (
    LOOKING,
    Footer,
    History,
    ImportedTable,
    look_at_file,
    to_utc,
)
from seamline.lake.imports.staged_rows import stage_live_rows
from seamline.lake.store.locations import Location, parse_location
from seamline.model.errors import BadRange, StoreUnavailable
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.plan.stream.import_plan import HistoryFile, TakenFiles
from seamline.runtime.storage_failures import store_failed

OTHERWISE = (
    "check the table by its own engine; where it has a feature that is missing here, import a Parquet export."
)


def find_delta_history(
    text: str,
    place: Location,
    staging: Location,
    time_column: str,
    version: int | None,
    known: TakenFiles,
    imported: Mapping[str, ImportedTable],
) -> History:
    """Find the files of a version of a Delta table, or those that were appended since it was imported; BadRange."""
    try:
        table = DeltaTable(str(place), version=version)
        told, settings = table.protocol(), table.metadata().configuration
        live = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        features = set(told.reader_features or ())
        deleted = read_deletions(table) if "deletionVectors" in features else {}
    except DeltaError as error:
        if failed := store_failed(error):
            raise failed from None
        raise BadRange(
            f"The Delta table at {text!r} cannot be read: {str(error).splitlines()[0]}.", hint=OTHERWISE
        ) from None
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise BadRange(
            f"{text!r} is a Delta table with column mapping, which cannot be imported.",
            hint="export it as Parquet, and import that.",
        )
    id, left, gone = str(table.metadata().id), list[HistoryFile](), list[HistoryFile]()
    columns, parts = pa.schema(table.schema().to_arrow()), tuple(table.metadata().partition_columns)
    if (before := imported.get(id)) is not None:
        # Where compaction has put rows that were imported, their files have other names.
        live, deleted = [], {}
        for each in before.left:
            (left if parse_location(each.path).exists() else gone).append(each)
        if before.version < table.version():
            live = list_appended_files(text, place, before.version, table.version())
    looked = look_at_live_files(text, place, [each["path"] for each in live], time_column)
    types = {name: columns.field(name).type for name in parts}
    found = [
        describe_delta_file(each, footer, place, deleted.get(unquote(each["path"])), staging, types, known)
        for each, footer in zip(live, looked, strict=True)
    ]
    about = f"Delta version {table.version()}"
    return History(text, about, (*left, *found), columns, id, table.version(), tuple(gone))


def look_at_live_files(text: str, place: Location, paths: Sequence[str], time_column: str) -> list[Footer]:
    """Look at files of a Delta table; BadRange if one was vacuumed."""
    try:
        return (
            LOOKING.map(lambda path: look_at_file(file_of(place, path), time_column), paths) if paths else []
        )
    except FileNotFoundError as error:
        raise BadRange(
            f"A file of {text!r} is gone: {error}.",
            hint="it was vacuumed after another took its place: import its rows from an export.",
        ) from None


def read_deletions(table: DeltaTable) -> dict[str, Sequence[bool]]:
    """Return which rows are kept of the files with a deletion vector, by their paths in the table."""
    rows = pa.table(table.deletion_vectors()).to_pylist()
    root = table.table_uri.rstrip("/") + "/"
    return {unquote(each["filepath"].removeprefix(root)): each["selection_vector"] for each in rows}


def describe_delta_file(
    action: Mapping[str, Any],
    footer: Footer,
    place: Location,
    keep: Sequence[bool] | None,
    staging: Location,
    types: Mapping[str, pa.DataType],
    known: TakenFiles,
) -> HistoryFile:
    """Describe one live file of a Delta table; of one with a deletion vector what was staged of it."""
    name, read, rows, mark = unquote(action["path"]), file_of(place, action["path"]), footer.rows, footer.mark
    if keep is not None:
        mark = f"{mark[:24]}{hashlib.sha256(bytes(keep)).hexdigest()[:8]}"
        rows -= sum(not each for each in keep)
        if not known.is_whole(HistoryFile(name, mark, "", rows, 0)):
            read = stage_live_rows(read, keep, staging, mark)
    stated = action.get("partition") or {}
    values = tuple(
        (column, json.dumps(spell_partition(stated.get(column), type))) for column, type in types.items()
    )
    return HistoryFile(name, mark, str(read), rows, footer.size, footer.low, footer.high, values=values)


def spell_partition(value: object, type: pa.DataType) -> object:
    """Return a partition's value as JSON has it: a log has it as text, empty for NULL, a listing by its type."""
    if value is None or value == "":
        return None
    typed = pa.scalar(value).cast(type).as_py() if isinstance(value, str) else value
    if isinstance(typed, datetime):
        return format_utc_instant(to_utc(typed))
    return typed if isinstance(typed, bool | int | float | str) else str(typed)


def file_of(place: Location, path: str) -> Location:
    """Return the file that an action of a Delta log names."""
    return parse_location(path) if "://" in path else place / unquote(path)


def list_appended_files(text: str, place: Location, after: int, until: int) -> list[dict[str, Any]]:
    """List what was appended in versions after one, as paths and partitions; it may be compacted since.

    BadRange if one of these versions took rows away, or the log no longer has it.
    """
    found: list[dict[str, Any]] = []
    for version in range(after + 1, until + 1):
        commit = read_table_commit(place, version)
        if commit is None:
            raise BadRange(
                f"The log of {text!r} no longer has version {version}; it was imported up to {after}.",
                hint="nobody can tell which rows are new: import them from an export with an event id or --until.",
            )
        if commit.rewrites:
            raise BadRange(
                f"Version {version} of {text!r} rewrites or deletes rows that were imported up to version {after}.",
                hint=f"import up to --version {version - 1}; what is imported is not changed by it."
                if version > after + 1
                else "what is imported is not changed by it; later versions cannot be imported.",
            )
        found += commit.appended
    return found


@dataclass(frozen=True)
class TableCommit:
    """What one version of a Delta table has changed."""

    appended: tuple[dict[str, Any], ...]
    """Files that it has appended: their ``path`` and ``partition`` values."""
    rewrites: bool
    """Whether it takes rows away; files that only have other places, as after compaction, are neither."""
    at: datetime | None
    """When it was committed, UTC, as far as it says that."""


def read_table_commit(place: Location, version: int) -> TableCommit | None:
    """Read what a version of a Delta table has changed; None if its log does not have it, or not any more."""
    try:
        text = locate_commit(place, version).read_text()
    except FileNotFoundError:
        return None
    try:
        actions = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        actions = []
    if not actions:
        raise StoreUnavailable(
            f"The entry of version {version} in the log at {str(place)!r} is not whole yet.",
            hint="it is read again shortly; if it stays like this, check the table by its own engine.",
        )
    changing = [
        each for each in actions for kind in ("add", "remove") if each.get(kind, {}).get("dataChange")
    ]
    rewrites = any("remove" in each or each["add"].get("deletionVector") for each in changing)
    adds = [each["add"] for each in changing if "add" in each]
    said: dict[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    millis = [
        said.get("inCommitTimestamp") or said.get("timestamp"),
        *(each.get("modificationTime") for each in adds),
    ]
    return TableCommit(
        tuple({"path": each["path"], "partition": each.get("partitionValues")} for each in adds),
        rewrites,
        next((EPOCH + timedelta(milliseconds=at) for at in millis if at), None),
    )


def describe_appended_files(
    text: str, place: Location, appended: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType]
) -> list[HistoryFile]:
    """Describe files that a version has appended, in the order of its log; BadRange if one was vacuumed."""
    looked = look_at_live_files(text, place, [each["path"] for each in appended], "")
    return [
        describe_delta_file(each, footer, place, None, place, types, TakenFiles())
        for each, footer in zip(appended, looked, strict=True)
    ]


def read_written_times(place: Location, version: int) -> dict[str, datetime]:
    """Return when each live file of a version was written, UTC, by its path in the table."""
    live = pa.table(DeltaTable(str(place), version=version).get_add_actions(flatten=False)).to_pylist()
    return {unquote(each["path"]): EPOCH + timedelta(milliseconds=each["modification_time"]) for each in live}


def locate_commit(place: Location, version: int) -> Location:
    """Return the file of a version in the log of a Delta table."""
    return place / "_delta_log" / f"{version:020}.json"
