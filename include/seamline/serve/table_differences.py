"""A view's answer beside another job's table, in rows and in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pyarrow as pa

from seamline.lake.audit.table_comparing import WHY, Compared
from seamline.lake.read.row_differences import (
    BOTH,
    CHANGE,
    NEW,
    OLD,
    after_column,
    before_column,
    difference_column,
)
from seamline.model.time.intervals import format_exact_duration, format_utc_instant
from seamline.plan.batch.table_differences import TableCause
from seamline.serve.generation_differences import format_largest_change

SIDES = {OLD: "only there", NEW: "only here", BOTH: "differs"}


def build_differing_rows(found: Compared) -> pa.Table:
    """Build the rows that differ: places, ``_change``, ``_why``, and of each measure what it is there and here."""
    difference = found.difference
    rows = difference.rows
    columns = {name: rows[name] for name in difference.places}
    columns[CHANGE] = pa.array([SIDES[each] for each in rows[CHANGE].to_pylist()], pa.string())
    columns[WHY] = rows[WHY]
    for name in difference.measures:
        columns[f"_{name}_there"] = rows[before_column(name)]
        columns[f"_{name}_here"] = rows[after_column(name)]
        columns[f"_{name}_difference"] = rows[difference_column(name)]
    return pa.table(columns)


def format_table_comparison(found: Compared) -> Iterator[str]:
    """Describe how much differs, why, and what of it nobody knows."""
    difference, answer = found.difference, found.answer
    yield (
        f"{found.view.qualified}, counted up to epoch {answer.complete_to}, beside {found.table.about}, written "
        f"{format_utc_instant(found.table.written_at)}{format_bounds(found)}:"
    )
    yield (
        f"  {difference.equal} rows equal, {difference.changed} differ, {difference.only_after} only here, "
        f"{difference.only_before} only there."
    )
    for name, most in difference.measures.items():
        if most.count:
            largest = f", most {format_largest_change(difference, name)} (there -> here)" if most.row else ""
            yield f"  {name}: {most.count} differ{largest}"
    for cause in TableCause:
        if count := found.causes.get(cause.value):
            yield f"  {count} {cause.value}"
    if found.shift is not None:
        way = "later" if found.shift > 0 else "earlier"
        span = format_exact_duration(timedelta(seconds=abs(found.shift)))
        yield (
            f"  The table's windows seem to begin {span} {way}: are they named by their end, or local times written as "
            "UTC?"
        )
    if not found.traced and found.unexplained:
        yield (
            "  Causes are looked for where windows are of time alone, of rows that are not derived: `seamline explain` "
            "takes a number of this view apart."
        )
    if measures := [each.name for each in found.view.measures if each.name not in difference.measures]:
        yield f"  Not compared, as the table has no column for it: {', '.join(measures)}."


def format_bounds(found: Compared) -> str:
    """Describe which windows are compared."""
    if found.windows is None:
        return ""
    first, last = map(format_utc_instant, found.windows)
    return f", windows that start from {first} to {last}"
