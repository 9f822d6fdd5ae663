"""States in DuckDB: partial states of rows, their merging, and the numbers they present.

NULL is the zero of every state column. Sketches are made and merged with the ``datasketches`` package on the
lists that DuckDB gathers per group; everything else is plain SQL.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import datasketches as sketches
import duckdb
import pyarrow as pa

from seamline.lake import sessions
from seamline.lake.types import arrow_type, partial_schema
from seamline.model.compiled import NUMBER, CompiledMeasure, CompiledView
from seamline.model.measures import HLL_LG_K, KLL_K, Average, Count, Distinct, Maximum, Minimum, Quantile, Sum
from seamline.model.ruling import Gaps

SKETCHES = (Distinct, Quantile)
HLL = sketches.tgt_hll_type.HLL_8
MICROSECOND = timedelta(microseconds=1)


def connection(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB in memory that thinks in UTC."""
    con = duckdb.connect(config={"threads": threads})
    con.execute("SET TimeZone = 'UTC'")
    return con


_local = threading.local()


def asked(query: str, name: str, table: pa.Table) -> pa.Table:
    """Ask this thread's own DuckDB about one table; opening one takes longer than most merges."""
    if not hasattr(_local, "con"):
        _local.con = connection()
    con: duckdb.DuckDBPyConnection = _local.con
    con.register(name, table)
    try:
        return con.sql(query).to_arrow_table()
    finally:
        con.unregister(name)


