"""A table that another job has made beside a view's answer: what of its columns is compared, and how both differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.audit.foreign_tables import open_foreign_table
from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.read.row_differences import Difference, compare_rows, is_numeric, list_row_place_names
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import BadRange
from seamline.model.functions.records import format_value
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import EPOCH, FIRST, LAST
from seamline.model.time.window_arithmetic import Whole
from seamline.model.time.zone_clock import MICROSECOND


@dataclass(frozen=True)
class ComparedTable:
    """What a table has of a view's columns."""

    about: str
    """What it is, for people: ``Delta version 7``, ``3 files``."""
    written_at: datetime
    """When it was last written, or made."""
    places: tuple[str, ...]
    """The columns that tell its rows apart: keys and bounds of windows."""
    measures: tuple[str, ...]
    """The measures that it has."""
    rows: pa.Table
    """These columns, by the view's names."""


def read_compared_table(
    view: CompiledView, text: str, names: Mapping[str, str], request: ReadRequest
) -> ComparedTable:
    """Read what a table has of a view's columns, of the windows that are asked for, and of none.

    BadRange where it lacks a key, or has no measure.
    """
    known = [*list_row_place_names(view), *(each.name for each in view.measures)]
    if unknown := [name for name in names if name not in known]:
        raise BadRange(f"{view.qualified} has no column {unknown[0]!r}.", hint=f"it has {', '.join(known)}.")
    types = {key.name: key.type.spark for key in view.keys}
    types |= {"window_start": "TIMESTAMP", "window_end": "TIMESTAMP"}
    types |= {each.name: "TIMESTAMP" for each in view.measures if each.result == "TIMESTAMP"}
    with open_foreign_table(text) as table:
        places = [
            name for name in list_row_place_names(view) if is_compared_by(view, name, names, table.columns)
        ]
        measures = [
            each.name
            for each in view.measures
            if each.name in names or names.get(each.name, each.name) in table.columns
        ]
        if not measures:
            raise BadRange(
                f"{text!r} has no column with the name of a measure of {view.qualified}.",
                hint=f"it has {', '.join(table.columns)}: say which is which by "
                f"--measure {view.measures[0].name}=COLUMN.",
            )
        columns = {name: names.get(name, name) for name in (*places, *measures)}
        within = within_bounds_sql(request) if "window_start" in places else "true"
        rows = table.read(columns, {name: type for name, type in types.items() if name in columns}, within)
        return ComparedTable(table.about, table.written_at, tuple(places), tuple(measures), rows)


def is_compared_by(view: CompiledView, name: str, names: Mapping[str, str], every: Sequence[str]) -> bool:
    """Return whether rows are told apart by a place: by all keys and the start of a window, and its end if given."""
    if isinstance(view.windows, Whole) and name.startswith("window_"):
        return False
    return name != "window_end" or names.get(name, name) in every


def within_bounds_sql(request: ReadRequest) -> str:
    """Write whether a window starts within the bounds of a request; a start that is NULL is in none."""
    bounds = []
    if request.start is not None:
        bounds.append(f"epoch_us(window_start) >= {to_unix_micros(request.start)}")
    if request.end is not None:
        bounds.append(f"epoch_us(window_start) < {to_unix_micros(request.end)}")
    return f"(window_start IS NULL OR ({' AND '.join(bounds) or 'true'}))"


def bound_windows(text: str, table: ComparedTable, request: ReadRequest) -> ReadRequest:
    """Fill in the bounds that were not given: the table's first and last window; BadRange where it has none."""
    if request.start is not None and request.end is not None:
        return request
    found = find_first_and_last(text, table.rows["window_start"])
    if found is None:
        raise BadRange(
            f"{text!r} has no row of a window that is asked for.",
            hint="name a table that has rows, or both bounds: --from and --to.",
        )
    last = max(found[1], request.start or found[1])
    return replace(request, start=request.start or found[0], end=request.end or last + MICROSECOND)


def find_first_and_last(text: str, starts: pa.ChunkedArray) -> tuple[datetime, datetime] | None:
    """Find the first and the last start of a window, None without any; BadRange for one that is beyond all windows."""
    found = pc.min_max(starts.cast(pa.int64())).as_py()
    if found["min"] is None:
        return None
    for micros in found.values():
        if not to_unix_micros(FIRST) <= micros <= to_unix_micros(LAST):
            raise BadRange(
                f"{text!r} has a window that starts {micros / 10**6:.0f} s from 1970, where none of the view can.",
                hint="leave such rows out: name bounds by --from and --to.",
            )
    first, last = (EPOCH + micros * MICROSECOND for micros in found.values())
    return first, last


def require_one_row(rows: pa.Table, places: Sequence[str], who: str, hint: str) -> None:
    """Require that no place is there twice; BadRange names one that is."""
    quoted = ", ".join(map(quote_identifier, places)) or "ALL"
    columns = f"{', '.join(map(quote_identifier, places))}, " if places else ""
    twice = query_tables(
        f"SELECT {columns}count(*) AS _rows FROM rows GROUP BY {quoted} HAVING count(*) > 1 LIMIT 1",
        rows=rows,
    ).to_pylist()
    if twice:
        count = twice[0].pop("_rows")
        named = ", ".join(f"{name}={format_value(value)}" for name, value in twice[0].items()) or "all keys"
        raise BadRange(f"{who} has {count} rows for {named}.", hint=hint)


def find_difference(
    theirs: pa.Table, ours: pa.Table, places: Sequence[str], measures: Sequence[str], tolerance: float
) -> Difference:
    """Find how two sides differ, but for the rounding of doubles."""
    return compare_rows(settle_roundings(theirs, ours, places, measures, tolerance), ours, places, measures)


def settle_roundings(
    theirs: pa.Table, ours: pa.Table, places: Sequence[str], measures: Sequence[str], tolerance: float
) -> pa.Table:
    """Replace numbers of a table by ours where one of both is a double, and they differ by rounding.

    A double beside a whole number is no sum of doubles, and has to be equal.
    """
    doubled = [
        name
        for name in measures
        if any(pa.types.is_floating(side.schema.field(name).type) for side in (theirs, ours))
        and all(is_numeric(side.schema.field(name).type) for side in (theirs, ours))
    ]
    if not doubled:
        return theirs
    on = " AND ".join(f"t.{q} IS NOT DISTINCT FROM o.{q}" for q in map(quote_identifier, places)) or "true"
    columns = []
    for name in (*places, *measures):
        quoted = quote_identifier(name)
        text = f"t.{quoted}"
        if name in doubled:
            whole = any(pa.types.is_integer(side.schema.field(name).type) for side in (theirs, ours))
            one, other = f"t.{quoted}::DOUBLE", f"o.{quoted}::DOUBLE"
            near = f"abs({one} - {other}) <= {0.0 if whole else tolerance!r} * greatest(abs({one}), abs({other}))"
            finite = f"isfinite({one}) AND isfinite({other})"
            text = f"CASE WHEN {finite} AND {near} THEN {other} ELSE {one} END"
        columns.append(f"{text} AS {quoted}")
    return query_tables(
        f"SELECT {', '.join(columns)} FROM theirs t LEFT JOIN ours o ON {on}", theirs=theirs, ours=ours
    )
