"""What is at a place that somebody names: the files of a table, with rows, bytes and event times, none of them read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa

from seamline.lake.imports.delta_history import find_delta_history
from seamline.lake.imports.history_facts import (
    LOOKING,
    History,
    ImportedTable,
    look_at_file,
)
from seamline.lake.imports.staged_rows import CsvDialect, stage_text
from seamline.lake.store.locations import Location, parse_location, path_below
from seamline.lake.store.ranged_files import hash_file, stamp_file
from seamline.lake.store.table_files import is_delta_table, list_table_files, text_kind
from seamline.model.errors import BadRange
from seamline.plan.stream.import_plan import HistoryFile, TakenFiles

MARK = 32
"""Hexadecimal digits of a file's hash."""
NONE = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called that has the rows without a value."""


def find_history(
    text: str,
    *,
    staging: Location,
    time_column: str,
    dialect: CsvDialect | None = None,
    version: int | None = None,
    taken: TakenFiles | None = None,
    imported: Mapping[str, ImportedTable] | None = None,
) -> History:
    """Find what is at a place; text, and rows of files with deletion vectors, are staged below ``staging``.

    Files that are ``taken`` whole are not read again. ``imported`` says what earlier imports have taken of Delta
    tables, by their ids: of these only files that were appended since are found, and those that were not read whole.
    NotFound where nothing is there; BadRange for what is no table, or one that cannot be imported.
    """
    if not text.strip():
        raise BadRange(
            "--from is empty.", hint="name a file, a folder, a Delta table, or the URL of one in a bucket."
        )
    place, known = parse_location(text), taken or TakenFiles()
    if is_delta_table(place):
        return find_delta_history(text, place, staging, time_column, version, known, imported or {})
    if version is not None:
        raise BadRange(f"{text!r} is no Delta table.", hint="files have no versions: leave out --version.")
    files = list_table_files(place)
    if text_kind(files[0].name):
        found = [find_text_file(each, place, staging, dialect or CsvDialect(), known) for each in files]
    else:
        found = LOOKING.map(lambda each: find_parquet_file(each, place, time_column, known), files)
    count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    schemas = [columns for _, columns in found if columns is not None]
    return History(
        text, count, tuple(file for file, _ in found), merge_columns(text, schemas, [f for f, _ in found])
    )


def find_parquet_file(
    file: Location, place: Location, time_column: str, known: TakenFiles
) -> tuple[HistoryFile, pa.Schema]:
    """Describe a Parquet file, and its columns; its footer has no sum of what is in it, so its bytes are hashed."""
    name, stamp = name_below(file, place), stamp_file(file)
    footer = look_at_file(file, time_column)
    before = known.by_stamp.get((name, stamp))
    mark = before.mark if before else hash_file(file)[:MARK]
    values = list_path_values(name)
    found = HistoryFile(
        name, mark, str(file), footer.rows, footer.size, footer.low, footer.high, stamp, values
    )
    return found, footer.columns


def find_text_file(
    file: Location, place: Location, staging: Location, dialect: CsvDialect, known: TakenFiles
) -> tuple[HistoryFile, pa.Schema | None]:
    """Describe a file of text, and the columns of what is staged of it; one that is taken whole is not staged."""
    name, stamp = name_below(file, place), stamp_file(file)
    before = known.by_stamp.get((name, stamp))
    if before is None or not known.is_whole(before):
        mark = before.mark if before else hash_file(file)[:MARK]
        before = known.by_identity.get((name, mark))
        if before is None or not known.is_whole(before):
            read = stage_text(file, staging, dialect, mark)
            if stamp_file(file) != stamp:
                read.unlink(missing_ok=True)
                raise BadRange(
                    f"{str(file)!r} has changed while it was read.",
                    hint="import it once nobody writes it any more.",
                )
            footer = look_at_file(read, "")
            found = HistoryFile(name, mark, str(read), footer.rows, file.stat().st_size, stamp=stamp)
            return found, footer.columns
    return before, None


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
    return tuple(
        (column, json.dumps(None if value == NONE else unquote(value))) for column, _, value in parts
    )


def merge_columns(text: str, schemas: Sequence[pa.Schema], found: Sequence[HistoryFile]) -> pa.Schema:
    """Return the columns of all files that are read; BadRange where one has two types."""
    stated = pa.schema(
        [(name, pa.string()) for name in {name: None for each in found for name, _ in each.values}]
    )
    try:
        return pa.unify_schemas([*(each.remove_metadata() for each in schemas), stated])
    except pa.ArrowException as error:
        raise BadRange(
            f"The files at {text!r} disagree about a column: {str(error).splitlines()[0]}.",
            hint="import them one folder, or one file, at a time.",
        ) from None
