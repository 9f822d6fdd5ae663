"""What a record may cost: one that is larger is refused before anything is made of it.

The bounds are those of the source. What a record of as many parts takes is at most 2.5 kB for each, in maps; what one
of as many bytes takes is about ten times as much, where it is text: far less than a worker may take. A view that
makes a row of each item of a record has what it reads beside the item in each of them: that has a bound too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.definition.sources import Source

COPIES = 8
"""So many times as much as a record may have, the rows that a view makes of it may have beside their items."""
LARGE, MANY = "record too large", "record of too many parts"


def split_oversized_records(rows: pa.Table, source: Source, *, parts: bool) -> tuple[pa.Table, pa.Table]:
    """Part records into those within bounds and those that are not, with reason and detail.

    ``parts`` are counted by the commas between them, as JSON has them, or by what opens them: each may be all there is
    in another.
    """
    sizes = pc.add(byte_lengths(rows["_value"]), byte_lengths(rows["_key"]))
    bound = min(source.max_record_bytes, source.max_record_parts) if parts else source.max_record_bytes
    if not rows.num_rows or pc.max(sizes).as_py() <= bound:
        return rows, rows.slice(0, 0)
    why = [
        find_record_excess(size, value, source, parts=parts) if size > bound else None
        for size, value in zip(sizes.to_pylist(), (each for each in rows["_value"]), strict=True)
    ]
    good = pa.array([each is None for each in why])
    reason, detail = zip(*(each for each in why if each), strict=True) if any(why) else ((), ())
    refused = rows.filter(pc.invert(good)).append_column("_reason", pa.array(reason, pa.string()))
    return rows.filter(good), refused.append_column("_detail", pa.array(detail, pa.string()))


def byte_lengths(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the bytes of each value; none is none."""
    return pc.fill_null(pc.binary_length(values), 0).cast(pa.int64())


def find_record_excess(
    size: int, value: pa.BinaryScalar, source: Source, *, parts: bool
) -> tuple[str, str] | None:
    """Return (reason, detail) of a record that is out of bounds."""
    if size > source.max_record_bytes:
        return LARGE, f"{size} bytes"
    found = parts_of(value.as_py() or b"") if parts else 0
    return (MANY, f"{found} parts") if found > source.max_record_parts else None


def parts_of(value: bytes) -> int:
    """Count the parts of a record of JSON; there are no more than twice as many."""
    return max(value.count(b",") + 1, value.count(b"[") + value.count(b"{"))


def split_oversized_explosions(
    con: duckdb.DuckDBPyConnection, rows: pa.Table, views: Iterable[CompiledView], source: Source
) -> tuple[pa.Table, pa.Table]:
    """Part validated rows into those of which views make rows within bounds and those of which they do not."""
    good, detail = np.ones(rows.num_rows, dtype=bool), np.full(rows.num_rows, "", dtype=object)
    for view in views:
        names = list_columns_beside_item(view)
        if not names or not rows.num_rows:
            continue
        items = count_exploded_items(con, rows, view)
        columns = [part for name in names for part in parts_beside(rows[name].combine_chunks())]
        for at, size in find_oversized_rows(columns, items, COPIES * source.max_record_bytes):
            if good[at]:
                good[at] = False
                detail[at] = f"{items[at]} items of {view.name}, with {size} bytes beside each"
    if good.all():
        return rows, rows.slice(0, 0)
    refused = rows.filter(pa.array(~good))
    refused = refused.append_column("_reason", pa.repeat(pa.scalar(LARGE), refused.num_rows))
    return rows.filter(pa.array(good)), refused.append_column("_detail", pa.array(detail[~good], pa.string()))


def list_columns_beside_item(view: CompiledView) -> list[str]:
    """List the columns that a view which explodes reads beside the item."""
    if view.explode is None:
        return []
    expressions = [view.where, *(state.expression for state in view.states)]
    read = {key.name for key in view.ordered_by}.union(*(each.columns for each in expressions if each))
    return sorted(read - view.explode.made)


def count_exploded_items(con: duckdb.DuckDBPyConnection, rows: pa.Table, view: CompiledView) -> np.ndarray:
    """Count the items of each row that a view makes rows of."""
    assert view.explode is not None
    con.register("counted", rows)
    try:
        asked = con.sql(f"SELECT coalesce(len({view.explode.array.duckdb}), 0) AS items FROM counted")
        items: np.ndarray = asked.to_arrow_table()["items"].cast(pa.int64()).to_numpy()
        return items
    finally:
        con.unregister("counted")


def parts_beside(column: pa.Array) -> Iterator[pa.Array]:
    """Return what of a column may be long: no numbers and times, and of a struct no lists, which may be the items."""
    if pa.types.is_struct(column.type):
        for part in column.flatten():
            if not pa.types.is_list(part.type):
                yield from parts_beside(part)
    elif pa.types.is_string(column.type) or pa.types.is_nested(column.type):
        yield column


def find_oversized_rows(
    columns: Sequence[pa.Array], items: np.ndarray, most: int, first: int = 0
) -> Iterator[tuple[int, int]]:
    """Return the number of each row whose columns together exceed ``most`` bytes times its items, and their bytes.

    By halves: many rows that are together within the bound need no look at each.
    """
    if sum(column.nbytes for column in columns) * int(items.max()) <= most:
        return
    if len(items) == 1:
        size = sum(map(measure_column_bytes, columns))
        if size * int(items[0]) > most:
            yield first, size
        return
    half = len(items) // 2
    yield from find_oversized_rows([column.slice(0, half) for column in columns], items[:half], most, first)
    yield from find_oversized_rows(
        [column.slice(half) for column in columns], items[half:], most, first + half
    )


def measure_column_bytes(value: pa.Array) -> int:
    """Measure a column of one row."""
    found: int = byte_lengths(value).sum().as_py() if pa.types.is_string(value.type) else value.nbytes
    return found
