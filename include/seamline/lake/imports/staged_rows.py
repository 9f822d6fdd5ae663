"""Rows that cannot be read by their number where they are, written as Parquet beside the pipeline's tables.

That is what CSV and JSON lines are, compressed or not, and files of a Delta table with deletion vectors. A staged file
is named by what it was made of; it is deleted with the last import that reads it.
"""

from __future__ import annotations

import csv
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
from seamline.lake.store.ranged_files import hash_file
from seamline.lake.store.table_files import text_kind
from seamline.lake.store.text_lines import read_text_lines
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
    # DuckDB clears the folder that both are in as it opens.
    with (
        name_wrong_text(file),
        open_beside() as con,
        copy_objects([file], file.parent) as [path],
        make_folder() as fresh,
    ):
        mark = hash_file(parse_location(path))[:32]
        read_as = hashlib.sha256(repr(dialect).encode()).hexdigest()[:8]
        place = folder / f"{mark}-{read_as}.parquet"
        if not place.exists():
            draft = fresh / "rows.parquet"
            if text_kind(file.name) == "csv":
                convert_csv(con, path, draft, dialect, str(file))
            else:
                lines = (pa.record_batch([each], [VALUE]) for each in read_text_lines(path))
                write_batches(draft, pa.schema([(VALUE, pa.binary())]), lines)
            keep_staged(draft, place)
    return place, mark


@contextmanager
def name_wrong_text(file: Location) -> Iterator[None]:
    """Raise BadRange for a file that cannot be decompressed; one that is not there stays FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise BadRange(
            f"{str(file)!r} cannot be read: {str(error).splitlines()[0]}.",
            hint="it may be cut off, or compressed in another way than its name says: write it again.",
        ) from None


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


def convert_csv(
    con: duckdb.DuckDBPyConnection, path: str, draft: Location, dialect: CsvDialect, told: str
) -> None:
    """Write a CSV file's rows as Parquet, each cell as its text; BadRange for a row of another width."""
    columns = {quote_literal(name): quote_literal("VARCHAR") for name in read_header(path, dialect, told)}
    parts = {
        "auto_detect": "false",
        "header": "true",
        "columns": "{" + ", ".join(f"{name}: {type}" for name, type in columns.items()) + "}",
        "delim": quote_literal(dialect.delimiter),
        "quote": quote_literal(dialect.quote),
        "escape": quote_literal(dialect.quote),
        "nullstr": quote_literal(dialect.null),
    }
    options = ", ".join(f"{name}={value}" for name, value in parts.items())
    try:
        con.execute(
            f"COPY (SELECT * FROM read_csv({quote_literal(path)}, {options})) "
            f"TO {quote_literal(str(draft))} (FORMAT parquet, COMPRESSION zstd)"
        )
    except (duckdb.InvalidInputException, duckdb.ConversionException) as error:
        said = str(error).replace(path, told).splitlines()
        raise BadRange(
            f"{told!r} cannot be read as CSV: {' '.join(line.strip() for line in said[:4])}",
            hint="correct the file, or name its dialect by --csv-delimiter, --csv-quote and --csv-null.",
        ) from None


def read_header(path: str, dialect: CsvDialect, told: str) -> list[str]:
    """Read the names of the columns from the first line; BadRange for none, or a name that is there twice."""
    first = next((lines[0].as_py() for lines in read_text_lines(path, blank=True) if len(lines)), b"")
    text = first.decode(errors="replace")
    names = next(csv.reader([text], delimiter=dialect.delimiter, quotechar=dialect.quote), [])
    if not names or len({*names}) < len(names):
        raise BadRange(
            f"The first line of {told!r} does not name its columns, each once: {text[:200]!r}.",
            hint="put a line with the names before the rows.",
        )
    return names


def write_batches(draft: Location, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write batches as a Parquet file."""
    with pq.ParquetWriter(draft, schema, compression="zstd", compression_level=1) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write_batch(batch)
