"""Tables opened in both places: the same version, the same files, the same rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow.compute as pc

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.storage.table_cache import Files
from seamline.lake.store.locations import Location, path_below
from seamline.model.errors import OutOfStep


@dataclass(frozen=True)
class TableFacts:
    """What a table is made of at its newest version."""

    version: int
    """The version."""
    files: frozenset[tuple[str, int]]
    """The way to each live file, from the warehouse, and its bytes."""
    rows: int
    """Rows, as the log counts them."""


def read_table_facts(warehouse: Location, way: str) -> TableFacts:
    """Open a table and read what it is made of."""
    root = warehouse / way
    found = Files.of(Table.open(root))
    names, sizes = found.actions["path"].to_pylist(), found.actions["size_bytes"].to_pylist()
    ways = (path_below(locate_table_file(root, name), warehouse) for name in names)
    rows = pc.sum(found.actions["num_records"]).as_py() or 0 if len(names) else 0
    return TableFacts(found.version, frozenset(zip(ways, sizes, strict=True)), rows)


def compare_tables(
    source: Location, to: Location, tables: Iterable[str], verified: Collection[str]
) -> dict[str, TableFacts]:
    """Open tables in both places, by the ways to them, and return what they are made of.

    OutOfStep if one is not the same in both, or a live file of it is not among those that were ``verified``.
    """
    found = {}
    for way in tables:
        one, other = read_table_facts(source, way), read_table_facts(to, way)
        lacking = sorted(name for name, _ in other.files if name not in verified)
        if one != other or lacking:
            raise OutOfStep(
                f"{to / way} is not the table that {source / way} is: {describe_difference(one, other, lacking)}.",
                hint="run this again: what is missing or different is copied. The old warehouse is as it was.",
            )
        found[way] = one
    return found


def describe_difference(one: TableFacts, other: TableFacts, lacking: list[str]) -> str:
    """Describe how a table differs from what it was."""
    if one.version != other.version:
        return f"version {other.version}, not {one.version}"
    if different := sorted(name for name, _ in one.files ^ other.files):
        return f"{len(different)} files differ, {different[0]} among them"
    if one.rows != other.rows:
        return f"{other.rows} rows, not {one.rows}"
    return f"{lacking[0]} was not verified"
