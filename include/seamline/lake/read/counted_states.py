"""The states that count, by the seam's rule: of generations that answer, and of slices above the cut of their interval.

Files are asked in SQL for the panes and keys that are wanted; what counts is decided on the result, in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import query_tables, register_tables
from seamline.lake.engine.states import late_columns_sql, quote_identifier, stored_states_sql
from seamline.lake.read.answering_files import Unsettled, generation_files, marks_of, slice_files
from seamline.lake.read.file_cache import KEPT
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.lake.storage.table_cache import Files
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.errors import BadRange, StraddlesCut
from seamline.model.expressions import compile_expression
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import format_utc_instant
from seamline.model.time.window_arithmetic import Bounds
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import STRING, Field, Schema


@dataclass(frozen=True)
class StateScan:
    """Files of states of one kind, and which of their rows count."""

    view: CompiledView
    """The version that is asked."""
    files: Files
    """Not empty."""
    columns: Sequence[str]
    """Those that are read."""
    condition: str
    """In SQL, on the rows of files: the panes and keys that are wanted."""
    choose: Callable[[pa.Table], pa.Table]
    """Returns the rows that count, of those that were read."""

    def read(self) -> pa.Table:
        """Read what counts."""
        return self.counted(scan_state_files(self.view, self.files.paths, self.columns, self.condition))

    def counted(self, rows: pa.Table) -> pa.Table:
        """Return what counts of some rows, with ``counted_schema``."""
        schema = counted_schema(self.view)
        return self.choose(rows).select(schema.names).cast(schema)

    def sql(self, columns: Sequence[str] | None = None) -> str:
        """Write the query for its rows, or some columns of them."""
        names = self.columns if columns is None else columns
        return select_states_sql(
            self.view, [stored_states_sql(self.view, self.files.paths)], names, self.condition
        )


def read_counted_states(
    snapshot: Snapshot, panes: Sequence[Bounds], side: Side, where: str | None
) -> pa.Table:
    """Read the states that count by the seam's rule, within ``panes`` and, unless sets are grouped, ``where``.

    ``counted_schema``, a row for each state. StraddlesCut if a slice crosses a cut; where one reaches beyond the
    snapshot, Unsettled, or BadRange of the past. ExpressionError and BadRange for a condition that is none.
    """
    parts = [scan.read() for scan in find_state_scans(snapshot, panes, side, where)]
    return pa.concat_tables([counted_schema(snapshot.view).empty_table(), *parts])


def find_state_scans(
    snapshot: Snapshot, panes: Sequence[Bounds], side: Side, where: str | None
) -> list[StateScan]:
    """Find what is to be read for the states that count; raises as ``read_counted_states``."""
    view = snapshot.view
    marks = marks_of(snapshot, side)
    generations = generation_files(snapshot, marks, panes)
    slices = slice_files(snapshot, marks, panes)
    # Spelled as instants, such that statistics of Parquet files are asked.
    inside = " OR ".join(
        f"(pane >= make_timestamptz({low}) AND pane < make_timestamptz({high}))" for low, high in panes
    )
    condition = f"({inside or 'false'})" + (
        "" if view.grouped else f" AND {compile_key_condition(where, view)}"
    )
    columns, found = partial_schema(view).names, []

    def choose_slices(rows: pa.Table) -> pa.Table:
        living = add_interval_starts(drop_dead_epochs(rows, snapshot.held, snapshot.until), snapshot)
        kept = keep_above_cut(living, marks, snapshot.floor(""), snapshot.until)
        return require_whole_slices(kept, snapshot)

    def choose_published(rows: pa.Table) -> pa.Table:
        return keep_published_states(add_interval_starts(rows, snapshot), marks)

    if slices and slices.actions.num_rows:
        found.append(StateScan(view, slices, [*columns, "from_epoch", "to_epoch"], condition, choose_slices))
    if generations and generations.actions.num_rows:
        found.append(StateScan(view, generations, [*columns, "generation"], condition, choose_published))
    return found


def scan_state_files(
    view: CompiledView, paths: list[str], columns: Sequence[str], condition: str
) -> pa.Table:
    """Read columns of some files where a condition is met: small files from memory, the others from where they are."""
    tables, others = KEPT.of(paths)
    # Spark writes other types of the same meaning.
    alike: dict[pa.Schema, list[pa.Table]] = {}
    for table in tables:
        alike.setdefault(table.schema, []).append(table)
    kept = {f"kept_{number}": pa.concat_tables(some) for number, some in enumerate(alike.values())}
    sources = [*([stored_states_sql(view, others)] if others else []), *kept]
    query = select_states_sql(view, sources, columns, condition)
    if not others:
        # A second thread would take longer to wake than this takes.
        return query_tables(query, **kept)
    with register_tables(**kept) as con:
        return con.sql(query).to_arrow_table()


def select_states_sql(
    view: CompiledView, sources: Sequence[str], columns: Sequence[str], condition: str
) -> str:
    """Write the query for columns of some sources where a condition is met."""
    rows = " UNION ALL BY NAME ".join(
        [*(f"SELECT * FROM {source}" for source in sources), *late_columns_sql(view)]
    )
    return f"SELECT {', '.join(map(quote_identifier, columns))} FROM ({rows}) WHERE {condition}"


def drop_dead_epochs(rows: pa.Table, held: EpochNumbers, until: int) -> pa.Table:
    """Leave out what dead epochs left (rule 2), row by row: others than us put rows of many epochs into one file.

    Rows that upkeep has merged up to a number that the log has lost are of lost epochs alone: those that reach over its
    end stop a start. A number above ``until`` may be committed by now.
    """
    numbers = pc.unique(rows["to_epoch"]).to_pylist()
    if not (dead := [number for number in numbers if number <= until and number not in held]):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["to_epoch"], pa.array(dead, pa.int64()))))


def add_interval_starts(rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Add the start of their interval, ``_at``, to states."""
    length = snapshot.grid.length // MICROSECOND
    at = rows["pane"].cast(INSTANT).cast(pa.int64()).to_numpy()
    return rows.append_column("_at", pa.array(at - at % length))


