"""What is at a place that somebody names: the files of a table, with rows, bytes and event times, none of them read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from seamline.lake.imports.staged_rows import CsvDialect, stage_live_rows, stage_text
from seamline.lake.store.locations import Location, list_places, parse_location, path_below
from seamline.lake.store.ranged_files import hash_file, open_ranged_file, stamp_file
from seamline.lake.store.side_by_side import Threads
from seamline.lake.store.table_files import is_delta_table, list_table_files, text_kind
from seamline.model.errors import BadRange
from seamline.plan.stream.import_plan import HistoryFile

LOOKING = Threads("footer", 16)
PURGE = "rewrite it by `REORG TABLE ... APPLY (PURGE)`, or import what its engine exports as Parquet."


@dataclass(frozen=True)
class History:
    """A table of somebody's that may be imported."""

    place: str
    """Where it is, as it was named."""
    about: str
    """What it is, for people: ``Delta version 7``, ``3 files``."""
    files: tuple[HistoryFile, ...]
    """Its files."""
    columns: pa.Schema
    """Its columns."""
    table_id: str = ""
    """The id of a Delta table, empty for files."""
    version: int = -1
    """The version of a Delta table, -1 for files."""


def find_history(
    text: str,
    *,
    staging: Location,
    time_column: str,
    dialect: CsvDialect | None = None,
    version: int | None = None,
    imported: Mapping[str, int] | None = None,
) -> History:
    """Find what is at a place; text, and rows of files with deletion vectors, are staged below ``staging``.

    ``imported`` has the version up to which each Delta table was imported, by its id: only files that were appended
    since are found. NotFound where nothing is there; BadRange for what is no table, or one that cannot be imported.
    """
    place = parse_location(text)
    if is_delta_table(place):
        return find_delta_history(text, place, staging, time_column, version, imported or {})
    if version is not None:
        raise BadRange(f"{text!r} is no Delta table.", hint="files have no versions: leave out --version.")
    files = list_table_files(place)
    if text_kind(files[0].name):
        staged = [stage_text(each, staging, dialect or CsvDialect()) for each in files]
        looked = [look_at_file(read, "") for read, _ in staged]
        found = [
            HistoryFile(name_below(file, place), mark, str(read), rows.rows, file.stat().st_size)
            for file, (read, mark), rows in zip(files, staged, looked, strict=True)
        ]
    else:
        looked = LOOKING.map(lambda each: look_at_file(each, time_column), files)
        marks = LOOKING.map(lambda each: (stamp_file(each), hash_file(each)[:32]), files)
        found = [
            describe_file(file, name_below(file, place), footer, *told)
            for file, footer, told in zip(files, looked, marks, strict=True)
        ]
    count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    return History(text, count, tuple(found), merge_columns(text, looked, found))


def describe_file(file: Location, name: str, footer: Footer, stamp: str, mark: str) -> HistoryFile:
    """Describe a Parquet file; its footer has no sum of what is in it, so that its bytes were hashed."""
    return HistoryFile(
        name,
        mark,
        str(file),
        footer.rows,
        footer.size,
        footer.low,
        footer.high,
        stamp,
        list_path_values(name),
    )


@dataclass(frozen=True)
class Footer:
    """What a Parquet file says of itself."""

    mark: str
    """A hash of its footer; of a file whose name is never used again it says which it is."""
    rows: int
    """How many rows it has."""
    size: int
    """Its bytes."""
    columns: pa.Schema
    """Its columns."""
    low: datetime | None
    """The smallest value of the column of event time; None where it does not say so."""
    high: datetime | None
    """The largest."""


def look_at_file(place: Location, time_column: str) -> Footer:
    """Look at a Parquet file's footer; BadRange if it has none."""
    with open_ranged_file(place) as file:
        size = file.seek(0, 2)
        file.seek(max(size - 8, 0))
        end = file.read(8)
        try:
            length = int.from_bytes(end[:4], "little")
            file.seek(max(size - 8 - length, 0))
            mark = hashlib.sha256(file.read(length)).hexdigest()[:32]
            file.seek(0)
            told = pq.read_metadata(file)
        except (pa.ArrowException, OSError) as error:
            raise BadRange(
                f"{str(place)!r} is no whole Parquet file: {str(error).splitlines()[0]}.",
                hint="remove it, or import once the job that writes it has ended.",
            ) from None
    low, high = find_value_bounds(told, time_column)
    return Footer(mark, told.num_rows, size, told.schema.to_arrow_schema(), low, high)


def find_value_bounds(told: pq.FileMetaData, column: str) -> tuple[datetime | None, datetime | None]:
    """Find the bounds of a column of instants; None where a row group does not say them."""
    at = next((at for at in range(told.num_columns) if told.schema.column(at).path == column), None)
    if at is None:
        return None, None
    lows, highs = [], []
    for group in range(told.num_row_groups):
        said = told.row_group(group).column(at).statistics
        if said is None or not said.has_min_max or not isinstance(said.min, datetime):
            return None, None
        lows.append(to_utc(said.min))
        highs.append(to_utc(said.max))
    return min(lows, default=None), max(highs, default=None)


