"""The files of tables that others have made: a Delta table's log, or files of one kind below a folder."""

from __future__ import annotations

from seamline.lake.store.locations import Location, list_all_files, list_places, path_below
from seamline.model.errors import BadRange, NotFound

READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".json": "read_json", ".jsonl": "read_json",
           ".ndjson": "read_json"}  # fmt: skip
"""DuckDB's functions by the ends of files' names; of CSV the types are found."""
TEXTS = {".csv": "csv", ".json": "lines", ".jsonl": "lines", ".ndjson": "lines"}
"""Kinds of text by the ends of files' names."""
PACKED = (".gz", ".zst")
"""Ends of the names of files that are compressed."""
KINDS = "a Delta table, or files that end in " + ", ".join(READERS)


def is_delta_table(place: Location) -> bool:
    """Return whether a folder has the log of a Delta table."""
    return bool(list_places(place / "_delta_log", "*.json"))


def end_of(name: str) -> str:
    """Return the end of a file's name that says its kind, whether it is compressed or not; empty for no kind."""
    for packed in PACKED:
        plain = name.removesuffix(packed)
        if plain != name and text_kind(plain):
            return end_of(plain)
    return next((end for end in READERS if name.endswith(end)), "")


def text_kind(name: str) -> str:
    """Return which kind of text a file has by its name: csv or lines; empty for none."""
    for packed in PACKED:
        name = name.removesuffix(packed)
    return next((kind for end, kind in TEXTS.items() if name.endswith(end)), "")


def list_table_files(place: Location) -> list[Location]:
    """List the files of one kind below a folder, or the one that was named; NotFound, BadRange."""
    # Spark gives folders names that end as those of files do.
    every = list_all_files(place)
    if not every and end_of(place.name):
        if not place.exists():
            raise NotFound(f"There is no file {str(place)!r}.", hint=f"name {KINDS}.")
        return [place]
    below = [each for each in every if is_of_table(each, place)]
    found = {end: [each for each in below if end_of(each.name) == end] for end in READERS}
    kinds = [end for end, files in found.items() if files]
    if not kinds:
        raise NotFound(
            f"{str(place)!r} has no files of a table.", hint=f"name {KINDS}, or a folder of these."
        )
    if len(kinds) > 1:
        raise BadRange(
            f"{str(place)!r} has files that end in {' and '.join(kinds)}.",
            hint="name one file, or a folder of one kind.",
        )
    return found[kinds[0]]


def is_of_table(file: Location, folder: Location) -> bool:
    """Return whether a file is of the table in a folder: neither a mark, nor of a job that has not ended.

    A part of the way such as ``_day=1`` is a partition.
    """
    parts = path_below(file, folder).split("/")
    return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)
