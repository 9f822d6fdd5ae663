"""The merged read: generations, and the slices above each interval's cut, in one DuckDB query."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from seamline.lake.answers import Answer
from seamline.lake.chosen import Unsettled, generation_files, marks_of, slice_files
from seamline.lake.decorations import decorated
from seamline.lake.kept import KEPT
from seamline.lake.layout import Layout
from seamline.lake.presented import presented
from seamline.lake.remembered import REMEMBERED
from seamline.lake.scans import aligned, connection, scan
from seamline.lake.snapshot import Snapshot
from seamline.lake.spans import Span, before, further, joined, micros, named, starting, within
from seamline.lake.states import quoted
from seamline.lake.types import partial_schema
from seamline.lake.windowing import column, windowed
from seamline.model.clock import MICROSECOND
from seamline.model.compiled import GROUPING, CompiledPipeline, CompiledView
from seamline.model.errors import BadRange, ReadUnstable, StraddlesCut
from seamline.model.expressions import compile_expression
from seamline.model.intervals import Interval, parse_moment, stamp
from seamline.model.ruling import Bounds, Gaps
from seamline.model.schema import STRING, Field, Schema
from seamline.model.seam import Side

ATTEMPTS = 8


def answer(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    *,
    where: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    as_of: int | datetime | None = None,
    served_at: datetime | None = None,
    side: Side = Side.MERGED,
    touched: Collection[str] | None = None,
    version: str = "",
) -> Answer:
    """Answer for the windows that start in ``[start, end)``, where the keys fit.

    With ``touched`` only for those that start in intervals in which rows of the touched ones may have changed
    anything; the answer names these intervals. The version that is served answers, whatever the definition at
    hand says; ``version`` asks for another. With ``as_of`` today's publications answer as of an epoch, with
    ``served_at`` those of that instant, which is what was answered then.
    Pins, reads, and pins again where a table was cleaned up meanwhile; ReadUnstable after several attempts.
    """
    if start is not None and end is not None:
        Interval(start, end)
    side, span = Side(side), Span.between(start, end)
    last: Exception | None = None
    for attempt in range(ATTEMPTS):
        try:
            snapshot = Snapshot.pin(
                pipeline, view, layout, side, as_of=as_of, served_at=served_at, version=version
            )
            if touched is not None:
                span = replace(span, intervals=changed(snapshot, named(touched), side))
            read = partial(told, snapshot=snapshot, span=span, side=side, where=where)
            # What has been touched is asked for once.
            question = (layout, snapshot.view.id, span, side, where)
            found = read() if touched is not None else REMEMBERED.answer(question, snapshot, read)
            return decorated(found, snapshot.view, layout)
        except (Unsettled, DeltaError, duckdb.IOException, FileNotFoundError) as problem:
            last = problem
            time.sleep(0.02 * 2**attempt)
    raise ReadUnstable(
        f"The tables of {view.qualified} did not hold still for {ATTEMPTS} reads; the last: {last}",
        hint="read again; if it stays, a file or a generation is missing: run upkeep.",
    ) from last


def changed(snapshot: Snapshot, touched: frozenset[int], side: Side) -> frozenset[int]:
    """List the intervals in which windows start that touch the given ones: sessions are followed backwards."""
    view, length = snapshot.view, snapshot.grid.length // MICROSECOND
    if not isinstance(view.windows, Gaps) or not touched:
        return starting(view, touched, None)
    panes = joined(view.windows.panes(at, at + length) for at in touched)
    found, _, _ = followed(snapshot, panes, side, None, before)
    return starting(view, touched, found)


def told(*, snapshot: Snapshot, span: Span, side: Side, where: str | None) -> Answer:
    """Answer from what is pinned."""
    return read_snapshot(snapshot, span, side, where)[0]


def read_snapshot(
    snapshot: Snapshot, span: Span, side: Side, where: str | None = None
) -> tuple[Answer, pa.Table]:
    """Answer from what is pinned, and give the states that count; Unsettled where it does not fit together."""
    found, taken, panes = followed(snapshot, span.panes(snapshot.view), side, where, further)
    asked = matching(snapshot.view, span.of(snapshot.view, found), where)
    return presented(snapshot, taken, asked, panes, side, span.intervals), counting(snapshot, taken, side)


def followed(
    snapshot: Snapshot,
    panes: list[Bounds],
    side: Side,
    where: str | None,
    beyond: Callable[[CompiledView, pa.Table, Sequence[Bounds], int], list[Bounds] | None],
) -> tuple[pa.Table, pa.Table, list[Bounds]]:
    """Read panes and merge them into windows, again with wider bounds while a session may go on ``beyond``.

    Gives the windows, the states they were made of, and the bounds.
    """
    for attempt in count():
        taken = take(snapshot, panes, side, where)
        found = windowed(snapshot.view, weighed(counting(snapshot, taken, side)))
        wider = beyond(snapshot.view, found, panes, min(attempt, 16))
        if wider is None:
            break
        panes = wider
    return found, taken, panes


def counting(snapshot: Snapshot, taken: pa.Table, side: Side) -> pa.Table:
    """Keep the states that count: of an owned view a generation answers for its interval whole."""
    if not snapshot.view.counts or side is Side.SPEED:
        return taken
    owned = [
        micros(parse_moment(id))
        for view, id in snapshot.manifest.published
        if view == snapshot.view.id and snapshot.generation(id)
    ]
    spare = pc.and_(taken["_speed"], pc.is_in(taken["_at"], pa.array(owned, pa.int64())))
    return taken.filter(pc.invert(spare))


def weighed(taken: pa.Table) -> pa.Table:
    """Put beside the states what windows carry along (``windowing.COUNTED``)."""
    speed = taken["_speed"].cast(pa.int64())
    newest = pc.fill_null(taken["from_epoch"], -1)
    kept = taken.drop_columns(["_at", "from_epoch", "to_epoch", "_speed"])
    return kept.append_column("_speed", pc.multiply(taken["rows"], speed)).append_column("_newest", newest)


def matching(view: CompiledView, found: pa.Table, where: str | None) -> pa.Table:
    """Keep the windows' rows that meet a condition on keys and grouping set, where states could not be chosen."""
    if not where or not view.grouped:
        return found
    con = connection()
    con.register("windows", found)
    return con.sql(f"SELECT * FROM windows WHERE {compiled(where, view)}").to_arrow_table().cast(found.schema)


