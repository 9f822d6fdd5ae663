"""What epochs add to joined rows adds up to all of them, however rows are spread, and whatever is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seamline import Batch, Join, KafkaSource, Open, Pipeline, Tumbling, View, count
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.joined_index import JoinedIndex, no_rows, side_schema
from seamline.lake.engine.near_rows import find_older_spans, sought_rows_sql
from seamline.lake.storage.arrow_types import master_schema
from seamline.model.compile.compiled_join import KIND, MATCHED, PAIR, CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.derived_rows import PLACE, RIGHT, derived_rows_sql, side_rows_sql
from seamline.model.time.zone_clock import MICROSECOND
from seamline.testing.joined import derive_plain_rows

START = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE = 60_000_000


def two_sources(*ids: str) -> list[KafkaSource]:
    """Declare sources of like rows, with event ids if columns are named; of one some rows are left out."""
    return [
        KafkaSource(
            name=name,
            topic=name,
            schema="k INT, n INT, at TIMESTAMP",
            event_time="at",
            where="n IS NULL OR n > 0" if name == "a" else "",
            event_id=ids,
            dedup_within="1 day" if ids else "",
        )
        for name in ("a", "b")
    ]


def declare(join: Join, *ids: str) -> CompiledPipeline:
    """Compile a pipeline of two sources whose rows are joined, and have event ids if columns are named."""
    left, right = (join.left, join.right) if join.left != join.right else ("left", "right")
    of_left = {"all": count("left"), "hit": count("matched"), "missed": count("unmatched")}
    views = [
        View("of_left", of="j", keys=[f"{left}_n"], window=Tumbling("1 hour"), measures=of_left),
        View("pairs", of="j", keys=[], window=Tumbling("1 hour"), measures={"n": count(f"{right}_n")}),
    ]
    batch = Batch("1 hour", "2026-01-05")
    return compile_pipeline(
        Pipeline(name="p", source=two_sources(*ids), derive=[join], views=views, batch=batch)
    )


PLAIN = Join("j", left="a", right="b", on={"k": "k"}, before="2 minutes", after="3 minutes")
PIPELINES = [
    declare(PLAIN),
    declare(replace(PLAIN, before=Open("2 minutes"), after=Open("0 seconds"), null_safe=["k"])),
    declare(replace(PLAIN, right="a", before=Open("0 seconds"), where="left_n <> right_n")),
    declare(
        replace(PLAIN, before="0 seconds", after="0 seconds", same=Tumbling("3 minutes", offset="1 minute"))
    ),
    declare(replace(PLAIN, where="a_n > b_n OR b_n IS NULL", before="0 seconds", after="0 seconds")),
]
UNIQUE = declare(PLAIN, "k", "n")
ROWS = st.tuples(
    st.sampled_from(["a", "b"]),
    st.integers(0, 4),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, -1, 1, 2]),
    st.integers(0, 12),
)
"""A row's source, epoch, key, number and minute."""


def master_rows(
    pipeline: CompiledPipeline, rows: list[tuple[str, int, int | None, int | None, int]]
) -> pa.Table:
    """Return rows as the master has them; offsets are those of the list."""
    return placed_rows(pipeline, [(*row, 0, offset) for offset, row in enumerate(rows)])


def placed_rows(
    pipeline: CompiledPipeline, rows: Iterable[tuple[str, int, int | None, int | None, int, int, int]]
) -> pa.Table:
    """Return rows, each with its partition and offset, as the master has them."""
    made = [
        {
            "_topic": source,
            "_topic_id": source.upper(),
            "_partition": partition,
            "_offset": offset,
            "_epoch": epoch,
            "_event_time": START + timedelta(minutes=minute),
            "_source": source,
            "_selected": source == "b" or n is None or n > 0,
            "_duplicate": False,
            "k": key,
            "n": n,
        }
        for source, epoch, key, n, minute, partition, offset in rows
    ]
    return pa.Table.from_pylist(made, master_schema(pipeline))


def join_of(pipeline: CompiledPipeline) -> CompiledJoin:
    """Return the pipeline's join."""
    join = pipeline.views[0].join
    assert join
    return join


