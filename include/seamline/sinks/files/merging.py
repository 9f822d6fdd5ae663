"""Files that become one: the newest row of each place, or all rows in order, written again in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.durability import sync_folders
from seamline.lake.store.drafted_files import name_draft, open_draft, send_draft
from seamline.lake.store.fetched_files import localize_files
from seamline.lake.store.locations import Location
from seamline.lake.store.text_lines import read_text_lines
from seamline.model.definition.sinks.file_sink import PARQUET
from seamline.model.protocol.sinks.file_manifests import DataFile
from seamline.plan.maintain.merged_files import FileMerge
from seamline.runtime.spill_folder import open_spill_folder
from seamline.sinks.files.encoded_rows import DELETED, OURS, VERSION
from seamline.sinks.row_shape import RowShape

BATCH = 50_000
"""Rows that are in memory at a time."""
MEMORY = "512MiB"
PLACE, LINE = "place", "line"
MARKS = (PLACE, "version", "deleted")
"""What is found at the beginning of a line."""
LINES = pa.schema([(PLACE, pa.string()), (VERSION, pa.int64()), (DELETED, pa.bool_()), (LINE, pa.binary())])
"""Lines of JSON with what is to be known of each."""
Naming = Callable[[], str]
"""Names the next file that is written, by the way from the sink's path."""


class Merging:
    """What is merged, and into what."""

    def __init__(self, root: Location, form: str, shape: RowShape, size: int, *, history: bool) -> None:
        self.root, self.form, self.shape, self.size, self.history = root, form, shape, size, history

    def merge(self, merge: FileMerge, name: Naming, now: float) -> Iterator[DataFile]:
        """Write the rows of some files anew, into as few files as their size allows."""
        paths = [str(self.root / each.file) for each in merge.files]
        with open_beside(1) as con:
            con.execute(f"SET memory_limit = '{MEMORY}'")
            source, order, types = "lines", [PLACE], LINES
            if self.form == PARQUET:
                source, order = read_parquet_sql(paths, uneven=True), [*self.shape.identity]
                types = common_schema(paths)
            else:
                con.register(source, pa.RecordBatchReader.from_batches(LINES, read_lines(paths, self.shape)))
            with con.sql(self.write_query(source, order, merge)).to_arrow_reader(BATCH) as reader:
                yield from self.write_files(as_types(reader, types), name, now)

    def write_query(self, source: str, order: Sequence[str], merge: FileMerge) -> str:
        """Write the query of the rows that stay."""
        columns = ", ".join(map(quote_identifier, order))
        chosen = ""
        if not self.history:
            gone = f" AND NOT {DELETED}" if merge.whole else ""
            chosen = f"QUALIFY row_number() OVER (PARTITION BY {columns} ORDER BY {VERSION} DESC) = 1{gone}"
        return f"SELECT * FROM {source} {chosen} ORDER BY {columns}, {VERSION}"

    def write_files(self, batches: Iterator[pa.Table], name: Naming, now: float) -> Iterator[DataFile]:
        """Write rows, and begin another file where one is large enough."""
        rows = next(batches, None)
        while rows is not None:
            way, count, deleted = name(), 0, 0
            place = self.root / way
            with open_spill_folder() as folder:
                draft = name_draft(place, folder)
                with open_file(draft, self.form, rows.schema) as (write, tell):
                    while rows is not None and tell() < self.size:
                        write(rows)
                        count += rows.num_rows
                        deleted += pc.sum(rows[DELETED]).as_py() or 0
                        rows = next(batches, None)
                written = draft.stat().st_size
                send_draft(draft, place)
                sync_folders([place.parent], above=self.root)
            yield DataFile(way, count, deleted, written, now)


def common_schema(paths: Iterable[str]) -> pa.Schema | None:
    """Return the schema of files that have the same one; None where they have several."""
    first, *others = (pq.read_schema(path) for path in localize_files(paths))
    return first if all(each == first for each in others) else None


def as_types(reader: pa.RecordBatchReader, types: pa.Schema | None) -> Iterator[pa.Table]:
    """Give rows with the types of a schema, where there is one."""
    for batch in reader:
        rows = pa.Table.from_batches([batch])
        if rows.num_rows:
            yield rows if types is None else rows.select(types.names).cast(types)


@contextmanager
def open_file(
    path: Path, form: str, schema: pa.Schema
) -> Iterator[tuple[Callable[[pa.Table], object], Callable[[], int]]]:
    """Open a file of a format; return what writes rows to it, and what tells its bytes."""
    with open_draft(path) as file:
        if form != PARQUET:
            yield lambda rows: file.writelines(each + b"\n" for each in rows[LINE].to_pylist()), file.tell
            return
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            yield writer.write_table, file.tell


def read_lines(paths: Iterable[str], shape: RowShape) -> Iterator[pa.RecordBatch]:
    """Read lines of JSON with their marks, and with what tells their rows apart as one text, digit by digit."""
    for path in localize_files(paths):
        for lines in read_text_lines(path):
            for at in range(0, len(lines), BATCH):
                some = lines.slice(at, BATCH)
                yield pa.record_batch(
                    [*(find_marks(some, shape) or parse_marks(some, shape)), some], schema=LINES
                )


def find_marks(lines: pa.Array, shape: RowShape) -> list[pa.Array] | None:
    """Find place, version and mark at the beginning of lines; None where one was written by another view version."""
    found = pc.extract_regex(lines.cast(pa.string()), write_pattern(shape.names[len(shape.identity)]))
    if found.null_count:
        return None
    place, version, deleted = (pc.struct_field(found, name) for name in MARKS)
    return [place, version.cast(pa.int64()), pc.equal(deleted, "true")]


def parse_marks(lines: pa.Array, shape: RowShape) -> list[pa.Array]:
    """Return what ``find_marks`` does, of lines that may have other columns after those that tell rows apart."""
    found = []
    for line in (each.decode() for each in lines.to_pylist()):
        following = [*json.loads(line)][len(OURS) + len(shape.identity)]
        begins = re.match(write_pattern(following), line)
        if begins is None:
            raise ValueError(f"no sink has written {line[:80]!r}")
        found.append((begins["place"], int(begins["version"]), begins["deleted"] == "true"))
    return [pa.array(each, kind) for each, kind in zip(zip(*found, strict=True), LINES.types, strict=False)]


def write_pattern(following: str) -> str:
    """Write how a line begins up to a column.

    No text of JSON has a comma, a space and then a quote in it that is not escaped: this is the column itself.
    """
    marks = rf'"{VERSION}": (?P<version>\d+), "{DELETED}": (?P<deleted>true|false)'
    return rf'^\{{{marks}, (?P<place>.*?), "{re.escape(following)}": '
