"""States in DuckDB: partial states of rows, their merging, and the values they present.

NULL is the zero of every state column. How one measure prepares, merges and presents is its family's
(``seamline.lake.engine.measures``); this module groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import reduce

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import sessions
from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql, span_number, span_start_sql
from seamline.lake.engine.measures import Steps, family_of, quote_identifier
from seamline.lake.engine.measures.carried import format_overflowed_totals
from seamline.lake.engine.prepared_queries import ask_planned_once
from seamline.lake.storage.arrow_types import arrow_type, partial_schema
from seamline.model.compile.compiled_pipeline import NUMBER, CompiledMeasure, CompiledView
from seamline.model.measures import Formula, Ratio
from seamline.model.time.window_arithmetic import Gaps
from seamline.runtime.deadline import require_time_left

__all__ = [
    "aggregate_states",
    "combine_if_several",
    "combine_states",
    "compute_row_states",
    "drop_zeros",
    "floor_sql",
    "late_columns_sql",
    "merge_sessions",
    "negate_states",
    "present_states",
    "quote_identifier",
    "stored_states_sql",
]
MICROSECOND = timedelta(microseconds=1)


def floor_sql(column: str, size: timedelta) -> str:
    """Write the start, in UTC, of the aligned span of ``size`` that contains the instant ``column``."""
    return f"make_timestamptz({span_start_sql(f'epoch_us({column})', size // MICROSECOND)})"


def compute_row_states(
    con: duckdb.DuckDBPyConnection,
    view: CompiledView,
    relation: str,
    *,
    by: Sequence[str] = (),
    tables: Mapping[str, pa.Table] | None = None,
) -> pa.Table:
    """Compute the states (``partial_schema``) of a relation with the parsed columns and ``_event_time``.

    The relation has ``_partition`` and ``_offset`` too. ``by`` names further columns to keep apart; they come
    first in the result. What reads ``tables`` by their names is planned once for a connection.
    """

    def ask(query: str) -> pa.Table:
        return ask_planned_once(con, query, tables) if tables else con.sql(query).to_arrow_table()

    keys = [quote_identifier(name) for name in [*by, *(key.name for key in view.keys)]]
    # By the number of a pane: its start is worked out once for each group.
    columns = {"pane": floor_sql("_event_time", view.pane)}
    groups = [*keys, span_number("epoch_us(_event_time)", view.pane // MICROSECOND)]
    where = f"WHERE {view.where.duckdb}" if view.where else ""
    relation = exploded_rows_sql(view, relation)
    if isinstance(view.windows, Gaps):
        gaps, chosen = view.windows, f"(SELECT * FROM {relation} {where})"
        relation, where = f"({sessions.of_rows(chosen, keys, gaps.gap, gaps.interval)})", ""
        columns = {"pane": "min(_event_time)", "_last": "max(_event_time)"}
        groups = [*keys, sessions.SESSION]
    columns["rows"] = "count(*)::BIGINT"
    steps = [family_of(state).prepare(state) for state in view.states]
    source = f"{relation} {where} GROUP BY {', '.join(groups)}"
    return cast_to_partial_schema(view, run_state_steps(view, source, keys, columns, steps, ask), by)


def exploded_rows_sql(view: CompiledView, relation: str) -> str:
    """Write the rows of a view: those of a relation, or one for each item where the view explodes.

    ``_ordinal`` says which item of its record a row is. Where windows are of so many events, the relation says in
    which each row is.
    """
    if view.counts:
        return (
            f"(SELECT *, {quote_identifier(view.numbered)} AS {NUMBER}, 0::INT AS _ordinal FROM {relation})"
        )
    if view.explode is None:
        return f"(SELECT *, 0::INT AS _ordinal FROM {relation})"
    array, item = view.explode.array.duckdb, quote_identifier(view.explode.item.name)
    # The master may have a column of that name, of what records were before.
    taken = ", ".join(quote_literal(each.name.lower()) for each in view.explode.seen)
    kept = f"COLUMNS(lambda _name: lower(_name) NOT IN ({taken}))"
    rows = f"SELECT {kept}, unnest({array}) AS {item}, unnest(range(len({array})))::INT AS _ordinal FROM {relation}"
    named = [(each.within, quote_identifier(each.name)) for each in view.explode.parts]
    parts = [f"({within}).{name} AS {name}" for within, name in named]
    return f"(SELECT *, {', '.join(parts)} FROM ({rows}))" if parts else f"({rows})"


def combine_states(view: CompiledView, tables: Sequence[pa.Table], *, by: Sequence[str] = ()) -> pa.Table:
    """Add up states (``partial_schema``) per keys and pane; more columns than these and ``by`` are left out."""
    pieces = [cast_to_partial_schema(view, table, by) for table in tables]
    whole = pa.concat_tables(pieces) if pieces else partial_schema(view).empty_table()
    if whole.num_rows <= 1:
        return whole
    keys = [*by, *(key.name for key in view.keys)]
    if isinstance(view.windows, Gaps):
        found = merge_sessions(view, whole, keys, {"rows": "sum"}, interval=view.windows.interval)
    else:
        found = aggregate_states(view, whole, [*keys, "pane"], {"rows": "sum"})
    return cast_to_partial_schema(view, found, by)


def negate_states(view: CompiledView, table: pa.Table) -> pa.Table:
    """Return states (``partial_schema``) that take away what others have added; a view's measures are net ones."""
    for name in ("rows", *(part.name for part in view.parts)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pc.negate(table[name]))
    return table


