"""What epochs change in as-of joins adds up to what each left row has, however late versions come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.laws.test_joins import (
    MINUTE,
    START,
    derive_both_ways,
    join_of,
    older_rows,
    placed_rows,
    rows_of,
    seen,
    two_sources,
)

from seamline import AsOf, Batch, Pipeline, Tumbling, View, count, sum
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.joined_index import JoinedIndex
from seamline.lake.engine.latest_changes import ADDED, WITHDRAWN, change_latest
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.time.zone_clock import MICROSECOND
from seamline.testing.joined import derive_plain_rows

EPOCHS = 4


def declare(joined: AsOf) -> CompiledPipeline:
    """Compile a pipeline of two sources of which one has versions for the other."""
    right = "right" if joined.left == joined.versions else "b"
    measures = {"n": count(), "s": sum(f"{right}_n")}
    view = View("v", of="j", keys=[f"{right}_n"], window=Tumbling("1 hour"), measures=measures)
    batch = Batch("1 hour", "2026-01-05")
    return compile_pipeline(
        Pipeline(name="p", source=two_sources(), derive=[joined], views=[view], batch=batch)
    )


PLAIN = AsOf("j", left="a", versions="b", on={"k": "k"}, at_most="3 minutes")
PIPELINES = [
    declare(PLAIN),
    declare(replace(PLAIN, null_safe=["k"], versions_where="n IS NULL OR n <> 2")),
    declare(replace(PLAIN, versions="a", left_where="n = 1", at_most="5 minutes")),
    declare(replace(PLAIN, on={"k": "k", "n": "n"}, null_safe=["n"], left_where="k <> 2")),
]
ROWS = st.tuples(
    st.sampled_from(["a", "b", "b"]),
    st.integers(0, EPOCHS - 1),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, -1, 1, 2]),
    st.integers(0, 8),
    st.integers(0, 1),
)
"""A row's source, epoch, key, number, minute and partition."""
Rows = list[tuple[str, int, int | None, int | None, int, int]]


def master_rows(pipeline: CompiledPipeline, rows: Rows) -> pa.Table:
    """Return rows as the master has them; offsets are those of the list, backwards."""
    return placed_rows(pipeline, [(*row, len(rows) - number) for number, row in enumerate(rows)])


def plain_rows(join: CompiledJoin, whole: pa.Table, until: int) -> Counter[tuple[object, ...]]:
    """Return what the dull engine has of the rows up to an epoch."""
    known = whole.filter(pc.less_equal(whole["_epoch"], until))
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        return without_epoch(seen(join, derive_plain_rows(con, join, [known]), right=False))


def without_epoch(rows: Counter[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    """Leave out the epochs of derived rows."""
    found = Counter[tuple[object, ...]]()
    for (kind, _, *rest), number in rows.items():
        found[kind, *rest] += number
    return found


def change_epoch_by_epoch(
    join: CompiledJoin, whole: pa.Table, horizon: int
) -> Iterator[tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]]:
    """Yield what each epoch adds and withdraws; the index has rows from a minute on, the log older ones."""
    border = (START - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND + horizon * MINUTE
    with TemporaryDirectory() as folder, duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("logged", whole)
        index = JoinedIndex(join, Path(folder))
        for epoch in range(EPOCHS):
            new = rows_of(con, join, f"_epoch = {epoch}")
            change_latest(index, new, older_rows(con, join, new, epoch, border))
            added, gone = (
                without_epoch(seen(join, index.con.table(name).to_arrow_table(), right=False))
                for name in (ADDED, WITHDRAWN)
            )
            yield added, gone
            index.take(new, border)
        index.close()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, len(PIPELINES) - 1), st.lists(ROWS, max_size=16), st.integers(-10, 12))
@example(which=0, rows=[("b", 0, 1, 1, 0, 0), ("a", 1, 1, 1, 3, 0)], horizon=2)
@example(which=0, rows=[("a", 0, 1, 1, 3, 0), ("b", 1, 1, 1, 2, 0), ("b", 2, 1, 2, 1, 0)], horizon=12)
@example(which=0, rows=[("a", 0, 1, 1, 3, 0), ("b", 1, 1, 1, 3, 1), ("b", 2, 1, 2, 3, 0)], horizon=0)
def test_what_epochs_change_is_what_there_is(which: int, rows: Rows, horizon: int) -> None:
    """Whatever is late, each epoch's changes lead from what was there to what is; none withdraws what was not."""
    pipeline = PIPELINES[which]
    join, whole = join_of(pipeline), master_rows(pipeline, rows)
    shown = Counter[tuple[object, ...]]()
    for epoch, (added, gone) in enumerate(change_epoch_by_epoch(join, whole, horizon)):
        assert not gone - shown
        assert not added & gone
        shown = shown - gone + added
        assert shown == plain_rows(join, whole, epoch)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(PIPELINES) - 1), st.lists(ROWS, max_size=16))
def test_a_build_has_each_left_row_with_its_latest_version(which: int, rows: Rows) -> None:
    """In one sort of all rows, as by comparing each with each."""
    pipeline = PIPELINES[which]
    join, whole = join_of(pipeline), master_rows(pipeline, rows)
    found, plain = derive_both_ways(join, whole)
    assert seen(join, found, right=False) == seen(join, plain, right=False)


NO, OLD, NEW = None, 5, 6
BORDERS = {
    "as old as may be": ([("b", 0, 1, OLD, 0, 0), ("a", 0, 1, 1, 3, 0)], OLD),
    "older than may be": ([("b", 0, 1, OLD, 0, 0), ("a", 0, 1, 1, 4, 0)], NO),
    "of the same time": ([("b", 0, 1, OLD, 2, 0), ("b", 0, 1, NEW, 3, 0), ("a", 0, 1, 1, 3, 0)], NEW),
    "after it": ([("b", 0, 1, OLD, 2, 0), ("b", 0, 1, NEW, 4, 0), ("a", 0, 1, 1, 3, 0)], OLD),
    "two of one time, by partition": (
        [("b", 0, 1, NEW, 2, 1), ("b", 0, 1, OLD, 2, 0), ("a", 0, 1, 1, 3, 0)],
        NEW,
    ),
    "two of one time, by offset": (
        [("b", 1, 1, NEW, 2, 0), ("b", 2, 1, OLD, 2, 0), ("a", 0, 1, 1, 3, 0)],
        NEW,
    ),
    "of another key": ([("b", 0, 2, OLD, 2, 0), ("a", 0, 1, 1, 3, 0)], NO),
    "of no key": ([("b", 0, None, OLD, 2, 0), ("a", 0, None, 1, 3, 0)], NO),
}


@pytest.mark.parametrize("name", BORDERS)
def test_which_version_is_the_latest(name: str) -> None:
    """By event time, then by place; the ends of its validity are within."""
    rows, wanted = BORDERS[name]
    join, whole = join_of(PIPELINES[0]), master_rows(PIPELINES[0], rows)
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("logged", whole)
        [row] = con.sql(derived_rows_sql(join, "logged", DUCKDB)).to_arrow_table().to_pylist()
    assert row["b_n"] == wanted
