"""The emitted rows behind one number: each with the call that emitted it, and the states before and after that call."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.folded_rows import gather_key_rows, make_emitted_table, told_as_failure
from seamline.lake.joins.joined_rows import logged_rows
from seamline.lake.joins.restated_rows import Judge
from seamline.lake.joins.span_rows import find_mark, micros_of_mark
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import given_rows_sql
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import Item
from seamline.model.functions.tails import KeySpan
from seamline.model.functions.tracing import CALL, TracedCall, trace_calls
from seamline.model.time.intervals import Interval

MOST_FOLDED = 5
"""Rows behind a state that are named, the newest."""
Emitting = tuple[KeySpan, TracedCall, Item, str]
"""The key, the call, what it has emitted, and the rows that were folded by then."""


def read_emitted_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    sought: pa.Table,
    key: Mapping[str, Any],
    window: Interval,
    interval: Interval,
    until: int,
    judge: Judge | None = None,
) -> pa.Table:
    """Read the emitted rows of a key and window in one interval, as an epoch shows them; ``sought`` has the key.

    ``_call`` says which call emitted a row, ``_folded`` which rows of the key were folded since it had no state, and
    ``_before`` and ``_after`` are the states around the call; the place is that of the record that the call was given,
    if it was given one.
    """
    process = view.process
    assert process
    span = Interval(max(window.start, interval.start), min(window.end, interval.end))
    with register_tables(sought=sought) as con:
        given = read_given_rows(con, process, pipeline, layout, key, span, until, judge)
        mark = micros_of_mark(find_mark(pipeline, layout, until))
        found = [each for each in trace_rows(process, given, mark) if each[2].side == view.side]
        rows = describe_emitted_rows(process, view.side, found)
        same = [f"rows.{name} IS NOT DISTINCT FROM sought.{name}" for name in map(quote_identifier, key)]
        first, end = (to_unix_micros(at) for at in (span.start, span.end))
        same += [f"epoch_us(rows._event_time) >= {first}", f"epoch_us(rows._event_time) < {end}"]
        chosen = view.where.duckdb if view.where else "true"
        with register_tables(emitted=rows):
            return con.sql(
                f"SELECT rows.* FROM (SELECT * FROM emitted WHERE {chosen}) rows, sought WHERE {' AND '.join(same)}"
            ).to_arrow_table()


def read_given_rows(
    con: duckdb.DuckDBPyConnection,
    process: CompiledProcess,
    pipeline: CompiledPipeline,
    layout: Layout,
    key: Mapping[str, Any],
    span: Interval,
    until: int,
    judge: Judge | None,
) -> pa.Table:
    """Read the rows of all spans that meet another; of one key of the process, if the view's key says which."""
    first, end = to_unix_micros(span.start), to_unix_micros(span.end)
    times = (first // process.size * process.size, -(-end // process.size) * process.size)
    own = {field.name for field in process.keys}
    same = [
        f"{name} IS NOT DISTINCT FROM (SELECT {name} FROM sought)"
        for name in map(quote_identifier, sorted(own & key.keys()))
    ]
    with logged_rows(con, process, pipeline, layout, [times], until, judge) as logged:
        rows = given_rows_sql(process, logged, DUCKDB)
        return con.sql(f"SELECT * FROM ({rows}) WHERE {' AND '.join(same) or 'true'}").to_arrow_table()


def trace_rows(process: CompiledProcess, rows: pa.Table, mark: float) -> Iterator[Emitting]:
    """Fold rows of whole spans; yield what a watermark shows, with the calls that emitted it."""
    with told_as_failure(process) as own:
        for key, mine in gather_key_rows(own, rows).items():
            folded = FoldedSoFar()
            for step in trace_calls(own.fold, sorted(mine), mark, key.span + own.size):
                folded.take(step)
                yield from ((key, step, item, str(folded)) for item in step.items if item.needs <= mark)


class FoldedSoFar:
    """The rows of a key since it had no state: how many, and the newest."""

    def __init__(self) -> None:
        self.rows, self.newest = 0, deque[str](maxlen=MOST_FOLDED)

    def take(self, step: TracedCall) -> None:
        """Take the row of a call, if it has one."""
        if not step.row:
            return
        if step.before is None:
            self.rows = 0
            self.newest.clear()
        self.rows += 1
        place = step.row.place
        self.newest.append(f"{place.topic}/{place.partition}@{place.offset}")

    def __str__(self) -> str:
        which = f", of which the last {MOST_FOLDED}" if self.rows > MOST_FOLDED else ""
        return f"{self.rows:,}{which}: {', '.join(self.newest)}"


def describe_emitted_rows(process: CompiledProcess, side: str, found: Sequence[Emitting]) -> pa.Table:
    """Make a table of emitted rows with what is known of the calls."""
    rows = make_emitted_table(process, side, ((key, item) for key, _, item, _ in found))
    steps = [step for _, step, _, _ in found]
    places = [step.row.place if step.row else None for step in steps]
    told = {
        CALL: pa.array([step.call for step in steps], pa.string()),
        "_topic": pa.array([place and place.topic for place in places], pa.string()),
        "_partition": pa.array([place and place.partition for place in places], pa.int32()),
        "_offset": pa.array([place and place.offset for place in places], pa.int64()),
        "_folded": pa.array([folded for *_, folded in found], pa.string()),
        "_before": pa.array([describe_state(process, step.before) for step in steps], pa.string()),
        "_after": pa.array([describe_state(process, step.after) for step in steps], pa.string()),
    }
    for name, column in told.items():
        rows = rows.append_column(name, column)
    return rows


def describe_state(process: CompiledProcess, state: Any) -> str:
    """Write a state as its columns and values; of none that there is none."""
    return "no state" if state is None else process.function.state.describe(state)