def drop_zeros(view: CompiledView, table: pa.Table) -> pa.Table:
    """Leave out states (``partial_schema``) that add nothing: what was withdrawn has been added again."""
    kept = pc.not_equal(table["rows"], 0)
    for part in view.parts:
        kept = pc.or_(kept, pc.fill_null(pc.not_equal(table[part.name], 0), False))
    return table.filter(kept)


def stored_states_sql(view: CompiledView, paths: Sequence[str]) -> str:
    """Write the reading of files of states: what earlier releases kept them without is NULL."""
    late = late_columns_sql(view)
    files = read_parquet_sql(paths, uneven=bool(late))
    return f"({' UNION ALL BY NAME '.join([f'SELECT * FROM {files}', *late])})" if late else files


def late_columns_sql(view: CompiledView) -> list[str]:
    """Write a query of no rows with the state columns that earlier releases lacked; empty if there are none."""
    columns = [f"NULL::{part.type} AS {quote_identifier(part.name)}" for part in view.parts if part.late]
    return [f"SELECT {', '.join(columns)} WHERE false"] if columns else []


def combine_if_several(view: CompiledView, tables: Sequence[pa.Table]) -> pa.Table:
    """Combine states, each table of which has been: one that is alone stays as it is."""
    return cast_to_partial_schema(view, tables[0], ()) if len(tables) == 1 else combine_states(view, tables)


def cast_to_partial_schema(view: CompiledView, table: pa.Table, by: Sequence[str]) -> pa.Table:
    """Cast a table to the columns ``by`` and the exact schema of partial states."""
    schema = pa.schema([*(table.schema.field(name) for name in by), *partial_schema(view)])
    return table.select(schema.names).cast(schema)


def merge_sessions(
    view: CompiledView,
    table: pa.Table,
    keys: Sequence[str],
    counted: Mapping[str, str],
    *,
    interval: int | None = None,
) -> pa.Table:
    """Join partial sessions of the same ``keys`` that are closer than the gap; in the same ``interval`` if given.

    Returns the keys, ``pane``, ``_last``, and what ``aggregate_states`` returns.
    """
    assert isinstance(view.windows, Gaps)
    query = sessions.of_partials("partials", [*map(quote_identifier, keys)], view.windows.gap, interval)
    numbered = query_tables(query, partials=table)
    return aggregate_states(
        view, numbered, [*keys, sessions.SESSION], {"pane": "min", "_last": "max", **counted}
    )


