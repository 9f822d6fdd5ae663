"""Lives with rows that are joined: the definition, the plain pairs, and what Spark computes of them.

A source is joined with itself, or with another. Which rows are pairs is worked out row by row, by what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from tests.lives.definitions import KEYS, NUMBERS, ROUGH, Shape

import seamline
from seamline import Join, Open, View
from seamline.kernel.restated_rows import open_reprocessing
from seamline.lake.engine import states
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.joins.joined_rows import log_rows_sql
from seamline.lake.joins.restatements import list_named_restatements
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.reprocessed import rows_schema
from seamline.model.compile.compiled_join import KIND, LEFT, MATCHED, PAIR, CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, compile_pipeline
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.definition.windows import Global, Session, Tumbling
from seamline.model.errors import DefinitionError
from seamline.model.measures import Measure
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import EPOCH
from seamline.model.time.zone_clock import MICROSECOND
from seamline.spark.stream.derived import derived_rows, restated_log
from seamline.spark.stream.derived import joined_rows as indexes

SOURCE, OTHER, JOIN = "events", "others", "near"
SHARE = 0.6
"""Of so many lives the rows are joined."""
APART = 0.6
"""Of so many of those with several topics two sources are joined."""
BOUNDS: Sequence[dict[str, Any]] = (
    {"after": "6 hours"},
    {"before": Open("0 seconds"), "after": "5 hours"},
    {"before": "2 hours", "after": "2 hours"},
    {"before": "20 hours"},
    {"same": Tumbling("8 hours", offset="3 hours")},
)
Row = dict[str, Any]


def joining(shape: Shape, seed: int) -> Shape:
    """Return the definition of a life with a view or two of joined rows beside its own; as it was in most lives."""
    chance = Random(f"{seed}/joined")
    fit = [each.name for each in shape.columns if each.type in KEYS]
    if chance.random() > SHARE or not fit:
        return shape
    definition, key = shape.pipeline.definition, chance.choice(fit)
    source = replace(definition.source, name=SOURCE, event_id=[])
    join = Join(
        JOIN,
        left=SOURCE,
        right=SOURCE,
        on={key: key},
        null_safe=[key] if chance.random() < 0.3 else [],
        **chance.choice(BOUNDS),
    )
    own = [replace(each, of=SOURCE) for each in definition.views]
    views = [*own, *(joined_view(f"j{at}", shape, key, chance) for at in range(chance.randint(1, 2)))]
    try:
        pipeline = compile_pipeline(replace(definition, source=[source], derive=[join], views=views))
    except DefinitionError:
        # Two columns of a pair have one name.
        return shape
    return replace(shape, unique=False, pipeline=pipeline)


def parting(shape: Shape, seed: int) -> Shape:
    """Return the definition of a life with joined rows of several topics with two sources; as it was in the others."""
    chance = Random(f"{seed}/sources")
    if not shape.joined or shape.topics < 2 or chance.random() > APART:
        return shape
    definition = shape.pipeline.definition
    [source], [join] = definition.sources, definition.derive
    first, *others = source.topics
    sources = [replace(source, topic=first), replace(source, name=OTHER, topic=others)]
    left, right = chance.sample([SOURCE, OTHER], 2)
    join = replace(join, left=left, right=right)
    views = [
        of_sides(each, join)
        if each.of == JOIN
        else replace(each, of=chance.choice([left, right, [left, right]]))
        for each in definition.views
    ]
    changed = replace(definition, source=sources, derive=[join], views=views)
    try:
        return replace(shape, pipeline=compile_pipeline(changed))
    except DefinitionError:
        return shape


def of_sides(view: View, join: Join) -> View:
    """Return a view of pairs of a source and itself as one of the pairs of two."""
    measures = {
        label: replace(each, of=in_pairs(join, each.of)) if hasattr(each, "of") else each
        for label, each in view.measures.items()
    }
    return replace(view, keys=[in_pairs(join, str(each)) for each in view.keys], measures=measures)


def in_pairs(join: Join, text: str) -> str:
    """Return ``left_`` and ``right_`` before columns as pairs of a join have them."""
    if join.left == join.right:
        return text
    names = {"left": join.left, "right": join.right}
    return re.sub(r"\b(left|right)_", lambda found: f"{names[found[1]]}_", text)


def joined_view(name: str, shape: Shape, key: str, chance: Random) -> View:
    """Draw a view of pairs, or of left rows and pairs."""
    of = chance.choice(shape.columns)
    fit: list[Measure] = [seamline.count(), seamline.count(f"right_{of.name}")]
    if of.type in NUMBERS:
        fit.append(seamline.sum(f"right_{of.name}"))
    if of.type not in ("BOOLEAN", *ROUGH):
        fit += [seamline.min(f"right_{of.name}"), seamline.collect_distinct(f"right_{of.name}", limit=3)]
    measures = dict(zip(("p", "q"), chance.sample(fit, 2), strict=True))
    lefts = chance.random() < 0.75
    if lefts:
        measures |= {each: seamline.count(each) for each in ("left", "matched", "unmatched")}
    windows = (Tumbling("1 hour"), Tumbling("1 day"), Global(), *(() if lefts else (Session("45 minutes"),)))
    keys = [f"left_{key}"] if chance.random() < 0.5 else []
    return View(name, of=JOIN, keys=keys, window=chance.choice(windows), measures=measures)


def pair_up(
    join: CompiledJoin,
    lefts: Sequence[tuple[int, Row, Any]],
    rights: Sequence[tuple[int, Row, Any]],
    meets: Callable[[Row, Row], bool],
) -> Iterator[tuple[int, str, Row, Any, int]]:
    """Yield epoch, kind, columns, the left row's own, and 1, of all that rows make: ``(epoch, columns, own)``.

    A pair ``meets`` what the join asks beside.
    """
    one, two = (
        ("left", "right") if join.left.source == join.right.source else (join.left.source, join.right.source)
    )
    for epoch, left, own in lefts:
        first = None
        for other, right, _ in rights:
            if is_pair(join, left, right) and meets(left, right):
                at = max(epoch, other)
                first = at if first is None else min(first, at)
                both = {f"{one}_{name}": value for name, value in left.items()}
                yield at, PAIR, both | {f"{two}_{name}": value for name, value in right.items()}, own, 1
        alone = {f"{one}_{name}": value for name, value in left.items()}
        yield epoch, LEFT, alone, own, 1
        if first is not None:
            yield first, MATCHED, alone, own, 1


def is_pair(join: CompiledJoin, left: Row, right: Row) -> bool:
    """Return whether two rows have equal keys and are near each other; ``_at`` is the event time."""
    for one, other, safe in join.on:
        if left[one] != right[other] or (left[one] is None and not safe):
            return False
    if join.same:
        size, offset = join.same
        if len({((row["_at"] - EPOCH) // MICROSECOND - offset) // size for row in (left, right)}) > 1:
            return False
    return join.lower <= (right["_at"] - left["_at"]) // MICROSECOND <= join.upper


def kind_of(measure: Measure) -> str:
    """Return the kind of derived rows that a measure sees."""
    named = re.match(rf"{KIND} = '(\w+)'", measure.where)
    return named[1] if named else PAIR


def value_of(measure: Measure, kind: str, row: Row) -> Any:
    """Return what a measure sees of a derived row; None for one of another kind."""
    if kind_of(measure) != kind:
        return None
    return row.get(measure.of) if measure.of else True


def logged(pipeline: CompiledPipeline, layout: Layout, until: int) -> pa.Table:
    """Read the rows of the log up to an epoch as the record version has them."""
    with open_duckdb() as con:
        blank = rows_schema(pipeline).empty_table()
        con.register("blank", blank)
        rows = con.sql(f"FROM {log_rows_sql(pipeline, layout, [(None, None)], until)}").to_arrow_table()
        return rows.select(blank.schema.names).cast(blank.schema)


def restated(
    pipeline: CompiledPipeline, layout: Layout, rows: pa.Table, decisions: Sequence[Restatement]
) -> pa.Table:
    """Make rows of the log as decisions have them."""
    return open_reprocessing(pipeline, layout, decisions)(rows) if decisions else rows


def derive_missing(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, *, after: int, until: int
) -> pa.Table:
    """Compute the states of the derived rows of ``after < epoch <= until``, epoch by epoch."""
    assert view.join
    rows = restated(pipeline, layout, logged(pipeline, layout, until), list_named_restatements(layout, until))
    with open_duckdb() as con:
        con.register("logged", rows)
        derived = derived_rows_sql(view.join, "logged", DUCKDB)
        con.execute(f"CREATE TABLE missing AS FROM ({derived}) WHERE _epoch > {after}")
        return states.compute_row_states(con, view, "missing", by=["_epoch"])


@contextmanager
def sparkless_joins() -> Iterator[None]:
    """Join in the place of Spark; each driver of this process has files of its own, as the last one has left them."""
    number = count()

    def apart(writer: Any, folder: Path, source: restated_log.RestatedLog) -> indexes.JoinedRows:
        here = next(number)
        before, own = (folder.with_name(f"{folder.name}-{each}") for each in (here - 1, here))
        if before.exists():
            copytree(before, own)
        return indexes.JoinedRows(writer, own, source)

    with (
        patch.object(derived_rows, "JoinedRows", apart),
        # No time passes in a life.
        patch.object(restated_log, "ASKED_EVERY", 0.0),
    ):
        yield
