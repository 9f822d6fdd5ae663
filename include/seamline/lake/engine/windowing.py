"""From states per pane to states per window: panes are merged when they are read, rows are never multiplied.

Windows that overlap are merged by doubling: spans of 1, 2, 4, ... panes are each merged from two of the spans
before, and a window from the few that its length is made of. So a window of n panes costs log2(n) merges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.row_order import MANY, Flags, find_repeated
from seamline.lake.storage.arrow_types import partial_schema, state_fields
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.time.window_arithmetic import Gaps, Ruling, Whole
from seamline.model.time.zone_clock import Clock

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
CELL, START, END = "_cell", "_start", "_end"
COUNTED = {"rows": "sum", "_speed": "sum", "_newest": "max"}
"""What is carried beside the states: rows, those from slices, and the newest epoch among these (or -1)."""


def merge_into_windows(view: CompiledView, taken: pa.Table) -> pa.Table:
    """Merge states per grouping set, keys and window.

    ``taken`` has ``partial_schema`` and the columns of COUNTED; the result has ``grouping``, the keys (NULL where
    a set is without one), ``_start`` and ``_end`` in microseconds (NULL without an end), COUNTED and the states.
    """
    pieces = [of_set(view, taken, keys) for keys in view.sets]
    return pa.concat_tables(pieces)


def of_set(view: CompiledView, taken: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Merge states per window for one grouping set."""
    cells = taken.append_column(CELL, taken["pane"].cast(pa.int64()))
    match view.windows:
        case Ruling() as ruling:
            found = merge_ruling_windows(view, cells, keys, ruling)
        case Whole(start=start):
            whole = merge_cells(
                view, [replace_column(cells, CELL, np.full(cells.num_rows, start, np.int64))], keys
            )
            found = set_window_bounds(whole, read_numpy_column(whole, CELL), None)
        case Gaps(gap=gap):
            found = of_gaps(view, taken, keys, gap)
    schema = window_states_schema(view)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {name: found[name] for name in found.column_names}
    columns[GROUPING] = pa.repeat(pa.scalar(format_grouping_set(keys), pa.string()), found.num_rows)
    for field in schema:
        if field.name not in columns:
            columns[field.name] = pa.nulls(found.num_rows, field.type)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def window_states_schema(view: CompiledView) -> pa.Schema:
    """Return the columns of states per window."""
    numbers = [pa.field(name, pa.int64()) for name in (START, END, *COUNTED)]
    keys = [partial_schema(view).field(key.name) for key in view.keys]
    return pa.schema([pa.field(GROUPING, pa.string()), *keys, *numbers, *state_fields(view)])


def format_grouping_set(keys: Sequence[str]) -> str:
    """Format a grouping set as SQL writes it: ``(carrier, origin)``, and ``()`` for the grand total."""
    return f"({', '.join(keys)})"


