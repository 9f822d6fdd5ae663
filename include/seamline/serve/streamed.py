"""An answer of any size, a batch of rows or some bytes at a time: for readers, files and downloads."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from seamline.lake.read.answers import Answer
from seamline.lake.read.streamed_answer import MEMORY, StreamedAnswer, stream_merged_answer
from seamline.lake.storage import layout as places
from seamline.lake.store.locations import Location
from seamline.lake.tables.table_format import require_format
from seamline.lake.tables.view_versions import find_view
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.errors import DefinitionError, SetupError
from seamline.model.memory import parse_memory
from seamline.model.protocol.read_request import ReadOptions, ReadRequest
from seamline.serve.answer_age import read_within_age
from seamline.serve.json_lines import json_lines
from seamline.serve.query import build_answer_metadata, format_scalar

SETTING = "SEAMLINE_READ_MEMORY"
STREAMS = ("arrow", "parquet", "csv", "json")


def read_memory_setting(environ: Mapping[str, str]) -> int:
    """Read how much memory a streamed answer may take; SetupError for what is no size."""
    text = environ.get(SETTING)
    if not text:
        return MEMORY
    try:
        return parse_memory(text)
    except DefinitionError as problem:
        raise SetupError(f"{SETTING} is {text!r}.", hint=problem.hint) from None


def stream_answer(
    view: str,
    where: str | None = None,
    *,
    warehouse: str | Location | None = None,
    definitions: Path | None = None,
    max_age: float | None = None,
    memory: int | None = None,
    **options: Unpack[ReadOptions],
) -> StreamedAnswer:
    """Answer for ``PIPELINE.VIEW`` as ``seamline.read`` does, in parts that fit into some bytes of memory."""
    most = read_memory_setting(os.environ) if memory is None else memory
    request = ReadRequest.parse(where, **options)
    name, _, view_name = view.partition(".")
    pipeline = load_cached_catalog(definitions or places.definitions_folder()).pipeline(name)
    layout = places.locate_tables(pipeline.name, warehouse)
    with read_within_age((layout, view_name, request.side), max_age) as reading:
        require_format(layout)
        found = find_view(pipeline, layout, view_name)
        stream = stream_merged_answer(pipeline, found, layout, request, memory=most)
    stream.first = replace(stream.first, seen_at=reading.seen_at)
    return stream


def read_answer_page(stream: StreamedAnswer, offset: int, limit: int) -> Answer:
    """Return so many rows of an answer after the first ones, with what is told of the whole: all of it is read."""
    rows, begin = [stream.first.table.schema.empty_table()], offset
    for part in stream:
        count = min(max(part.table.num_rows - begin, 0), limit)
        # A slice would keep the whole part in memory.
        rows.append(part.table.take(pa.array(range(begin, begin + count), pa.int64())))
        begin, limit = max(begin - part.table.num_rows, 0), limit - count
        del part
    return replace(stream.told(), table=pa.concat_tables(rows))


def describe_pinned_state(stream: StreamedAnswer) -> dict[str, str]:
    """Describe the state of the tables that an answer is of, as metadata of its batches."""
    first = stream.first
    return {
        "seamline.view": first.view,
        "seamline.version": first.version,
        "seamline.side": first.side.value,
        "seamline.epoch": str(first.epoch),
        "seamline.manifest_version": str(first.manifest_version),
    }


class Sink(io.RawIOBase):
    """Takes what is written, until somebody takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        """Say that it is one."""
        return True

    def write(self, piece: Any) -> int:
        """Keep a piece."""
        self.pieces.append(bytes(piece))
        return len(self.pieces[-1])

    def take(self) -> bytes:
        """Return what was written since the last time."""
        found = b"".join(self.pieces)
        self.pieces.clear()
        return found


def encode_answer_stream(stream: StreamedAnswer, format: str, limit: int | None = None) -> Iterator[bytes]:
    """Encode an answer, or its first ``limit`` rows, as it comes: the file that the pieces make is whole at their end.

    A row group of Parquet, a batch of an Arrow stream or some lines are in memory at a time. What is known of the whole
    is in the metadata of a Parquet file, and in that of the schema too where one part has all of it.
    """
    sink, known = Sink(), describe_pinned_state(stream)
    known |= build_answer_metadata(stream.first) if stream.is_whole else {}
    schema = stream.first.table.schema
    batches = limit_rows(stream.batches(), limit)
    if format == "json":
        for batch in batches:
            yield "".join(json_lines(pa.Table.from_batches([batch]), format_scalar)).encode()
        return
    with WRITERS[format](sink, schema, known) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
        if format == "parquet" and not stream.is_whole:
            writer.add_key_value_metadata(build_answer_metadata(stream.told()))
    yield sink.take()


def write_arrow(sink: Sink, schema: pa.Schema, metadata: Mapping[str, str]) -> Any:
    """Open a writer of an Arrow stream."""
    return pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema.with_metadata(metadata))


def write_parquet(sink: Sink, schema: pa.Schema, metadata: Mapping[str, str]) -> Any:
    """Open a writer of a Parquet file."""
    return pq.ParquetWriter(pa.PythonFile(sink, "w"), schema.with_metadata(metadata))


def write_csv(sink: Sink, schema: pa.Schema, metadata: Mapping[str, str]) -> Any:
    """Open a writer of CSV with a header; instants in UTC."""
    return pyarrow.csv.CSVWriter(pa.PythonFile(sink, "w"), schema)


WRITERS: Mapping[str, Callable[[Sink, pa.Schema, Mapping[str, str]], Any]] = {
    "arrow": write_arrow,
    "parquet": write_parquet,
    "csv": write_csv,
}


def limit_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Give rows up to a number of them; the others are read, for what is told of the whole."""
    left = limit
    for batch in batches:
        if left is None:
            yield batch
        elif left:
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