def derive_both_ways(join: CompiledJoin, whole: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the derived rows of a log as a build makes them, and as the dull oracle does."""
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("logged", whole)
        built = con.sql(derived_rows_sql(join, "logged", DUCKDB)).to_arrow_table()
        return built, derive_plain_rows(con, join, [whole])


def seen(join: CompiledJoin, table: pa.Table, *, right: bool) -> Counter[tuple[object, ...]]:
    """Count derived rows by what they say; ``right``: the right place of a pair too."""
    names = [KIND, "_epoch", *PLACE, *(field.name for field in join.schema.fields if field.name != KIND)]
    names += [name for name in RIGHT if right and name in table.column_names]
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, len(PIPELINES) - 1), st.lists(ROWS, max_size=14), st.integers(-10, 12))
@example(which=0, rows=[("a", 0, 1, None, 0), ("b", 1, 1, None, 0)], horizon=1)
def test_what_epochs_add_is_what_there_is(
    which: int, rows: list[tuple[str, int, int | None, int | None, int]], horizon: int
) -> None:
    """An index that keeps what is above a horizon, with older rows from the log, adds each derived row once."""
    pipeline = PIPELINES[which]
    join, whole = join_of(pipeline), master_rows(pipeline, rows)
    expected, plain = derive_both_ways(join, whole)
    assert seen(join, plain, right=False) == seen(join, expected, right=False)
    added = Counter[tuple[object, ...]]()
    for epoch, found in enumerate(add_epoch_by_epoch(join, whole, range(5), horizon)):
        assert {row[1] for row in found} <= {epoch}
        added += found
    assert added == seen(join, expected, right=True)
    assert all(kind == PAIR or join.kinds != (PAIR,) for kind, *_ in added)


def add_epoch_by_epoch(
    join: CompiledJoin, whole: pa.Table, epochs: range, horizon: int
) -> Iterator[Counter[tuple[object, ...]]]:
    """Count what each epoch adds; the index keeps rows from a minute on, and older ones are read from the log."""
    border = (START - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND + horizon * MINUTE
    with TemporaryDirectory() as folder, duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("logged", whole)
        index = JoinedIndex(join, Path(folder))
        for epoch in epochs:
            new = rows_of(con, join, f"_epoch = {epoch}")
            relation = index.derive(new, older_rows(con, join, new, epoch, border))
            yield seen(join, index.con.table(relation).to_arrow_table(), right=True)
            index.take(new, border)
        index.close()


def older_rows(
    con: duckdb.DuckDBPyConnection,
    join: CompiledJoin,
    new: tuple[pa.Table, pa.Table],
    epoch: int,
    border: int,
) -> tuple[pa.Table, pa.Table]:
    """Return the rows before an epoch and below a border that its new rows may be joined with."""
    spans = find_older_spans(join, new, border)
    if not spans:
        return no_rows(join)
    assert all(first < end <= border for first, end in spans)
    within = " OR ".join(
        f"(epoch_us(_event_time) >= {first} AND epoch_us(_event_time) < {end})" for first, end in spans
    )
    con.register("new_left", new[0])
    con.register("new_right", new[1])
    return rows_of(con, join, f"_epoch < {epoch} AND ({within})", border)


def rows_of(
    con: duckdb.DuckDBPyConnection, join: CompiledJoin, where: str, horizon: int | None = None
) -> tuple[pa.Table, pa.Table]:
    """Return the rows of both sides for which a condition is true, those below a horizon by the keys of new rows."""
    texts = [
        side_rows_sql(join, side, f"(SELECT * FROM logged WHERE {where})", DUCKDB) for side in join.sides
    ]
    if horizon is not None:
        texts = [sought_rows_sql(join, number, text, horizon) for number, text in enumerate(texts)]
    left, right = (
        con.sql(text).to_arrow_table().cast(side_schema(side))
        for side, text in zip(join.sides, texts, strict=True)
    )
    return left, right


@settings(max_examples=20, deadline=None)
@given(st.lists(ROWS, max_size=14), st.data())
def test_a_row_that_is_flagged_as_a_copy_is_as_if_it_had_never_come(
    rows: list[tuple[str, int, int | None, int | None, int]], data: st.DataObject
) -> None:
    """In what a build joins, in what each epoch adds, and in the dull oracle."""
    join, whole = join_of(UNIQUE), master_rows(UNIQUE, rows)
    flagged = pa.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), pa.bool_())
    chosen = pc.and_(whole["_selected"], pc.invert(flagged))
    at = whole.schema.get_field_index("_selected")
    marked = whole.set_column(at, "_selected", chosen).set_column(
        whole.schema.get_field_index("_duplicate"), "_duplicate", flagged
    )
    once = whole.filter(pc.invert(flagged))
    found = []
    for table in (marked, once):
        with duckdb.connect() as con:
            con.execute("SET TimeZone = 'UTC'")
            con.register("logged", table)
            built = con.sql(derived_rows_sql(join, "logged", DUCKDB)).to_arrow_table()
            plain = derive_plain_rows(con, join, [table])
        added = sum(add_epoch_by_epoch(join, table, range(5), 3), Counter[tuple[object, ...]]())
        found.append((seen(join, built, right=True), seen(join, plain, right=False), added))
    assert found[0] == found[1]


def test_a_left_row_is_matched_once() -> None:
    """Its second pair comes in an epoch of its own, when the index and then the log alone have the first one."""
    rows = [("a", 0, 1, 1, 3), ("b", 1, 1, 1, 3), ("b", 2, 1, 2, 4), ("b", 3, 1, 2, 5)]
    join, whole = join_of(PIPELINES[0]), master_rows(PIPELINES[0], rows)
    for horizon in (0, 12):
        added = list(add_epoch_by_epoch(join, whole, range(4), horizon))
        matched = [sum(count for row, count in found.items() if row[0] == MATCHED) for found in added]
        assert matched == [0, 1, 0, 0]
