"""Rows that cannot be read by their number where they are, written as Parquet beside the pipeline's tables.

That is what CSV and JSON lines are, compressed or not, and files of a Delta table with deletion vectors. A staged file
is named by what it was made of; it is deleted with the last import that reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.imports.import_options import VALUE
from seamline.lake.store.copied_objects import copy_objects
from seamline.lake.store.file_copies import copy_file
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.store.table_files import text_kind
from seamline.lake.store.text_lines import hash_text, read_text_lines
from seamline.model.errors import BadRange
from seamline.plan.maintain.transfers import FoundFile
from seamline.runtime.spill_folder import own_spill_folder


@dataclass(frozen=True)
class CsvDialect:
    """How the cells of CSV files are written; the first line has the names."""

    delimiter: str = ","
    """What is between two cells."""
    quote: str = '"'
    """What is around a cell that contains one; twice in a row it is itself."""
    null: str = ""
    """The text of a cell that is NULL."""


def stage_text(file: Location, folder: Location, dialect: CsvDialect) -> tuple[Location, str]:
    """Write the rows of a file of text as Parquet; return the file, and the hash of the text. BadRange."""
    with copy_objects([file], file.parent) as [path], make_folder() as fresh:
        mark = hash_text(path)[:32]
        place = folder / f"{mark}.parquet"
        if not place.exists():
            draft = fresh / "rows.parquet"
            if text_kind(file.name) == "csv":
                convert_csv(path, draft, dialect, str(file))
            else:
                lines = (pa.record_batch([each], [VALUE]) for each in read_text_lines(path))
                write_batches(draft, pa.schema([(VALUE, pa.binary())]), lines)
            keep_staged(draft, place)
    return place, mark


def stage_live_rows(file: Location, keep: Sequence[bool], folder: Location, mark: str) -> Location:
    """Write the rows of a Parquet file that a table still has; rows after those that ``keep`` tells of are kept."""
    told = hashlib.sha256(bytes(keep)).hexdigest()[:8]
    place = folder / f"{mark}-{told}.parquet"
    if place.exists():
        return place
    with copy_objects([file], file.parent) as [path], make_folder() as fresh, pq.ParquetFile(path) as rows:

        def live() -> Iterator[pa.RecordBatch]:
            at = 0
            for batch in rows.iter_batches():
                mask = [*keep[at : at + batch.num_rows]]
                at += batch.num_rows
                yield batch.filter(pa.array([*mask, *[True] * (batch.num_rows - len(mask))], pa.bool_()))

        write_batches(fresh / "rows.parquet", rows.schema_arrow, live())
        keep_staged(fresh / "rows.parquet", place)
    return place


@contextmanager
def make_folder() -> Iterator[Location]:
    """Make a folder that is there while the block runs."""
    own_spill_folder().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=own_spill_folder()) as made:
        yield parse_location(made)


def keep_staged(draft: Location, place: Location) -> None:
    """Put a whole file where it belongs; one of the same name is the same."""
    place.parent.mkdir(parents=True, exist_ok=True)
    copy_file(draft, place, FoundFile(draft.name, draft.stat().st_size, 0, 0))


def convert_csv(path: str, draft: Location, dialect: CsvDialect, told: str) -> None:
    """Write a CSV file's rows as Parquet, each cell as its text; BadRange for a row of another width."""
    options = f"header=true, all_varchar=true, delim={quote_literal(dialect.delimiter)}, "
    options += f"quote={quote_literal(dialect.quote)}, escape={quote_literal(dialect.quote)}, "
    options += f"nullstr={quote_literal(dialect.null)}, strict_mode=true, null_padding=false"
    try:
        with open_beside() as con:
            con.execute(
                f"COPY (SELECT * FROM read_csv({quote_literal(path)}, {options})) "
                f"TO {quote_literal(str(draft))} (FORMAT parquet, COMPRESSION zstd)"
            )
    except duckdb.Error as error:
        said = str(error).replace(path, told).splitlines()
        raise BadRange(
            f"{told!r} cannot be read as CSV: {' '.join(said[:3])}",
            hint="correct the file, or name its dialect by --csv-delimiter, --csv-quote and --csv-null.",
        ) from None


def write_batches(draft: Location, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write batches as a Parquet file."""
    with pq.ParquetWriter(draft, schema, compression="zstd", compression_level=1) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write_batch(batch)
