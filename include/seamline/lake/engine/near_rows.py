"""Which rows may be joined with new ones: those with equal keys, near them in time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.time.zone_clock import MICROSECOND

SIDES = ("left", "right")
Rows = tuple[pa.Table, pa.Table]
"""Rows of the left side and of the right one, with the columns of ``side_schema``."""
Span = tuple[int, int]
"""Event times, in microseconds from 1970: the first, and that before which all are."""
MOST_SPANS = 32
"""Spans of older rows that are read apart."""


def hash_sql(join: CompiledJoin, number: int) -> str:
    """Write the hash of the keys of a row of the left side (0) or of the right one (1)."""
    return f"hash({', '.join(list_keys(join, number))})"


def list_keys(join: CompiledJoin, number: int) -> list[str]:
    """List the keys of the left side (0) or of the right one (1), quoted."""
    return [quote_identifier(right if number else left) for left, right, _ in join.on]


def sought_rows_sql(join: CompiledJoin, number: int, rows: str, horizon: int) -> str:
    """Write the rows of a side that have the keys of any of ``new_left`` and ``new_right`` in reach of a horizon."""
    late = f"WHERE epoch_us(_event_time) < {horizon + reach_of(join)}"
    named = [
        ", ".join(f"{key} AS c{at}" for at, key in enumerate(list_keys(join, other))) for other in range(2)
    ]
    keys = " UNION ".join(
        f"SELECT {keys} FROM new_{name} {late}" for name, keys in zip(SIDES, named, strict=True)
    )
    same = " AND ".join(
        f"s.{key} {DUCKDB.same if safe else '='} sought.c{at}"
        for at, (key, (_, _, safe)) in enumerate(zip(list_keys(join, number), join.on, strict=True))
    )
    return f"SELECT s.* FROM ({rows}) s SEMI JOIN ({keys}) sought ON {same}"


def near_sql(join: CompiledJoin, new: Rows) -> tuple[str, str]:
    """Write which right and left rows new rows of the other side may be joined with: DuckDB skips groups of others."""
    left, right = (read_bounds(table) for table in new)
    return (
        between_sql(left and (left[0] + join.lower, left[1] + join.upper)),
        between_sql(right and (right[0] - join.upper, right[1] - join.lower)),
    )


def around_sql(join: CompiledJoin, new: Rows) -> str:
    """Write which right rows the left rows may have found before that new right rows are joined with."""
    bounds, reach = read_bounds(new[1]), reach_of(join)
    return between_sql(bounds and (bounds[0] - reach, bounds[1] + reach))


def reach_of(join: CompiledJoin) -> int:
    """Return how far from a row those may be that its pairs are made of, in microseconds, both ways."""
    return (join.before + join.after) // MICROSECOND


def read_bounds(table: pa.Table) -> tuple[int, int] | None:
    """Return the first and the last event time of rows, in microseconds; None without rows."""
    if not table.num_rows:
        return None
    times = read_times(table)
    return int(times.min()), int(times.max())


def read_times(table: pa.Table) -> np.ndarray:
    """Return the event times of rows, in microseconds from 1970."""
    found: np.ndarray = table["_event_time"].cast(INSTANT).cast(pa.int64()).to_numpy()
    return found


def between_sql(bounds: tuple[int, int] | None) -> str:
    """Write the condition that an event time is within bounds; no row is without any."""
    if bounds is None:
        return " WHERE false"
    first, last = (f"make_timestamptz({bound})" for bound in bounds)
    return f" WHERE _event_time >= {first} AND _event_time <= {last}"


def find_older_spans(join: CompiledJoin, new: Rows, horizon: int | None) -> list[Span]:
    """List the spans below a horizon of the rows that new ones may be joined with, apart and in order.

    The rows that a left row has found before are among them, which say whether it is newly matched. Late rows of many
    times have wider ones.
    """
    if horizon is None:
        return []
    reach = reach_of(join)
    times = np.concatenate([read_times(table) for table in new])
    times = times[times < horizon + reach]
    width = max(reach, 1)
    cells = np.unique(times // width)
    while len(cells) > MOST_SPANS:
        width *= 2
        cells = np.unique(times // width)
    found: list[Span] = []
    for cell in cells.tolist():
        first, end = cell * width - reach, min((cell + 1) * width + reach, horizon)
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return found
