"""The user's own step in the kernel: what it takes, what it leaves out, and the records on which it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.validation import PLACES, REFUSED, TAKEN
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.storage.exact_casts import cast_exactly
from seamline.model.compile.transform import Transform
from seamline.model.user_code import function_of, make_gone_error

REASON = "error in transform"
Place = tuple[str, int, int]
Function = Callable[[pa.Table], pa.Table]


def apply_transform(rows: pa.Table, step: Transform) -> pa.Table:
    """Add the columns of the step, ``_taken``, and [reason, detail] of the records on which it fails alone.

    The step sees the records that were read, by their parsed columns and places; what it leaves out has NULL. Where it
    may give a record several rows, these are one ARRAY, in their order; what it leaves out has none of them.
    ProtocolError where its code is not that of this version any more.
    """
    if step.gone:
        raise make_gone_error(step.name)
    shown = [*PLACES, *step.given]
    asked = rows.filter(pc.is_null(rows[REFUSED])).select(shown)
    schema = pa.schema([*(asked.schema.field(name) for name in PLACES), *list_transform_fields(step)])
    failed: dict[Place, str] = {}
    found = call_transform_by_halves(asked, function_of(step.name), schema, failed, step)
    made = pa.concat_tables([schema.empty_table(), *found])
    if step.rows is not None:
        rows = rows.append_column(*gather_record_rows(rows, made, step))
        return set_failure_reasons(rows.append_column(TAKEN, pa.repeat(True, rows.num_rows)), failed)
    at = {place: row for row, place in enumerate(list_record_places(made))}
    here = [at.get(place) for place in list_record_places(rows)]
    taken = pa.array([row is not None for row in here])
    for field in list_transform_fields(step):
        rows = rows.append_column(field, made[field.name].take(pa.array(here, pa.int64())))
    return set_failure_reasons(rows.append_column(TAKEN, taken), failed)


def gather_record_rows(rows: pa.Table, made: pa.Table, step: Transform) -> tuple[pa.Field, pa.Array]:
    """Return the column that has, for each record, an ARRAY of the rows that were made of it."""
    (column,) = step.schema.fields
    type_ = arrow_type(column.type.spark)
    number = {place: row for row, place in enumerate(list_record_places(rows))}
    owners = np.array([number[place] for place in list_record_places(made)], np.int64)
    ordered = made.take(pa.array(np.argsort(owners, kind="stable")))
    ends = np.cumsum(np.bincount(owners, minlength=rows.num_rows))
    parts = [ordered[field.name].combine_chunks() for field in list_transform_fields(step)]
    items = pa.StructArray.from_arrays(parts, fields=list(type_.value_type))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.field(column.name, type_), pa.ListArray.from_arrays(offsets, items).cast(type_)


def list_transform_fields(step: Transform) -> list[pa.Field]:
    """List the columns that the function returns."""
    fields = (step.rows or step.schema).fields
    return [pa.field(field.name, arrow_type(field.type.spark)) for field in fields]


def call_transform_by_halves(
    rows: pa.Table, function: Function, schema: pa.Schema, failed: dict[Place, str], step: Transform
) -> Sequence[pa.Table]:
    """Call the function; where it fails, call it for each half, down to the record on which it fails alone."""
    if not rows.num_rows:
        return []
    try:
        return [validate_transform_output(function(rows), rows, schema, step)]
    except Exception as error:  # noqa: BLE001 - whatever a user's function raises is the record's trouble
        if rows.num_rows == 1:
            failed[list_record_places(rows)[0]] = f"{type(error).__name__}: {error}"[:500]
            return []
    half = rows.num_rows // 2
    parts = [rows.slice(0, half), rows.slice(half)]
    return [made for part in parts for made in call_transform_by_halves(part, function, schema, failed, step)]


def validate_transform_output(made: Any, rows: pa.Table, schema: pa.Schema, step: Transform) -> pa.Table:
    """Return the columns that were declared; TypeError or ValueError for what is no answer to ``rows``."""
    if not isinstance(made, pa.Table):
        raise TypeError(f"it gave a {type(made).__name__}, not a pyarrow.Table")
    # With one topic nobody needs to carry its name along.
    if "_topic" not in made.column_names and len(topics := pc.unique(rows["_topic"])) == 1:
        made = made.append_column("_topic", pa.repeat(topics[0], made.num_rows))
    if missing := [name for name in schema.names if name not in made.column_names]:
        raise ValueError(f"its table has no column {', '.join(missing)}")
    made = made.select(schema.names)
    if step.exact:
        made = pa.table(
            [cast_without_rounding(made[field.name], field) for field in schema], names=schema.names
        )
    made = made.cast(schema)
    found = list_record_places(made)
    known = set(found) <= set(list_record_places(rows))
    if step.rows is None and (len(set(found)) < len(found) or not known):
        raise ValueError("its rows are not the records that it was given, each at most once")
    if not known:
        raise ValueError("its rows are not of the records that it was given")
    for field in step.rows.fields if step.rows else ():
        if not field.nullable and made[field.name].null_count:
            raise ValueError(f"its column {field.name} has no value in a row")
    return made


def cast_without_rounding(values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Cast a column, no double to a DECIMAL with other digits; TypeError, which names the column."""
    try:
        return cast_exactly(values, field.type)
    except pa.ArrowException as error:
        raise TypeError(f"its column {field.name} is {values.type}, not {field.type}: {error}") from error


def list_record_places(rows: pa.Table) -> list[Place]:
    """List where the records are."""
    return list(zip(*(rows[name].to_pylist() for name in PLACES), strict=True))


def set_failure_reasons(rows: pa.Table, failed: dict[Place, str]) -> pa.Table:
    """Write the reason of those that failed."""
    if not failed:
        return rows
    known = rows[REFUSED].to_pylist()
    reasons = [
        [REASON, failed[place]] if place in failed else reason
        for place, reason in zip(list_record_places(rows), known, strict=True)
    ]
    at = rows.column_names.index(REFUSED)
    return rows.set_column(at, REFUSED, pa.array(reasons, pa.list_(pa.string())))