def quoted(name: str) -> str:
    """Write a column's name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def floor_sql(column: str, size: timedelta) -> str:
    """Write the start, in UTC, of the aligned span of ``size`` that holds the instant ``column``."""
    step = size // MICROSECOND
    instant = f"epoch_us({column})"
    return f"make_timestamptz({instant} - ((({instant} % {step}) + {step}) % {step}))"


def partial(con: duckdb.DuckDBPyConnection, view: CompiledView, relation: str) -> pa.Table:
    """Compute the states (``partial_schema``) of a relation with the parsed columns and ``_event_time``."""
    keys = [quoted(key.name) for key in view.keys]
    place, groups = [f"{floor_sql('_event_time', view.pane)} AS pane"], [*keys, "pane"]
    where = f"WHERE {view.where.duckdb}" if view.where else ""
    relation = exploded(view, relation)
    if isinstance(view.windows, Gaps):
        gaps, chosen = view.windows, f"(SELECT * FROM {relation} {where})"
        relation, where = f"({sessions.of_rows(chosen, keys, gaps.gap, gaps.interval)})", ""
        place = ["min(_event_time) AS pane", "max(_event_time) AS _last"]
        groups = [*keys, sessions.SESSION]
    columns = [*keys, *place, "count(*)::BIGINT AS rows"]
    for measure in view.measures:
        columns += prepared(measure)
    query = f"SELECT {', '.join(columns)} FROM {relation} {where} GROUP BY {', '.join(groups)}"
    return shaped(view, con.sql(query).to_arrow_table(), sketched)


def exploded(view: CompiledView, relation: str) -> str:
    """Write the rows of a view: those of a relation, or one for each item where the view explodes.

    Where windows are of so many events, the relation says in which each row is.
    """
    if view.counts:
        return f"(SELECT *, {quoted(view.numbered)} AS {NUMBER} FROM {relation})"
    if view.explode is None:
        return relation
    items = f"unnest({view.explode.array.duckdb}) AS {quoted(view.explode.item.name)}"
    return f"(SELECT *, {items} FROM {relation})"


def prepared(measure: CompiledMeasure) -> list[str]:
    """Write the aggregates that make a measure's state columns; a sketch's is the list of its values."""
    value = f"({measure.expression.duckdb})" if measure.expression else ""
    names = [quoted(part.name) for part in measure.parts]
    match measure.measure:
        case Count():
            return [f"count({value or '*'})::BIGINT AS {names[0]}"]
        case Sum():
            return [f"sum({value})::{measure.result} AS {names[0]}"]
        case Average():
            return [f"sum({value}::DOUBLE) AS {names[0]}", f"count({value})::BIGINT AS {names[1]}"]
        case Maximum():
            return [f"max({value}) AS {names[0]}"]
        case Minimum():
            return [f"min({value}) AS {names[0]}"]
        case Quantile():
            return [f"list({value}::DOUBLE) FILTER ({value} IS NOT NULL) AS {names[0]}"]
        case _:
            return [f"list({value}) FILTER ({value} IS NOT NULL) AS {names[0]}"]


def combine(view: CompiledView, tables: Sequence[pa.Table]) -> pa.Table:
    """Add up states (``partial_schema``) per keys and pane; more columns than these are left out."""
    names = partial_schema(view).names
    pieces = [table.select(names).cast(partial_schema(view)) for table in tables]
    whole = pa.concat_tables(pieces) if pieces else partial_schema(view).empty_table()
    if whole.num_rows <= 1:
        return whole
    keys = [key.name for key in view.keys]
    if isinstance(view.windows, Gaps):
        added = joined(view, whole, keys, {"rows": "sum"}, interval=view.windows.interval)
        return added.select(names).cast(partial_schema(view))
    return added_up(view, whole, [*keys, "pane"], {"rows": "sum"}).select(names).cast(partial_schema(view))


def joined(
    view: CompiledView,
    table: pa.Table,
    keys: Sequence[str],
    counted: Mapping[str, str],
    *,
    interval: int | None = None,
) -> pa.Table:
    """Join partial sessions of the same ``keys`` that are closer than the gap; in the same ``interval`` if given.

    Gives the keys, ``pane``, ``_last``, and what ``added_up`` gives.
    """
    assert isinstance(view.windows, Gaps)
    query = sessions.of_partials("partials", [*map(quoted, keys)], view.windows.gap, interval)
    numbered = asked(query, "partials", table)
    return added_up(view, numbered, [*keys, sessions.SESSION], {"pane": "min", "_last": "max", **counted})


def added_up(view: CompiledView, table: pa.Table, by: Sequence[str], counted: Mapping[str, str]) -> pa.Table:
    """Add up the states of each group: the columns ``by``, numbers each with its aggregate, then the states.

    With nothing to go ``by`` all rows are one group; NULL is a value like any other.
    """
    columns = [quoted(name) for name in by]
    for name, how in counted.items():
        columns.append(f"{how}({quoted(name)}){'::BIGINT' if how == 'sum' else ''} AS {quoted(name)}")
    for measure in view.measures:
        columns += added(measure)
    groups = f"GROUP BY {', '.join(map(quoted, by))}" if by else ""
    query = f"SELECT {', '.join(columns)} FROM states {groups}"
    return finished(view, asked(query, "states", table), merged)


def added(measure: CompiledMeasure) -> list[str]:
    """Write the aggregates that merge a measure's state columns; a sketch's is the list of sketches."""
    names = [quoted(part.name) for part in measure.parts]
    match measure.measure:
        case Count() | Sum() | Average():
            types = [engine_type(part.type) for part in measure.parts]
            return [f"sum({name})::{type} AS {name}" for name, type in zip(names, types, strict=True)]
        case Maximum():
            return [f"max({names[0]}) AS {names[0]}"]
        case Minimum():
            return [f"min({names[0]}) AS {names[0]}"]
        case _:
            return [f"list({names[0]}) FILTER ({names[0]} IS NOT NULL) AS {names[0]}"]


def engine_type(spark: str) -> str:
    """Give DuckDB's name of a numeric state column's type."""
    return "INTEGER" if spark == "INT" else spark


def shaped(
    view: CompiledView, table: pa.Table, finish: Callable[[CompiledMeasure, pa.ChunkedArray], pa.Array]
) -> pa.Table:
    """Finish the sketch columns and give the table the exact schema of partial states."""
    schema = partial_schema(view)
    return finished(view, table, finish).select(schema.names).cast(schema)


def finished(
    view: CompiledView, table: pa.Table, finish: Callable[[CompiledMeasure, pa.ChunkedArray], pa.Array]
) -> pa.Table:
    """Finish the sketch columns: lists become one state each."""
    for measure in view.measures:
        if isinstance(measure.measure, SKETCHES):
            name = measure.parts[0].name
            index = table.schema.get_field_index(name)
            table = table.set_column(index, name, finish(measure, table[name]))
    return table


def sketched(measure: CompiledMeasure, lists: pa.ChunkedArray) -> pa.Array:
    """Make one sketch of each list of values."""
    make = kll_of if isinstance(measure.measure, Quantile) else hll_of
    return pa.array([make(values) for values in groups(lists)], pa.binary())


def groups(lists: pa.ChunkedArray) -> Iterable[Any]:
    """Give each list of a column as a numpy array without a detour over Python objects; None for NULL."""
    for chunk in lists.chunks:
        values = chunk.values.to_numpy(zero_copy_only=False)
        starts, valid = chunk.offsets.to_numpy(), chunk.is_valid().to_numpy(zero_copy_only=False)
        for index in range(len(chunk)):
            yield values[starts[index] : starts[index + 1]] if valid[index] else None


def kll_of(values: Any) -> bytes | None:
    """Sketch the distribution of a numpy array of doubles."""
    if values is None or not len(values):
        return None
    sketch = sketches.kll_doubles_sketch(KLL_K)
    sketch.update(values.copy())  # the binding refuses Arrow's read-only memory
    return bytes(sketch.serialize())


def hll_of(values: Any) -> bytes | None:
    """Sketch the different values of a numpy array of strings or integers."""
    if values is None or not len(values):
        return None
    sketch = sketches.hll_sketch(HLL_LG_K, HLL)
    for value in set(values.tolist()):
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def merged(measure: CompiledMeasure, lists: pa.ChunkedArray) -> pa.Array:
    """Merge each list of sketches into one; a single one is kept as it is."""
    merge = merge_kll if isinstance(measure.measure, Quantile) else merge_hll
    found = lists.to_pylist()
    single = [each[0] if each else None for each in found]
    many = [merge(each) if each and len(each) > 1 else one for each, one in zip(found, single, strict=True)]
    return pa.array(many, pa.binary())


def merge_kll(states: Sequence[bytes]) -> bytes:
    """Merge quantile sketches."""
    first, *others = [sketches.kll_doubles_sketch.deserialize(state) for state in states]
    for other in others:
        first.merge(other)
    return bytes(first.serialize())


def merge_hll(states: Sequence[bytes]) -> bytes:
    """Merge distinct-count sketches."""
    union = sketches.hll_union(HLL_LG_K)
    for state in states:
        union.update(sketches.hll_sketch.deserialize(state))
    return bytes(union.get_result(HLL).serialize_compact())


def present(view: CompiledView, states: pa.Table, keep: Sequence[str]) -> pa.Table:
    """Turn state columns into the measures people read; the columns in ``keep`` stay as they are."""
    names = list(keep)
    columns = [states[name] for name in keep]
    for measure in view.measures:
        names.append(measure.name)
        columns.append(presented(measure, states))
    return pa.table(columns, names=names)


def presented(measure: CompiledMeasure, states: pa.Table) -> pa.Array:
    """Present one measure of every row."""
    parts = [states[part.name] for part in measure.parts]
    type = arrow_type(measure.result)
    match measure.measure:
        case Count():
            return parts[0].fill_null(0).cast(type)
        case Average():
            pairs = zip(parts[0].to_pylist(), parts[1].to_pylist(), strict=True)
            return pa.array([(total or 0.0) / n if n else None for total, n in pairs], type)
        case Quantile(at=at):
            return pa.array([quantile(state, at) for state in parts[0].to_pylist()], type)
        case Distinct():
            return pa.array([estimate(state) for state in parts[0].to_pylist()], type)
        case _:
            return parts[0].cast(type)


def quantile(state: bytes | None, at: float) -> float | None:
    """Read a quantile off a sketch: the smallest value whose rank, itself included, reaches ``at``."""
    if state is None:
        return None
    return float(sketches.kll_doubles_sketch.deserialize(state).get_quantile(at, True))


def estimate(state: bytes | None) -> int:
    """Read the number of different values off a sketch."""
    return 0 if state is None else round(sketches.hll_sketch.deserialize(state).get_estimate())
