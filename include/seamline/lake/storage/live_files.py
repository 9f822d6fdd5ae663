"""The live files of a table, one row a file as deltalake lists them, followed commit by commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage.log_entries import Commit
from seamline.model.types.exact_json import load_exact_json

BOUNDS = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}
PLAIN = {"path": "path", "size_bytes": "size", "modification_time": "modificationTime"}
CHUNKS = 8
"""Pieces that the listing may be in: each look at a column goes through all of them."""


def update_live_files(live: pa.Table, commits: Iterable[Commit]) -> pa.Table:
    """Return the files that are live after some more commits, in no order.

    ArrowException, KeyError or ValueError if these do not state all that ``live`` has columns for.
    """
    added: dict[str, Mapping[str, Any]] = {}
    gone: set[str] = set()
    for commit in commits:
        removes = commit.removes
        for path in removes:
            added.pop(path, None)
        # A file that is added again is live once.
        again = {action["path"]: action for action in commit.adds}
        added |= again
        gone |= removes | again.keys()
    named = pc.is_in(live["path"], pa.array(sorted(gone), live.schema.field("path").type))
    if pc.any(named).as_py():
        live = live.filter(pc.invert(named))
    if added:
        live = pa.concat_tables([live, table_of(list(added.values()), live.schema)])
    return live if live["path"].num_chunks <= CHUNKS else live.combine_chunks()


def table_of(adds: list[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Spread ``add`` actions over the columns of deltalake's listing."""
    stats = [load_exact_json(action.get("stats") or "{}") for action in adds]
    columns = []
    for field in schema:
        kind, _, name = field.name.partition(".")
        values: list[Any]
        if kind in PLAIN:
            values = [action[PLAIN[kind]] for action in adds]
        elif kind == "num_records":
            values = [each.get("numRecords") for each in stats]
        elif kind == "partition":
            values = [action["partitionValues"].get(name) for action in adds]
        else:
            values = [each.get(BOUNDS[kind], {}).get(name) for each in stats]
        columns.append(cast_json_values(values, field.type))
    return pa.table(columns, schema=schema)


def cast_json_values(values: list[Any], wanted: pa.DataType) -> pa.Array:
    """Make an array of what JSON says: instants, days and exact numbers are spelled in it."""
    if not pa.types.is_decimal(wanted) and not any(isinstance(value, str) for value in values):
        return pa.array([float(each) if isinstance(each, Decimal) else each for each in values], wanted)
    return pa.array([None if each is None else value_to_text(each) for each in values], pa.string()).cast(
        wanted
    )


def value_to_text(value: Any) -> str:
    """Write a value so that it casts to its type."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
