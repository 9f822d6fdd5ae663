"""A block that does not fit: its states are put on disk in one pass, by their keys, and come back part by part.

A part has all states of its keys, so that what it presents is final. Parts are ranges of keys, in their order; their
borders are those of a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from seamline.lake.engine import states
from seamline.lake.engine.row_order import order_rows
from seamline.lake.engine.sessions import SESSION
from seamline.lake.engine.windowing import COUNTED, Numbers
from seamline.lake.read.counted_states import StateScan
from seamline.lake.storage.arrow_types import key_fields
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.time.window_arithmetic import Gaps
from seamline.runtime.deadline import in_time, require_time_left

BATCH = 100_000
"""Rows that are read of files at a time."""
SAMPLE = 20_000
"""Rows of which the borders between parts are read."""
BORDER = "_border"
LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass
class Divided:
    """The states of one grouping set, on their way to disk."""

    view: CompiledView
    """The version that is asked."""
    keys: Sequence[str]
    """Of the set."""
    borders: pa.Table
    """The first keys of each part but the first, ascending."""
    folder: Path
    """Where the parts are."""

    def __post_init__(self) -> None:
        self.writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        self.files = ExitStack()

    def write(self, rows: pa.Table) -> None:
        """Write states (with ``windowing.COUNTED``) to the parts of their keys."""
        if len(self.keys) < len(self.view.keys):
            rows = merge_before(self.view, rows, self.keys)
        if not self.borders.num_rows:
            self.put(0, rows)
            return
        part = find_parts(rows.select([*self.keys]), self.borders)
        order = np.argsort(part, kind="stable")
        rows, numbers = rows.take(pa.array(order)), part[order]
        found, first = np.unique(numbers, return_index=True)
        for number, start, end in zip(found.tolist(), first, [*first, len(numbers)][1:], strict=True):
            self.put(number, rows.slice(start, end - start))

    def put(self, number: int, rows: pa.Table) -> None:
        """Add rows to a part."""
        if number not in self.writers:
            sink = self.files.enter_context(pa.OSFile(str(self.folder / f"{number}.arrow"), "wb"))
            self.writers[number] = self.files.enter_context(pa.ipc.new_stream(sink, rows.schema, options=LZ4))
        self.writers[number].write_table(rows)

    def parts(self) -> Iterator[pa.Table]:
        """Give the parts in the order of their keys, each once."""
        self.files.close()
        for number in sorted(self.writers):
            path = self.folder / f"{number}.arrow"
            with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
                found = reader.read_all()
            path.unlink()
            yield found
            del found


def stream_counted_states(
    con: duckdb.DuckDBPyConnection, scans: Sequence[StateScan], memory: int
) -> Iterator[pa.Table]:
    """Give the states that count some at a time, of about ``memory`` bytes."""
    for scan in scans:
        held: list[pa.RecordBatch] = []
        for batch in in_time(con.sql(scan.sql()).to_arrow_reader(BATCH)):
            held.append(batch)
            if sum(each.nbytes for each in held) >= memory:
                yield scan.counted(pa.Table.from_batches(held))
                held = []
        if held:
            yield scan.counted(pa.Table.from_batches(held))


def sample_borders(
    con: duckdb.DuckDBPyConnection,
    view: CompiledView,
    scans: Sequence[StateScan],
    keys: Sequence[str],
    parts: int,
) -> pa.Table:
    """Choose the keys at which parts begin, such that they are about equal."""
    known = {field.name: field for field in key_fields(view)}
    schema = pa.schema([known[name] for name in keys])
    if not keys or parts < 2 or not scans:
        return schema.empty_table()
    rows = " UNION ALL ".join(f"({scan.sql(keys)})" for scan in scans)
    found = con.sql(
        f"SELECT * FROM ({rows}) USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)"
    ).to_arrow_table()
    found = found.select(schema.names).cast(schema)
    found = found.take(order_rows(found, schema.names))
    places = np.unique(np.arange(1, parts) * found.num_rows // parts)
    chosen = found.take(pa.array(places[places > 0]))
    listed = chosen.to_pylist()
    return chosen.take(
        pa.array([at for at, row in enumerate(listed) if not at or row != listed[at - 1]], pa.int64())
    )


def find_parts(rows: pa.Table, borders: pa.Table) -> Numbers:
    """Number the part of each row of keys: how many borders there are up to it."""
    count = borders.num_rows
    whole = pa.concat_tables(
        [
            borders.append_column(BORDER, pa.array(np.zeros(count, np.int64))),
            rows.cast(borders.schema).append_column(BORDER, pa.array(np.ones(rows.num_rows, np.int64))),
        ]
    )
    order = order_rows(whole, whole.column_names).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    found: Numbers = np.searchsorted(place[:count], place[count:])
    return found


def merge_before(view: CompiledView, rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Merge states of a set with fewer keys before they are written: they may be many more than its groups."""
    require_time_left()
    if isinstance(view.windows, Gaps):
        found = states.merge_sessions(view, rows, keys, COUNTED, interval=view.windows.interval)
        return found.drop_columns([SESSION])
    return states.aggregate_states(view, rows, [*keys, "pane"], COUNTED)