def aggregate_states(
    view: CompiledView, table: pa.Table, by: Sequence[str], counted: Mapping[str, str]
) -> pa.Table:
    """Add up the states of each group: the columns ``by``, numbers each with its aggregate, then the states.

    With nothing to go ``by`` all rows are one group; NULL is a value like any other.
    """
    columns = {
        name: f"{how}({quote_identifier(name)}){'::BIGINT' if how == 'sum' else ''}"
        for name, how in counted.items()
    }
    keys = [*map(quote_identifier, by)]
    steps = [family_of(state).merge(state) for state in view.states]
    source = f"states GROUP BY {', '.join(keys)}" if keys else "states"
    return run_state_steps(
        view, source, keys, columns, steps, lambda query: query_tables(query, states=table)
    )


def run_state_steps(
    view: CompiledView,
    source: str,
    keys: Sequence[str],
    columns: Mapping[str, str],
    steps: Sequence[Steps],
    ask: Callable[[str], pa.Table],
) -> pa.Table:
    """Aggregate a grouped source and take every state through its steps: the (quoted) keys, columns, states."""
    whole = reduce(Steps.beside, steps, Steps({}))
    query = f"SELECT {select_list_sql(keys, {**columns, **whole.gathered})} FROM {source}"
    for each in whole.rounds:
        query = f"SELECT {select_list_sql(['*'], each)} FROM ({query})"
    made = [part.name for part in view.parts if part.name not in whole.finished]
    kept = [*columns, *made, *(taken for taken, _ in whole.finished.values())]
    table = ask(f"SELECT {', '.join([*keys, *map(quote_identifier, kept)])} FROM ({query})")
    for name, (taken, finish) in whole.finished.items():
        table = table.append_column(name, finish(table[taken])).drop_columns([taken])
    return table


def select_list_sql(names: Sequence[str], columns: Mapping[str, str]) -> str:
    """Write a SELECT list."""
    return ", ".join([*names, *(f"{text} AS {quote_identifier(name)}" for name, text in columns.items())])


def present_states(view: CompiledView, states: pa.Table, keep: Sequence[str]) -> pa.Table:
    """Turn state columns into the measures people read; the columns in ``keep`` stay as they are.

    Behind the measures are the totals that no DECIMAL holds, as text (``view.beyond``).
    """
    shown = {measure.name: present_measure(measure, states) for measure in view.measures}
    for name, measure in view.beyond.items():
        shown[name] = format_overflowed_totals(*(states[part.name] for part in measure.parts[:2]))
    return pa.table({**{name: states[name] for name in keep}, **shown})


def present_measure(measure: CompiledMeasure, states: pa.Table) -> pa.Array:
    """Present one measure of every row."""
    require_time_left()
    type = arrow_type(measure.result)
    if measure.shown is not None:
        return evaluate_formula(measure, states).cast(type)
    if isinstance(measure.measure, Ratio):
        above, below = (present_measure(each, states).cast(pa.float64()) for each in measure.operands)
        return pc.divide(above, pc.if_else(pc.equal(below, 0.0), pa.scalar(None, pa.float64()), below))
    parts = [states[part.name] for part in measure.parts]
    return family_of(measure).present(measure, parts).cast(type)


def evaluate_formula(measure: CompiledMeasure, states: pa.Table) -> pa.ChunkedArray:
    """Present a formula's parts, and what it makes of them."""
    assert isinstance(measure.measure, Formula) and measure.shown
    parts = [present_measure(each, states) for each in measure.operands]
    table = pa.table(parts, names=list(measure.measure.made_of))
    return query_tables(f"SELECT ({measure.shown.duckdb}) AS shown FROM parts", parts=table)["shown"]
