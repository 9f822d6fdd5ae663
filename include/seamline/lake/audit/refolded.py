"""What a process emits, folded again for an audit: what its slices add up to above a floor, by interval.

An epoch's own states depend on every epoch before it, so they are not made one by one: per interval, the sum of all
that count is compared with what is shown now, less what was shown at the floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.folded_rows import Emitted, fold_rows_of_keys, make_emitted_table
from seamline.lake.joins.restated_rows import Judge
from seamline.lake.joins.span_rows import find_mark, micros_of_mark, read_span_rows
from seamline.lake.storage.arrow_types import partial_schema
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.seam import NOTHING


def refold_states(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    floors: Mapping[datetime, int],
    until: int,
    judge: Judge | None,
) -> pa.Table:
    """Compute the states that each interval's slices above its floor add up to, with ``_from`` and ``_to``.

    ``floors`` are by the intervals' starts. Rows are read interval by interval, and let go.
    """
    marks = {number: find_mark(pipeline, layout, number) for number in {until, *floors.values()}}
    made = []
    for start, floor in sorted(floors.items()):
        # Above a view's frontier there are no slices, whatever a build has published.
        if floor >= until:
            continue
        summed = refold_interval(pipeline, view, layout, start, (floor, until), marks, judge)
        for name, number in (("_to", until), ("_from", floor + 1)):
            summed = summed.add_column(0, name, pa.repeat(pa.scalar(number, pa.int64()), summed.num_rows))
        made.append(summed)
    numbers = [pa.field(name, pa.int64()) for name in ("_from", "_to")]
    return pa.concat_tables([pa.schema([*numbers, *partial_schema(view)]).empty_table(), *made])


def refold_interval(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    start: datetime,
    epochs: tuple[int, int],
    marks: Mapping[int, datetime | None],
    judge: Judge | None,
) -> pa.Table:
    """Compute the states of what is shown of an interval at the second of two epochs, less those at the first."""
    process, floor, until = view.process, *epochs
    assert process
    times = to_unix_micros(start), to_unix_micros(start + pipeline.grid.length)
    rows = read_span_rows(process, pipeline, layout, times, until, judge)
    parts = [compute_emitted_states(view, fold_rows_of_keys(process, rows, micros_of_mark(marks[until])))]
    if floor > NOTHING:
        known = rows.filter(pc.less_equal(rows["_epoch"], floor))
        before = fold_rows_of_keys(process, known, micros_of_mark(marks[floor]))
        parts.append(states.negate_states(view, compute_emitted_states(view, before)))
    return settle_zeros(view, states.combine_states(view, parts))


def compute_emitted_states(view: CompiledView, emitted: Iterable[Emitted]) -> pa.Table:
    """Compute the states of a view of what was emitted."""
    assert view.process
    with register_tables(emitted=make_emitted_table(view.process, view.side, emitted)) as con:
        return states.compute_row_states(con, view, "emitted")


def settle_zeros(view: CompiledView, table: pa.Table) -> pa.Table:
    """Leave out states that add nothing, and write the zeros of others alike: NULL is one, too."""
    kept = states.drop_zeros(view, table)
    for part in view.parts:
        at = kept.schema.get_field_index(part.name)
        kept = kept.set_column(at, kept.schema.field(at), pc.fill_null(kept[part.name], 0))
    return kept
