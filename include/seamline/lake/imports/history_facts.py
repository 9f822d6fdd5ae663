"""What is known of files and tables before their rows are read: footers, and what earlier imports have taken."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.store.locations import Location
from seamline.lake.store.ranged_files import open_ranged_file
from seamline.lake.store.side_by_side import Threads
from seamline.model.errors import BadRange
from seamline.plan.stream.import_plan import HistoryFile

LOOKING = Threads("footer", 16)


@dataclass(frozen=True)
class ImportedTable:
    """What earlier imports have taken of a Delta table."""

    version: int
    """The newest version that one of them was of."""
    left: tuple[HistoryFile, ...] = ()
    """Files that one of them did not read whole, because it was cancelled."""


@dataclass(frozen=True)
class History:
    """A table of somebody's that may be imported."""

    place: str
    """Where it is, as it was named."""
    about: str
    """What it is, for people: ``Delta version 7``, ``3 files``."""
    files: tuple[HistoryFile, ...]
    """Its files."""
    columns: pa.Schema
    """Its columns."""
    table_id: str = ""
    """The id of a Delta table, empty for files."""
    version: int = -1
    """The version of a Delta table, -1 for files."""
    gone: tuple[HistoryFile, ...] = ()
    """Files of a Delta table that an import did not read whole, and that are no longer there."""


@dataclass(frozen=True)
class Footer:
    """What a Parquet file says of itself."""

    mark: str
    """A hash of its footer; of a file whose name is never used again it says which it is."""
    rows: int
    """How many rows it has."""
    size: int
    """Its bytes."""
    columns: pa.Schema
    """Its columns."""
    low: datetime | None
    """The smallest value of the column of event time, UTC, inclusive; None if the footer does not state it."""
    high: datetime | None
    """The largest, likewise."""


def look_at_file(place: Location, time_column: str) -> Footer:
    """Look at a Parquet file's footer; BadRange if it has none."""
    with open_ranged_file(place) as file:
        size = file.seek(0, 2)
        file.seek(max(size - 8, 0))
        end = file.read(8)
        try:
            length = int.from_bytes(end[:4], "little")
            file.seek(max(size - 8 - length, 0))
            mark = hashlib.sha256(file.read(length)).hexdigest()[:32]
            file.seek(0)
            told = pq.read_metadata(file)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno:
                # What the system says of reading it says nothing of the file; Arrow's own errors have no number.
                raise
            raise BadRange(
                f"{str(place)!r} is no whole Parquet file: {str(error).splitlines()[0]}.",
                hint="remove it, or import once the job that writes it has ended.",
            ) from None
    low, high = find_value_bounds(told, time_column)
    return Footer(mark, told.num_rows, size, told.schema.to_arrow_schema(), low, high)


def find_value_bounds(told: pq.FileMetaData, column: str) -> tuple[datetime | None, datetime | None]:
    """Find the bounds of a column of instants; None where a row group does not say them."""
    at = next((at for at in range(told.num_columns) if told.schema.column(at).path == column), None)
    if at is None:
        return None, None
    lows, highs = [], []
    for group in range(told.num_row_groups):
        said = told.row_group(group).column(at).statistics
        try:
            stated = said is not None and said.has_min_max and isinstance(said.min, datetime)
        except (ValueError, OverflowError):
            stated = False
        if not stated:
            return None, None
        lows.append(to_utc(said.min))
        highs.append(to_utc(said.max))
    if any(at.year in (1, 9999) for at in (*lows, *highs)):
        # Python's dates end there, and what stands for never is no bound.
        return None, None
    return min(lows, default=None), max(highs, default=None)


def to_utc(at: datetime) -> datetime:
    """Return an instant in UTC; one without a zone is."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
