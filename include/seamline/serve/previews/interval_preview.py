"""What differs between what is published of an interval and what would be, measure by measure."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.states import quote_identifier
from seamline.lake.read.row_differences import (
    BOTH,
    CHANGE,
    Difference,
    after_column,
    before_column,
    difference_column,
    is_numeric,
    value_differs_sql,
)
from seamline.lake.read.side_by_side import CLOSE
from seamline.plan.revision.preview import EXAMPLES, Example, IntervalPreview, MeasureChange
from seamline.serve.query import format_cell


def summarize_interval(found: Difference, interval: str, cut: int, *, examples: bool) -> IntervalPreview:
    """Sum up a difference. Doubles that were added up in another order are equal."""
    moved = {name: moved_sql(found.rows.schema, name) for name in found.measures}
    rows = found.rows
    changed = 0
    if rows.num_rows and moved:
        either = " OR ".join(moved.values())
        [[changed]] = (
            query_tables(f"SELECT count(*) FROM rows WHERE {CHANGE} = '{BOTH}' AND ({either})", rows=rows)
            .to_pydict()
            .values()
        )
    measures = [summarize_measure(found, name, moved[name], examples=examples) for name in moved]
    return IntervalPreview(
        interval,
        cut,
        found.equal + found.changed - changed,
        changed,
        found.only_before,
        found.only_after,
        tuple(each for each in measures if each),
    )


def moved_sql(schema: pa.Schema, name: str) -> str:
    """Write whether a measure has another value, in the columns of a difference."""
    columns = before_column(name), after_column(name)
    one, other = map(quote_identifier, columns)
    types = [schema.field(each).type for each in columns]
    differs = value_differs_sql(one, other, types[0], types[1])
    if any(map(pa.types.is_floating, types)) and all(map(is_numeric, types)):
        gain = f"abs({one}::DOUBLE - {other}::DOUBLE)"
        close = f"{gain} <= {CLOSE} * greatest(1, abs({one}::DOUBLE), abs({other}::DOUBLE))"
        return f"({differs} AND ({close}) IS NOT TRUE)"
    return f"({differs})"


def summarize_measure(found: Difference, name: str, moved: str, *, examples: bool) -> MeasureChange | None:
    """Sum up what changes of a measure; None where nothing does."""
    if not found.rows.num_rows:
        return None
    gain = quote_identifier(difference_column(name))
    share = f"({gain}::DOUBLE / nullif(abs(TRY_CAST({quote_identifier(before_column(name))} AS DOUBLE)), 0))"
    # What was zero has no share, and has changed more than any that has one.
    order = f"(_share IS NULL AND {gain} <> 0) DESC, abs(_share) DESC NULLS LAST, abs({gain}) DESC NULLS LAST"
    rows = query_tables(
        f"SELECT *, count(*) OVER () AS _count, "
        f"count(*) FILTER (_share IS NULL) OVER () AS _bare, max_by(_share, abs(_share)) OVER () AS _most, "
        f"max_by({gain}::DOUBLE, abs({gain})) OVER () AS _gain "
        f"FROM (SELECT *, {share} AS _share FROM rows WHERE {CHANGE} = '{BOTH}' AND {moved}) "
        f"ORDER BY {order} LIMIT {EXAMPLES}",
        rows=found.rows,
    ).to_pylist()
    if not rows:
        return None
    return MeasureChange(
        name,
        rows[0]["_count"],
        rows[0]["_gain"],
        rows[0]["_most"],
        tuple(example_of(found, name, row) for row in rows) if examples else (),
        rows[0]["_bare"] if is_numeric(found.rows.schema.field(before_column(name)).type) else 0,
    )


def example_of(found: Difference, name: str, row: dict[str, Any]) -> Example:
    """Write a row that changes as text."""
    gain = row[difference_column(name)]
    places = [each for each in found.places if each != "window_end"]
    return Example(
        {each: format_cell(row[each]) for each in places},
        format_cell(row[before_column(name)]),
        format_cell(row[after_column(name)]),
        None if gain is None else float(gain),
        row["_share"],
    )
