"""What a process emits, folded again for an audit: what its slices add up to above a floor, by interval.

An epoch's own states depend on every epoch before it, so they are not made one by one: per interval, the sum of all
that count is compared with what is shown now, less what was shown at the floor. What an interval has is made of the
rows of its span, which are folded once for all of its intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.folded_rows import fold_rows_of_keys, make_emitted_table
from seamline.lake.joins.restated_rows import Judge
from seamline.lake.joins.span_rows import find_mark, micros_of_mark, read_span_rows
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.reached_intervals import widen_by_reach


def refold_states(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    floors: Mapping[datetime, int],
    until: int,
    judge: Judge | None,
) -> pa.Table:
    """Compute the states that each interval's slices above its floor add up to, with ``_from`` and ``_to``.

    ``floors`` are by the intervals' starts. Rows are read interval by interval, or span by span where those are longer,
    and let go.
    """
    marks = {number: find_mark(pipeline, layout, number) for number in {until, *floors.values()}}
    made = []
    # Above a view's frontier there are no slices, whatever a build has published.
    audited = sorted((start, floor) for start, floor in floors.items() if floor < until)
    for begun, group in groupby(audited, lambda each: find_begin(pipeline, view, each[0])):
        mine = dict(group)
        rows = read_begun_rows(pipeline, view, layout, begun, max(mine), until, judge)
        now = fold_until(view, rows, until, marks[until])
        for floor in sorted({*mine.values()}):
            before = fold_until(view, rows, floor, marks[floor])
            for start in (each for each, own in mine.items() if own == floor):
                summed = subtract_states(pipeline, view, start, now, before)
                for name, number in (("_to", until), ("_from", floor + 1)):
                    column = pa.repeat(pa.scalar(number, pa.int64()), summed.num_rows)
                    summed = summed.add_column(0, name, column)
                made.append(summed)
    numbers = [pa.field(name, pa.int64()) for name in ("_from", "_to")]
    return pa.concat_tables([pa.schema([*numbers, *partial_schema(view)]).empty_table(), *made])


def find_begin(pipeline: CompiledPipeline, view: CompiledView, start: datetime) -> datetime:
    """Return from where on rows are that an interval, which begins at ``start``, is made of."""
    return widen_by_reach(pipeline.grid, pipeline.grid.of(start), view).start


def read_begun_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    begun: datetime,
    last: datetime,
    until: int,
    judge: Judge | None,
) -> pa.Table:
    """Read the rows up to an epoch from ``begun`` to the end of the interval that begins at ``last``."""
    assert view.process
    times = to_unix_micros(begun), to_unix_micros(last + pipeline.grid.length)
    return read_span_rows(view.process, pipeline, layout, times, until, judge)


def fold_until(view: CompiledView, rows: pa.Table, number: int, mark: datetime | None) -> pa.Table:
    """Fold rows as an epoch shows them; nothing is shown of the time before the first one."""
    assert view.process
    known = rows.filter(pc.less_equal(rows["_epoch"], number))
    emitted = fold_rows_of_keys(view.process, known, micros_of_mark(mark)) if number > NOTHING else ()
    return make_emitted_table(view.process, view.side, emitted)


def subtract_states(
    pipeline: CompiledPipeline, view: CompiledView, start: datetime, now: pa.Table, before: pa.Table
) -> pa.Table:
    """Compute the states of what is shown of an interval now, less those of what was shown before."""
    parts = []
    for shown in (now, before):
        at = shown["_event_time"]
        end = start + pipeline.grid.length
        inside = pc.and_(
            pc.greater_equal(at, pa.scalar(start, INSTANT)), pc.less(at, pa.scalar(end, INSTANT))
        )
        with register_tables(emitted=shown.filter(inside)) as con:
            parts.append(states.compute_row_states(con, view, "emitted"))
    return settle_zeros(view, states.combine_states(view, [parts[0], states.negate_states(view, parts[1])]))


def settle_zeros(view: CompiledView, table: pa.Table) -> pa.Table:
    """Leave out states that add nothing, and write the zeros of others alike: NULL is one, too."""
    kept = states.drop_zeros(view, table)
    for part in view.parts:
        at = kept.schema.get_field_index(part.name)
        kept = kept.set_column(at, kept.schema.field(at), pc.fill_null(kept[part.name], 0))
    return kept