def to_utc(at: datetime) -> datetime:
    """Return an instant in UTC; one without a zone is."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def find_delta_history(
    text: str,
    place: Location,
    staging: Location,
    time_column: str,
    version: int | None,
    imported: Mapping[str, int],
) -> History:
    """Find the files of a version of a Delta table, or those that were appended since it was imported."""
    try:
        table = DeltaTable(str(place), version=version)
        told, settings = table.protocol(), table.metadata().configuration
        live = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        features = set(told.reader_features or ())
        deleted = read_deletions(table) if "deletionVectors" in features else {}
    except DeltaError as error:
        raise BadRange(
            f"The Delta table at {text!r} cannot be read: {str(error).splitlines()[0]}.", hint=PURGE
        ) from None
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise BadRange(f"The columns of {text!r} have other names in its files (column mapping).", hint=PURGE)
    id = str(table.metadata().id)
    if (known := imported.get(id)) is not None and known < table.version():
        live, deleted = list_appended_files(text, place, known, table.version()), {}
    looked = look_at_live_files(text, place, [each["path"] for each in live], time_column)
    found = [
        describe_delta_file(each, footer, place, deleted.get(unquote(each["path"])), staging)
        for each, footer in zip(live, looked, strict=True)
    ]
    columns = pa.schema(table.schema().to_arrow())
    return History(text, f"Delta version {table.version()}", tuple(found), columns, id, table.version())


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
    return {unquote(each["filepath"]).removeprefix(root): each["selection_vector"] for each in rows}


def describe_delta_file(
    action: Mapping[str, Any],
    footer: Footer,
    place: Location,
    keep: Sequence[bool] | None,
    staging: Location,
) -> HistoryFile:
    """Describe one live file of a Delta table; of one with a deletion vector what was staged of it."""
    name, read, rows, mark = unquote(action["path"]), file_of(place, action["path"]), footer.rows, footer.mark
    if keep is not None:
        read = stage_live_rows(read, keep, staging, mark)
        staged = look_at_file(read, "")
        rows, mark = staged.rows, staged.mark
    values = tuple(
        (column, json.dumps(value, default=str)) for column, value in (action.get("partition") or {}).items()
    )
    return HistoryFile(name, mark, str(read), rows, footer.size, footer.low, footer.high, values=values)


def file_of(place: Location, path: str) -> Location:
    """Return the file that an action of a Delta log names."""
    return parse_location(path) if "://" in path else place / unquote(path)


def list_appended_files(text: str, place: Location, after: int, until: int) -> list[dict[str, Any]]:
    """List what was appended in versions after one, as paths and partitions; it may be compacted since.

    BadRange if one of these versions took rows away, or the log no longer has it.
    """
    entries = {
        int(each.stem): each for each in list_places(place / "_delta_log", "*.json") if each.stem.isdigit()
    }
    found: list[dict[str, Any]] = []
    for version in range(after + 1, until + 1):
        if version not in entries:
            raise BadRange(
                f"The log of {text!r} no longer has version {version}; it was imported up to {after}.",
                hint="nobody can tell which rows are new: import them from an export with an event id or --until.",
            )
        actions = [json.loads(line) for line in entries[version].read_text().splitlines()]
        changing = [
            each for each in actions for kind in ("add", "remove") if each.get(kind, {}).get("dataChange")
        ]
        if any("remove" in each or each["add"].get("deletionVector") for each in changing):
            raise BadRange(
                f"Version {version} of {text!r} rewrites or deletes rows that were imported up to version {after}.",
                hint=f"import up to --version {version - 1}; what is imported is not changed by it."
                if version > after + 1
                else "what is imported is not changed by it; later versions cannot be imported.",
            )
        found += [
            {"path": each["add"]["path"], "partition": each["add"].get("partitionValues")}
            for each in changing
        ]
    return found


def has_lines(text: str) -> bool:
    """Return whether what is at a place are JSON lines; NotFound, BadRange."""
    place = parse_location(text)
    return not is_delta_table(place) and text_kind(list_table_files(place)[0].name) == "lines"


def name_below(file: Location, place: Location) -> str:
    """Return the path of a file below the place that was named, its own name if it is the place."""
    return file.name if file == place else path_below(file, place)


def list_path_values(name: str) -> tuple[tuple[str, str], ...]:
    """Return the columns that the folders of a path state, as ``day=2026-01-01`` does; all are text."""
    parts = (part.partition("=") for part in name.split("/")[:-1] if "=" in part)
    return tuple((column, json.dumps(unquote(value))) for column, _, value in parts)


def merge_columns(text: str, looked: Sequence[Footer], found: Sequence[HistoryFile]) -> pa.Schema:
    """Return the columns of all files; BadRange where one has two types."""
    stated = pa.schema(
        [(name, pa.string()) for name in {name: None for each in found for name, _ in each.values}]
    )
    try:
        return pa.unify_schemas([*(each.columns.remove_metadata() for each in looked), stated])
    except pa.ArrowException as error:
        raise BadRange(
            f"The files at {text!r} disagree about a column: {str(error).splitlines()[0]}.",
            hint="import them one folder, or one file, at a time.",
        ) from None