def merge_ruling_windows(
    view: CompiledView, cells: pa.Table, keys: Sequence[str], ruling: Ruling
) -> pa.Table:
    """Merge panes into cells (the shift from one window to the next), and cells into windows."""
    length = min(ruling.slide, ruling.step)
    numbers = (compute_clock_readings(ruling.clock, read_numpy_column(cells, CELL)) - ruling.origin) // length
    single = merge_cells(view, [replace_column(cells, CELL, numbers)], keys)
    if ruling.step < ruling.size:
        return place_cumulating_windows(
            ruling, merge_cumulating_windows(view, single, keys, ruling.size // ruling.step)
        )
    whole = merge_sliding_windows(view, single, keys, ruling.size // ruling.slide)
    first = ruling.origin + read_numpy_column(whole, CELL) * ruling.slide
    return set_window_bounds(
        whole,
        find_reached_instants(ruling.clock, first),
        find_reached_instants(ruling.clock, first + ruling.size),
    )


def of_gaps(view: CompiledView, taken: pa.Table, keys: Sequence[str], gap: int) -> pa.Table:
    """Join partial sessions wherever they come from, over the borders of intervals too."""
    found = states.merge_sessions(view, taken, keys, COUNTED)
    found = found.append_column(START, found["pane"].cast(pa.int64()))
    return found.append_column(END, pc.add(found["_last"].cast(pa.int64()), gap))


def compute_clock_readings(clock: Clock, instants: Numbers) -> Numbers:
    """Compute the furthest that clocks have shown up to each instant (see ``Clock.furthest_reading``)."""
    panes, place = np.unique(instants, return_inverse=True)
    at = np.searchsorted(np.array(clock.since, np.int64), panes, side="right") - 1
    shown = panes + np.array(clock.ahead, np.int64)[at]
    found: Numbers = np.maximum(shown, np.array(clock.tops, np.int64)[at] - 1)[place]
    return found


def find_reached_instants(clock: Clock, shown: Numbers) -> Numbers:
    """Find the first instants at which clocks have come as far as readings (see ``Clock.first_reaching``)."""
    at = np.searchsorted(np.array(clock.tops, np.int64), shown, side="right") - 1
    found: Numbers = np.maximum(
        np.array(clock.since, np.int64)[at], shown - np.array(clock.ahead, np.int64)[at]
    )
    return found


def merge_sliding_windows(view: CompiledView, single: pa.Table, keys: Sequence[str], count: int) -> pa.Table:
    """Merge ``count`` cells into each window; a window has the number of its first cell."""
    if count == 1:
        return single
    power, done, contributions = single, 0, []
    for bit in range(count.bit_length()):
        width = 1 << bit
        if count & width:
            contributions.append(shift_cells(power, -done))
            done += width
        if count >> (bit + 1):
            power = merge_cells(view, [power, shift_cells(power, -width)], keys)
    return merge_cells(view, contributions, keys)


def merge_cumulating_windows(
    view: CompiledView, single: pa.Table, keys: Sequence[str], count: int
) -> pa.Table:
    """Merge each cell with all before it in its run of ``count`` cells; a window has the number of its last."""
    power, width = single, 1
    while width < count:
        later = shift_cells(power, width)
        same = read_numpy_column(later, CELL) // count == read_numpy_column(power, CELL) // count
        power = merge_cells(view, [power, later.filter(pa.array(same))], keys)
        width *= 2
    return power


def place_cumulating_windows(ruling: Ruling, whole: pa.Table) -> pa.Table:
    """Place the windows that end with each cell of their run; of two with the same end the first stays."""
    cells, count = read_numpy_column(whole, CELL), ruling.size // ruling.step
    before = find_reached_instants(ruling.clock, ruling.origin + cells * ruling.step)
    ends = find_reached_instants(ruling.clock, ruling.origin + (cells + 1) * ruling.step)
    starts = find_reached_instants(ruling.clock, ruling.origin + cells // count * ruling.slide)
    return set_window_bounds(whole, starts, ends).filter(pa.array(ends > before))


def set_window_bounds(found: pa.Table, starts: Numbers, ends: Numbers | None) -> pa.Table:
    """Replace the numbers of windows by their bounds."""
    last = pa.nulls(found.num_rows, pa.int64()) if ends is None else pa.array(ends, pa.int64())
    return (
        found.drop_columns([CELL]).append_column(START, pa.array(starts, pa.int64())).append_column(END, last)
    )


def shift_cells(table: pa.Table, by: int) -> pa.Table:
    """Shift the numbers of the cells."""
    return replace_column(table, CELL, read_numpy_column(table, CELL) + by) if by else table


def merge_cells(view: CompiledView, tables: Iterable[pa.Table], keys: Sequence[str]) -> pa.Table:
    """Merge states per keys and cell. Most groups have one state: only the others are merged."""
    group = [*keys, CELL]
    names = [*group, *COUNTED, *(field.name for field in state_fields(view))]
    whole = pa.concat_tables([table.select(names) for table in tables])
    repeated = find_several(whole, group)
    if not repeated.any():
        return whole
    several = whole.filter(pa.array(repeated))
    together = states.aggregate_states(view, several, group, COUNTED)
    return pa.concat_tables([whole.filter(pa.array(~repeated)), together.select(names).cast(whole.schema)])


def find_several(whole: pa.Table, group: Sequence[str]) -> Flags:
    """Return which states are of a group with others; of many states a few that are alone may be among them."""
    if whole.num_rows >= MANY:
        return find_repeated(whole, group)
    _, place, sizes = np.unique(number_groups(whole, group), return_inverse=True, return_counts=True)
    found: Flags = sizes[place] > 1
    return found


def number_groups(table: pa.Table, group: Sequence[str]) -> Numbers:
    """Number each row's group."""
    found, size = np.zeros(table.num_rows, np.int64), 1
    for name in group:
        known = pc.unique(table[name])
        size *= len(known)
        if size >= 2**62:
            there, found = np.unique(found, return_inverse=True)
            size = len(there) * len(known)
        found = found * len(known) + pc.index_in(table[name], known).to_numpy()
    return found


def read_numpy_column(table: pa.Table, name: str) -> Numbers:
    """Return a column of numbers without NULL."""
    found: Numbers = table[name].to_numpy()
    return found


def replace_column(table: pa.Table, name: str, values: Numbers) -> pa.Table:
    """Replace a column by numbers."""
    at = table.schema.get_field_index(name)
    return table.set_column(at, name, pa.array(values, pa.int64()))
