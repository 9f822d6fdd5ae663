"""The rows that a generation presents, interval by interval: what expectations are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.windowing import merge_into_windows, window_states_schema
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.lake.tables.generations import Generations
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.time.intervals import parse_moment
from seamline.model.time.window_arithmetic import Gaps
from seamline.model.time.zone_clock import MICROSECOND
from seamline.quality.expectations import name_needed_columns
from seamline.quality.suites import list_suites


def read_generation_states(view: CompiledView, generations: Generations, generation: str) -> pa.Table:
    """Read the states of a generation with the interval of each."""
    return generations.read(generation, [*partial_schema(view).names, "interval"])


def count_rows(presented: pa.Table) -> dict[str, int]:
    """Count rows by interval id."""
    counts = pc.value_counts(presented["interval"])
    return {each["values"]: each["counts"] for each in counts.to_pylist()}


def count_served_rows(
    view: CompiledView, generations: Generations, served: Mapping[str, str]
) -> dict[str, int]:
    """Count the rows that generations present of an interval each, by interval id."""
    bare, found = replace(view, measures=()), {}
    for generation in set(served.values()):
        counted = count_rows(present_intervals(bare, read_generation_states(bare, generations, generation)))
        mine = [interval for interval, each in served.items() if each == generation]
        found.update({interval: counted.get(interval, 0) for interval in mine})
    return found


def keep_expected_measures(view: CompiledView) -> CompiledView:
    """Leave out the measures that nothing is expected of; a suite may expect something of each."""
    if list_suites(view):
        return view
    named = name_needed_columns(view)
    return replace(view, measures=tuple(each for each in view.measures if each.name in named))


def present_intervals(view: CompiledView, held: pa.Table) -> pa.Table:
    """Return a row per interval, grouping set, keys and window, with the bounds of the window.

    Windows that lie wholly in their interval are presented; where there is none, the part of each in it is.
    """
    empty = window_states_schema(view).empty_table()
    parts = [present_windows(view, empty, "").slice(0, 0)]
    for interval in pc.unique(held["interval"]).to_pylist():
        own = held.filter(pc.equal(held["interval"], interval)).drop_columns(["interval"])
        for name, value in (("_speed", 0), ("_newest", -1)):
            own = own.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), own.num_rows))
        found = filter_own_windows(
            view, merge_into_windows(view, own), to_unix_micros(parse_moment(interval))
        )
        parts.append(present_windows(view, found, interval))
    return pa.concat_tables(parts)


def present_windows(view: CompiledView, found: pa.Table, interval: str) -> pa.Table:
    """Present states per window of an interval as they are served, but for what a suite needs to know of no side."""
    names = [*([GROUPING] if view.grouped else []), *(key.name for key in view.keys)]
    rows = approximate_totals(view, states.present_states(view, found, names))
    # Without keys and measures the rows have no column, and so no number.
    return pa.table(
        {
            **{name: rows[name] for name in rows.column_names},
            "window_start": found["_start"].cast(INSTANT),
            "window_end": found["_end"].cast(INSTANT),
            "interval": pa.repeat(pa.scalar(interval), found.num_rows),
        }
    )


def approximate_totals(view: CompiledView, rows: pa.Table) -> pa.Table:
    """Put the nearest double in the place of totals that no DECIMAL holds: bounds are doubles too."""
    for name, measure in view.beyond.items():
        if measure.name in rows.column_names:
            number = pc.coalesce(rows[name].cast(pa.float64()), rows[measure.name].cast(pa.float64()))
            rows = rows.set_column(rows.schema.get_field_index(measure.name), measure.name, number)
    return rows


def filter_own_windows(view: CompiledView, found: pa.Table, start: int) -> pa.Table:
    """Keep the windows that no other interval can add to; all if there is none."""
    margin = view.windows.gap if isinstance(view.windows, Gaps) else 0
    end = start + view.interval // MICROSECOND
    above = pc.greater_equal(found["_start"], start + margin)
    own = found.filter(pc.fill_null(pc.and_(above, pc.less_equal(found["_end"], end)), False))
    return own if own.num_rows else found
