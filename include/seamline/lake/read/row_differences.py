"""The difference between two sets of presented rows, by key and window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.states import quote_identifier
from seamline.lake.engine.windowing import END, START, merge_into_windows
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.generations import Generations
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.time.intervals import Interval

CHANGE = "_change"
OLD, NEW, BOTH = "only before", "only after", "changed"


@dataclass(frozen=True)
class Largest:
    """The largest change of a measure."""

    count: int
    """Rows that both sides have and in which the measure differs."""
    row: Mapping[str, Any] | None
    """The row of ``Difference.rows`` with the largest change; None if no change is a number."""


@dataclass(frozen=True)
class Difference:
    """What two sets of rows have in common, and what not.

    ``rows`` has one row for each place that differs: ``_change`` says how, and a measure ``total`` has columns
    ``_total_before``, ``_total_after`` and ``_total_difference`` (after less before, NULL where that is no number).
    """

    rows: pa.Table
    """Sorted by place; places with the same values on both sides are left out."""
    places: tuple[str, ...]
    """Columns that identify a row: grouping set, keys, window."""
    measures: Mapping[str, Largest]
    """By measure that both sides have."""
    equal: int
    """Places at which both sides have the same values."""
    changed: int
    """Places that both sides have, with other values."""
    only_before: int
    """Places that the first side alone has."""
    only_after: int
    """Places that the second side alone has."""

    @property
    def none(self) -> bool:
        """True if the two are the same."""
        return not (self.changed or self.only_before or self.only_after)


def before_column(measure: str) -> str:
    """Name the column of a measure as it was; no name of a user's begins like this."""
    return f"_{measure}_before"


def after_column(measure: str) -> str:
    """Name the column of a measure as it is after."""
    return f"_{measure}_after"


def difference_column(measure: str) -> str:
    """Name the column of what a measure has gained."""
    return f"_{measure}_difference"


def compare_rows(
    before: pa.Table, after: pa.Table, places: Sequence[str], measures: Sequence[str]
) -> Difference:
    """Compare two tables that have the columns ``places``, which are unique together, and ``measures``."""
    join = " AND ".join(
        f"o.{quote_identifier(name)} IS NOT DISTINCT FROM n.{quote_identifier(name)}" for name in places
    )
    types = {name: (before.schema.field(name).type, after.schema.field(name).type) for name in measures}
    unlike = {
        name: value_differs_sql(f"o.{quote_identifier(name)}", f"n.{quote_identifier(name)}", *types[name])
        for name in measures
    }
    differs = " OR ".join(unlike.values()) or "false"
    kind = f"CASE WHEN o._there IS NULL THEN '{NEW}' WHEN n._there IS NULL THEN '{OLD}' "
    kind += f"WHEN {differs} THEN '{BOTH}' END"
    columns = [f"CASE WHEN o._there THEN o.{p} ELSE n.{p} END AS {p}" for p in map(quote_identifier, places)]
    columns.append(f"{kind} AS {CHANGE}")
    for name in measures:
        columns += [
            f"o.{quote_identifier(name)} AS {quote_identifier(before_column(name))}",
            f"n.{quote_identifier(name)} AS {quote_identifier(after_column(name))}",
            f"{measure_difference_sql(name, *types[name])} AS {quote_identifier(difference_column(name))}",
        ]
    order = ", ".join(f"{quote_identifier(name)} NULLS FIRST" for name in reversed(places))
    query = (
        f"SELECT {', '.join(columns)} FROM (SELECT *, true AS _there FROM olds) o "
        f"FULL JOIN (SELECT *, true AS _there FROM news) n ON {join} ORDER BY {order}"
    )
    found = query_tables(query, olds=before, news=after)
    rows = found.filter(pc.is_valid(found[CHANGE]))
    counts = {row["values"]: row["counts"] for row in pc.value_counts(rows[CHANGE]).to_pylist()}
    return Difference(
        rows=rows,
        places=tuple(places),
        measures={name: find_largest_change(rows, name, *types[name]) for name in measures},
        equal=found.num_rows - rows.num_rows,
        changed=counts.get(BOTH, 0),
        only_before=counts.get(OLD, 0),
        only_after=counts.get(NEW, 0),
    )


def value_differs_sql(old: str, new: str, before: pa.DataType, after: pa.DataType) -> str:
    """Write whether a measure differs: of another type as numbers, where both are some, else as texts.

    A number that the common type of both cannot hold is none that the narrower of them has.
    """
    if before == after:
        return f"{old} IS DISTINCT FROM {new}"
    if is_numeric(before) and is_numeric(after):
        return f"coalesce(TRY({old} IS DISTINCT FROM {new}), true)"
    return f"{old}::VARCHAR IS DISTINCT FROM {new}::VARCHAR"


def is_numeric(type: pa.DataType) -> bool:
    """Return whether values of a type can be subtracted."""
    return any(each(type) for each in (pa.types.is_integer, pa.types.is_decimal, pa.types.is_floating))


def measure_difference_sql(name: str, before: pa.DataType, after: pa.DataType) -> str:
    """Write what a measure has gained: exactly where both are whole numbers or decimals."""
    if not (is_numeric(before) and is_numeric(after)):
        return "NULL::DOUBLE"
    scales = [each.scale if pa.types.is_decimal(each) else 0 for each in (before, after)]
    floats = any(pa.types.is_floating(each) for each in (before, after))
    as_type = "DOUBLE" if floats else f"DECIMAL(38, {max(scales)})"
    return f"TRY(n.{quote_identifier(name)}::{as_type} - o.{quote_identifier(name)}::{as_type})"


def find_largest_change(rows: pa.Table, name: str, before: pa.DataType, after: pa.DataType) -> Largest:
    """Find the row in which a measure has changed most."""
    differs = value_differs_sql(
        quote_identifier(before_column(name)), quote_identifier(after_column(name)), before, after
    )
    own = f"FROM rows WHERE {CHANGE} = '{BOTH}' AND {differs}"
    most = query_tables(
        f"SELECT *, count(*) OVER () AS _count {own} "
        f"ORDER BY abs({quote_identifier(difference_column(name))}) DESC NULLS LAST LIMIT 1",
        rows=rows,
    ).to_pylist()
    if not most:
        return Largest(0, None)
    count = most[0].pop("_count")
    return Largest(count, most[0] if most[0][difference_column(name)] is not None else None)


def list_row_place_names(view: CompiledView) -> list[str]:
    """List the columns that distinguish a view's presented rows."""
    grouping = [GROUPING] if view.grouped else []
    return [*grouping, *(key.name for key in view.keys), "window_start", "window_end"]


def generation_rows(layout: Layout, view: CompiledView, interval: Interval, generation: str) -> pa.Table:
    """Present what one generation has of the windows that its interval touches: of a longer one its share."""
    held = Generations(Table.open(layout.generations(view)), view)
    found = held.read(generation, [*partial_schema(view).names, "interval"])
    return present_window_states(view, found.filter(pc.equal(found["interval"], interval.id)))


def present_window_states(view: CompiledView, found: pa.Table) -> pa.Table:
    """Merge states (``partial_schema``) into windows, and present them: places and measures."""
    taken = found.select(partial_schema(view).names)
    for name, value in (("_speed", 0), ("_newest", -1)):
        taken = taken.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), taken.num_rows))
    found = merge_into_windows(view, taken)
    names = [name for name in list_row_place_names(view) if name in found.column_names]
    rows = states.present_states(view, found, names)
    for name, bound in (("window_start", START), ("window_end", END)):
        rows = rows.append_column(name, found[bound].cast(INSTANT))
    return rows
