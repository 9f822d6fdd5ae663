"""Plans of imports, kept beside a pipeline's tables: which rows of which files have which places."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.imports.history_facts import ImportedTable
from seamline.lake.imports.import_options import ImportOptions
from seamline.lake.imports.staged_rows import STAGED, is_staged
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_replaced_file
from seamline.lake.store.locations import (
    Location,
    create_file,
    delete_files,
    list_places,
    parse_location,
    replace_file,
)
from seamline.lake.store.ranged_files import hash_file, stamp_file
from seamline.model.errors import BadRange, NotFound, SeamlineError, StoreRefused, StoreUnavailable
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.plan.stream.import_plan import HistoryFile, PlannedFile, TakenFiles, find_file_rows

FACTS = b"seamline.import"
FORGOTTEN = 86_400.0
"""Seconds after which staged rows that no import reads are taken for those of a dry run."""


@dataclass(frozen=True)
class ImportPlan:
    """One import's rows, and how they become records."""

    id: str
    """The import's id."""
    options: ImportOptions
    """How a row becomes a record."""
    files: tuple[PlannedFile, ...]
    """Its rows, in the order of their places."""
    at: datetime
    """When it was planned: the time of records of which nothing says one."""
    table_id: str = ""
    """The id of the Delta table that was imported; empty for files."""
    version: int = -1
    """The version of that table; -1 for files."""

    @property
    def rows(self) -> int:
        """Return how many rows it takes: the places of its lane."""
        return self.files[-1].end if self.files else 0

    @property
    def size(self) -> int:
        """Return the bytes of its files, as they were found."""
        return sum(each.file.size for each in self.files)


def staging_folder(layout: Layout) -> Location:
    """Return the folder of rows that were staged for imports."""
    return layout.table("imports") / STAGED


def locate_plan(layout: Layout, id: str) -> Location:
    """Return the file of an import's plan."""
    return layout.table("imports") / f"{id}.parquet"


def save_plan(layout: Layout, plan: ImportPlan) -> None:
    """Keep a plan; the same import has the same one."""
    staged = str(staging_folder(layout))
    rows = [to_row(each, staged) for each in plan.files]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    facts = {
        "options": plan.options.to_json(),
        "at": format_utc_instant(plan.at),
        "table_id": plan.table_id,
        "version": plan.version,
    }
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({FACTS: json.dumps(facts)}), sink, compression="zstd")
    create_file(locate_plan(layout, plan.id), sink.getvalue().to_pybytes())


def load_plan(layout: Layout, id: str) -> ImportPlan:
    """Load an import's plan; NotFound if its file is gone."""
    place = locate_plan(layout, id)
    try:
        table = read_replaced_file(place)
    except FileNotFoundError:
        raise NotFound(
            f"The plan of import {id} is not at {place}.",
            hint="restore it from a backup: it says which rows of which files are in the log.",
        ) from None
    facts = json.loads(table.schema.metadata[FACTS])
    return ImportPlan(
        id,
        ImportOptions.from_json(facts["options"]),
        tuple(from_row(each, str(staging_folder(layout))) for each in table.to_pylist()),
        parse_moment(facts["at"]),
        facts["table_id"],
        facts["version"],
    )


def load_plans(layout: Layout, ids: Iterable[str]) -> dict[str, ImportPlan]:
    """Load the plans of some imports, by their ids."""
    return {id: load_plan(layout, id) for id in ids}


def delete_unused_stages(layout: Layout, used: Iterable[HistoryFile], done: Iterable[ImportPlan]) -> int:
    """Delete the staged rows of plans that are ``done``, and old ones of no plan; return how many files those were.

    Those that are ``used`` stay, and so does what others have just staged, and not asked for yet.
    """
    wanted = {file.path for file in used}
    over = {each.file.path for plan in done for each in plan.files}
    unused = [
        each
        for each in list_places(staging_folder(layout), "*.parquet")
        if str(each) not in wanted and (str(each) in over or time.time() - each.stat().st_mtime > FORGOTTEN)
    ]
    delete_files(unused)
    return len(unused)


def discard_stages(files: Iterable[HistoryFile]) -> None:
    """Delete what was staged of files for a plan that comes to nothing."""
    delete_files(parse_location(each.path) for each in files if is_staged(each.path))


SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("mark", pa.string()),
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("low", pa.string()),
        ("high", pa.string()),
        ("stamp", pa.string()),
        ("values", pa.string()),
        ("first", pa.int64()),
        ("start", pa.int64()),
    ]
)


def to_row(planned: PlannedFile, staged: str) -> Mapping[str, Any]:
    """Write a planned file as a row; one below the folder ``staged`` is named from there, wherever that is moved."""
    file = planned.file
    path = (
        f"{STAGED}:{file.path.removeprefix(staged + '/')}"
        if file.path.startswith(staged + "/")
        else file.path
    )
    bounds = {name: at and format_utc_instant(at) for name, at in (("low", file.low), ("high", file.high))}
    values = json.dumps(file.values)
    return {
        **asdict(file),
        **bounds,
        "path": path,
        "values": values,
        "first": planned.first,
        "start": planned.start,
    }


def from_row(row: Mapping[str, Any], staged: str) -> PlannedFile:
    """Read what ``to_row`` wrote."""
    kind, _, name = row["path"].partition(":")
    path = f"{staged}/{name}" if kind == STAGED else row["path"]
    low, high = (parse_moment(row[name]) if row[name] else None for name in ("low", "high"))
    values = tuple((name, value) for name, value in json.loads(row["values"]))
    file = HistoryFile(
        row["name"], row["mark"], path, row["rows"], row["size"], low, high, row["stamp"], values
    )
    return PlannedFile(file, row["first"], row["start"])


def save_hindrances(layout: Layout, told: Mapping[str, str]) -> None:
    """Say why imports wait, by their ids, in place of what was said before; a store that is away is passed over."""
    with suppress(OSError, SeamlineError):
        replace_file(layout.status("imports"), json.dumps(dict(told)).encode())


def load_hindrances(layout: Layout) -> Mapping[str, str]:
    """Return what the driver last said of imports that wait, by their ids."""
    try:
        found: dict[str, str] = json.loads(layout.status("imports").read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found


def list_taken_files(plans: Iterable[ImportPlan], rows: Mapping[tuple[str, str], int]) -> TakenFiles:
    """Return the files of plans, of each of which so many ``rows`` are or will be read."""
    return TakenFiles(tuple(each.file for plan in plans for each in plan.files), rows)


def list_imported_tables(
    plans: Iterable[ImportPlan], rows: Mapping[tuple[str, str], int]
) -> dict[str, ImportedTable]:
    """Return what plans have taken of Delta tables, by their ids; of each file so many ``rows`` are or will be read."""
    found: dict[str, ImportedTable] = {}
    for plan in plans:
        if plan.table_id:
            known = found.get(plan.table_id, ImportedTable(-1))
            own = (each.file for each in plan.files if rows.get(each.file.identity, 0) < each.file.rows)
            left = {each.identity: each for each in (*known.left, *own)}
            version = max(known.version, plan.version)
            found[plan.table_id] = ImportedTable(version, tuple(left.values()))
    return found


def require_planned_files(plan: ImportPlan, start: int, end: int) -> None:
    """Raise BadRange if a file of the places ``[start, end)`` is not the one that was planned."""
    for each in find_file_rows(plan.files, start, end):
        try:
            same = is_as_planned(each.file)
            why = "was replaced"
        except FileNotFoundError:
            same, why = False, "was deleted"
        except (OSError, StoreUnavailable, StoreRefused) as error:
            same, why = False, f"cannot be read ({error})"
        if not same:
            raise BadRange(
                f"{each.file.path!r} {why}: its rows from {each.first + 1} on cannot be imported.",
                hint="restore the original file, or cancel the rest with `seamline imports cancel`.",
            )


def is_as_planned(file: HistoryFile) -> bool:
    """Return whether a file has the content that was planned; FileNotFoundError. What is never rewritten has it."""
    stamp = stamp_file(parse_location(file.path))
    if is_staged(file.path) or file.stamp in ("", stamp):
        return True
    return hash_known(file.path, stamp).startswith(file.mark)


@lru_cache(64)
def hash_known(path: str, stamp: str) -> str:
    """Return the hash of a file; of one that nobody wrote since it is known."""
    return hash_file(parse_location(path))
