"""What is at a place that somebody names: the files of a table, with rows, bytes and event times, none of them read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa

from seamline.lake.imports.delta_history import find_delta_history
from seamline.lake.imports.history_facts import (
    LOOKING,
    Footer,
    History,
    ImportedTable,
    look_at_file,
)
from seamline.lake.imports.staged_rows import CsvDialect, stage_text
from seamline.lake.store.locations import Location, parse_location, path_below
from seamline.lake.store.ranged_files import hash_file, stamp_file
from seamline.lake.store.table_files import is_delta_table, list_table_files, text_kind
from seamline.model.errors import BadRange
from seamline.plan.stream.import_plan import HistoryFile

NONE = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called that has the rows without a value."""


def find_history(
    text: str,
    *,
    staging: Location,
    time_column: str,
    dialect: CsvDialect | None = None,
    version: int | None = None,
    imported: Mapping[str, ImportedTable] | None = None,
) -> History:
    """Find what is at a place; text, and rows of files with deletion vectors, are staged below ``staging``.

    ``imported`` says what earlier imports have taken of Delta tables, by their ids: of these only files that were
    appended since are found, and those that were not read whole. NotFound where nothing is there; BadRange for what is
    no table, or one that cannot be imported.
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
