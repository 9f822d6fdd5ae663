"""Files of records, written as they come: a Parquet file of the master, the quarantine, or what was validated again."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seamline.lake.storage.column_bounds import Bounds, delta_statistics_json, list_bounded_columns
from seamline.lake.storage.data_files import DataFile, describe_target
from seamline.lake.store.data_writing import DataTarget
from seamline.lake.store.locations import Location

RAW = ("_key", "_value", "_headers")
ASCENDING = ("_offset",)
"""Columns that go up one by one: as differences they take next to nothing, and a dictionary of them helps nobody."""


SAMPLE = 4096
"""Rows by which it is judged whether numbers differ: then a dictionary of them takes time and room for nothing."""


class Sink:
    """One Parquet file of a table, opened with its first rows.

    ``dry`` does all of the work and leaves nothing: the file is in memory, and no commit refers to it.
    """

    def __init__(
        self,
        root: Location,
        name: str,
        schema: pa.Schema,
        *,
        partition: Mapping[str, str] | None = None,
        dry: bool = False,
    ) -> None:
        self.root, self.name, self.schema, self.partition = root, name, schema, partition
        self.memory = pa.BufferOutputStream() if dry else None
        self.target: DataTarget | None = None
        self.writer: pq.ParquetWriter | None = None
        self.doubles = Bounds()

    def write(self, rows: pa.Table) -> None:
        """Add rows as one row group; none opens no file."""
        if not rows.num_rows:
            return
        if self.writer is None:
            plain = [name for name in self.schema.names if name not in RAW]
            differing = list_differing_numbers(rows)
            self.target = None if self.memory else DataTarget(self.root / self.name)
            self.writer = pq.ParquetWriter(
                self.target.sink if self.target else self.memory,
                self.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[name for name in plain if name not in {*ASCENDING, *differing}],
                column_encoding={name: "DELTA_BINARY_PACKED" for name in ASCENDING if name in plain},
                write_statistics=[name for name in list_bounded_columns(self.schema) if name not in RAW],
            )
        rows = rows.select(self.schema.names).cast(self.schema)
        self.doubles.see(rows)
        self.writer.write_table(rows)

    def close(self) -> list[DataFile]:
        """Finish the file and describe it; an empty list if there is none."""
        if self.writer is None:
            return []
        self.writer.close()
        if self.memory is not None:
            delta_statistics_json(pq.read_metadata(pa.BufferReader(self.memory.getvalue())), self.doubles)
            return []
        assert self.target
        return [describe_target(self.target, self.name, self.doubles, partition=self.partition)]


def list_differing_numbers(rows: pa.Table) -> list[str]:
    """List the columns of numbers and instants most of whose values differ from each other, by the first rows."""
    some = rows.slice(0, SAMPLE)
    return [
        each.name
        for each in rows.schema
        if (
            pa.types.is_integer(each.type)
            or pa.types.is_floating(each.type)
            or pa.types.is_timestamp(each.type)
        )
        and 2 * pc.count_distinct(some[each.name]).as_py() > some.num_rows
    ]


def fill_missing_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add the columns of a schema that rows lack, as NULL."""
    columns = [
        rows[each.name] if each.name in rows.column_names else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]
    return pa.table(columns, names=schema.names)
