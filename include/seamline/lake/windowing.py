"""From states per pane to states per window: panes are merged when they are read, rows are never multiplied.

Windows that overlap are merged by doubling: spans of 1, 2, 4, ... panes are each merged from two of the spans
before, and a window from the few that its length is made of. So a window of n panes costs log2(n) merges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake import states
from seamline.lake.types import partial_schema, state_fields
from seamline.model.clock import Clock
from seamline.model.compiled import GROUPING, CompiledView
from seamline.model.ruling import Gaps, Ruling, Whole

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Place = tuple[int, int | None]
"""A window's start, and its end if it has one."""
CELL, START, END = "_cell", "_start", "_end"
COUNTED = {"rows": "sum", "_speed": "sum", "_newest": "max"}
"""What is carried beside the states: rows, those from slices, and the newest epoch among these (or -1)."""


def windowed(view: CompiledView, taken: pa.Table) -> pa.Table:
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
            found = of_ruling(view, cells, keys, ruling)
        case Whole(start=start):
            whole = replaced(cells, CELL, np.full(cells.num_rows, start, np.int64))
            found = placed(merged(view, [whole], keys), {start: (start, None)})
        case Gaps(gap=gap):
            found = of_gaps(view, taken, keys, gap)
    schema = windowed_schema(view)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {name: found[name] for name in found.column_names}
    columns[GROUPING] = pa.array([spelled(keys)] * found.num_rows, pa.string())
    for field in schema:
        if field.name not in columns:
            columns[field.name] = pa.nulls(found.num_rows, field.type)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def windowed_schema(view: CompiledView) -> pa.Schema:
    """Give the columns of states per window."""
    numbers = [pa.field(name, pa.int64()) for name in (START, END, *COUNTED)]
    keys = [partial_schema(view).field(key.name) for key in view.keys]
    return pa.schema([pa.field(GROUPING, pa.string()), *keys, *numbers, *state_fields(view)])


def spelled(keys: Sequence[str]) -> str:
    """Name a grouping set as SQL writes it: ``(carrier, origin)``, and ``()`` for the grand total."""
    return f"({', '.join(keys)})"


def of_ruling(view: CompiledView, cells: pa.Table, keys: Sequence[str], ruling: Ruling) -> pa.Table:
    """Merge panes into cells (the shift from one window to the next), and cells into windows."""
    length = min(ruling.slide, ruling.step)
    numbers = (readings(ruling.clock, column(cells, CELL)) - ruling.origin) // length
    single = merged(view, [replaced(cells, CELL, numbers)], keys)
    if ruling.step < ruling.size:
        count = ruling.size // ruling.step
        return placed(accumulated(view, single, keys, count), grown(ruling, single, count))
    whole = slid(view, single, keys, ruling.size // ruling.slide)
    found: dict[int, Place] = {
        number: (ruling.at(number), ruling.at_end(number)) for number in pc.unique(whole[CELL]).to_pylist()
    }
    return placed(whole, found)


def of_gaps(view: CompiledView, taken: pa.Table, keys: Sequence[str], gap: int) -> pa.Table:
    """Join partial sessions wherever they come from, over the borders of intervals too."""
    found = states.joined(view, taken, keys, COUNTED)
    found = found.append_column(START, found["pane"].cast(pa.int64()))
    return found.append_column(END, pc.add(found["_last"].cast(pa.int64()), gap))


def readings(clock: Clock, instants: Numbers) -> Numbers:
    """Give the furthest that clocks have shown up to each instant (see ``Clock.reading``)."""
    panes, place = np.unique(instants, return_inverse=True)
    at = np.searchsorted(np.array(clock.since, np.int64), panes, side="right") - 1
    shown = panes + np.array(clock.ahead, np.int64)[at]
    found: Numbers = np.maximum(shown, np.array(clock.tops, np.int64)[at] - 1)[place]
    return found


def slid(view: CompiledView, single: pa.Table, keys: Sequence[str], count: int) -> pa.Table:
    """Merge ``count`` cells into each window; a window has the number of its first cell."""
    if count == 1:
        return single
    power, done, contributions = single, 0, []
    for bit in range(count.bit_length()):
        width = 1 << bit
        if count & width:
            contributions.append(moved(power, -done))
            done += width
        if count >> (bit + 1):
            power = merged(view, [power, moved(power, -width)], keys)
    return merged(view, contributions, keys)


def accumulated(view: CompiledView, single: pa.Table, keys: Sequence[str], count: int) -> pa.Table:
    """Merge each cell with all before it in its run of ``count`` cells; a window has the number of its last."""
    power, width = single, 1
    while width < count:
        later = moved(power, width)
        same = column(later, CELL) // count == column(power, CELL) // count
        power = merged(view, [power, later.filter(pa.array(same))], keys)
        width *= 2
    return power


def grown(ruling: Ruling, single: pa.Table, count: int) -> dict[int, Place]:
    """Place the windows that begin with a run of cells; of two with the same end the first stays."""
    found: dict[int, Place] = {}
    for number in np.unique(column(single, CELL) // count).tolist():
        start = before = ruling.at(number)
        for cell in range(number * count, (number + 1) * count):
            end = ruling.clock.reached(ruling.origin + (cell + 1) * ruling.step)
            if end > before:
                found[cell] = (start, end)
            before = end
    return found


def placed(found: pa.Table, windows: dict[int, Place]) -> pa.Table:
    """Give windows their start and end in the place of their numbers; those without a place are left out."""
    numbers = pa.array(list(windows), pa.int64())
    at = pc.index_in(found[CELL], numbers)
    known = pc.is_valid(at)
    found, at = found.filter(known), at.filter(known)
    for name, side in ((START, 0), (END, 1)):
        bounds = pa.array([each[side] for each in windows.values()], pa.int64())
        found = found.append_column(name, pc.take(bounds, at))
    return found.drop_columns([CELL])


def moved(table: pa.Table, by: int) -> pa.Table:
    """Number the cells anew."""
    return replaced(table, CELL, column(table, CELL) + by) if by else table


def merged(view: CompiledView, tables: Iterable[pa.Table], keys: Sequence[str]) -> pa.Table:
    """Merge states per keys and cell. Most groups have one state: only the others are merged."""
    group = [*keys, CELL]
    names = [*group, *COUNTED, *(field.name for field in state_fields(view))]
    whole = pa.concat_tables([table.select(names) for table in tables])
    _, place, sizes = np.unique(codes(whole, group), return_inverse=True, return_counts=True)
    single = sizes[place] == 1
    if single.all():
        return whole
    several = whole.filter(pa.array(~single))
    together = states.added_up(view, several, group, COUNTED)
    return pa.concat_tables([whole.filter(pa.array(single)), together.select(names).cast(whole.schema)])


def codes(table: pa.Table, group: Sequence[str]) -> Numbers:
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


def column(table: pa.Table, name: str) -> Numbers:
    """Give a column of numbers without NULL."""
    found: Numbers = table[name].to_numpy()
    return found


def replaced(table: pa.Table, name: str, values: Numbers) -> pa.Table:
    """Put numbers in the place of a column."""
    at = table.schema.get_field_index(name)
    return table.set_column(at, name, pa.array(values, pa.int64()))