def take(snapshot: Snapshot, panes: Sequence[Bounds], side: Side, where: str | None) -> pa.Table:
    """Read the states that count by the seam's rule; StraddlesCut where a slice crosses a cut."""
    view = snapshot.view
    marks = marks_of(snapshot, side)
    generations = generation_files(snapshot, marks, panes)
    slices = slice_files(snapshot, marks, panes)
    if not generations and not slices:
        return taken_schema(view).empty_table()
    con = connection()
    # What has no cut of its own needs no join, which takes longer than a small answer.
    marked = marks.filter(pa.array(within(column(marks, "_at"), panes, snapshot.grid.length // MICROSECOND)))
    if marked.num_rows:
        con.register("marks", marked)
    scans = {
        name: scanned(con, name, paths)
        for name, paths in (("slices", slices), ("generations", generations))
        if paths
    }
    inside = " OR ".join(f"(pane >= {low} AND pane < {high})" for low, high in panes) or "false"
    condition = f"({inside})" if view.grouped else f"({inside}) AND {compiled(where, view)}"
    common = {
        "columns": ", ".join(map(quoted, partial_schema(view).names)),
        "cut": snapshot.floor(""),
        "until": snapshot.until,
        "where": condition,
    }
    parts = []
    if slices:
        rows = source(view, snapshot, scans["slices"], "from_epoch, to_epoch")
        cuts = (
            f"({rows}) LEFT JOIN marks USING (_at)"
            if marked.num_rows
            else f"(SELECT *, NULL AS _cut FROM ({rows}))"
        )
        parts.append(SPEED.format(source=cuts, **common))
    if generations:
        rows = source(view, snapshot, scans["generations"], "generation")
        parts.append(BATCH.format(source=rows, **common))
    return settled(con.sql(" UNION ALL ".join(parts)).to_arrow_table(), snapshot)


def scanned(con: duckdb.DuckDBPyConnection, name: str, paths: list[str]) -> str:
    """Spell the rows of some files: of the small ones from memory, of the others from where they are."""
    tables, others = KEPT.of(paths)
    rows = [f"SELECT * FROM {scan(others)}"] if others else []
    # Spark writes other types of the same meaning.
    alike: dict[pa.Schema, list[pa.Table]] = {}
    for table in tables:
        alike.setdefault(table.schema, []).append(table)
    for number, some in enumerate(alike.values()):
        con.register(f"kept_{name}_{number}", pa.concat_tables(some))
        rows.append(f"SELECT * FROM kept_{name}_{number}")
    return f"({' UNION ALL BY NAME '.join(rows)})"


SPEED = """
    SELECT {columns}, _at, true AS _speed, from_epoch, to_epoch, coalesce(_cut, {cut}) AS _cut
    FROM {source}
    WHERE to_epoch > coalesce(_cut, {cut}) AND from_epoch <= {until} AND {where}
"""
BATCH = """
    SELECT {columns}, _at, false AS _speed, NULL AS from_epoch, NULL AS to_epoch, _cut
    FROM ({source}) JOIN marks USING (_at)
    WHERE generation = _generation AND {where}
"""


def settled(found: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Drop what lies above ``until``, and refuse slices that cannot be divided."""
    if found.num_rows and pc.any(pc.less_equal(found["from_epoch"], found["_cut"])).as_py():
        crossing = found.filter(pc.less_equal(found["from_epoch"], found["_cut"])).slice(0, 1).to_pylist()[0]
        raise StraddlesCut(
            f"Slice {crossing['from_epoch']}..{crossing['to_epoch']} of {snapshot.view.qualified} crosses the cut "
            f"{crossing['_cut']}.",
            hint="cuts fall on edges only and compaction stays between edges (rule 9).",
        )
    above = pc.fill_null(pc.greater(found["to_epoch"], snapshot.until), False)
    if pc.any(above).as_py():
        if not snapshot.past:
            raise Unsettled("slices were compacted beyond what the read had pinned")
        raise between(snapshot)
    schema = taken_schema(snapshot.view)
    return found.select(schema.names).cast(schema)


def between(snapshot: Snapshot) -> BadRange:
    """Say that slices are kept from edge to edge, and name the last edge."""
    edges = [number for number in snapshot.edges.numbers if number <= snapshot.until]
    last = f"the last edge before is epoch {edges[-1]}" if edges else "there is no edge before"
    at = snapshot.instants.get(edges[-1]) if edges else None
    return BadRange(
        f"Slices around epoch {snapshot.until} have been joined from edge to edge.",
        hint=f"ask as of an edge: {last}{f', of {stamp(at)}' if at else ''}.",
    )


def taken_schema(view: CompiledView) -> pa.Schema:
    """Give the columns of the states that count; ``_at`` is the start of the interval."""
    numbers = [pa.field(name, pa.int64()) for name in ("_at", "from_epoch", "to_epoch")]
    return pa.schema([*partial_schema(view), *numbers, pa.field("_speed", pa.bool_())])


def source(view: CompiledView, snapshot: Snapshot, rows: str, more: str) -> str:
    """Spell some rows with the pane in microseconds, and its interval."""
    length = snapshot.grid.length // MICROSECOND
    columns = [quoted(name) for name in partial_schema(view).names if name != "pane"]
    return (
        f"SELECT {', '.join(columns)}, {more}, epoch_us(pane) AS pane, "
        f"{aligned('epoch_us(pane)', length)} AS _at FROM {rows}"
    )


def compiled(where: str | None, view: CompiledView) -> str:
    """Compile a condition on the key columns, and on the grouping set; ExpressionError for anything else."""
    if not where:
        return "true"
    columns = (*view.keys, *([Field(GROUPING, STRING)] if view.grouped else []))
    expression = compile_expression(where, Schema(columns))
    if expression.type.spark != "BOOLEAN":
        raise BadRange(
            f"{where!r} is {expression.type.spark}, not a condition.", hint="compare it with something."
        )
    guards = "".join(f" AND ({guard.condition_duckdb}) IS NOT TRUE" for guard in expression.guards)
    return f"(({expression.duckdb}){guards})"
