"""A view's answer compared with a table that another job has made of the same topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.audit.compared_tables import (
    ComparedTable,
    bound_windows,
    find_difference,
    read_compared_table,
    require_one_row,
)
from seamline.lake.audit.table_causes import (
    CountedAnswer,
    is_traced,
    list_differing,
    list_estimates,
    trace_causes,
)
from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer, retry_unstable_read
from seamline.lake.read.row_differences import Difference
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.view_versions import find_served_version
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import BadRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.window_arithmetic import Ruling
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.table_differences import FURTHEST, TableCause, choose_causes, find_shift, list_shifts

WHY = "_why"
SEVERAL_THERE = "name all keys by --key, and window_end where windows of one start differ; in CSV '' is NULL."
SEVERAL_HERE = "its windows differ by their end as well: --key window_end=COLUMN names the table's."
TOLERANCE = 1e-9
"""Relative: by so much doubles may differ that were added up in another order."""
MOST_WIDENED = 300 * 86_400
"""Seconds before and after a table's windows in which others are looked for."""
MOST_SHIFTED = 20_000
"""Rows of a table of which it is looked whether their windows begin elsewhere."""


@dataclass(frozen=True)
class Compared:
    """A view's answer beside a table."""

    view: CompiledView
    """The version that answered."""
    answer: Answer
    """What it answered."""
    table: ComparedTable
    """What it is compared with."""
    windows: tuple[datetime, datetime] | None
    """The first and the last start of a window on either side; None where windows have none, or nothing is there."""
    difference: Difference
    """From the table to the answer; its rows have ``_why``, the causes of each."""
    causes: Mapping[str, int]
    """Rows that differ by cause; one that has two is counted with each."""
    shift: int | None
    """By how many seconds the table's windows seem to begin later; None if they do not."""
    traced: bool
    """Whether causes were looked for in the log: not of derived rows, of sessions, nor of count and global windows."""

    @property
    def unexplained(self) -> int:
        """Return how many rows differ for no known reason."""
        return self.causes.get(TableCause.NONE.value, 0)


def compare_with_table(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    text: str,
    *,
    names: Mapping[str, str],
    request: ReadRequest,
    tolerance: float = TOLERANCE,
    written_at: datetime | None = None,
) -> Compared:
    """Compare what is answered for the windows of a request with a table, by key and window.

    ``names`` are the table's names of our columns that are called otherwise there; measures that it lacks are left
    out. Without bounds all windows from the table's first to its last are compared. ``written_at`` is when the table
    was made, if that is not when it was last written. BadRange where the table has no measure of the view, lacks a
    key, or has two rows for one.
    """
    if not 0 <= tolerance < 1:
        raise BadRange(f"{tolerance} is no tolerance.", hint="give a share: 1e-9, or 0 for none.")
    pipeline, view = find_served_version(pipeline, layout, view)
    table = read_compared_table(view, text, names, request)
    table = replace(table, written_at=written_at or table.written_at)
    if "window_start" in table.places:
        request = bound_windows(text, table, request)
    require_one_row(table.rows, table.places, repr(text), SEVERAL_THERE)
    # Of one state of the tables, which may move meanwhile.
    once = partial(compare_once, pipeline, view, layout, table, request, tolerance)
    return retry_unstable_read(view, once)


def compare_once(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    table: ComparedTable,
    request: ReadRequest,
    tolerance: float,
) -> Compared:
    """Compare what is answered now; a file that is gone where tables move meanwhile."""

    def read(asked: ReadRequest) -> pa.Table:
        return read_merged_answer(pipeline, view, layout, asked).table.select(columns)

    columns = [*table.places, *table.measures]
    answer = read_merged_answer(pipeline, view, layout, request)
    ours = answer.table.select(columns)
    require_one_row(ours, table.places, view.qualified, SEVERAL_HERE)
    found = find_difference(table.rows, ours, table.places, table.measures, tolerance)
    traced = is_traced(view)
    if traced and find_window_starts(found.rows):
        counted = CountedAnswer(pipeline, view, layout, ours, answer.complete_to_max)
        why = trace_causes(counted, table, found, tolerance)
    else:
        why = [name_estimates(view, found, row) for row in found.rows.to_pylist()]
    said = pa.array([", ".join(each.value.partition(":")[0] for each in some) for some in why], pa.string())
    return Compared(
        view,
        answer,
        table,
        find_window_starts(table.rows, ours),
        replace(found, rows=found.rows.append_column(WHY, said)),
        Counter(cause.value for some in why for cause in some),
        find_window_shift(view, found, table, read, tolerance),
        traced,
    )


def find_window_starts(*sides: pa.Table) -> tuple[datetime, datetime] | None:
    """Find the first and the last start of a window; None where there is none."""
    starts = [
        each for side in sides if "window_start" in side.column_names for each in side["window_start"].chunks
    ]
    found = pc.min_max(pa.chunked_array(starts, INSTANT)).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def name_estimates(
    view: CompiledView, found: Difference, row: Mapping[str, object]
) -> tuple[TableCause, ...]:
    """Return why a row differs, by its measures alone."""
    return choose_causes((), (), measures=list_differing(found, row), estimates=list_estimates(view))


def find_window_shift(
    view: CompiledView,
    found: Difference,
    table: ComparedTable,
    read: Callable[[ReadRequest], pa.Table],
    tolerance: float,
) -> int | None:
    """Return by how many seconds a table's windows seem to begin later than the answer's; None if they do not.

    ``read`` reads the answer to a request.
    """
    theirs, windows = table.rows, view.windows
    if not isinstance(windows, Ruling) or windows.step != windows.size:
        return None
    if not 0 < theirs.num_rows <= MOST_SHIFTED or found.equal * 2 >= theirs.num_rows:
        return None
    at = theirs.schema.get_field_index("window_start")
    first, last = (each(theirs["window_start"]).as_py() for each in (pc.min, pc.max))
    if first is None:
        return None
    size = windows.size // 10**6
    furthest = timedelta(seconds=min(max(size, FURTHEST), MOST_WIDENED))
    ours = read(ReadRequest(start=first - furthest, end=last + furthest + MICROSECOND))
    places = [name for name in table.places if name != "window_end"]
    equal = {}
    for seconds in list_shifts(size):
        earlier = pc.subtract(theirs["window_start"], pa.scalar(timedelta(seconds=seconds)))
        moved = theirs.set_column(at, "window_start", earlier.cast(INSTANT))
        equal[seconds] = find_difference(moved, ours, places, table.measures, tolerance).equal
    return find_shift(found.equal, theirs.num_rows, equal)
