"""Snapshots of a fold's tails as files: what each key had come to with the rows before a watermark, up to an epoch.

A file has a row for each key and span that had a state then, with the columns of the key and of the state. It is a
cache: whoever finds none folds all rows of the span.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.key_parts import split_by_key
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.folded_rows import make_span, read_values, thaw
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.store.drafted_files import open_draft
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import Snapshot
from seamline.model.functions.tails import KeySpan
from seamline.model.types.schema import Field

SPAN, TIMERS, SEEN, CHAINED = "span", "timers", "seen", "chained"
"""Where the span begins, which timers wait, and when the last row was, in microseconds; and ``Snapshot.chained``."""
OF_KEY, OF_STATE = "key_", "state_"
"""What stands before the names of columns of the key, and of the state."""
OWN = (
    pa.field(SPAN, pa.int64()),
    pa.field(TIMERS, pa.list_(pa.int64())),
    pa.field(SEEN, pa.int64()),
    pa.field(CHAINED, pa.int64()),
)
MOST_KEYS, MOST_BYTES = 20_000, 32 << 20
"""Keys, and bytes of their states, about, that are written at once."""
Found = Iterable[tuple[KeySpan, Snapshot]]
Part = tuple[int, int]
"""The number of a part of the keys, and how many parts there are."""


def list_state_fields(process: CompiledProcess) -> tuple[Field, ...]:
    """List the columns of a process's state."""
    return process.function.state.fields


def list_key_columns(process: CompiledProcess) -> list[str]:
    """List the columns of a file that have those of the key."""
    return [f"{OF_KEY}{each.name}" for each in process.keys]


def snapshot_schema(process: CompiledProcess) -> pa.Schema:
    """Return the columns of a file: ``OWN``, those of the key and those of the state."""
    named = [(f"{OF_KEY}{each.name}", each) for each in process.keys]
    named += [(f"{OF_STATE}{each.name}", each) for each in list_state_fields(process)]
    return pa.schema([*OWN, *(pa.field(name, arrow_type(each.type.spark)) for name, each in named)])


def write_snapshots(path: Path, process: CompiledProcess, found: Found) -> None:
    """Write a file, whole or not at all, and also after a power cut."""
    schema = snapshot_schema(process)
    with (
        open_draft(path) as file,
        pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for batch in make_batches(process, found):
            writer.write_batch(batch)


def make_batches(process: CompiledProcess, found: Found) -> Iterator[pa.RecordBatch]:
    """Make the rows of a file, a few at a time."""
    some, size, measure = [], 0, process.function.state.measure
    for each in found:
        some.append(each)
        size += measure(each[1].state or ())
        if len(some) >= MOST_KEYS or size >= MOST_BYTES:
            yield make_batch(process, some)
            some, size = [], 0
    if some:
        yield make_batch(process, some)


def make_batch(process: CompiledProcess, found: list[tuple[KeySpan, Snapshot]]) -> pa.RecordBatch:
    """Make rows of a file."""
    keys, snapshots = zip(*found, strict=True)
    columns: list[Iterable[object]] = [
        [key.span for key in keys],
        [each.timers for each in snapshots],
        [each.seen for each in snapshots],
        [each.chained for each in snapshots],
        *zip(*(key.key for key in keys), strict=True),
    ]
    values = zip(*(each.state for each in snapshots), strict=True)
    for field, column in zip(list_state_fields(process), values, strict=True):
        columns.append([thaw(each, field.type) for each in column] if field.type.nested else column)
    schema = snapshot_schema(process)
    made = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(made, schema=schema)


OF_A_FILE = (None, errno.ENOENT, errno.EIO, errno.EACCES, errno.EPERM, errno.EISDIR)
"""Numbers of errors that are of one file: it is gone, a block of it is bad, or nobody may read it."""


def read_snapshots(process: CompiledProcess, rows: pa.Table | pa.RecordBatch) -> Found:
    """Read rows of a file."""
    keys = [read_values(rows[f"{OF_KEY}{each.name}"], each.type) for each in process.keys]
    fields, freeze = list_state_fields(process), process.function.state.freeze
    columns = [read_values(rows[f"{OF_STATE}{each.name}"], each.type) for each in fields]
    states = zip(*columns, strict=True) if columns else [()] * rows.num_rows
    own = (rows[each.name].to_pylist() for each in OWN)
    for key, state, span, timers, seen, chained in zip(zip(*keys, strict=True), states, *own, strict=True):
        yield make_span((key, span)), Snapshot(freeze(state), tuple(timers), seen, chained)


def read_snapshot_file(
    process: CompiledProcess, path: Path, after: float, part: Part = (0, 1)
) -> dict[KeySpan, Snapshot]:
    """Read a part of a file's snapshots of spans that end after an instant.

    OSError or ArrowException where the file is broken.
    """
    found: dict[KeySpan, Snapshot] = {}
    number, count = part
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(MOST_KEYS):
            rows = split_by_key(pa.Table.from_batches([batch]), list_key_columns(process), count)[number]
            mine = (each for each in read_snapshots(process, rows) if each[0].span + process.size > after)
            found.update(mine)
    return found


def read_snapshots_of_keys(
    process: CompiledProcess, paths: Iterable[str], keys: Collection[KeySpan]
) -> pa.Table:
    """Read files' rows of some keys in spans; OSError, ArrowException or duckdb.Error where one is broken."""
    with open_duckdb() as con, ExitStack() as opened:
        files = [
            opened.enter_context(pq.ParquetFile(path, page_checksum_verification=True)) for path in paths
        ]
        batches = (batch for file in files for batch in file.iter_batches(MOST_KEYS))
        con.register("held", pa.RecordBatchReader.from_batches(snapshot_schema(process), batches))
        con.register("sought", make_snapshot_keys(process, keys))
        same = [f"s.{SPAN} = f.{SPAN}"]
        same += [
            f"s.{name} IS NOT DISTINCT FROM f.{name}"
            for name in (quote_identifier(f"{OF_KEY}{each.name}") for each in process.keys)
        ]
        found = con.sql(f"SELECT f.* FROM held f SEMI JOIN sought s ON {' AND '.join(same)}")
        return found.to_arrow_table().cast(snapshot_schema(process))


def is_torn(error: Exception) -> bool:
    """Return whether a file that could not be read is to blame, and not the machine: its memory, or too many files."""
    if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
        return False
    return not isinstance(error, OSError) or error.errno in OF_A_FILE


def make_snapshot_keys(process: CompiledProcess, keys: Collection[KeySpan]) -> pa.Table:
    """Make a table of keys in spans, by the names of a file's columns."""
    columns = zip(*(key.key for key in keys), strict=True)
    return pa.table(
        {SPAN: pa.array([key.span for key in keys], pa.int64())}
        | {
            f"{OF_KEY}{field.name}": pa.array(values, arrow_type(field.type.spark))
            for field, values in zip(process.keys, columns, strict=True)
        }
    )
