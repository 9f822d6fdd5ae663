"""What processes emit, for the dull engine: all rows of each key folded anew for each epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import duckdb
import pyarrow as pa

from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.folded_rows import ORDER, fold_rows_of_keys, make_emitted_table
from seamline.lake.joins.span_rows import micros_of_mark
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import Item
from seamline.model.functions.tails import KeySpan
from seamline.testing.input import input_of
from seamline.testing.joined import Record, list_side_rows
from seamline.testing.oracle import Row

Shown = Counter[tuple[KeySpan, Item]]
"""What is shown of a process, of all sides."""


def fold_plain_rows(
    con: duckdb.DuckDBPyConnection,
    process: CompiledProcess,
    accepted: Iterable[pa.Table],
    mark: datetime | None,
) -> Shown:
    """Fold accepted rows; return what is shown at a watermark."""
    tables = list(accepted)
    given = [
        make_given_rows(side, rows, tables[0].schema)
        for side in process.sides
        if (rows := list_side_rows(con, side, tables))
    ]
    if not given:
        return Shown()
    return Shown(fold_rows_of_keys(process, pa.concat_tables(given), micros_of_mark(mark)))


def make_given_rows(side: JoinSide, rows: Sequence[Record], schema: pa.Schema) -> pa.Table:
    """Make a table of the rows of a side, with the columns that a process is given."""
    made = {
        **{each.name: quote_identifier(each.name) for each in side.columns},
        **{name: each.duckdb for name, each in side.made.items()},
    }
    columns = [*ORDER, *(f"{text} AS {quote_identifier(name)}" for name, text in made.items())]
    with register_tables(given=pa.Table.from_pylist(rows, schema)) as own:
        return own.sql(f"SELECT {', '.join(columns)} FROM given").to_arrow_table()


def list_changed_rows(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    view: CompiledView,
    shown: Sequence[tuple[int, Shown]],
) -> list[Row]:
    """List a view's input: what each epoch, with its number, adds to what is shown, and what it withdraws."""
    found, before = list[Row](), Shown()
    for number, now in shown:
        for items, sign in ((now - before, 1), (before - now, -1)):
            rows = name_places(view, number, items.elements(), len(found))
            found += [replace(row, sign=sign) for row in input_of(con, pipeline, view, rows)]
        before = now
    return found


def name_places(
    view: CompiledView, number: int, items: Iterable[tuple[KeySpan, Item]], first: int
) -> pa.Table:
    """Make a table of what was emitted, with places as records have them."""
    assert view.process
    rows = make_emitted_table(view.process, view.side, items)
    places = {"_partition": 0, "_offset": range(first, first + rows.num_rows), "_topic": "", "_epoch": number}
    for name, value in places.items():
        type = COORDINATES.field(name).type
        column = (
            pa.array(value, type)
            if isinstance(value, range)
            else pa.repeat(pa.scalar(value, type), rows.num_rows)
        )
        rows = rows.append_column(name, column)
    return rows
