"""What an interval join is: the pairs that Flink's tests of its interval join name, by their keys and milliseconds.

Where a row is behind the watermark by more than the bounds Flink drops it, so that what it counts depends on the order
in which rows come. Here it is joined: each case is cut into epochs in any order, and gives the same pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seamline import Batch, Join, KafkaSource, Open, Pipeline, Tumbling, View, count
from seamline.lake.engine import joined_index
from seamline.lake.engine.joined_index import JoinedIndex, TooManyPairs, no_rows, side_schema
from seamline.lake.engine.near_rows import sought_rows_sql
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import compile_pipeline

BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
Rows = Sequence[tuple[str | None, int]]
"""Keys and event times, in milliseconds."""
ONE: Rows = [("A", 6000), ("B", 7000), (None, 10000)]
OTHER: Rows = [
    ("A", 999),
    ("A", 1000),
    ("A", 2000),
    ("A", 3000),
    ("B", 4000),
    ("A", 5000),
    ("A", 6000),
    (None, 8000),
]
NEAR = {(6000, 1000), (6000, 2000), (6000, 3000), (6000, 5000), (6000, 6000), (7000, 4000)}
CASES: dict[str, tuple[dict[str, Any], Rows, Rows, set[tuple[int, int]]]] = {
    "bounds are closed, and no NULL equals another": (
        {"before": "5 seconds", "after": "6 seconds"},
        ONE,
        OTHER,
        NEAR,
    ),
    "NULL equals NULL if it is said": (
        {"before": "5 seconds", "after": "6 seconds", "null_safe": ["k"]},
        ONE,
        OTHER,
        NEAR | {(10000, 8000)},
    ),
    "open bounds leave their ends out": (
        {"before": Open("5 seconds"), "after": "0 seconds"},
        [("A", 6000)],
        [("A", 1000), ("A", 1001), ("A", 4999), ("A", 6000), ("A", 6001)],
        {(6000, 1001), (6000, 4999), (6000, 6000)},
    ),
    "equal times": (
        {},
        [("K", 1000), ("K", 4000), ("L", 2000), ("K", 5001)],
        [("K", 1000), ("K", 4000), ("L", 3000), ("K", 5001), ("K", 6000)],
        {(1000, 1000), (4000, 4000), (5001, 5001)},
    ),
    "both in one window": (
        {"same": Tumbling("4 seconds")},
        [("A", 3999), ("A", 4000)],
        [("A", 0), ("A", 4000), ("A", 7999), ("A", 8000)],
        {(3999, 0), (4000, 4000), (4000, 7999)},
    ),
}


def join_of(columns: str = "k STRING", **bounds: Any) -> CompiledJoin:
    """Compile a join of two sources, by one key unless ``on`` says more."""
    sources = [
        KafkaSource(name=name, topic=name, schema=f"{columns}, at TIMESTAMP", event_time="at")
        for name in ("a", "b")
    ]
    join = Join("j", left="a", right="b", **{"on": {"k": "k"}, **bounds})
    view = View("v", of="j", keys=[], window=Tumbling("1 hour"), measures={"n": count()})
    batch = Batch("1 hour", "1970-01-01")
    [made] = compile_pipeline(
        Pipeline(name="p", source=sources, derive=[join], views=[view], batch=batch)
    ).views
    assert made.join
    return made.join


def table(join: CompiledJoin, side: int, rows: Rows, epoch: int) -> pa.Table:
    """Return rows as an epoch has them."""
    made = [
        {
            "_topic_id": "t",
            "_topic": "t",
            "_partition": side,
            "_offset": at * 10 + epoch,
            "_epoch": epoch,
            "_event_time": BEGIN + timedelta(milliseconds=at),
            "k": key,
            "at": BEGIN + timedelta(milliseconds=at),
        }
        for key, at in rows
    ]
    schema = side_schema(join.sides[side])
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in made], schema)


@pytest.mark.parametrize("name", CASES)
def test_pairs_are_those_of_flink_in_any_order(name: str, tmp_path: Path) -> None:
    """The right rows before the left ones, after them, and half of each at once."""
    bounds, lefts, rights, wanted = CASES[name]
    join = join_of(**bounds)
    half = len(rights) // 2
    parts = [(0, lefts), (1, rights[:half]), (1, rights[half:])]
    for number, order in enumerate(permutations(parts)):
        index = JoinedIndex(join, tmp_path / str(number))
        found: list[tuple[int, int]] = []
        for epoch, (side, rows) in enumerate(order):
            new = list(no_rows(join))
            new[side] = table(join, side, rows, epoch)
            relation = index.derive((new[0], new[1]), no_rows(join))
            pairs = index.con.execute(
                f"SELECT epoch_ms(_event_time), epoch_ms(_right_event_time) FROM {relation}"
            ).fetchall()
            found += pairs
            index.take((new[0], new[1]), None)
        index.close()
        assert sorted(found) == sorted(wanted), order


HOSTILE = (
    "id", "rowid", "key0", "k", "s", "l", "r", "kept", "taken", "cell", "pairs", "derived", "left", "c0", "logged",
)  # fmt: skip
"""Names that our SQL has for something of its own."""


def test_columns_may_be_called_as_ours_are(tmp_path: Path) -> None:
    """Each name as the key, beside all of the others, in the index and in what is read of the log."""
    columns = ", ".join(f"{name} INT" for name in HOSTILE)
    for key in HOSTILE:
        join = join_of(
            columns=columns,
            on={key: key},
            where=" AND ".join(f"a_{name} >= b_{name}" for name in HOSTILE),
            after="1 second",
        )
        index = JoinedIndex(join, tmp_path / key)
        rows = [
            {"_topic_id": "t", "_topic": "t", "_partition": side, "_offset": side, "_epoch": side}
            | {"_event_time": BEGIN, **dict.fromkeys(HOSTILE, 7)}
            for side in range(2)
        ]
        left, right = (
            pa.Table.from_pylist([row], side_schema(side)) for row, side in zip(rows, join.sides, strict=True)
        )
        nothing = no_rows(join)
        index.take((left, nothing[1]), None)
        assert count_rows(index, index.derive((nothing[0], right), nothing)) == 1
        index.register(new_left=nothing[0], new_right=right, logged=left)
        sought = index.con.sql(sought_rows_sql(join, 0, "SELECT * FROM logged", 1)).to_arrow_table()
        assert sought.num_rows == 1
        index.close()


def count_rows(index: JoinedIndex, relation: str) -> int:
    """Count the rows of a relation."""
    [(count,)] = index.con.execute(f"SELECT count(*) FROM {relation}").fetchall()
    return int(count)


def test_the_key_of_most_pairs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By how many it has, and not by its name."""
    monkeypatch.setattr(joined_index, "MOST_PAIRS", 4)
    join = join_of(on={"k": "k", "at": "at"})
    lefts: Rows = [("Z", 9000), ("A", 1000), ("A", 1000), ("A", 1000)]
    new = (table(join, 0, lefts, 0), table(join, 1, [("Z", 9000), ("A", 1000), ("A", 1000)], 0))
    index = JoinedIndex(join, tmp_path)
    with pytest.raises(TooManyPairs, match="4 of them and more for k = A, at = 1970-01-01 00:00:01"):
        index.derive(new, no_rows(join))
    index.close()