def keep_above_cut(rows: pa.Table, marks: pa.Table, floor: int, until: int) -> pa.Table:
    """Keep the slices' states above the cut of their interval, ``floor`` where it has none of its own."""
    place = pc.index_in(rows["_at"], marks["_at"])
    cut = pc.fill_null(pc.take(marks["_cut"], place), floor)
    kept = pc.and_(pc.greater(rows["to_epoch"], cut), pc.less_equal(rows["from_epoch"], until))
    rows = rows.append_column("_cut", cut).filter(kept)
    return rows.append_column("_speed", pa.repeat(True, rows.num_rows))


def keep_published_states(rows: pa.Table, marks: pa.Table) -> pa.Table:
    """Keep the states of the generations that answer for their intervals."""
    place = pc.index_in(rows["_at"], marks["_at"])
    rows = rows.filter(
        pc.fill_null(pc.equal(rows["generation"], pc.take(marks["_generation"], place)), False)
    )
    unknown = pa.nulls(rows.num_rows, pa.int64())
    rows = rows.append_column("from_epoch", unknown).append_column("to_epoch", unknown)
    return rows.append_column("_speed", pa.repeat(False, rows.num_rows))


def require_whole_slices(found: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Refuse slices that cannot be divided, or that reach beyond ``until``."""
    crossing = found.filter(pc.less_equal(found["from_epoch"], found["_cut"]))
    if crossing.num_rows:
        first = crossing.slice(0, 1).to_pylist()[0]
        raise StraddlesCut(
            f"Slice {first['from_epoch']}..{first['to_epoch']} of {snapshot.view.qualified} crosses the cut "
            f"{first['_cut']}.",
            hint="cuts fall on edges only and compaction stays between edges (rule 9).",
        )
    if pc.any(pc.greater(found["to_epoch"], snapshot.until)).as_py():
        if not snapshot.past:
            raise Unsettled("slices were compacted beyond what the read had pinned")
        raise compacted_slices_error(snapshot)
    return found


def compacted_slices_error(snapshot: Snapshot) -> BadRange:
    """Make the error that says that slices are kept from edge to edge, and name the last edge."""
    edge = snapshot.edges.newest_up_to(snapshot.until)
    last = f"the last edge before is epoch {edge[0]}" if edge else "there is no edge before"
    return BadRange(
        f"Slices around epoch {snapshot.until} have been merged from edge to edge.",
        hint=f"ask as of an edge: {last}{f', of {format_utc_instant(edge[1])}' if edge else ''}.",
    )


def counted_schema(view: CompiledView) -> pa.Schema:
    """Return the columns of the states that count; ``_at`` is the start of the interval."""
    numbers = [pa.field(name, pa.int64()) for name in ("_at", "from_epoch", "to_epoch")]
    return pa.schema([*partial_schema(view), *numbers, pa.field("_speed", pa.bool_())])


def compile_key_condition(where: str | None, view: CompiledView) -> str:
    """Compile a condition on the key columns, and on the grouping set; ExpressionError for anything else."""
    if not where:
        return "true"
    columns = (*view.keys, *([Field(GROUPING, STRING)] if view.grouped else []))
    expression = compile_expression(where, Schema(columns))
    if expression.type.spark != "BOOLEAN":
        raise BadRange(
            f"{where!r} is {expression.type.spark}, not a condition.", hint="compare it with a value."
        )
    guards = "".join(f" AND ({guard.condition_duckdb}) IS NOT TRUE" for guard in expression.guards)
    return f"(({expression.duckdb}){guards})"
