"""Changes as rows of files: what a row says now or that it is gone, and the version that showed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seamline.model.definition.sinks.file_sink import PARQUET
from seamline.model.types.exact_json import dump_finite_json
from seamline.serve.json_lines import encode_json_column
from seamline.sinks.json_values import spell_each
from seamline.sinks.kafka_rows import format_value
from seamline.sinks.row_shape import RowShape
from seamline.sinks.target import ChangeBatch

VERSION, DELETED = OURS = "_version", "_deleted"
"""Columns that files have beside those of the view; no name of a definition begins with one underscore."""
ENDS = {PARQUET: ".parquet", "json": ".jsonl"}
"""What the names of files end with."""


def mark_changes(batches: Iterable[ChangeBatch], shape: RowShape, version: int) -> pa.Table | None:
    """Return changes as rows of one table, the marks first, and NULL where a row that is gone has nothing to say.

    None where nothing has changed.
    """
    found = [each for batch in batches for each in mark_batch(batch, shape, version) if each.num_rows]
    return pa.concat_tables(found).combine_chunks() if found else None


def mark_batch(batch: ChangeBatch, shape: RowShape, version: int) -> Iterator[pa.Table]:
    """Return the rows of one batch, those that are there and those that are gone."""
    here = batch.upserts.select(shape.names)
    gone = shape.name_identity(batch.deletions)
    nothing = {
        field.name: gone[field.name].cast(field.type)
        if field.name in shape.identity
        else pa.nulls(gone.num_rows, field.type)
        for field in here.schema
    }
    yield mark(here, version, deleted=False)
    yield mark(pa.table(nothing, schema=here.schema), version, deleted=True)


def mark(rows: pa.Table, version: int, *, deleted: bool) -> pa.Table:
    """Put the marks before rows."""
    versions = pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows)
    marks = [versions, pa.repeat(pa.scalar(deleted), rows.num_rows)]
    return pa.table([*marks, *rows.columns], names=[VERSION, DELETED, *rows.schema.names])


def encode_file(rows: pa.Table, form: str) -> bytes:
    """Write rows as a file of a format."""
    if form == PARQUET:
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        return bytes(sink.getvalue())
    return b"".join(encode_lines(rows))


def encode_lines(rows: pa.Table) -> Iterator[bytes]:
    """Write rows as JSON, an object a line, some thousands at a time; numbers have all digits, bytes are in base64."""
    for batch in rows.to_batches(max_chunksize=10_000):
        yield "".join(pc.binary_join_element_wise(encode_batch(batch), "\n", "").to_pylist()).encode()


def encode_objects(rows: pa.Table) -> pa.Array:
    """Write rows as JSON, as their lines have them."""
    return pa.concat_arrays([pa.array([], pa.string()), *map(encode_batch, rows.to_batches())])


def encode_batch(batch: pa.RecordBatch) -> pa.Array:
    """Write rows as JSON, an object each."""
    parts: list[pa.Array | str] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts += [f"{', ' if parts else '{'}{dump_finite_json(name)}: ", encode_exactly(column)]
    return pc.binary_join_element_wise(*parts, "}", "")


def encode_exactly(column: pa.Array) -> pa.Array:
    """Encode the values of a column; NULL, and a double that is no number, is null."""
    if pa.types.is_nested(column.type):
        spelled = spell_each(column, lambda value: dump_finite_json(value, default=format_value))
        return pc.fill_null(spelled, "null")
    return encode_json_column(column, format_value)
