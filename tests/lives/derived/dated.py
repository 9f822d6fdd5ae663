"""Lives with as-of joins: the definition, the versions that rows have, and what Spark computes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
from tests.lives.definitions import Shape
from tests.lives.derived.joined import JOIN, Row, is_pair, logged, restated
from tests.lives.topic import NAMES

import seamline
from seamline import AsOf, View
from seamline.lake.engine import states
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.joins.restatements import list_named_restatements
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_join import PAIR, CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, compile_pipeline
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.definition.windows import Session, Tumbling
from seamline.model.errors import DefinitionError
from seamline.model.measures import Count, Sum

SHARE = 0.4
"""Of so many lives with joined rows each left row has one version."""
REACHES = ("2 hours", "6 hours", "20 hours")


def dating(shape: Shape, seed: int) -> Shape:
    """Return the definition of a life with joined rows with an as-of join in the place of the join; or as it was."""
    chance = Random(f"{seed}/dated")
    if not shape.joined or chance.random() > SHARE:
        return shape
    definition = shape.pipeline.definition
    [join] = definition.derive
    dated = AsOf(
        join.name,
        left=join.left,
        versions=join.right,
        on=join.on,
        null_safe=join.null_safe,
        at_most=chance.choice(REACHES),
        copies=join.copies,
    )
    views = [dated_view(each) if each.of == JOIN else each for each in definition.views]
    try:
        pipeline = compile_pipeline(replace(definition, derive=[dated], views=views))
    except DefinitionError:
        # Totals of doubles have no difference.
        return shape
    return replace(shape, pipeline=pipeline, pairs="")


def dated_view(view: View) -> View:
    """Return a view of pairs with those of its measures that subtract."""
    kept = {
        label: each
        for label, each in view.measures.items()
        if isinstance(each, Count | Sum) and each.of not in ("left", "matched", "unmatched")
    }
    window = Tumbling("1 hour") if isinstance(view.window, Session) else view.window
    return replace(view, window=window, measures={"n": seamline.count(), **kept})


def revise_rows(
    join: CompiledJoin, lefts: Sequence[tuple[int, Row, Any]], rights: Sequence[tuple[int, Row, Any]]
) -> Iterator[tuple[int, str, Row, Any, int]]:
    """Yield epoch, kind, columns, the left row's own, and 1 or -1, of all that is added or withdrawn.

    Rows are ``(epoch, columns, own)``. With each epoch in which a left row finds a later version, it has that one.
    """
    one, two = (
        ("left", "right") if join.left.source == join.right.source else (join.left.source, join.right.source)
    )
    for epoch, left, own in lefts:
        found = [
            (max(epoch, at), order_of(right, its), right)
            for at, right, its in rights
            if is_pair(join, left, right)
        ]
        alone = {f"{one}_{name}": value for name, value in left.items()}
        shown: Row | None = None
        for number in sorted({epoch, *(at for at, _, _ in found)}):
            known = [(order, right) for at, order, right in found if at <= number]
            version = max(known, key=lambda each: each[0])[1] if known else {}
            now = alone | {f"{two}_{name}": value for name, value in version.items()}
            if now != shown:
                if shown is not None:
                    yield number, PAIR, shown, own, -1
                yield number, PAIR, now, own, 1
            shown = now


def order_of(row: Row, own: Any) -> tuple[Any, ...]:
    """Return by what the versions of a key are in order."""
    return row["_at"], own.lane.partition, own.offset, NAMES[own.lane.topic_id], own.lane.topic_id


def derive_changes(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, *, after: int, until: int
) -> pa.Table:
    """Compute the states of what ``after < epoch <= until`` change."""
    assert view.join
    rows = restated(pipeline, layout, logged(pipeline, layout, until), list_named_restatements(layout, until))
    made = []
    with open_duckdb() as con:
        con.register("logged", rows)
        for number in (until, after):
            known = f"(SELECT * FROM logged WHERE _epoch <= {number})"
            con.execute(
                f"CREATE OR REPLACE TABLE shown AS FROM ({derived_rows_sql(view.join, known, DUCKDB)})"
            )
            made.append(states.compute_row_states(con, view, "shown"))
    return states.drop_zeros(
        view, states.combine_states(view, [made[0], states.negate_states(view, made[1])])
    )
