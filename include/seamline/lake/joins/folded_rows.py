"""The rows of a process in Arrow: those that its function is given, by key and span, and those that it emits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage.arrow_types import INSTANT, arrow_type
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.long_calls import break_off_long_calls
from seamline.model.errors import MeasureFailed
from seamline.model.functions.calls import EMITTED
from seamline.model.functions.folding import BLANK, FunctionUnusable, Item, KeyFold, KeyRow, Place
from seamline.model.functions.frozen import FrozenDict, make_freezer
from seamline.model.functions.tails import KeySpan
from seamline.model.time.intervals import EPOCH
from seamline.model.types.schema import Schema, SqlType, TypeKind
from seamline.runtime.collecting import without_collector

PLACE = ("_partition", "_offset", "_topic", "_topic_id")
"""Where a record is, in the order in which rows of one event time are folded."""
ORDER = ("_event_time", *PLACE)
"""The columns by which the rows of a key are in order."""
MOST_EMITTED = 10_000
"""Rows of a batch of what was emitted."""
Emitted = tuple[KeySpan, Item]
Column: TypeAlias = "pa.Array | pa.ChunkedArray"
Make: TypeAlias = "Callable[[tuple[Any, ...]], Any]"
# Of one tuple each, which their own names would take apart first.
make_place: Make = partial(tuple.__new__, Place)
make_row: Make = partial(tuple.__new__, KeyRow)
make_span: Make = partial(tuple.__new__, KeySpan)


def read_key_rows(
    process: CompiledProcess, rows: pa.Table | pa.RecordBatch
) -> Iterator[tuple[KeySpan, KeyRow]]:
    """Read the rows of a table with ``ORDER`` and a process's columns, each with its key and span, as they come."""
    fields, size = process.columns, process.size
    instants = list_instants(rows["_event_time"])
    places = map(make_place, zip(*(rows[name].to_pylist() for name in PLACE), strict=True))
    names = [field.name for field in fields]
    columns = [read_values(rows[field.name], field.type) for field in fields]
    keys = zip(*(columns[names.index(key.name)] for key in process.keys), strict=True)
    for at, place, key, values in zip(instants, places, keys, zip(*columns, strict=True), strict=True):
        row = make_row((at, place, FrozenDict(zip(names, values))))  # noqa: B905 - as many
        yield make_span((key, at // size * size)), row


def read_values(column: Column, type: SqlType) -> list[Any]:
    """Return the values of a column; nested ones are frozen, as others cannot be changed anyway.

    A date that Python does not know, of before the year 1 or after 9999, is None, and so is what it is a part of.
    """
    try:
        # Arrow makes a time in ten times as long.
        values = read_moments(column) if type.kind is TypeKind.TIMESTAMP else column.to_pylist()
    except (OverflowError, ValueError):
        values = [read_value(value) for value in column]
    return [*map(make_freezer(type), values)] if type.nested else values


def read_moments(column: Column) -> list[datetime | None]:
    """Return the instants of a column; OverflowError where Python does not know one."""
    return [None if each is None else EPOCH + timedelta(0, 0, each) for each in list_instants(column)]


def list_instants(column: Column) -> list[Any]:
    """List the instants of a column in microseconds from 1970."""
    found: list[Any] = pc.cast(column, INSTANT).cast(pa.int64()).to_pylist()
    return found


def read_value(value: pa.Scalar) -> Any:
    """Return a value, None for one that Python does not know."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return None


def gather_key_rows(process: CompiledProcess, rows: pa.Table) -> dict[KeySpan, list[KeyRow]]:
    """Gather rows by key and span."""
    found: dict[KeySpan, list[KeyRow]] = {}
    for key, row in read_key_rows(process, rows):
        found.setdefault(key, []).append(row)
    return found


def emitted_schema(process: CompiledProcess, side: str) -> pa.Schema:
    """Return the columns of what is emitted on a side: its event time, then those of ``CompiledProcess.schema``."""
    own = [pa.field(each.name, arrow_type(each.type.spark)) for each in process.schema(side).fields]
    return pa.schema([pa.field("_event_time", INSTANT), *own])


def make_emitted_table(process: CompiledProcess, side: str, emitted: Iterable[Emitted]) -> pa.Table:
    """Make a table (``emitted_schema``) of what was emitted on one side, of all that was emitted."""
    chosen = [(key, item) for key, item in emitted if item.side == side]
    schema = emitted_schema(process, side)
    if not chosen:
        return schema.empty_table()
    keys = zip(*(key.key for key, _ in chosen), strict=True)
    values = zip(*(item.values for _, item in chosen), strict=True)
    columns = [pa.array([item.at for _, item in chosen], pa.int64()).cast(INSTANT)]
    for number, column in enumerate([*keys, *values], 1):
        columns.append(
            pa.array(plain_values(column, process.schema(side), number - 1), schema.field(number).type)
        )
    return pa.Table.from_arrays(columns, schema=schema)


def plain_values(column: Sequence[Any], schema: Schema, number: int) -> Sequence[Any]:
    """Return values as Arrow takes them: it knows a MAP as pairs."""
    if TypeKind.MAP.value not in schema.fields[number].type.spark:
        return column
    type = schema.fields[number].type
    return [thaw(value, type) for value in column]


def thaw(value: Any, type: Any) -> Any:
    """Return a frozen value with its MAPs as lists of pairs."""
    if value is None:
        return None
    match type.kind:
        case TypeKind.MAP:
            return [(name, thaw(each, type.element)) for name, each in value.items()]
        case TypeKind.ARRAY:
            return [thaw(each, type.element) for each in value]
        case TypeKind.STRUCT:
            return {field.name: thaw(value[field.name], field.type) for field in type.fields}
    return value


def list_shown_items(
    process: CompiledProcess, key: KeySpan, rows: Iterable[KeyRow], mark: float
) -> list[Item]:
    """Fold all rows of a key in a span, in order; list what a watermark, in microseconds from 1970, shows."""
    run = KeyFold(process.fold, BLANK)
    run.take_rows(rows)
    run.reach(mark, key.span + process.size)
    return [item for item in run.items if item.needs <= mark]


def fold_rows_of_keys(process: CompiledProcess, rows: pa.Table, mark: float) -> Iterator[Emitted]:
    """Fold rows of whole spans, in any order; yield what a watermark shows of all sides.

    Raises MeasureFailed where the function cannot be run here and now.
    """
    with told_as_failure(process) as own:
        for key, mine in gather_key_rows(own, rows).items():
            yield from ((key, item) for item in list_shown_items(own, key, sorted(mine), mark))


@contextmanager
def told_as_failure(process: CompiledProcess) -> Iterator[CompiledProcess]:
    """Give a process to fold by; say of a function that cannot be run what a reader can do about it."""
    try:
        with break_off_long_calls(process) as own:
            yield own
    except FunctionUnusable as error:
        raise MeasureFailed(
            f"{error}.", hint="its views are behind until it can be run: mend it, or what it needs."
        ) from error


def fold_sorted_rows(
    process: CompiledProcess,
    batches: Iterable[pa.RecordBatch],
    mark: float,
    *,
    side: str = EMITTED,
    ended_after: float | None = None,
) -> Iterator[pa.RecordBatch]:
    """Fold rows that are in order (span and key, then ``ORDER``); yield what is shown of a side at a watermark.

    ``ended_after`` is as for ``break_off_long_calls``.
    """
    rows = (each for batch in batches for each in read_key_rows(process, batch))
    groups = groupby(rows, key=lambda each: each[0])
    held: list[Emitted] = []
    while True:
        with without_collector(), break_off_long_calls(process, ended_after) as own:
            for key, group in groups:
                shown = list_shown_items(own, key, (row for _, row in group), mark)
                held += [(key, item) for item in shown if item.side == side]
                if len(held) >= MOST_EMITTED:
                    break
        if not held:
            return
        yield from make_emitted_table(process, side, held).to_batches()
        held = []
