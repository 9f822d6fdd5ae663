"""Rows that cannot be read by their number where they are, written as Parquet beside the pipeline's tables.

That is what CSV and JSON lines are, compressed or not, and files of a Delta table with deletion vectors. Each plan
stages its own files; they are deleted when nothing of the import is left to be read, or the plan comes to nothing.
"""

from __future__ import annotations

import csv
import uuid
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
from seamline.lake.store.text_lines import read_text_lines
from seamline.model.errors import BadRange
from seamline.plan.maintain.transfers import FoundFile
from seamline.runtime.spill_folder import own_spill_folder

STAGED = "staged"
"""The name of the folder of staged rows."""


@dataclass(frozen=True)
class CsvDialect:
    """How the cells of CSV files are written; the first line has the names. BadRange for what is not one character."""

    delimiter: str = ","
    """What is between two cells."""
    quote: str = '"'
    """What is around a cell that contains one; twice in a row it is itself."""
    null: str = ""
    """The text of a cell that is NULL."""

    def __post_init__(self) -> None:
        for option, text in (("--csv-delimiter", self.delimiter), ("--csv-quote", self.quote)):
            if len(text) != 1 or text in "\r\n":
                raise BadRange(
                    f"{option} is {text!r}: it must be one character.", hint="for example ; or a tab."
                )
        if self.delimiter == self.quote:
            raise BadRange("--csv-delimiter and --csv-quote are the same.", hint="choose two characters.")


def stage_text(file: Location, folder: Location, dialect: CsvDialect, mark: str) -> Location:
    """Write the rows of a file of text as Parquet; return where that is. BadRange if it cannot be read."""
    # DuckDB clears the folder that both are in as it opens.
    with (
        name_wrong_text(file),
        open_beside() as con,
        copy_objects([file], file.parent) as [path],
        make_folder() as fresh,
    ):
        draft = fresh / "rows.parquet"
        if text_kind(file.name) == "csv":
            convert_csv(con, path, draft, dialect, str(file))
        else:
            lines = (pa.record_batch([each], [VALUE]) for each in read_text_lines(path))
            write_batches(draft, pa.schema([(VALUE, pa.binary())]), lines)
        return keep_staged(draft, folder, mark)


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
    with copy_objects([file], file.parent) as [path], make_folder() as fresh, pq.ParquetFile(path) as rows:

        def live() -> Iterator[pa.RecordBatch]:
            at = 0
            for batch in rows.iter_batches():
                mask = [*keep[at : at + batch.num_rows]]
                at += batch.num_rows
                yield batch.filter(pa.array([*mask, *[True] * (batch.num_rows - len(mask))], pa.bool_()))

        write_batches(fresh / "rows.parquet", rows.schema_arrow, live())
        return keep_staged(fresh / "rows.parquet", folder, mark)


@contextmanager
def make_folder() -> Iterator[Location]:
    """Make a folder that is there while the block runs."""
    own_spill_folder().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=own_spill_folder()) as made:
        yield parse_location(made)


def keep_staged(draft: Location, folder: Location, mark: str) -> Location:
    """Put a whole file into the folder of staged rows, under a name of its own; return where it is."""
    place = folder / f"{mark}-{uuid.uuid4().hex[:12]}.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    copy_file(draft, place, FoundFile(draft.name, draft.stat().st_size, 0, 0))
    return place


def is_staged(path: str) -> bool:
    """Return whether a path is that of staged rows, which nobody writes again."""
    return parse_location(path).parent.name == STAGED


def convert_csv(
    con: duckdb.DuckDBPyConnection, path: str, draft: Location, dialect: CsvDialect, told: str
) -> None:
    """Write a CSV file's rows as Parquet, each cell as its text; BadRange for a row of another width."""
    columns = {quote_literal(name): quote_literal("VARCHAR") for name in read_header(path, dialect, told)}
    parts = {
        "auto_detect": "false",
        "header": "true",
        "hive_partitioning": "false",
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
        said = str(error).replace(path, told).partition("Possible ")[0]
        raise BadRange(
            f"{told!r} cannot be read as CSV: {' '.join(said.split())}",
            hint="correct the file (it must be UTF-8), or name its dialect by --csv-delimiter, --csv-quote and "
            "--csv-null.",
        ) from None


def read_header(path: str, dialect: CsvDialect, told: str) -> list[str]:
    """Read the names of the columns from the first line; BadRange for none, or a name that is there twice."""
    first = next((lines[0].as_py() for lines in read_text_lines(path, blank=True) if len(lines)), b"")
    text = first.decode(errors="replace")
    names = next(csv.reader([text], delimiter=dialect.delimiter, quotechar=dialect.quote), [])
    hint = "begin the file with a line of column names."
    if not names:
        raise BadRange(f"{told!r} does not begin with a line of column names.", hint=hint)
    if again := next((name for name in names if names.count(name) > 1), None):
        raise BadRange(f"The first line of {told!r} names column {again!r} twice: {text[:200]!r}.", hint=hint)
    return names


def write_batches(draft: Location, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write batches as a Parquet file."""
    with pq.ParquetWriter(draft, schema, compression="zstd", compression_level=1) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write_batch(batch)
